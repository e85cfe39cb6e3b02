"""What a member writes, and when a message is durable."""

import asyncio
import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import ordercast
from ordercast import ConfigError, Group, GroupAborted, LocalProtocolError, LogSettings, View
from ordercast.live.host.durable.member_log import MemberLog
from ordercast.live.host.durable.restart_host import decode_here, encode_here
from ordercast.log import Log, check
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.view import Incarnation, NextView, founding_view
from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.standing import Plan, Standing, encode_standing
from tests.live.durable.logged import LOGGED_ORDERS, hashes, is_file_in, kill, open_logged, texts
from tests.live.groups import group_of, hear, member_of, new_name, run
from tests.small_disk import fill, small_disk

ONE = Incarnation("A", 1, "127.0.0.1:7000")


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_every_member_writes_what_it_delivers(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        groups = await open_logged(new_name(), tmp_path, "A", "B", "C", order=order)
        for number in range(300):
            groups[number % 3].send_nowait(b"%d" % number)
        large = bytes(range(256)) * 1000
        await groups[1].send(large)
        delivered = [await hear(group, 301) for group in groups]
        await asyncio.gather(*(group.close() for group in groups))
        expected = [(message.position, message.sender, message.payload) for message in delivered[0]]
        assert large in [payload for _, _, payload in expected]
        assert texts(tmp_path, "A", "B", "C") == [expected] * 3
        assert len(hashes(tmp_path, "A", "B", "C")) == 1
        assert check(tmp_path / "A").members == ("A", "B", "C")

    run(test)


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_the_application_is_handed_a_message_before_the_thread_of_the_log_is_woken(
    order: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The two threads never run at the same time: what the disk begins first, the application waits for."""
    happened: list[object] = []
    hand_over = Log._hand_over

    def noted_hand_over(log: Log) -> None:
        happened.append(log)
        hand_over(log)

    async def take(group: Group) -> None:
        happened.append((await group.receive()).payload)

    async def test() -> None:
        groups = await open_logged(new_name(), tmp_path, "A", "B", order=order)
        monkeypatch.setattr(Log, "_hand_over", noted_hand_over)
        for number in range(5):
            await asyncio.sleep(0.03)  # whatever they still have to note and to tell
            happened.clear()
            taking = [asyncio.create_task(take(group)) for group in groups]
            await groups[number % 2].send(b"lone", until="durable")
            await asyncio.gather(*taking)
            logs = [log for log in (member_of(group).log for group in groups) if log is not None]
            assert all(happened.index(log._log) > happened.index(b"lone") for log in logs), happened
            assert happened.count(b"lone") == 2
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_what_is_told_durable_is_on_the_disks_of_a_majority(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        groups = await open_logged(new_name(), tmp_path, "A", "B", "C", order=order)
        for number in range(20):
            await groups[number % 3].send(b"%d" % number, until="durable")
            logged = [len(each) for each in texts(tmp_path, "A", "B", "C")]  # readers see what is on the disk only
            assert sum(count > number for count in logged) >= 2
        stats = groups[1].stats()
        assert (stats.durable_position >= 19, stats.log_bytes > 500, stats.log_error) == (True, True, None)
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


def test_a_message_is_durable_without_a_minority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of one member takes for ever: the majority of the others is enough."""
    sync, released = os.fdatasync, threading.Event()

    def hangs(descriptor: int) -> None:
        if is_file_in(tmp_path / "C", descriptor):
            released.wait(10)
        sync(descriptor)

    async def test() -> None:
        released.set()
        groups = await open_logged(new_name(), tmp_path, "A", "B", "C", order="sequenced")
        await groups[2].send(b"x", until="durable")
        while not texts(tmp_path, "C")[0]:
            await asyncio.sleep(0.01)  # A and B are a majority: C may be later
        released.clear()
        await asyncio.wait_for(groups[0].send(b"y", until="durable"), 5)
        await hear(groups[2], 2)
        assert len(texts(tmp_path, "C")[0]) == 1
        released.set()
        await asyncio.gather(*(group.close() for group in groups))
        assert texts(tmp_path, "C") == texts(tmp_path, "A")

    monkeypatch.setattr("ordercast.log.disk._fdatasync", hangs)
    run(test)


@pytest.mark.parametrize("slow", ["A", "B"])
def test_a_promise_for_the_next_view_is_said_when_it_is_on_the_disk(
    slow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C is killed, and so A and B must agree on the next view: while the disk of one of them hangs, they do not."""
    sync, released = os.fdatasync, threading.Event()

    def hangs(descriptor: int) -> None:
        if is_file_in(tmp_path / slow, descriptor):
            released.wait(20)
        sync(descriptor)

    async def test() -> None:
        released.set()
        a, b, c = await open_logged(new_name(), tmp_path, "A", "B", "C", failure_timeout=0.6)
        await c.send(b"x", until="durable")
        released.clear()
        await kill(c)
        await asyncio.sleep(1.5)
        assert [sorted(group.stats().members) for group in (a, b)] == [["A", "B", "C"]] * 2
        released.set()
        async with asyncio.timeout(10):
            while any("C" in group.stats().members for group in (a, b)):
                await asyncio.sleep(0.01)
        await asyncio.gather(a.close(), b.close())

    monkeypatch.setattr("ordercast.log.disk._fdatasync", hangs)
    run(test)


@pytest.mark.parametrize("together", [False, True], ids=["one after the other", "together"])
def test_who_leaves_last_tells_the_other_that_it_has_left(
    together: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A agrees alone that B has left, and leaves, too: B hears of it when that is on the disk of A, and not before."""
    sync, released = os.fdatasync, threading.Event()

    def hangs(descriptor: int) -> None:
        if is_file_in(tmp_path / "A", descriptor):
            released.wait(20)
        sync(descriptor)

    async def test() -> None:
        released.set()
        a, b = await open_logged(new_name(), tmp_path, "A", "B")
        await b.send(b"x", until="durable")
        released.clear()
        leaving = [asyncio.create_task(b.leave())]
        async with asyncio.timeout(5):
            while not together and a.stats().members != ("A",):
                await asyncio.sleep(0.001)
        leaving.append(asyncio.create_task(a.leave()))
        await asyncio.sleep(0.3)  # longer than one that has left answers where nothing waits for a disk
        assert not member_of(b).left.done()
        released.set()
        await asyncio.wait_for(asyncio.gather(*leaving), 10)  # B raises that it ended alone, if it was not told

    monkeypatch.setattr("ordercast.log.disk._fdatasync", hangs)
    run(test)


def test_a_disk_that_fails_ends_its_member_and_the_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sync, failing, ended = os.fdatasync, False, threading.Event()

    def fails(descriptor: int) -> None:
        if failing and is_file_in(tmp_path / "B", descriptor):
            raise OSError(5, "Input/output error")
        if failing:
            ended.wait(10)  # otherwise a majority may have it, and tell B so, before B has ended
        sync(descriptor)

    async def test() -> None:
        nonlocal failing
        groups = await open_logged(new_name(), tmp_path, "A", "B", "C")
        await groups[0].send(b"before", until="durable")
        await hear(groups[1], 1)
        failing = True
        receipt = groups[1].send_nowait(b"x")
        with pytest.raises(GroupAborted, match="B leaves the group, because the disk of the log failed: Input/output"):
            await hear(groups[1], 2)
        with pytest.raises(GroupAborted):
            await receipt.durable()
        ended.set()
        await groups[0].send(b"after", until="durable")
        async for event in groups[0].events():
            if isinstance(event, View):
                assert "Input" not in event.why, "what the error says is for its own process"
                break
        await asyncio.gather(groups[0].close(), groups[2].close())
        assert [payload for _, _, payload in texts(tmp_path, "A")[0]] == [b"before", b"x", b"after"]
        await kill(groups[1])

    monkeypatch.setattr("ordercast.log.disk._fdatasync", fails)
    with caplog.at_level(logging.ERROR):
        run(test)
    assert "the log of B" in caplog.text


def test_who_goes_on_without_its_disk_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        with small_disk(tmp_path / "disk") as disk:
            name = new_name()
            logs: dict[str, LogSettings | Path] = {
                "A": LogSettings(disk / "A", on_failure="stay"),
                "B": tmp_path / "B",
                "C": tmp_path / "C",
            }
            groups = await asyncio.gather(
                *(ordercast.join(name, members=list(logs), name=each, log=log) for each, log in logs.items())
            )
            fill(disk)
            for _ in range(20):
                receipt = groups[0].send_nowait(bytes(20_000))
            await receipt.durable()
            await hear(groups[0], 20)
            assert "No space left" in str(groups[0].stats().log_error)
            await asyncio.gather(*(group.close() for group in groups))
            assert len(texts(tmp_path, "B")[0]) == 20

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "No space left" in caplog.text


def test_what_has_no_common_position_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="in the order 'partial' members are delivered different messages"):
        ordercast.join("g", members=["A", "B"], name="A", order="partial", log=tmp_path)
    with pytest.raises(ConfigError, match="give its name"):
        ordercast.join("g", members=["A", "B"], log=tmp_path)
    with pytest.raises(ConfigError, match="log must be a folder"):
        ordercast.join("g", members=["A", "B"], name="A", log=3)  # type: ignore[arg-type]

    async def test() -> None:
        groups = await open_logged(new_name(), tmp_path, "A", "B")
        with pytest.raises(LocalProtocolError, match="one position for each message"):
            groups[0].send_nowait(b"x", to={"B"})
        await groups[0].send(b"x", to={"A", "B"}, until="durable")
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


def test_without_a_log_nothing_is_durable() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            receipt = await groups["A"].send(b"x")
            with pytest.raises(LocalProtocolError, match="this member has no log"):
                await receipt.durable()

    run(test)


def test_all_members_have_a_log_or_none_has(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        found = await asyncio.gather(
            ordercast.join(name, members=["A", "B"], name="A", log=tmp_path / "A", timeout=5),
            ordercast.join(name, members=["A", "B"], name="B", timeout=5),
            return_exceptions=True,
        )
        assert all("log" in str(error) for error in found)

    run(test)


def test_a_copy_of_a_log_is_no_disk_of_another_member(tmp_path: Path) -> None:
    """It would count as one more disk that has what is told durable."""

    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, "A", "B")
        await groups[0].send(b"x", until="durable")
        await asyncio.gather(*(kill(group) for group in groups))
        shutil.copytree(tmp_path / "A", tmp_path / "C")
        with pytest.raises(ConfigError, match="is that of A, and must not be used by C"):
            await ordercast.join(name, members=["A", "B", "C"], name="C", log=tmp_path / "C", timeout=5)
        shutil.rmtree(tmp_path / "A")
        again = await asyncio.gather(
            ordercast.join(name, members=["A", "B"], name="A", log=tmp_path / "C", timeout=20),
            ordercast.join(name, members=["A", "B"], name="B", log=tmp_path / "B", timeout=20),
        )
        assert [group.starts_at for group in again] == [1, 1], "moved, not copied"
        await asyncio.gather(*(kill(group) for group in again))

    run(test)


def test_who_has_a_log_says_its_name(tmp_path: Path) -> None:
    """It is found again by its name."""

    async def test() -> None:
        with pytest.raises(ConfigError, match="give its name"):
            await ordercast.join("g", members={"A": "127.0.0.1:0"}, log=tmp_path, timeout=5)

    run(test)


def test_who_gives_up_a_plan_and_agrees_to_another_waits_for_the_disk_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the first one is on the disk says nothing of the second."""

    async def test() -> None:
        log = MemberLog(LogSettings(tmp_path), "g", "A")
        log.standing = Standing(founding_view((ONE,), b""))
        monkeypatch.setattr(log, "write_note", lambda: None)
        monkeypatch.setattr(log, "when_durable", written.append)
        first = asyncio.ensure_future(log.agree(Plan(1, b"1", 0, b"", (ONE,), ONE)))
        await asyncio.sleep(0)
        first.cancel()
        second = asyncio.ensure_future(log.agree(Plan(1, b"2", 0, b"", (ONE,), ONE)))
        await asyncio.sleep(0)
        written[0]()
        await asyncio.sleep(0.01)
        assert not second.done()
        written[1]()
        await second

    written: list[Callable[[], None]] = []
    run(test)


def test_what_makes_no_sense_is_not_taken_for_what_a_log_has() -> None:
    """It would be sent to addresses that are none, or a view would be made that there cannot be."""

    def said(
        members: tuple[Incarnation, ...] = (ONE,), plan: Plan | None = None, accepted: NextView | None = None
    ) -> Here | None:
        note = encode_standing(Standing(founding_view(members, b""), accepted=accepted))
        return decode_here(encode_here(Here("g", ONE, note, 0, b"", plan=plan)), "g")

    def plan(member: Incarnation, holder: Incarnation, *basis: bytes) -> Plan:
        return Plan(1, b"1", 0, b"", (member,), holder, basis)

    def accepted(stay: int, next_node: int) -> NextView:
        return NextView(1, stay, (), 1, (), Cut((0,)), 0, (), next_node, "")

    nowhere = Incarnation("B", 1, "nowhere")
    assert said(plan=plan(ONE, ONE, b"1"), accepted=accepted(1, 1)) is not None
    assert said((ONE, nowhere)) is None
    assert said(plan=plan(nowhere, ONE, b"1")) is None
    assert said(plan=plan(ONE, nowhere, b"1")) is None
    assert said(plan=plan(ONE, ONE)) is None, "it says nothing of what its member had noted"
    for stay, next_node in ((-1, 1), (2, 1), (1, 1 << 40)):
        assert said(accepted=accepted(stay, next_node)) is None, "no view can be made of it"


def test_a_disk_that_cannot_be_read_is_told_when_the_log_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise OSError(5, "Input/output error")

    async def test() -> None:
        with pytest.raises(ConfigError, match=r"the log in .*: Input/output error"):
            await MemberLog(LogSettings(tmp_path, verify=True), "g", "A").open(1000)

    (tmp_path / f"{0:020}").touch()
    monkeypatch.setattr("ordercast.live.host.durable.member_log.check_disk", fails)
    run(test)
