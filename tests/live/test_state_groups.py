"""Members that join a running group get the application's state, at one place of the order; each order."""

import asyncio
import logging
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Group, GroupAborted, JoinError, Message, View
from ordercast.audit import audit
from ordercast.live.host import inbox
from ordercast.live.host.arrivals import Arrivals
from ordercast.wire.keys import GroupKeys
from tests.live.groups import ORDERS, crash, join, member_of, new_name, run
from tests.live.state_transfer import until

KEYS = GroupKeys({1: b"k" * 32})
TIMEOUT = 1.0  # of failures; 0.5 is the least


class Log:
    """An application: all that it was handed, which is also its state."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.events: list[Any] = []
        self.saves = self.loads = 0
        self.before_load: Callable[[], Any] | None = None
        """Awaited when a state begins to be loaded."""

    def save(self) -> Any:
        self.saves += 1
        return self.parts(list(self.log))

    def save_whole(self) -> bytes:
        """The same, not in parts."""
        self.saves += 1
        return "".join(f"{entry}\n" for entry in self.log).encode()

    async def parts(self, log: list[str]) -> AsyncIterator[bytes]:
        for entry in log:
            yield f"{entry}\n".encode()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        self.loads += 1
        if self.before_load is not None:
            await self.before_load()
        self.log = b"".join([part async for part in parts]).decode().splitlines()

    async def read(self, group: Group) -> None:
        async for event in group.events():
            self.events.append(event)
            if isinstance(event, Message):
                self.log.append(f"{event.sender}{event.payload.decode()}")

    def views(self) -> list[View]:
        return [event for event in self.events if isinstance(event, View)]


class Groups:
    """Applications of one group, in one event loop."""

    def __init__(self, **options: Any) -> None:
        self.name, self.options = new_name(), {"failure_timeout": TIMEOUT, "timeout": 10, "key": KEYS, **options}
        self.logs: dict[str, Log] = {}
        self.groups: dict[str, Group] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def found(self, names: str) -> None:
        await asyncio.gather(*(self._found(name, names) for name in names))

    async def _found(self, name: str, names: str) -> None:
        self.logs[name] = self.new_log()
        group = await join(self.name, members=list(names), name=name, state=self.logs[name], **self.options)
        self.open(name, group)

    def new_log(self) -> Log:
        """Of a member that opens the group."""
        return Log()

    async def join(self, name: str, log: Log | None = None, **options: Any) -> None:
        self.logs[name] = state = log or Log()
        options = {"state": state, "key": self.options["key"], "timeout": 10, **options}
        self.open(name, await ordercast.join(self.name, contacts=self.contacts(), name=name, **options))

    def contacts(self) -> list[str]:
        return [str(member_of(group).address) for group in self.groups.values()]

    def open(self, name: str, group: Group) -> None:
        self.groups[name] = group
        self.tasks[name] = asyncio.create_task(self.logs[name].read(group))

    def crash(self, name: str) -> None:
        crash(self.groups.pop(name))
        self.tasks.pop(name).cancel()

    async def send(self, name: str, *payloads: int, to: set[str] | None = None) -> None:
        for payload in payloads:
            await self.groups[name].send(b"%d" % payload, to=to)

    async def close(self) -> None:
        await asyncio.gather(*(group.close(10) for group in self.groups.values()))
        await asyncio.gather(*self.tasks.values())


@asynccontextmanager
async def groups(names: str = "ABC", **options: Any) -> AsyncIterator[Groups]:
    found = Groups(**options)
    await found.found(names)
    yield found
    await found.close()


def held_up() -> tuple[Log, asyncio.Event, asyncio.Event]:
    """An application that begins to load, and goes on when it is told."""
    begun, goes_on, log = asyncio.Event(), asyncio.Event(), Log()

    async def wait() -> None:
        begun.set()
        await goes_on.wait()

    log.before_load = wait
    return log, begun, goes_on


@pytest.mark.parametrize("order", ORDERS)
def test_a_joiner_has_the_state_and_then_everything_after_it(order: str) -> None:
    async def test() -> None:
        async with groups(order=order) as found:
            log, begun, goes_on = held_up()
            await found.send("A", *range(20))
            task = asyncio.create_task(found.join("D", log))
            sending = asyncio.create_task(found.send("B", *range(100, 140)))
            await begun.wait()
            await found.send("C", *range(200, 220))  # held
            await sending
            await asyncio.sleep(0.05)
            assert (log.log, log.events, task.done()) == ([], [], False)
            goes_on.set()
            await task
            await found.send("D", *range(300, 310))
        logs = {name: each.log for name, each in found.logs.items()}
        assert len(logs["A"]) == 90
        if order == "partial":
            assert all(sorted(each) == sorted(logs["A"]) for each in logs.values())
        else:
            assert all(each == logs["A"] for each in logs.values())
        assert isinstance(log.events[0], View)
        assert [view.number for view in log.views()][:1] == [1]
        assert sum(each.saves for each in found.logs.values()) == 2
        await until(lambda: not any(waiting(group) for group in found.groups.values()))

    run(test)


def waiting(group: Group) -> frozenset[Any]:
    transfer = member_of(group).state._transfer
    assert transfer is not None
    return transfer._donor.waiting


def test_the_state_is_saved_when_the_application_is_handed_the_view() -> None:
    """Not when the protocol installs it: the application has not read the messages before it."""

    async def test() -> None:
        found = Groups(order="sequenced")
        await found.found("AB")
        for name in "AB":
            found.tasks[name].cancel()  # neither reads
        await found.send("A", *range(10))
        task = asyncio.create_task(found.join("D"))
        await until(lambda: all(len(member_of(each).views.view.members) == 3 for each in found.groups.values()))
        await found.send("B", *range(20, 30))
        await asyncio.sleep(0.2)
        assert [found.logs[name].saves for name in "AB"] == [0, 0]
        for name, group in list(found.groups.items()):
            found.open(name, group)
        await task
        await found.close()
        assert found.logs["D"].log == found.logs["A"].log
        assert len(found.logs["D"].log) == 20

    run(test)


def test_an_application_that_reads_messages_alone_saves_at_the_same_place() -> None:
    async def test() -> None:
        found = Groups(order="sequenced")
        await found.found("AB")
        for name in "AB":
            found.tasks[name].cancel()
            found.tasks[name] = asyncio.create_task(messages(found.logs[name], found.groups[name]))
        sending = asyncio.create_task(found.send("A", *range(100)))
        await found.join("D")
        await sending
        await found.close()
        assert found.logs["D"].log == found.logs["A"].log == [f"A{number}" for number in range(100)]

    async def messages(log: Log, group: Group) -> None:
        async for message in group:
            log.log.append(f"{message.sender}{message.payload.decode()}")

    run(test)


def test_who_returns_loads_the_state_after_it_was_handed_what_came_before() -> None:
    """What it was delivered and did not read before its exclusion is in the state: it must not be applied again."""

    async def test() -> None:
        found = Groups(order="sequenced", failure_timeout=0.5)
        await found.found("ABC")
        found.tasks["C"].cancel()  # it does not read
        await found.send("A", *range(10))
        await until(lambda: sum(member_of(found.groups["C"]).inbox.delivered.values()) == 10)
        endpoint = member_of(found.groups["C"]).transport.endpoint
        send, endpoint.send = endpoint.send, lambda *_: None  # type: ignore[method-assign]
        await until(lambda: found.groups["A"].stats().view == 1)
        endpoint.send = send  # type: ignore[method-assign]
        await until(lambda: found.groups["A"].stats().view == 2)
        await asyncio.sleep(0.05)
        assert found.logs["C"].loads == 0
        found.open("C", found.groups["C"])
        await found.send("A", *range(10, 20))
        await until(lambda: len(found.logs["C"].log) == 20)  # one that ends while it loads the state ends without them
        await found.close()
        assert found.logs["C"].log == found.logs["A"].log
        kinds = [type(event) for event in found.logs["C"].events]
        assert kinds == [*[Message] * 10, ordercast.Excluded, View, *[Message] * 10]

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_large_messages_that_are_under_way_reach_the_joiner_whole(order: str) -> None:
    async def test() -> None:
        async with groups(order=order, max_datagram_size=4096) as found:
            sending = asyncio.create_task(send_large(found.groups["A"]))
            await asyncio.sleep(0.02)
            await found.join("D")
            await sending
        assert sorted(found.logs["D"].log) == sorted(found.logs["A"].log)
        assert len(found.logs["A"].log) == 12

    async def send_large(group: Group) -> None:
        for number in range(12):
            await group.send(b"%d" % number + b"x" * 100_000)
            await asyncio.sleep(0.01)

    run(test)


@pytest.mark.parametrize("order", ["partial", "total"])
def test_messages_to_the_joiner_alone_follow_its_state(order: str) -> None:
    async def test() -> None:
        async with groups(order=order) as found:
            await found.send("A", 1, to={"A", "C"})  # C gives the state
            await found.send("A", 2, to={"A", "B"})
            await found.send("A", 3)
            await until(lambda: len(found.logs["C"].log) == 2)
            log, begun, goes_on = held_up()
            task = asyncio.create_task(found.join("D", log))
            await begun.wait()
            await found.send("A", 4, to={"D"})
            await found.send("A", 5, to={"C", "D"})
            await found.send("A", 6, to={"D"})
            goes_on.set()
            await task
        assert log.log == ["A1", "A3", "A4", "A5", "A6"]  # the state is C's
        assert found.logs["C"].log == ["A1", "A3", "A5"]

    run(test)


def test_bytes_of_states_are_counted_where_they_go_and_where_they_come_from() -> None:
    async def test() -> None:
        async with groups(order="partial") as found:
            await found.send("A", *range(20))
            for name in "DE":
                await found.join(name, Log())
            stats = {name: group.stats() for name, group in found.groups.items()}
        received = {name: each.state_bytes_received for name, each in stats.items()}
        assert received["A"] == received["B"] == received["C"] == 0
        assert min(received["D"], received["E"]) > 20, "one for each message, at least"
        assert sum(each.state_bytes_sent for each in stats.values()) == sum(received.values())

    run(test)


@pytest.mark.parametrize("order", ["sequenced", "partial"])
def test_if_a_donor_dies_meanwhile_the_other_one_gives_its_state(order: str, caplog: pytest.LogCaptureFixture) -> None:
    """The first donor is the youngest member, C; on a busy machine, on which C is not ready soon, it is B.

    Then C is asked a second time: its state can be read twice.
    """

    async def test() -> None:
        async with groups(order=order) as found:
            for each in found.logs.values():
                each.save = each.save_whole  # type: ignore[method-assign]
            await found.send("A", *range(20))
            log, begun, goes_on = held_up()
            big = random.randbytes(4 << 20).hex()  # more than the connection holds
            for each in found.logs.values():
                each.log.append(big)
            task = asyncio.create_task(found.join("D", log))
            await begun.wait()
            (donor,) = re.findall("D loads the state from (.)", caplog.text)
            found.crash(donor)
            await found.send("A", *range(20, 30))
            goes_on.set()
            await task
            assert log.loads == 2
        assert sorted(log.log) == sorted(found.logs["A"].log)
        assert len(log.log) == 31
        assert log.views()[-1].left == {donor: "silent"}

    with caplog.at_level(logging.INFO, "ordercast.membership"):
        run(test)


def test_if_both_donors_die_the_joiner_joins_again_by_itself() -> None:
    async def test() -> None:
        async with groups("ABCDE", order="sequenced") as found:
            await found.send("A", *range(10))
            log, begun, goes_on = held_up()
            for each in found.logs.values():
                each.log.append("x" * (8 << 20))
            task = asyncio.create_task(found.join("F", log))
            await begun.wait()
            found.crash("D")
            found.crash("E")
            goes_on.set()
            await found.send("A", *range(10, 20))
            await task
            assert log.loads == 2
            by_living = sum(group.stats().state_bytes_sent for group in found.groups.values())
            assert found.groups["F"].stats().state_bytes_received > by_living, "what D or E had sent counts, too"
            await found.send("F", 99)
        assert log.log == found.logs["A"].log
        assert set(log.views()[-1].members) == set("ABCF")
        assert isinstance(log.events[0], View)

    run(test)


def test_a_joiner_that_dies_costs_the_donors_nothing() -> None:
    async def test() -> None:
        async with groups(order="sequenced") as found:
            await found.send("A", *range(10))
            log, begun, _ = held_up()
            task = asyncio.create_task(found.join("D", log))
            await begun.wait()
            await until(lambda: waiting(found.groups["B"]) != frozenset())
            task.cancel()  # it says that it leaves
            await until(lambda: all(len(each.members) == 3 and not waiting(each) for each in found.groups.values()))
            await asyncio.wait([task])  # it has closed its socket
            await found.send("A", 11)
        assert found.logs["A"].views()[-1].left == {"D": "left"}
        assert found.logs["A"].log == found.logs["C"].log

    run(test)


def test_two_that_join_at_once_both_get_the_state() -> None:
    async def test() -> None:
        async with groups(order="total") as found:
            await found.send("A", *range(10))
            await asyncio.gather(found.join("D"), found.join("E"))
            await found.send("E", 99)
        assert found.logs["D"].log == found.logs["E"].log == found.logs["A"].log
        assert len(found.logs["A"].log) == 11

    run(test)


def test_the_last_one_with_the_state_leaves_when_the_joiner_has_it() -> None:
    async def test() -> None:
        async with groups("AB", order="sequenced") as found:
            await found.send("A", *range(10))
            await found.groups.pop("B").leave()
            await found.tasks.pop("B")
            log, begun, goes_on = held_up()
            task = asyncio.create_task(found.join("D", log))
            await begun.wait()
            leaving = asyncio.create_task(found.groups.pop("A").leave())
            await asyncio.sleep(TIMEOUT + 0.2)
            assert not leaving.done()
            goes_on.set()
            await task
            await leaving
            await found.tasks.pop("A")
            await until(lambda: found.groups["D"].members == ("D",))
        assert log.log == [f"A{number}" for number in range(10)]

    run(test)


def test_a_load_that_raises_fails_the_joiner_alone() -> None:
    class Bad(Log):
        async def load(self, parts: AsyncIterator[bytes]) -> None:
            async for _ in parts:
                raise ValueError("cannot read it")

    async def test() -> None:
        async with groups(order="total") as found:
            await found.send("A", *range(10))
            with pytest.raises(JoinError, match="D could not load the state of the group: ValueError: cannot read it"):
                await found.join("D", Bad())
            await until(lambda: all(len(each.members) == 3 for each in found.groups.values()))
            await found.send("A", 11)
            await found.join("D", Log())  # another process may
        assert found.logs["D"].log == found.logs["A"].log
        assert len(found.logs["A"].log) == 11

    run(test)


def test_a_save_that_raises_fails_the_joiner_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Bad(Log):
        def save(self) -> Any:
            raise RuntimeError("no memory for a copy")

    async def test() -> None:
        async with groups(order="sequenced") as found:
            for name in "BC":
                member_of(found.groups[name]).state._transfer._donor._state = Bad()  # type: ignore[union-attr]
            with pytest.raises(JoinError, match=r"C could not save its state \(RuntimeError.*B could not save"):
                await found.join("D")
            assert "no memory for a copy" in caplog.text
            await found.send("A", 1)
        assert found.logs["A"].log == found.logs["B"].log == ["A1"]

    run(test)


def test_who_has_a_state_and_who_has_none_are_told() -> None:
    async def test() -> None:
        async with groups("AB", order="sequenced") as found:
            with pytest.raises(JoinError, match="gives its state to those that join, and D cannot take it: join with"):
                await found.join("D", state=None)
        found.options["state"] = None
        name = new_name()
        without = await asyncio.gather(*(join(name, members=["A", "B"], name=each, timeout=10) for each in "AB"))
        address = str(member_of(without[0]).address)
        with pytest.raises(JoinError, match="have no state to give, and D expects one: join without"):
            await ordercast.join(name, contacts=[address], name="D", timeout=10, state=Log())
        await asyncio.gather(*(group.close() for group in without))
        name = new_name()
        joined = await asyncio.gather(
            join(name, members=["A", "B"], name="A", timeout=3, state=Log()),
            join(name, members=["A", "B"], name="B", timeout=3),
            return_exceptions=True,
        )
        assert all(isinstance(each, JoinError) and "state=true" in str(each) for each in joined)

    run(test)


@pytest.mark.parametrize("state", [object(), Path()])
def test_what_is_no_state_is_refused_at_once(state: Any) -> None:
    with pytest.raises(ordercast.ConfigError, match="state must be an object with the methods save and load"):
        ordercast.join("x", members=["A", "B"], state=state)


def test_an_excluded_member_returns_and_loads_the_state_again() -> None:
    async def test() -> None:
        async with groups(order="sequenced") as found:
            await found.send("A", *range(5))
            c = member_of(found.groups["C"])
            await until(lambda: len(found.logs["C"].log) == 5)
            silence(c)
            await until(lambda: len(found.groups["A"].members) == 2)
            await found.send("A", *range(5, 10))
            hears_again(c)
            await until(lambda: found.logs["C"].loads == 1 and len(found.groups["C"].members) == 3)
            await found.send("C", 77)
        assert found.logs["C"].log == found.logs["A"].log
        kinds = [type(event).__name__ for event in found.logs["C"].events if not isinstance(event, Message)]
        assert kinds[-2:] == ["Excluded", "View"]

    run(test)


def silence(member: Any) -> None:
    """Nothing reaches it, and nothing of it reaches others."""
    endpoint = member.transport.endpoint
    endpoint.hidden = (endpoint.send, endpoint.send_to_all, endpoint.receive)
    endpoint.send = endpoint.send_to_all = lambda *_: None
    endpoint.receive = lambda _: None


def hears_again(member: Any) -> None:
    endpoint = member.transport.endpoint
    endpoint.send, endpoint.send_to_all, endpoint.receive = endpoint.hidden


def test_a_group_that_is_closed_while_nobody_reads_does_not_wait_for_a_joiner() -> None:
    async def test() -> None:
        found = Groups(order="sequenced")
        await found.found("AB")
        for name in "AB":
            found.tasks.pop(name).cancel()
        task = asyncio.create_task(found.join("D", timeout=2))
        await until(lambda: len(member_of(found.groups["A"]).views.view.members) == 3)
        await asyncio.gather(*(group.close(20) for group in found.groups.values()))
        with pytest.raises(JoinError):
            await task

    run(test)


def test_what_is_delivered_meanwhile_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert inbox.HOLD_LIMIT == 256 << 20
    monkeypatch.setattr(inbox, "INBOX_LIMIT", 1 << 16)
    monkeypatch.setattr(inbox, "HOLD_LIMIT", 1 << 18)

    async def test() -> None:
        async with groups("AB", order="sequenced", max_datagram_size=8192) as found:
            log, begun, goes_on = held_up()
            task = asyncio.create_task(found.join("D", log))
            await begun.wait()
            sending = asyncio.create_task(many(found.groups["A"]))
            await asyncio.sleep(0.5)
            goes_on.set()
            await task
            await sending
            held = most[0]
            assert 1 << 16 < held < (1 << 18) + (1 << 17)
        assert len(found.logs["D"].log) == 400

    async def many(group: Group) -> None:
        for _ in range(400):
            await group.send(bytes(4000))
            await asyncio.sleep(0)

    most = [0]
    hold = Arrivals.unit_received

    def watched(self: Any, member: int, unit: Any) -> None:
        hold(self, member, unit)
        if self._inbox.is_held:
            most[0] = max(most[0], self._inbox.bytes)

    monkeypatch.setattr(Arrivals, "unit_received", watched)
    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_records_of_joins_with_state_audit_clean(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with groups(order=order, record=tmp_path) as found:
            await found.send("A", *range(10))
            log, begun, goes_on = held_up()
            task = asyncio.create_task(found.join("D", log, record=tmp_path))
            await begun.wait()
            await found.send("B", *range(10))
            found.crash("C")
            await until(lambda: len(found.groups["A"].members) == 3)
            await found.send("B", *range(10, 20))
            goes_on.set()
            await task
            await found.send("D", 1)

    run(test)
    verdict = audit([tmp_path])
    assert verdict.holds, verdict
    assert verdict.findings["state_complete"].runs == 1


def test_a_return_that_cannot_load_ends_with_the_reason() -> None:
    async def test() -> None:
        found = Groups(order="sequenced")
        await found.found("ABC")
        c = member_of(found.groups["C"])
        silence(c)
        await until(lambda: len(found.groups["A"].members) == 2)

        async def fails() -> None:
            raise ValueError("cannot load")

        found.logs["C"].before_load = fails
        hears_again(c)
        with pytest.raises(GroupAborted, match="C could not load the state of the group: ValueError: cannot load"):
            await found.tasks.pop("C")
        await until(c.left.done)  # until then it answers those that ask for the view
        del found.groups["C"]
        await found.close()

    run(test)
