"""Links without a network: pieces over a line in virtual time that loses, overtakes, duplicates and queues."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.live.settings import NETWORK_MTU
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.link_receiver import ACKNOWLEDGE_AFTER, MAX_AHEAD, MAX_RANGES, LinkReceiver
from ordercast.live.transport.link_sender import LinkSender
from ordercast.live.transport.links import Links
from ordercast.live.transport.path_model import ACK_DELAY, PathModel
from ordercast.live.transport.pieces import HEADING, MAGIC, add_range, one_piece, read_pieces, read_train
from tests.live.groups import ORDERS, group_of, hear, member_of, run

SEGMENT = 1352
STREAM = 7
RATE = 2.5e6


class Line:
    """One link in virtual time: a sender, a bottleneck with a queue, a receiver, and acknowledgments the other way."""

    def __init__(
        self, *, delay: float, loss: float = 0.0, jitter: float = 0.0, rate: float = 0.0, seed: int = 1
    ) -> None:
        self.delay, self.loss, self.jitter, self.rate = delay, loss, jitter, rate
        self.chance, self.now = Random(seed), 100.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = self.overflowed = 0
        self.busy_until = 0.0
        self.longest_queue = 0.0
        self.path = PathModel(SEGMENT, 0.02)
        self.sender = LinkSender(STREAM, SEGMENT, self.path, self.write)
        self.receiver = LinkReceiver()
        self.arrived: list[bytes] = []
        self.closed = False

    def at(self, when: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what))

    def write(self, parts: list[bytes | memoryview]) -> None:
        for heading, piece in zip(parts[::2], parts[1::2], strict=True):
            packet = bytes(heading) + bytes(piece)
            assert len(packet) <= SEGMENT
            out = self.now
            if self.rate:
                start = max(self.now, self.busy_until)
                self.longest_queue = max(self.longest_queue, start - self.now)
                if start - self.now > 0.1:
                    self.overflowed += 1
                    continue
                out = self.busy_until = start + len(packet) / self.rate
            if self.chance.random() >= self.loss:
                late = self.delay + self.jitter * self.chance.random()
                self.at(out + late, lambda packet=packet: self.take(packet))  # type: ignore[misc]

    def take(self, packet: bytes) -> None:
        receiver = self.receiver
        for (_, stream, number, datagram, index, count), piece in one_piece(memoryview(packet)):
            assert stream == STREAM
            self.arrived += receiver.take(number, datagram, index, count, piece, self.now)
        if receiver.is_urgent or receiver.unacknowledged >= ACKNOWLEDGE_AFTER:
            self.acknowledge()
        else:
            self.at(self.now + ACK_DELAY, self.acknowledge)

    def acknowledge(self) -> None:
        if not self.receiver.unacknowledged:
            return
        ranges, delay, waits_for = self.receiver.acknowledgment(self.now)
        pairs, closed = list(zip(ranges[::2], ranges[1::2], strict=True)), self.closed
        if self.chance.random() >= self.loss:
            self.at(self.now + self.delay, lambda: self.acknowledged(pairs, delay / 1e6, waits_for, closed))

    def acknowledged(self, pairs: list[tuple[int, int]], delay: float, waits_for: int, closed: bool) -> None:
        self.sender.acknowledged(pairs, delay, self.now, waits_for, closed=closed)
        self.sender.transmit(self.now)

    def send(self, *datagrams: bytes) -> None:
        for datagram in datagrams:
            self.sender.send(datagram)
        self.sender.transmit(self.now)

    def run(self, seconds: float, feed: Callable[[], None] = lambda: None) -> None:
        """The time passes; `feed` is called every millisecond."""
        end, tick = self.now + seconds, self.now
        while self.now < end:
            due = self.sender.due_at()
            following = min(
                tick, end, self.events[0][0] if self.events else end, max(due, self.now) if due is not None else end
            )
            self.now = following
            if following == tick:
                feed()
                tick += 0.001
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            due = self.sender.due_at()
            if due is not None and due <= self.now:
                self.sender.tick(self.now)
                self.now += 1e-6


def datagrams(count: int, seed: int = 1) -> list[bytes]:
    chance = Random(seed)
    return [chance.randbytes(chance.choice((1, 60, 1326, 1327, 5000, 24_000))) for _ in range(count)]


@pytest.mark.parametrize("loss", [0.0, 0.01, 0.2, 0.4])
@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_all_datagrams_arrive_once_and_in_order(loss: float, jitter: float) -> None:
    line, sent = Line(delay=0.01, loss=loss, jitter=jitter), datagrams(300)
    line.send(*sent)
    line.run(30)
    assert line.arrived == sent
    assert line.sender.unsent == line.sender.in_flight == 0, "nothing is kept"
    assert line.sender.due_at() is None, "and nothing is waited for"


def test_where_nothing_is_lost_nothing_is_repeated() -> None:
    line = Line(delay=0.05, rate=RATE)
    for each in datagrams(200):
        line.send(each)
        line.run(0.004)
    assert len(line.arrived) > 180
    assert line.sender.repeated == 0


def test_a_loss_costs_the_packet_that_was_lost() -> None:
    line = Line(delay=0.05, loss=0.02, rate=RATE)
    keep_full(line, 3)
    packets = sum(-(-len(each) // SEGMENT) for each in line.arrived)
    assert 0.015 * packets < line.sender.repeated - line.overflowed < 0.04 * packets


def test_reordered_is_not_lost() -> None:
    """At first it seems to be; then late ones are given more time."""
    line = Line(delay=0.02, jitter=0.01)
    for each in datagrams(300):
        line.send(each)
        line.run(0.01)
    before = line.sender.repeated
    for each in datagrams(300, seed=2):
        line.send(each)
        line.run(0.01)
    assert line.sender.repeated - before < 20 <= before + 20


def keep_full(line: Line, seconds: float) -> float:
    """As much as the link takes; bytes a second of the second half."""

    def feed() -> None:
        while line.sender.unsent < 1 << 18:
            line.send(bytes(24_000))

    line.run(seconds / 2, feed)
    before = sum(map(len, line.arrived))
    line.run(seconds / 2, feed)
    return (sum(map(len, line.arrived)) - before) / (seconds / 2)


@pytest.mark.parametrize(("delay", "loss", "share"), [(0.05, 0.0, 0.9), (0.05, 0.01, 0.85), (0.005, 0.01, 0.85)])
def test_a_long_line_is_filled_though_it_loses(delay: float, loss: float, share: float) -> None:
    line = Line(delay=delay, loss=loss, rate=RATE)
    assert keep_full(line, 4) > share * RATE
    assert line.overflowed < 0.1 * len(line.arrived) * 18
    assert line.path.shortest == pytest.approx(2 * delay, rel=0.4)


def test_the_first_phase_does_not_flood_a_line() -> None:
    line = Line(delay=0.05, rate=RATE)
    keep_full(line, 2)
    assert line.overflowed < 20
    assert line.path.full


def test_a_line_that_becomes_narrow_is_not_flooded() -> None:
    line = Line(delay=0.01, rate=RATE)
    keep_full(line, 2)
    line.rate = RATE / 5
    keep_full(line, 1)
    line.overflowed = 0
    assert keep_full(line, 4) > 0.7 * RATE / 5
    assert line.overflowed * SEGMENT < 0.2 * RATE / 5 * 4


def test_who_has_no_room_is_asked_with_one_packet_at_a_time() -> None:
    line = Line(delay=0.01)
    line.closed = True
    line.send(*[bytes(1000)] * 500)
    line.run(1)
    few = len(line.arrived)
    assert 32 <= few < 120
    line.closed = False
    line.run(1)
    assert len(line.arrived) == 500


def test_after_a_silence_it_is_tried_less_and_less_often() -> None:
    line = Line(delay=0.01)
    line.send(bytes(1000))
    line.run(0.1)
    line.loss = 1.0
    line.send(bytes(1000))
    line.run(30)
    assert line.sender.repeated < 80
    line.loss = 0.0
    line.run(2)
    assert len(line.arrived) == 2


# --- pieces ---


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(2, 100))
def test_ranges_are_those_of_the_numbers(numbers: list[int], most: int) -> None:
    ranges: list[list[int]] = []
    for number in numbers:
        add_range(ranges, number, most)
    covered = {number for first, last in ranges for number in range(first, last + 1)}
    assert covered <= set(numbers)
    assert len(ranges) <= most
    assert all(one[1] + 1 < other[0] for one, other in pairwise(ranges)), "ascending, not adjacent"
    if most > 61:
        assert covered == set(numbers)


def test_a_piece_is_written_as_documented() -> None:
    written: list[bytes] = []
    sender = LinkSender(0x01020304, 64, PathModel(64, 0.02), lambda parts: written.append(b"".join(parts)))
    sender.send(bytes(range(50)))
    sender.transmit(1.0)
    heading = bytes((0xC7, 0, 1, 2, 3, 4))
    first = heading + bytes(7) + b"\0" + bytes(8) + bytes((0, 0, 0, 2)) + bytes(range(38))
    second = heading + bytes(7) + b"\1" + bytes(8) + bytes((0, 1, 0, 2)) + bytes(range(38, 50))
    assert written == [first + second]
    found = list(read_pieces(memoryview(written[0]), 64))
    assert [bytes(piece) for _, piece in found] == [bytes(range(38)), bytes(range(38, 50))]


@pytest.mark.parametrize(
    "packet", [b"\xc6" + bytes(40), bytes((MAGIC,)) * 26, HEADING.pack(MAGIC, 1, 0, 0, 2, 2) + b"x"]
)
def test_what_is_no_piece_is_not_taken(packet: bytes) -> None:
    assert not one_piece(memoryview(packet))


def trains_of(sent: list[bytes], segment: int) -> list[bytes]:
    """What a sender writes by each call, all of it at once."""
    written: list[bytes] = []
    sender = LinkSender(STREAM, segment, PathModel(segment, 0.02), lambda parts: written.append(b"".join(parts)))
    for each in sent:
        sender.send(each)
        sender.transmit(1.0)
    return written


@pytest.mark.parametrize("seed", range(40))
def test_pieces_that_were_merged_are_read_at_once_as_one_by_one(seed: int) -> None:
    """Some are lost, come twice or in another order, or are changed; the system merges what it likes."""
    chance, segment = Random(seed), 64
    trains = trains_of([chance.randbytes(chance.choice((1, 38, 39, 200, 400))) for _ in range(6)], segment)
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(trains))
        train = bytearray(trains[at])
        how = chance.choice(("cut", "twice", "other", "changed", "swapped"))
        if how == "cut":
            trains[at] = bytes(train[: segment * chance.randrange(1 + len(train) // segment)] or train)
        elif how == "twice":
            trains.append(trains[at])
        elif how == "other":
            trains.insert(chance.randrange(len(trains)), trains.pop(at))
        elif how == "changed":
            place = segment * chance.randrange(-(-len(train) // segment))
            train[place + chance.randrange(HEADING.size)] ^= 1 << chance.randrange(8)
            trains[at] = bytes(train)
        else:
            parts = [train[start : start + segment] for start in range(0, len(train) // segment * segment, segment)]
            chance.shuffle(parts)
            trains[at] = bytes(b"".join(parts) or train)
    at_once, one_by_one, found, expected = LinkReceiver(), LinkReceiver(), [], []
    for now, data in enumerate(trains):
        view = memoryview(data)
        train_read = read_train(view, segment)
        if train_read is not None:
            found += at_once.take_train(*train_read, float(now))
        for heading, piece in read_pieces(view, segment):
            if train_read is None:
                found += at_once.take(*heading[2:], piece, float(now))
            expected += one_by_one.take(*heading[2:], piece, float(now))
        assert found == expected
        assert (at_once.unacknowledged, at_once.since, at_once.is_urgent) == (
            *(one_by_one.unacknowledged, one_by_one.since, one_by_one.is_urgent),
        )
    assert at_once.acknowledgment(9.0) == one_by_one.acknowledgment(9.0)


def test_a_train_is_read_at_once() -> None:
    (train,) = trains_of([bytes(200)], 64)
    assert read_train(memoryview(train), 64) is not None
    assert read_train(memoryview(train[:64] + train[128:]), 64) is None, "one is missing"
    assert read_train(memoryview(train[:70]), 64) is None, "the last has no bytes"
    other = bytearray(train)
    other[64] ^= 1
    assert read_train(memoryview(other), 64) is None, "one is no piece"


@pytest.mark.parametrize("ranges", [[], [(5, 2)], [(9, 9), (0, 1)], [(0, 1 << 70)], [(-7, -3)]])
def test_strange_acknowledgments_change_nothing_that_they_do_not_name(ranges: list[tuple[int, int]]) -> None:
    sender = LinkSender(STREAM, 64, PathModel(64, 0.02), lambda _: None)
    sender.send(bytes(200))
    sender.transmit(1.0)
    before = sender.in_flight
    sender.acknowledged(ranges, 0.0, 1.01, 0, closed=False)
    assert sender.in_flight == (0 if ranges == [(0, 1 << 70)] else before)


def test_forged_pieces_do_not_stop_the_stream() -> None:
    receiver, found = LinkReceiver(), []
    piece = memoryview(b"true")

    def take(number: int, datagram: int, index: int, count: int) -> None:
        found.extend(receiver.take(number, datagram, index, count, piece, 1.0))

    take(0, 0, 0, 1)
    take(900, 1, 3, 60)  # of a datagram that has one piece
    take(901, MAX_AHEAD + 5, 0, 1)
    take(1 << 40, 2, 0, 1)
    take(1, 1, 0, 1)
    take(2, 2, 0, 2)
    take(3, 2, 1, 2)
    assert found[0] == b"true"
    assert found[-1] == b"truetrue", "it goes on"
    assert len(found) == 3


@pytest.mark.parametrize(("field", "by"), [(2, 40), (2, 1), (3, 1), (3, 7000), (4, 1), (5, 1)])
@pytest.mark.parametrize("seed", range(5))
def test_pieces_that_are_changed_on_the_way_spoil_datagrams_and_do_not_stop_the_stream(
    field: int, by: int, seed: int
) -> None:
    """What was acknowledged by its number may not have arrived: only the receiver can tell what it waits for."""
    line, sent, chance = Line(delay=0.01, seed=seed), datagrams(300, seed), Random(seed)
    take, damages = line.take, True

    def changed(packet: bytes) -> None:
        if damages and chance.random() < 0.05:
            heading = list(HEADING.unpack_from(packet))
            heading[field] += by
            packet = HEADING.pack(*heading) + packet[HEADING.size :]
        take(packet)

    line.take = changed  # type: ignore[method-assign]
    line.send(*sent)
    line.run(5)
    damages = False
    last = datagrams(20, seed + 1)
    line.send(*last)
    line.run(30)
    assert len(line.arrived) == len(sent) + len(last)
    assert line.arrived[-10:] == last[-10:]
    assert line.sender.unsent == line.sender.in_flight == 0, "nothing is kept"


def test_numbers_that_nobody_sent_do_not_stop_the_stream() -> None:
    """So many are claimed that the numbers of the sender are too old to be told of."""
    line, sent = Line(delay=0.01), datagrams(100)
    for number in range(MAX_RANGES + 1):
        line.receiver.take(1000 * (number + 1), MAX_AHEAD - 1, 0, 2, memoryview(b"forged"), line.now)
    line.send(*sent)
    line.run(60)
    assert line.arrived == sent
    assert line.sender.unsent == line.sender.in_flight == 0


# --- in groups ---


@pytest.mark.parametrize("order", ORDERS)
def test_units_travel_in_links_where_packets_are_small(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order, mtu=NETWORK_MTU) as groups:
            links = member_of(groups["B"]).transport.endpoint.links
            assert links is not None
            messages = [bytes([number]) * 3000 for number in range(60)]
            for message in messages:
                await groups["B"].send(message)
            for group in groups.values():
                assert [message.payload for message in await hear(group, 60)] == messages
            assert groups["B"].stats().packets_repeated == links.repeated
            for name in "AC":
                assert groups[name].stats().units_discarded.get("duplicate", 0) == 0

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_lost_beneath_the_protocol_is_repeated_there(order: str) -> None:
    """A fifth of all packets: no protocol sends anything again."""

    async def test() -> None:
        async with group_of("A", "B", "C", order=order, mtu=NETWORK_MTU) as groups:
            for number, group in enumerate(groups.values()):
                lose(member_of(group), Random(number))
            for _ in range(40):
                await groups["B"].send(bytes(3000))
            for group in groups.values():
                assert len(await hear(group, 40)) == 40
            assert sum(group.stats().packets_repeated for group in groups.values()) > 0
            assert sum(group.stats().recoveries for group in groups.values()) == 0

    run(test)


def lose(member: Any, chance: Random) -> None:
    """A fifth of the packets that a member sends is lost."""
    endpoint = member.transport.endpoint
    write = endpoint.write_pieces

    def lossy(parts: list[bytes | memoryview], place: Any) -> None:
        for pair in zip(parts[::2], parts[1::2], strict=True):
            if chance.random() > 0.2:
                write(list(pair), place)

    endpoint.links._write = lossy
    for place, address in enumerate(member.transport.table.addresses):
        if place in endpoint.links._senders:
            endpoint.links._senders[place]._write = endpoint.links._writer((address.host, address.port))


def test_on_one_machine_and_by_multicast_there_are_none() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            assert member_of(groups["A"]).transport.endpoint.links is None
            await asyncio.sleep(0)

    run(test)


def test_a_stranger_is_forgotten_when_a_member_is_heard() -> None:
    """What a member says next must not make it one that is seen at the stranger's address."""
    links = Links(SEGMENT, lambda *_: None, lambda *_: None, lambda _: None)
    addresses = [Address("127.0.0.1", 7000), Address("127.0.0.1", 7001)]

    async def test() -> None:
        links.enter(STREAM, addresses, 0, passes_on=False, round_trip=0.01)
        links.heard_from(("127.0.0.9", 9))
        links.take(memoryview(b"?"), SEGMENT, ("127.0.0.1", 7001))
        links.is_seen_as_stranger(1)
        assert list(links._places) == [("127.0.0.1", 7001)]
        links.heard_from(("127.0.0.9", 9))
        links.is_seen_as_stranger(1)
        assert list(links._places) == [("127.0.0.1", 7001), ("127.0.0.9", 9)]
        links.close()

    run(test)
