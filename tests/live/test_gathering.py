"""What a relay passes on together, and what it never holds."""

import asyncio

import pytest

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.gathering import GATHERED, Gathering, Parts, joined, separated
from ordercast.live.transport.relay import ORIGIN, Relay, RelayClient
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.wire.seal import seal_for
from tests.live.groups import crash, group_of, member_of, run

LONG = 10 * SECOND


def gathered(*, members: int = 3, hold: int = LONG) -> tuple[Gathering, list[Parts]]:
    sent: list[Parts] = []
    return Gathering(members, hold, sent.append), sent


def test_acknowledgments_wait_until_all_have_sent_one() -> None:
    async def test() -> None:
        gathering, sent = gathered()
        gathering.add(2, b"b", waits=True)
        gathering.add(0, b"a", waits=True)
        gathering.add(2, b"c", waits=True)
        assert sent == []
        gathering.add(1, b"d", waits=True)
        assert sent == [[(2, b"b"), (0, b"a"), (2, b"c"), (1, b"d")]]
        gathering.add(1, b"e", waits=True)
        assert len(sent) == 1, "the next round waits for all of them again"
        gathering.close()

    asyncio.run(test())


def test_data_take_along_what_waits_and_keep_the_order() -> None:
    async def test() -> None:
        gathering, sent = gathered()
        gathering.add(1, b"a", waits=True)
        gathering.add(1, b"data", waits=False)
        assert sent == [[(1, b"a"), (1, b"data")]]
        gathering.add(1, b"more", waits=False)
        assert sent[1:] == [[(1, b"more")]]

    asyncio.run(test())


def test_who_acknowledged_with_data_is_not_waited_for() -> None:
    async def test() -> None:
        gathering, sent = gathered()
        gathering.spoke(2)
        gathering.add(0, b"a", waits=True)
        gathering.add(1, b"b", waits=True)
        assert sent == [[(0, b"a"), (1, b"b")]]
        gathering.add(0, b"a", waits=True)
        gathering.add(1, b"b", waits=True)
        gathering.spoke(2)
        assert len(sent) == 2

    asyncio.run(test())


def test_nothing_waits_for_long_or_for_too_much() -> None:
    async def test() -> None:
        gathering, sent = gathered(hold=5 * MILLISECOND)
        gathering.add(0, b"a", waits=True)
        await asyncio.sleep(0.05)
        assert sent == [[(0, b"a")]]
        gathering.add(0, bytes(20_000), waits=True)
        assert len(sent) == 2
        gathering.add(0, b"a", waits=True)
        gathering.close()
        await asyncio.sleep(0.05)
        assert len(sent) == 2, "what waits when it ends is lost, as anything may be"

    asyncio.run(test())


def test_what_waits_waits_longer_where_rounds_take_longer() -> None:
    async def test() -> None:
        gathering, sent = gathered(hold=MILLISECOND)
        gathering.pace = 100.0
        gathering.add(0, b"a", waits=True)
        await asyncio.sleep(0.03)
        assert sent == []
        await asyncio.sleep(0.12)
        assert sent == [[(0, b"a")]]

    asyncio.run(test())


def test_the_relay_and_its_members_are_told_how_long_rounds_take() -> None:
    async def test() -> None:
        async with group_of(*"ABCDE", order="partial") as groups:
            for name in "AB":
                member_of(groups[name]).transport.set_pace(3.0)
            relay, client = (member_of(groups[name]).transport for name in "AB")
            assert relay.table.own_relay is not None
            assert relay.table.own_relay.gathering is not None
            assert relay.table.own_relay.gathering.pace == 3.0
            assert client.table.relay is not None
            assert client.table.relay.patience == 60 * MILLISECOND

    run(test)


@pytest.mark.parametrize("parts", [[], [(3, b"x")], [(0, b"ab"), (65_533, b"c" * 300), (0, b"d")]])
def test_parts_are_joined_and_separated(parts: Parts) -> None:
    assert separated(memoryview(joined(parts))) == parts


@pytest.mark.parametrize("body", [b"1", b"123", b"\x00\x01\x00\x02x", b"\x00\x01\x00\x00", joined([(1, b"abc")])[:-1]])
def test_what_is_no_body_is_refused(body: bytes) -> None:
    assert separated(memoryview(body)) is None


def test_a_relay_packs_what_it_gathered_unless_it_is_much() -> None:
    async def test() -> None:
        sent: list[bytes] = []
        seal = seal_for("g", None)
        relay = Relay(seal, 5, sent.append)
        relay.gather(7, 2, LONG)
        relay.pass_on(0, 7, b"a", waits=True)
        relay.pass_on(1, 7, b"b", waits=True)
        body = sent[0][seal.overhead :]
        assert ORIGIN.unpack_from(body) == (GATHERED, 7)
        assert separated(memoryview(body)[ORIGIN.size :]) == [(0, b"a"), (1, b"b")]
        relay.pass_on(0, 7, b"a", waits=True)
        relay.pass_on(0, 7, bytes(40_000))
        assert [ORIGIN.unpack_from(each[seal.overhead :])[0] for each in sent[1:]] == [0, 0]
        assert relay.passed == 3

    asyncio.run(test())


def test_an_acknowledgment_that_does_not_come_back_is_sent_without_the_relay_once() -> None:
    relay = RelayClient(Address("127.0.0.1", 1), is_member=True, max_hold=0)
    assert not relay.is_late(LONG), "nothing was sent"
    relay.asked_at(0)
    relay.asked_at(15 * MILLISECOND)
    assert not relay.is_late(19 * MILLISECOND)
    assert relay.is_late(20 * MILLISECOND), "since the first that is not answered"
    assert not relay.is_late(LONG), "the relay is tried again"
    relay.asked_at(0)
    relay.answered()
    assert not relay.is_late(LONG)


@pytest.mark.parametrize(("order", "most"), [("partial", 5 * 5), ("total", 5 * 5 + 1), ("priority", 5 * 5 + 1)])
def test_a_message_costs_five_datagrams_for_each_other_member(order: str, most: int) -> None:
    async def test() -> None:
        names = [f"m{number}" for number in range(6)]
        async with group_of(*names, order=order, round_trip=0.5) as groups:
            for each in groups.values():  # timers and heartbeats far away: what is counted is what a message needs
                member_of(each).arrivals.detection.stop()
            await groups["m5"].send(b"first")
            await asyncio.gather(*(each.receive() for each in groups.values()))
            await asyncio.sleep(0.05)
            before = sum(each.stats().datagrams_sent for each in groups.values())
            await groups["m5"].send(b"second")
            await asyncio.gather(*(each.receive() for each in groups.values()))
            await asyncio.sleep(0.05)
            assert sum(each.stats().datagrams_sent for each in groups.values()) - before <= most

    run(test)


def test_messages_to_some_are_acknowledged_directly_and_arrive_with_the_relay_gone() -> None:
    async def test() -> None:
        names = [f"m{number}" for number in range(6)]
        async with group_of(*names, order="partial", close=False) as groups:
            crash(groups["m0"])
            for number in range(5):
                await groups["m4"].send(bytes([number]), to={"m2", "m4"})
                async with asyncio.timeout(2):  # before anybody is suspected
                    for name in ("m2", "m4"):
                        assert (await groups[name].receive()).payload == bytes([number])
            for name in names[1:]:
                crash(groups[name])

    run(test)
