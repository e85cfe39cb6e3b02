"""An application that does not read: the others wait, nothing is sent again, and everything goes on when it reads."""

import asyncio
from typing import Any

import pytest

import ordercast.live.host.inbox
from ordercast import Excluded, GroupAborted, Message, View
from ordercast.live.host.flow_control import REPEAT
from tests.live.groups import ORDERS, group_of, member_of, run

LIMIT = 1 << 20
MESSAGE = bytes(10_000)


@pytest.fixture(autouse=True)
def small_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordercast.live.host.inbox, "INBOX_LIMIT", LIMIT)


async def read(group: Any, found: list[bytes], count: int) -> None:
    while len(found) < count:
        found.append((await group.receive()).payload)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mtu", [0, 1400])
def test_who_does_not_read_costs_nothing(order: str, mtu: int) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order, mtu=mtu) as groups:
            found: dict[str, list[bytes]] = {name: [] for name in groups}
            measured = asyncio.Event()
            host = member_of(groups["A"]).host
            assert host is not None
            count = in_flight = 0

            async def send() -> None:
                nonlocal count, in_flight
                while not measured.is_set():
                    await groups["A"].send(MESSAGE)
                    count += 1
                    in_flight = max(in_flight, host.own.max_bytes_in_flight)

            async def read_all(name: str) -> None:
                while not sending.done() or len(found[name]) < count:
                    found[name].append((await groups[name].receive()).payload)

            sending = asyncio.create_task(send())
            tasks = [asyncio.create_task(read_all(name)) for name in "AB"]
            while not member_of(groups["A"]).flow.must_wait:
                await asyncio.sleep(0.01)
            before_that = -1
            while before_that < len(found["A"]):  # until what was under way has arrived
                before_that = len(found["A"])
                await asyncio.sleep(0.2)
            before = [group.stats() for group in groups.values()]
            unread, read_by_others = before[2].unread_bytes, len(found["A"])
            await asyncio.sleep(3 * REPEAT)
            after = [group.stats() for group in groups.values()]
            sent = sum(now.bytes_sent - then.bytes_sent for now, then in zip(after, before, strict=True))
            datagrams = sum(now.datagrams_sent - then.datagrams_sent for now, then in zip(after, before, strict=True))
            assert sent < 20_000
            assert datagrams < 100
            # The limit; what was in flight when C said so, and what followed until A heard it; a batch.
            assert LIMIT < unread < LIMIT + 2 * in_flight + (1 << 20)
            assert len(found["A"]) == read_by_others
            assert not sending.done()
            measured.set()
            await asyncio.gather(sending, *tasks, read_all("C"))
            assert [len(each) for each in found.values()] == [count] * 3
            assert not any(group.stats().units_overrun for group in groups.values())
            assert not any(group.stats().retransmissions for group in groups.values())

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_who_never_reads_its_own_has_to_wait_too(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", order=order) as groups:
            found: list[bytes] = []
            reading = asyncio.create_task(read(groups["B"], found, 1000))

            async def send() -> None:
                for _ in range(1000):
                    await groups["A"].send(MESSAGE)

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(send(), 1)
            assert groups["A"].stats().unread_bytes < 4 * LIMIT
            own: list[bytes] = []
            await read(groups["A"], own, len(found))
            reading.cancel()

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_who_does_not_read_can_leave(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            found: list[bytes] = []
            reading = asyncio.create_task(read(groups["B"], found, 1000))
            other = asyncio.create_task(read(groups["C"], [], 1000))
            while not member_of(groups["A"]).flow.closed_here:
                groups["A"].send_nowait(MESSAGE)
                await asyncio.sleep(0)
            await groups["A"].leave(10)
            for task in (reading, other):
                task.cancel()

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_the_others_go_on_without_one_that_does_not_read_and_it_returns_when_it_does(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order, slow_reader_timeout=2.0) as groups:
            sent = dict.fromkeys(groups, 0)
            stopped = asyncio.Event()

            async def send(name: str) -> None:
                while not stopped.is_set():
                    await groups[name].send(b"%s%d" % (name.encode(), sent[name]) + MESSAGE)
                    sent[name] += 1
                    await asyncio.sleep(0)

            async def read(name: str, until: bytes) -> list[Any]:
                found: list[Any] = []
                async for event in groups[name].events():
                    found.append(event)
                    if isinstance(event, Message) and event.payload == until:
                        break
                return found

            sending = [asyncio.create_task(send(name)) for name in groups]
            reading = [asyncio.create_task(read(name, b"end")) for name in "AB"]
            while len(groups["A"].members) == 3:
                await asyncio.sleep(0.05)
            assert groups["A"].members == groups["B"].members == ("A", "B")
            before = sent["A"]
            while sent["A"] < before + 50:
                await asyncio.sleep(0.01)  # nobody waits for C any more
            last = asyncio.create_task(read("C", b"end"))
            while "C" not in groups["A"].members:
                await asyncio.sleep(0.05)
            stopped.set()
            await asyncio.gather(*sending)
            await groups["C"].send(b"end")
            at_c, (at_a, at_b) = await last, await asyncio.gather(*reading)

            def payloads(events: list[Any], sender: str) -> list[bytes]:
                return [each.payload for each in events if isinstance(each, Message) and each.sender == sender]

            own = [b"C%d" % number + MESSAGE for number in range(sent["C"])] + [b"end"]
            assert payloads(at_a, "C") == payloads(at_b, "C") == own, "once each, and nothing of C's is lost"
            [excluded] = [each for each in at_c if isinstance(each, Excluded)]
            assert excluded.why == "the group continues without C: its application does not read"
            views = [each for each in at_a if isinstance(each, View)]
            assert [(tuple(each.left), each.joined) for each in views] == [(("C",), ()), ((), ("C",))]
            place = at_c.index(excluded)
            assert payloads(at_c[:place], "A") == payloads(at_a, "A")[: len(payloads(at_c[:place], "A"))]
            assert payloads(at_c[place:], "A") == payloads(at_a, "A")[-len(payloads(at_c[place:], "A")) :]

    run(test)


def test_one_without_which_too_few_are_left_is_waited_for_and_can_send_when_it_reads() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="total", quorum="static", slow_reader_timeout=2.0) as groups:
            member_of(groups["B"]).returns.leave_until_read()
            await asyncio.sleep(0.05)
            await groups["B"].send(b"here")
            assert (await asyncio.wait_for(groups["A"].receive(), 2)).payload == b"here"

    run(test)


def test_of_two_that_are_asked_at_once_the_one_that_the_others_need_stays_and_can_send() -> None:
    async def test() -> None:
        async with group_of(*"ABCD", order="total", quorum="static", slow_reader_timeout=2.0) as groups:
            for name in "BC":
                member_of(groups[name]).returns.leave_until_read()
            while groups["A"].stats().view == 0:
                await asyncio.sleep(0.01)
            [stays] = {"B", "C"} & set(groups["A"].stats().members)
            await asyncio.wait_for(groups[stays].send(b"here"), 5)
            found: list[bytes] = []
            await asyncio.wait_for(read(groups["A"], found, 1), 5)
            assert found == [b"here"]
            others = [asyncio.create_task(read(groups[name], [], 1)) for name in "BCD"]
            while len(groups["A"].stats().members) < 4:
                await asyncio.sleep(0.01)
            await groups["A"].send(b"all are back")
            for task in others:
                task.cancel()

    run(test)


def test_one_that_waits_for_the_beginnings_of_messages_is_not_what_the_others_wait_for() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order="total", slow_reader_timeout=2.0) as groups:
            b = member_of(groups["B"])
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(type(b.views.partials), "fetches", True)
                b.returns.leave_until_read()
            assert b.host is not None
            assert not b.host.member.leaves

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_sent_while_it_is_about_to_leave_is_sent_when_it_has_returned(order: str) -> None:
    """Its application begins to read while the others agree on the view without it: it may send at once."""

    async def test() -> None:
        async with group_of("A", "B", "C", order=order, slow_reader_timeout=2.0) as groups:
            member_of(groups["B"]).returns.leave_until_read()
            await groups["B"].send(b"here")
            found: list[bytes] = []
            others = [asyncio.create_task(read(groups[name], [], 1)) for name in "BC"]
            await asyncio.wait_for(read(groups["A"], found, 1), 10)
            await asyncio.gather(*others)
            assert found == [b"here"]
            assert groups["A"].members == ("A", "C", "B")

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_an_application_that_leaves_meanwhile_has_left_as_it_wanted(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order, slow_reader_timeout=2.0, close=False) as groups:
            await groups["B"].send(b"here", until="known_stable")
            member_of(groups["B"]).returns.leave_until_read()
            await asyncio.wait_for(groups["B"].leave(), 10)
            assert [each.payload async for each in groups["B"]] == [b"here"]
            await asyncio.gather(groups["A"].close(), groups["C"].close())

    run(test)


@pytest.mark.parametrize("sends", [True, False])
def test_one_that_never_reads_is_told_when_it_leaves_that_messages_are_lost(sends: bool) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order="total", slow_reader_timeout=2.0, close=False) as groups:
            b = member_of(groups["B"])
            b.returns.leave_until_read()
            while b.arrivals.returning is None:
                await asyncio.sleep(0.01)
            before = b.transport.endpoint.datagrams_out
            b.inbox.on_full()
            assert b.transport.endpoint.datagrams_out == before, "nobody needs to know any more that it does not read"
            if sends:
                groups["B"].send_nowait(b"here")
                with pytest.raises(
                    GroupAborted, match=r"whose application leaves and has not read .*1 of our messages"
                ):
                    await asyncio.wait_for(groups["B"].leave(), 10)
            else:
                await asyncio.wait_for(groups["B"].leave(), 10)
            await asyncio.gather(groups["A"].close(), groups["C"].close())

    run(test)
