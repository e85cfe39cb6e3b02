"""What a relay passes on together, and what it never holds."""

import asyncio
import zlib
from random import Random

import pytest

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.gathering import (
    _COMPRESSED_FROM,
    _MAX_GATHERED,
    _PART,
    COMPRESSED,
    GATHERED,
    Gathering,
    Parts,
    compressed,
    decompressed,
    joined,
    separated,
)
from ordercast.live.transport.relay import ORIGIN, Relay, RelayClient
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE
from ordercast.wire.seal import seal_for
from tests.live.groups import crash, group_of, member_of, run

LONG = 10 * SECOND


def gathered(*, members: int = 3, hold: int = LONG) -> tuple[Gathering, list[Parts]]:
    sent: list[Parts] = []
    return Gathering(members, hold, lambda parts, *_: sent.append(parts)), sent


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


def test_what_is_passed_on_is_not_waited_for_any_more() -> None:
    """Else the next round would be passed on when the time of this one is over."""

    async def test() -> None:
        gathering, _ = gathered()
        gathering.add(1, b"a", waits=True)
        timer = gathering.timer
        assert timer is not None
        gathering.add(1, b"data", waits=False)
        assert (timer.cancelled(), gathering.timer) == (True, None)

    asyncio.run(test())


def test_what_waits_is_passed_on_by_one_timer_and_not_after_the_end() -> None:
    async def test() -> None:
        gathering, sent = gathered(members=4)
        gathering.add(1, b"a", waits=True)
        timer = gathering.timer
        gathering.add(2, b"b", waits=True)
        assert gathering.timer is timer is not None
        gathering.close()
        assert (timer.cancelled(), gathering.timer, sent) == (True, None, [])

    asyncio.run(test())


def test_so_many_bytes_wait_and_no_more() -> None:
    async def test() -> None:
        gathering, sent = gathered()
        part = bytes(_MAX_GATHERED // 2 - _PART.size)
        gathering.add(0, part, waits=True)
        gathering.add(0, part, waits=True)
        assert sent == []
        gathering.add(0, b"x", waits=True)
        assert len(sent) == 1

    asyncio.run(test())


def test_what_waits_is_a_copy_since_what_was_received_is_written_over() -> None:
    async def test() -> None:
        gathering, sent = gathered()
        buffer = bytearray(b"acknowledged")
        gathering.add(0, memoryview(buffer), waits=True)
        buffer[:] = b"something new"
        gathering.release()
        assert sent == [[(0, b"acknowledged")]]

    asyncio.run(test())


def test_a_body_is_compressed_from_a_size_on_and_if_it_becomes_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compressed(bytes(_COMPRESSED_FROM - 1)) is None
    assert compressed(bytes(_COMPRESSED_FROM)) is not None
    monkeypatch.setattr(zlib, "compress", lambda body, _: bytes(len(body)))
    assert compressed(bytes(_COMPRESSED_FROM)) is None


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
        gathering.add(0, bytes(33_000), waits=True)
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
        begun = asyncio.get_running_loop().time()
        gathering.add(0, b"a", waits=True)
        assert gathering.timer is not None
        assert gathering.timer.when() >= begun + 0.1
        await asyncio.sleep(0.15)
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


def test_what_is_alike_is_compressed_and_data_are_not() -> None:
    async def test() -> None:
        sent: list[bytes] = []
        seal = seal_for("g", None)
        relay = Relay(seal, 5, sent.append)
        relay.gather(7, 2, LONG)
        parts = [(origin, b"acknowledgment " * 20 + bytes([origin])) for origin in range(2)]
        for origin, records in parts:
            relay.pass_on(origin, 7, records, waits=True)
        body = memoryview(sent[0])[seal.overhead :]
        assert ORIGIN.unpack_from(body) == (COMPRESSED, 7)
        found = decompressed(body[ORIGIN.size :])
        assert found is not None
        assert separated(found) == parts
        assert len(sent[0]) < 150
        relay.pass_on(0, 7, parts[0][1], waits=True)
        relay.pass_on(1, 7, parts[1][1])
        body = memoryview(sent[1])[seal.overhead :]
        assert ORIGIN.unpack_from(body) == (GATHERED, 7), "what an application sends is not compressed with others"
        assert separated(body[ORIGIN.size :]) == parts

    asyncio.run(test())


def test_a_compressed_body_is_read_only_if_it_is_whole_and_fits_into_a_datagram() -> None:
    body = bytes(300)
    smaller = compressed(body)
    assert smaller is not None
    assert decompressed(memoryview(smaller)) == memoryview(body)
    assert compressed(bytes(255)) is None
    assert compressed(Random(1).randbytes(300)) is None, "it would not be smaller"
    assert decompressed(memoryview(zlib.compress(bytes(MAX_DATAGRAM_SIZE)))) == memoryview(bytes(MAX_DATAGRAM_SIZE))
    for wrong in (b"", smaller[:-1], smaller + b"x", b"nonsense", zlib.compress(bytes(MAX_DATAGRAM_SIZE + 1))):
        assert decompressed(memoryview(wrong)) is None


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


@pytest.mark.parametrize(
    ("order", "delivery", "most"),
    [
        ("partial", "known_stable", 5 * 5),
        ("partial", "stable", 3 * 5 + 1),
        ("total", "known_stable", 5 * 5 + 1),
        ("total", "stable", 3 * 5 + 1),
        ("priority", "known_stable", 5 * 5 + 1),
    ],
)
def test_a_message_costs_five_datagrams_for_each_other_member(order: str, delivery: str, most: int) -> None:
    """Or three, where the second round waits for another message."""

    async def test() -> None:
        names = [f"m{number}" for number in range(6)]
        async with group_of(*names, order=order, delivery=delivery, round_trip=0.5) as groups:
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


def test_the_bytes_of_a_message_do_not_grow_with_the_cube_of_the_members() -> None:
    """Each of 2n datagrams of the relay has the acknowledgments of n members, which are vectors of n."""

    async def test() -> None:
        names = [f"m{number:02}" for number in range(14)]
        async with group_of(*names, order="total", round_trip=0.5) as groups:
            for each in groups.values():
                member_of(each).arrivals.detection.stop()
            await groups["m13"].send(b"first")
            await asyncio.gather(*(each.receive() for each in groups.values()))
            await asyncio.sleep(0.1)
            before = sum(each.stats().bytes_sent for each in groups.values())
            await groups["m13"].send(b"second")
            await asyncio.gather(*(each.receive() for each in groups.values()))
            await asyncio.sleep(0.1)
            used = sum(each.stats().bytes_sent for each in groups.values()) - before
            assert used < 5 * 13 * 200

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
