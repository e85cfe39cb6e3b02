"""Long datagrams over small packets: fragment, coupled in whole or in part, lost, doubled, forged."""

import asyncio
from errno import EINVAL, EMSGSIZE
from random import Random
from sys import byteorder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.fragmentation import (
    HEADING,
    MAX_FRAGMENTS,
    MAX_PARTIAL,
    MAX_PARTIAL_PER_STRANGER,
    DatagramReassembler,
    fragment,
)
from ordercast.live.transport.sockets import open_socket, socket_address
from ordercast.model.errors import ConfigError
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

SEGMENT = 100


def held(reassembler: DatagramReassembler) -> int:
    """Incomplete datagrams."""
    return len(reassembler._strangers) + sum(map(len, reassembler._members.values()))


def segments_of(datagram: bytes, train: int) -> list[bytes]:
    parts = fragment(datagram, train, SEGMENT)
    return [bytes(heading) + bytes(piece) for heading, piece in zip(parts[::2], parts[1::2], strict=True)]


def test_a_segment_is_written_as_documented() -> None:
    first, second = segments_of(bytes(range(150)), 7)
    assert first == bytes((0xC6, 0, 0, 0, 0, 7, 0, 0, 0, 2)) + bytes(range(90))
    assert second == bytes((0xC6, 0, 0, 0, 0, 7, 0, 1, 0, 2)) + bytes(range(90, 150))


@given(st.binary(min_size=1, max_size=2000), st.randoms(use_true_random=False))
def test_any_order_of_segments_makes_the_datagram(datagram: bytes, chance: Random) -> None:
    segments = segments_of(datagram, chance.getrandbits(40))
    segments += chance.sample(segments, len(segments) // 2)  # doubles
    chance.shuffle(segments)
    whole, assembler = [], DatagramReassembler()
    for segment in segments:
        whole += assembler.take(memoryview(segment), len(segment), "peer")
    assert whole == [datagram]


@given(st.binary(min_size=1, max_size=3000), st.integers(1, 40))
def test_what_the_system_couples_is_taken_apart(datagram: bytes, coupled: int) -> None:
    """However many segments it couples: the whole train, parts of it, or just one."""
    assembler, whole = DatagramReassembler(), []
    segments = segments_of(datagram, 1)
    for start in range(0, len(segments), coupled):
        data = b"".join(segments[start : start + coupled])
        whole += [bytes(found) for found in assembler.take(memoryview(data), min(SEGMENT, len(data)), "peer")]
    assert whole == [datagram]


def test_plain_datagrams_may_be_coupled_too() -> None:
    data = bytes((0xC5,)) * 150 + b"\xc5last"
    assert [len(found) for found in DatagramReassembler().take(memoryview(data), 50, "peer")] == [50, 50, 50, 5]


def test_trains_of_different_senders_do_not_mix() -> None:
    assembler = DatagramReassembler()
    first, second = segments_of(b"a" * 150, 1), segments_of(b"b" * 150, 1)
    found = []
    for source, segment in (("A", first[0]), ("B", second[0]), ("B", second[1]), ("A", first[1])):
        found += assembler.take(memoryview(segment), len(segment), source)
    assert found == [b"b" * 150, b"a" * 150]


def test_trains_that_never_arrive_are_forgotten() -> None:
    assembler = DatagramReassembler()
    assembler.knows(["peer"])
    for train in range(10 * MAX_PARTIAL):
        begin(assembler, "peer", train)
    assert assembler.given_up == 9 * MAX_PARTIAL
    assert held(assembler) == MAX_PARTIAL


def begin(assembler: DatagramReassembler, source: str, train: int) -> None:
    """The first of two segments comes."""
    segment = segments_of(b"a" * 150, train)[0]
    assert not assembler.take(memoryview(segment), len(segment), source)


def ends(assembler: DatagramReassembler, source: str, train: int) -> bool:
    """The second one comes: whether the first was still there."""
    segment = segments_of(b"a" * 150, train)[1]
    return bool(assembler.take(memoryview(segment), len(segment), source))


def test_nobody_pushes_out_the_trains_of_a_member() -> None:
    assembler = DatagramReassembler()
    assembler.knows(["A", "B"])
    begin(assembler, "A", 1)
    for train in range(3 * MAX_PARTIAL):
        begin(assembler, "B", train)
        begin(assembler, f"stranger {train}", train)
    assert held(assembler) == 1 + 2 * MAX_PARTIAL
    assert ends(assembler, "A", 1)


def test_one_stranger_does_not_push_out_the_others() -> None:
    """One of them may be a member whose address is not known: it looks for its group, or comes through a gateway."""
    assembler = DatagramReassembler()
    begin(assembler, "another", 1)
    for train in range(3 * MAX_PARTIAL):
        begin(assembler, "stranger", train)
    assert held(assembler) == 1 + MAX_PARTIAL_PER_STRANGER
    assert ends(assembler, "another", 1)
    assert ends(assembler, "stranger", 3 * MAX_PARTIAL - 1), "what it began last"


@given(st.binary(min_size=1, max_size=500), st.integers(1, 300))
def test_whatever_comes_is_survived(data: bytes, segment: int) -> None:
    for beginning in (b"", b"\xc6", b"\xc6\0\0\0\0\1"):
        for found in DatagramReassembler().take(memoryview(beginning + data), segment, "stranger"):
            assert len(found) <= len(beginning + data)


@pytest.mark.parametrize(("place", "count"), [(0, 0), (2, 2), (5, 3), (0, MAX_FRAGMENTS + 1), (0, 0xFFFF)])
def test_impossible_places_are_dropped(place: int, count: int) -> None:
    segment = HEADING.pack(0xC6, 1, place, count) + b"x"
    assembler = DatagramReassembler()
    assert not assembler.take(memoryview(segment), len(segment), "stranger")
    assert not held(assembler)


@pytest.mark.parametrize("cuts", [True, False], ids=["the system cuts", "we cut"])
@pytest.mark.parametrize("segment", [512, 1400, 9000])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_trains_cross_real_sockets(cuts: bool, segment: int, host: str) -> None:
    """With the system's help where it gives it, and without; up to the largest datagram."""

    async def test() -> None:
        try:
            sockets = [open_socket(Address(host, 0)) for _ in range(2)]
        except ConfigError as error:
            pytest.skip(str(error))
        here, there = (Address(host, each.getsockname()[1]) for each in sockets)
        sender, receiver = Endpoint(sockets[0], [there], segment=segment), Endpoint(sockets[1], [here], segment=segment)
        sender.system_segments = cuts
        heard: list[bytes] = []
        receiver.start(lambda datagram: heard.append(bytes(datagram)), lambda: None, lambda: None)
        sizes = (1, 1400, 1401, 11_200, 32_127, 32_129, 60_000, MAX_DATAGRAM_SIZE, 3)
        sent = [b"\xc5" + Random(size).randbytes(size - 1) for size in sizes]
        for number, datagram in enumerate(sent, start=1):
            sender.send_to_all(datagram)
            while len(heard) < number:
                await asyncio.sleep(0.001)
        assert heard == sent
        assert sender.datagrams_out == receiver.datagrams_in == len(sent)
        assert not receiver.incomplete
        receiver.close()
        sockets[0].close()

    asyncio.run(asyncio.wait_for(test(), 10))


@pytest.mark.parametrize("spelt", ["127.0.0.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("later", [False, True])
def test_members_are_known_by_the_address_that_the_system_tells(spelt: str, later: bool) -> None:
    async def test() -> None:
        try:
            sockets = [open_socket(Address(spelt, 0)) for _ in range(2)]
        except ConfigError as error:
            pytest.skip(str(error))
        here, there = (Address(spelt, each.getsockname()[1]) for each in sockets)
        receiver = Endpoint(sockets[1], [] if later else [here], segment=1400)
        if later:
            receiver.knows([here])
        receiver.start(lambda _: None, lambda: None, lambda: None)
        sockets[0].sendto(HEADING.pack(0xC6, 1, 0, 2) + b"half", socket_address(there))
        while not held(receiver.reassembler):
            await asyncio.sleep(0.001)
        assert not receiver.reassembler._strangers
        receiver.close()
        sockets[0].close()

    asyncio.run(asyncio.wait_for(test(), 10))


def test_a_train_is_never_longer_than_a_datagram() -> None:
    """Else a stranger could have us keep a gigabyte."""
    assembler = DatagramReassembler()
    for place in range(3):
        segment = HEADING.pack(0xC6, 1, place, MAX_FRAGMENTS) + bytes(30_000)
        assert not assembler.take(memoryview(segment), len(segment), "stranger")
    assert not held(assembler)
    assert assembler.given_up == 1


class Cutting:
    """A socket of a system that cuts at most 64 segments at once, and no more bytes than a datagram has."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def setsockopt(self, *_: int) -> None:
        pass

    def sendmsg(self, parts: list[bytes], ancillary: list[tuple[int, int, bytes]], *_: object) -> None:
        data, segment = b"".join(parts), int.from_bytes(ancillary[0][2], byteorder)
        if len(data) > MAX_DATAGRAM_SIZE:
            raise OSError(EMSGSIZE, "too long")
        if len(data) > 64 * segment:
            raise OSError(EINVAL, "too many")
        self.sent.append(data)


@pytest.mark.parametrize("segment", [512, 1023, 1024, 1400, 9000])
def test_the_system_is_given_what_it_can_cut_at_once(segment: int) -> None:
    own, there = Cutting(), Address("127.0.0.1", 7000)
    endpoint = Endpoint(own, [there], segment=segment)  # type: ignore[arg-type]
    assembler = DatagramReassembler()
    for size in (segment + 1, 30_000, MAX_DATAGRAM_SIZE - 1, MAX_DATAGRAM_SIZE):
        datagram = Random(size).randbytes(size)
        endpoint.send(datagram, there)
        found = [whole for data in own.sent for whole in assembler.take(memoryview(data), segment, "peer")]
        assert found == [datagram]
        own.sent.clear()
    assert not endpoint.not_sent


@pytest.mark.parametrize("segment", [0, 1400])
def test_who_leaves_for_what_came_reads_no_more(segment: int) -> None:
    async def test() -> None:
        own = open_socket(Address("127.0.0.1", 0))
        endpoint = Endpoint(own, [], segment=segment)
        own.sendto(b"the end", own.getsockname())
        endpoint.start(lambda _: endpoint.close(), lambda: None, lambda: None)
        while own.fileno() >= 0:
            await asyncio.sleep(0.001)
        assert not endpoint.not_sent, "a socket that is closed is no reason of the system's"

    asyncio.run(asyncio.wait_for(test(), 10))


def test_numbers_of_trains_begin_anywhere() -> None:
    """Else what a process began that was killed would be mixed with what the next one at its address begins."""

    async def test() -> None:
        sockets = [open_socket(Address("127.0.0.1", 0)) for _ in range(2)]
        one, other = (Endpoint(each, [], segment=1400) for each in sockets)
        assert one.next_number != other.next_number
        for each in sockets:
            each.close()

    asyncio.run(test())


@pytest.mark.parametrize("segment", [512, 1400])
def test_one_train_that_is_too_long_for_the_system_does_not_stop_it_from_cutting_others(segment: int) -> None:
    async def test() -> None:
        sockets = [open_socket(Address("127.0.0.1", 0)) for _ in range(2)]
        there = Address("127.0.0.1", sockets[1].getsockname()[1])
        sender, receiver = (Endpoint(each, [there], segment=segment) for each in sockets)
        heard: list[int] = []
        receiver.start(lambda datagram: heard.append(len(datagram)), lambda: None, lambda: None)
        sender.send_to_all(bytes(10_000))
        cuts = sender.system_segments  # not every system does
        sender.send_to_all(bytes(65_507))
        while len(heard) < 2:
            await asyncio.sleep(0.001)
        assert heard == [10_000, 65_507]
        assert sender.system_segments == cuts
        receiver.close()
        sockets[0].close()

    asyncio.run(asyncio.wait_for(test(), 10))


def test_fragments_that_were_coupled_in_another_order_make_the_datagram() -> None:
    datagram = bytes(range(180))  # two of one size
    first, second = segments_of(datagram, 1)
    assert DatagramReassembler().take(memoryview(second + first), SEGMENT, "peer") == [datagram]


def test_a_heading_without_a_piece_is_no_fragment() -> None:
    datagram = bytes(range(150))
    first, second = segments_of(datagram, 1)
    assembler = DatagramReassembler()
    assert assembler.take(memoryview(first[: HEADING.size]), HEADING.size, "peer") == []
    assert assembler.take(memoryview(first), SEGMENT, "peer") == []
    assert assembler.take(memoryview(second), len(second), "peer") == [datagram]


def test_datagrams_that_are_given_up_are_counted() -> None:
    """Those of one stranger, and those of a member: the oldest goes when there are too many."""
    for source, most in (("stranger", MAX_PARTIAL_PER_STRANGER), ("member", MAX_PARTIAL)):
        assembler = DatagramReassembler()
        assembler.knows(["member"])
        for number in range(most + 2):
            first, _ = segments_of(bytes(150), number)
            assembler.take(memoryview(first), SEGMENT, source)
            assert assembler.given_up == max(0, number + 1 - most)
            assert held(assembler) == min(number + 1, most)


def test_a_coupled_heading_without_a_piece_completes_nothing() -> None:
    first, second = segments_of(bytes(150), 1)
    assert DatagramReassembler().take(memoryview(first + second[: HEADING.size]), SEGMENT, "peer") == []
