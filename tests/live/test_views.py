"""Members crash, fall silent and leave while the group sends: the others continue in the next view, with everything."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from ordercast import Group, GroupAborted, GroupClosed, LocalProtocolError, Message, Undelivered, View
from ordercast.live.transport.addresses import Address
from ordercast.wire.datagram import Rejection
from ordercast.wire.keys import keys_from_text, new_key
from tests.live.groups import ORDERS, crash, group_of, hear, join, member_of, new_name, run

TIMEOUT = 0.6
"""The failure timeout of these groups, in seconds."""


class Reader:
    """Takes everything out of a group's stream."""

    def __init__(self, group: Group) -> None:
        self.events: list[object] = []
        self.end: BaseException | None = None
        self.task = asyncio.create_task(self._read(group))

    async def _read(self, group: Group) -> None:
        try:
            async for event in group.events():
                self.events.append(event)
        except GroupAborted as error:
            self.end = error

    def views(self) -> list[View]:
        return [event for event in self.events if isinstance(event, View)]

    def log(self, sender: str | None = None) -> list[bytes]:
        """Payloads, of all senders or of one."""
        messages = [event for event in self.events if isinstance(event, Message)]
        return [each.payload for each in messages if sender is None or each.sender == sender]


async def send_many(group: Group, count: int, pause: float = 0.01) -> None:
    """Until the member is gone."""
    for number in range(count):
        if member_of(group).ending.why is not None:
            return
        await group.send(b"%s%d" % (group.me.encode(), number))
        await asyncio.sleep(pause)


def expected(name: str, count: int) -> list[bytes]:
    return [b"%s%d" % (name.encode(), number) for number in range(count)]


def check(readers: dict[str, Reader], gone: Sequence[str], order: str, count: int) -> None:
    """Those that went on delivered the same, in order, once; of those that are gone, the first ones."""
    logs = [reader.log() for reader in readers.values()]
    for reader in readers.values():
        for name in readers:
            assert reader.log(name) == expected(name, count)
        for name in gone:
            found = reader.log(name)
            assert found == expected(name, len(found))
        assert reader.views() == next(iter(readers.values())).views()
        in_view = [(event.view, event.position) for event in reader.events if isinstance(event, Message)]
        assert in_view == sorted(in_view)
    assert all(sorted(log) == sorted(logs[0]) for log in logs), "the same messages"
    if order != "partial":
        assert all(log == logs[0] for log in logs), "in one order"


async def without(gone: Sequence[str], names: str, order: str) -> None:
    count, clock = 50, asyncio.get_running_loop().time
    async with group_of(*names, close=False, order=order, failure_timeout=TIMEOUT) as groups:
        readers = {name: Reader(groups[name]) for name in names if name not in gone}
        sending = [asyncio.create_task(send_many(group, count)) for group in groups.values()]
        await asyncio.sleep(0.15)
        for name in gone:
            crash(groups[name])
        crashed = clock()
        while any(not reader.views() for reader in readers.values()):
            assert clock() < crashed + 2 * TIMEOUT, "the view came too late"
            await asyncio.sleep(0.01)
        await asyncio.gather(*sending)
        await asyncio.gather(*(groups[name].close() for name in readers))
        await asyncio.gather(*(reader.task for reader in readers.values()))
        check(readers, gone, order, count)
        for reader in readers.values():
            (view,) = reader.views()
            assert (view.number, view.members, view.left) == (1, tuple(readers), dict.fromkeys(gone, "silent"))
            assert reader.end is None


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("gone", ["A", "C"])
def test_the_others_of_three_continue_when_one_crashes(order: str, gone: str) -> None:
    """The first one is also the relay, or the sequencer."""
    run(without, gone, "ABC", order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("gone", ["A", "AB", "BD"])
def test_the_others_of_five_continue_when_some_crash_at_once(order: str, gone: str) -> None:
    run(without, gone, "ABCDE", order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "crashes"])
def test_with_a_key_and_a_fifth_of_all_datagrams_lost(order: str, leaves: bool) -> None:
    async def test() -> None:
        chance, count = Random(order), 30
        options: dict[str, Any] = {"order": order, "failure_timeout": 1.0, "key": keys_from_text(new_key(), "here")}
        async with group_of(*"ABCDE", close=False, **options) as groups:
            for group in groups.values():
                endpoint = member_of(group).transport.endpoint
                endpoint.send = _lossy(endpoint.send, chance)  # type: ignore[method-assign, assignment]
            readers = {name: Reader(groups[name]) for name in "BCDE"}
            sending = [asyncio.create_task(send_many(group, count)) for group in groups.values()]
            await asyncio.sleep(0.1)
            if leaves:
                await groups["A"].leave()
            else:
                crash(groups["A"])
            await asyncio.gather(*sending)
            await asyncio.gather(*(groups[name].close() for name in readers))
            await asyncio.gather(*(reader.task for reader in readers.values()))
            check(readers, "A", order, count)
            assert readers["B"].views()[-1].members == ("B", "C", "D", "E")

    run(test)


def _lossy(send: Callable[[bytes, Address], None], chance: Random) -> Callable[[bytes, Address], None]:
    return lambda datagram, address: send(datagram, address) if chance.random() > 0.2 else None


@pytest.mark.parametrize("order", ORDERS)
def test_members_crash_one_after_the_other_until_one_is_left(order: str) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            reader = Reader(groups["B"])
            crash(groups["A"])
            while len(reader.views()) < 1:
                await asyncio.sleep(0.01)
            crash(groups["C"])  # B is the oldest of the two that were left: its half is the majority
            while len(reader.views()) < 2:
                await asyncio.sleep(0.01)
            await groups["B"].send(b"alone", until="known_stable")
            await groups["B"].close()
            await reader.task
            assert [view.members for view in reader.views()] == [("B", "C"), ("B",)]
            assert reader.log() == [b"alone"]

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_a_member_leaves_while_all_send(order: str) -> None:
    async def test() -> None:
        count = 40
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            readers = {name: Reader(groups[name]) for name in "ABC"}
            sending = [asyncio.create_task(send_many(groups[name], count)) for name in "BC"]
            await send_many(groups["A"], 10)
            clock = asyncio.get_running_loop().time
            began = clock()
            await groups["A"].leave()
            assert clock() - began < TIMEOUT, "nobody had to find out that it is gone"
            with pytest.raises(GroupClosed, match="A has left"):
                await groups["A"].send(b"more")
            await readers["A"].task
            await asyncio.gather(*sending)
            await asyncio.gather(*(groups[name].close() for name in "BC"))
            await asyncio.gather(*(readers[name].task for name in "BC"))
            left = readers.pop("A")
            check(readers, "A", order, count)
            for reader in readers.values():
                assert reader.log("A") == expected("A", 10), "all that it had sent"
                (view,) = reader.views()
                assert (view.members, view.left) == (("B", "C"), {"A": "left"})
                assert len(left.log()) == view.position or order == "partial", "it was given all of its last view"

    run(test)


def test_who_waits_for_others_to_close_may_leave_instead() -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, order="total", failure_timeout=TIMEOUT) as groups:
            closing = asyncio.create_task(groups["A"].close())
            await asyncio.sleep(0.1)
            assert not closing.done()
            await groups["A"].leave()
            await closing
            await groups["B"].send(b"on")
            assert [message.payload for message in await hear(groups["C"], 1)] == [b"on"]
            await asyncio.gather(groups["B"].close(), groups["C"].close())

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_all_leave_at_once(order: str) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            readers = [Reader(group) for group in groups.values()]
            await asyncio.gather(*(send_many(group, 5, 0) for group in groups.values()))
            await asyncio.gather(*(group.leave() for group in groups.values()))
            for reader in readers:
                await reader.task
                assert {name: reader.log(name) for name in "ABC"} == {name: expected(name, 5) for name in "ABC"}

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_an_exception_in_one_member_does_not_end_the_group_of_the_others(order: str) -> None:
    async def test() -> None:
        name = new_name()

        async def fails() -> None:
            async with join(name, name="A", members=list("ABC"), order=order, failure_timeout=TIMEOUT) as group:
                await group.send(b"x")
                await hear(group, 1)
                raise ZeroDivisionError

        async def continues(me: str) -> list[object]:
            async with join(name, name=me, members=list("ABC"), order=order, failure_timeout=TIMEOUT) as group:
                found: list[object] = []
                async for event in group.events():
                    found.append(event.payload if isinstance(event, Message) else event)
                    if isinstance(event, View):
                        found[-1] = dict(event.left)
                    if found[-1] == {"A": "left"} and me == "B":
                        await group.send(b"y")
                    if found[-1] == b"y":
                        break
                return found

        first, *others = await asyncio.gather(fails(), continues("B"), continues("C"), return_exceptions=True)
        assert isinstance(first, ZeroDivisionError)
        assert others == [[b"x", {"A": "left"}, b"y"]] * 2

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_who_falls_silent_is_told_that_the_group_continued(order: str) -> None:
    async def test() -> None:
        options: dict[str, Any] = {"order": order, "failure_timeout": TIMEOUT, "rejoin": False}
        async with group_of(*"ABC", close=False, **options) as groups:
            reader = Reader(groups["A"])
            endpoint = member_of(groups["C"]).transport.endpoint
            send = endpoint.send
            endpoint.send = lambda *_: None  # type: ignore[method-assign]
            while not reader.views():
                await asyncio.sleep(0.01)
            endpoint.send = send  # type: ignore[method-assign]
            with pytest.raises(GroupAborted, match="continues without C"):
                await groups["C"].receive()
            await member_of(groups["C"]).left
            await groups["B"].send(b"on")
            await asyncio.gather(groups["A"].close(), groups["B"].close())
            await reader.task
            assert reader.log() == [b"on"]

    run(test)


def test_who_has_lost_the_majority_is_blocked_and_may_end_alone() -> None:
    async def test() -> None:
        async with group_of(*"AB", close=False, order="total", failure_timeout=TIMEOUT) as groups:
            crash(groups["A"])
            while not groups["B"].blocked:
                await asyncio.sleep(0.01)
            assert groups["B"].members == ("A", "B")
            with pytest.raises(GroupAborted, match="did not reach A, and without them too few members are left"):
                await groups["B"].leave()

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_sent_in_the_moment_of_the_exclusion_is_sent_after_the_return(order: str) -> None:
    """It was taken out of the outbox by a machine that was none any more, and told as delivered."""

    async def test() -> None:
        async with group_of(*"ABC", close=False, order=order, failure_timeout=0.5) as groups:
            reader, member = Reader(groups["A"]), member_of(groups["C"])
            send, excluded = member.transport.endpoint.send, member.excluded

            def excluded_while_sending(output: Any) -> None:
                excluded(output)
                groups["C"].send_nowait(b"meanwhile")
                assert member.host is not None
                asyncio.get_running_loop().call_soon(member.host.pump)
                member.host.pump()

            member.excluded = excluded_while_sending  # type: ignore[method-assign]
            member.transport.endpoint.send = lambda *_: None  # type: ignore[method-assign]
            while not reader.views():
                await asyncio.sleep(0.01)
            member.transport.endpoint.send = send  # type: ignore[method-assign]
            while b"meanwhile" not in reader.log():
                await asyncio.sleep(0.01)
            assert reader.log() == [b"meanwhile"]
            await asyncio.gather(*(group.close() for group in groups.values()))
            await reader.task

    run(test)


def test_with_a_static_quorum_too_few_do_not_continue() -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, order="total", quorum="static", failure_timeout=0.5) as groups:
            reader = Reader(groups["A"])
            await groups["C"].leave()
            while not reader.views():
                await asyncio.sleep(0.01)
            with pytest.raises(GroupAborted, match=r"fewer than 2 members are left \(quorum: static\)"):
                await groups["B"].leave()
            while not groups["A"].blocked:
                await asyncio.sleep(0.01)
            assert reader.views()[-1].members == ("A", "B"), "the oldest of two: with last_view it would continue"
            with pytest.raises(GroupAborted, match="ended alone"):
                await groups["A"].leave()
            await reader.task

    run(test)


def test_who_did_not_hear_of_the_next_view_cannot_abort_it() -> None:
    """Else a member that was paused, and wakes with a limit on its close, would end a group that lives."""

    async def test() -> None:
        async with group_of(*"ABC", close=False, order="sequenced", failure_timeout=TIMEOUT) as groups:
            readers = [Reader(groups[name]) for name in "AC"]
            member = member_of(groups["B"])
            send, receive = member.transport.endpoint.send, member.transport.seal.open
            member.transport.endpoint.send = lambda *_: None  # type: ignore[method-assign]
            member.transport.seal.open = lambda _: Rejection.FORGED  # type: ignore[method-assign, assignment]
            while not all(reader.views() for reader in readers):
                await asyncio.sleep(0.01)
            member.transport.endpoint.send = send  # type: ignore[method-assign]
            await groups["B"].abort("it took too long")
            member.transport.seal.open = receive  # type: ignore[method-assign]
            await asyncio.sleep(0.2)
            assert member_of(groups["A"]).ending.why is member_of(groups["C"]).ending.why is None
            await asyncio.gather(groups["A"].close(), groups["C"].close())
            await asyncio.gather(*(reader.task for reader in readers))

    run(test)


@pytest.mark.parametrize("order", ["partial", "total"])
def test_receipts_go_on_over_a_view(order: str) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            await groups["B"].send(b"0", until="known_stable")
            crash(groups["C"])
            receipts = [await groups["B"].send(b"%d" % number) for number in range(5)]
            for_nobody = await groups["B"].send(b"-", to={"C"})
            last = await groups["B"].send(b"last", to={"A", "C"})
            await asyncio.gather(*(receipt.known_stable() for receipt in (*receipts, last)))
            with pytest.raises(Undelivered):
                await for_nobody.known_stable()
            assert [message.payload for message in await hear(groups["A"], 7)] == [
                b"0", *(b"%d" % number for number in range(5)), b"last"
            ]  # fmt: skip
            while groups["A"].view.number == 0:
                await groups["B"].send(b"on")
                await groups["A"].receive()
            with pytest.raises(LocalProtocolError, match="'C' is not a member; members are: A, B"):
                await groups["A"].send(b"x", to={"C"})
            await asyncio.gather(groups["A"].close(), groups["B"].close())

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_a_large_message_that_a_view_cuts_in_two_arrives_whole(order: str) -> None:
    async def test() -> None:
        settings = {"order": order, "failure_timeout": TIMEOUT, "max_datagram_size": 600, "window": 4}
        async with group_of(*"ABC", close=False, **settings) as groups:
            large = [bytes([65 + number]) * 30_000 for number in range(4)]
            reader = Reader(groups["C"])
            for message in large:
                groups["B"].send_nowait(message)
                await asyncio.sleep(0.005)
            crash(groups["A"])
            groups["B"].send_nowait(b"end")
            await asyncio.gather(groups["B"].close(), groups["C"].close())
            await reader.task
            assert reader.log("B") == [*large, b"end"]
            assert len(reader.views()) == 1

    run(test)
