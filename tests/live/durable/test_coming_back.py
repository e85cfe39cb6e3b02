"""A member that was killed and is started again with its log: only what it lacks is sent."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ordercast
from ordercast import Group, JoinError, LogSettings, View
from ordercast.log import Log, Options, Retention, check
from tests.live.durable.logged import LOGGED_ORDERS, hashes, kill, open_logged, texts
from tests.live.groups import hear, member_of, new_name, run

FAST = 0.6  # seconds: failure timeout


class Sum:
    """An application: it adds numbers."""

    def __init__(self) -> None:
        self.total = self.loads = 0

    def save(self) -> bytes:
        return b"%d" % self.total

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        self.total = int(b"".join([part async for part in parts]))
        self.loads += 1

    async def read(self, group: Group, count: int) -> None:
        for message in await hear(group, count):
            self.total += int(message.payload)


async def without(group: Group, name: str) -> None:
    """Waits for a view without a member, and drops the messages before it."""
    async for event in group.events():
        if isinstance(event, View) and name not in event.members:
            return


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_only_the_end_of_the_log_is_sent(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        a, b, c = await open_logged(name, tmp_path, "A", "B", "C", order=order, failure_timeout=FAST)
        first = [
            await each.send(bytes(1000) + b"%d" % number, until="durable") for number, each in enumerate((a, b, c))
        ]
        assert len(first) == 3
        await kill(c)
        await without(a, "C")
        for number in range(100):
            a.send_nowait(b"missed %d" % number)
        await a.send(bytes(200_000), until="durable")
        [again] = await open_logged(name, tmp_path, "C", of=("A", "B", "C"), order=order, failure_timeout=FAST)
        missed = await hear(again, 101)
        assert [message.position for message in missed] == list(range(3, 104))
        assert {message.sender for message in missed} == {"A"}
        await again.send(b"back", until="durable")
        assert (await hear(again, 1))[0].position == 104
        assert member_of(again).state.bytes_received < 210_000
        await asyncio.gather(*(group.close() for group in (a, b, again)))
        assert texts(tmp_path, "A") == texts(tmp_path, "C")
        assert len(hashes(tmp_path, "A", "B", "C")) == 1

    run(test)


def test_what_was_never_agreed_on_is_dropped_loudly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        name = new_name()
        a, b, c = await open_logged(name, tmp_path, "A", "B", "C", failure_timeout=FAST)
        await a.send(b"agreed", until="durable")
        await hear(c, 1)
        await kill(c)
        with Log(tmp_path / "C", name) as log:
            log.append(2, 0, [5, 6], b"alonealone!")
        await without(a, "C")
        await a.send(b"later", until="durable")
        [again] = await open_logged(name, tmp_path, "C", of=("A", "B", "C"), failure_timeout=FAST)
        assert [(message.position, message.payload) for message in await hear(again, 1)] == [(1, b"later")]
        await asyncio.gather(*(group.close() for group in (a, b, again)))
        assert len(hashes(tmp_path, "A", "B", "C")) == 1

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "C drops 2 messages from its log, from position 1 on: the group never agreed on them" in caplog.text


def test_an_application_begins_where_it_says(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        a, b = await open_logged(name, tmp_path, "A", "B", failure_timeout=FAST)
        for number in range(5):
            await a.send(b"%d" % number, until="durable")
        await kill(b)
        await without(a, "B")
        settings = ordercast.Settings(failure_timeout=FAST)
        log = LogSettings(tmp_path / "B", start=2)
        again = await ordercast.join(name, members=["A", "B"], name="B", settings=settings, log=log)
        assert [(each.position, each.view, each.payload) for each in await hear(again, 3)] == [
            (number, 0, b"%d" % number) for number in (2, 3, 4)
        ]
        await asyncio.gather(*(group.close() for group in (a, again)))

    run(test)


def test_an_application_with_a_state_needs_no_transfer_if_its_log_has_all(tmp_path: Path) -> None:
    async def test() -> None:
        name, sums = new_name(), [Sum(), Sum(), Sum()]
        a, b, c = await asyncio.gather(
            *(join_with(name, each, one, tmp_path) for each, one in zip("ABC", sums, strict=True))
        )
        for number in range(10):
            await a.send(b"%d" % number, until="durable")
        await asyncio.gather(*(one.read(group, 10) for one, group in zip(sums, (a, b, c), strict=True)))
        await kill(c)
        await without(a, "C")
        await a.send(b"100", until="durable")
        await sums[0].read(a, 1)
        fresh = Sum()
        again = await join_with(name, "C", fresh, tmp_path)
        await fresh.read(again, 11)
        assert (fresh.total, fresh.loads) == (145, 0)
        await asyncio.gather(*(group.close() for group in (a, b, again)))

    run(test)


def test_who_has_nothing_in_common_is_given_the_state(tmp_path: Path) -> None:
    """The log of the group begins behind the end of the joiner's."""

    async def test() -> None:
        name, sums = new_name(), [Sum(), Sum()]
        a, b = await asyncio.gather(
            *(join_with(name, each, one, tmp_path, small=True) for each, one in zip("AB", sums, strict=True))
        )
        await a.send(b"1", until="durable")
        await asyncio.gather(*(one.read(group, 1) for one, group in zip(sums, (a, b), strict=True)))
        await kill(b)
        await without(a, "B")
        for number in range(200):
            await a.send(b"%0100d" % number, until="durable")
            await sums[0].read(a, 1)
        reading = asyncio.create_task(a.receive())
        while check(tmp_path / "A").first <= 1:
            await asyncio.sleep(0.01)
        assert check(tmp_path / "A").first > 1
        fresh = Sum()
        again = await join_with(name, "B", fresh, tmp_path, small=True)
        assert (fresh.total, fresh.loads) == (1 + sum(range(200)), 1)
        await again.send(b"5", until="durable")
        await fresh.read(again, 1)
        assert int((await reading).payload) == 5
        await asyncio.gather(*(group.close() for group in (a, again)))
        found = hashes(tmp_path, "A", "B")
        assert len(found) == 1
        assert check(tmp_path / "B").first == 201

    run(test)


def test_without_a_state_it_is_told_what_to_do(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        logs = {each: limited(tmp_path / each) for each in "AB"}
        a, b = await asyncio.gather(
            *(ordercast.join(name, members=["A", "B"], name=each, log=logs[each]) for each in "AB")
        )
        await a.send(b"1", until="durable")
        await kill(b)
        for number in range(100):
            await a.send(b"%0200d" % number)
        await hear(a, 101)
        with pytest.raises(JoinError, match="move the folder of its log away"):
            await ordercast.join(name, members=["A", "B"], name="B", log=logs["B"])
        await a.leave()

    run(test)


def limited(folder: Path) -> LogSettings:
    return LogSettings(folder, options=Options(Retention(bytes=2000, needs_snapshot=False), max_segment=1000))


async def join_with(name: str, who: str, state: Sum, folder: Path, *, small: bool = False) -> Group:
    options = Options(Retention(bytes=2000), max_segment=1000) if small else Options()
    names = ["A", "B"] if small else ["A", "B", "C"]
    settings = ordercast.Settings(failure_timeout=FAST)
    log = LogSettings(folder / who, options=options)
    return await ordercast.join(name, members=names, name=who, settings=settings, state=state, log=log)
