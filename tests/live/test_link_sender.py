"""The sending half of a link, rule by rule: what is sent when, what is taken to be lost, and what is sent again."""

from typing import Any, NamedTuple

import pytest

from ordercast.live.transport.link_sender import MAX_TRAIN, LinkSender
from ordercast.live.transport.path_model import ACK_DELAY, Sample
from ordercast.live.transport.pieces import HEADING, HEADING_SIZE, MAGIC

BODY = 100
SEGMENT = BODY + HEADING_SIZE
ROUND_TRIP = 0.08


class Piece(NamedTuple):
    """What was sent in one packet."""

    number: int
    datagram: int
    place: int
    of: int
    body: bytes


class FixedPath:
    """What a sender asks of a path, as the test says it is; and what it is told."""

    def __init__(self) -> None:
        self.window, self.at_once, self.opens_at = 1 << 30, 1 << 30, 0.0
        self.smoothed = self.latest = self.shortest = ROUND_TRIP
        self.bandwidth, self.timeout = 1000.0, 1.0
        self.told: list[Any] = []

    def burst(self) -> int:
        return self.at_once

    def may_send_at(self) -> float:
        return self.opens_at

    def sent(self, size: int, packets: int, now: float, in_flight: int) -> Sample:
        self.told.append(("sent", size, packets, in_flight))
        return Sample(now, 0, 0.0, 0.0, limited=False)

    def ran_out(self, in_flight: int) -> None:
        self.told.append(("ran out", in_flight))

    def measured(self, seconds: float, now: float) -> None:
        self.told.append(("measured", round(seconds, 6), now))

    def acknowledged(self, size: int, latest: Sample, now: float, in_flight: int) -> None:
        self.told.append(("acknowledged", size, latest.time, now, in_flight))

    def lost(self, packets: int) -> None:
        self.told.append(("lost", packets))

    def collapsed(self) -> None:
        self.told.append("collapsed")


class Desk:
    """A sender, its path, and what it wrote since the test looked."""

    def __init__(self) -> None:
        self.path = FixedPath()
        self.wrote: list[Piece] = []
        self.sender = LinkSender(7, SEGMENT, self.path, self.write)  # type: ignore[arg-type]

    def write(self, parts: list[bytes | memoryview]) -> None:
        for heading, body in zip(parts[::2], parts[1::2], strict=True):
            magic, stream, number, datagram, index, count = HEADING.unpack(heading)
            assert (magic, stream) == (MAGIC, 7)
            self.wrote.append(Piece(number, datagram, index, count, bytes(body)))

    def send(self, *sizes: int, now: float = 0.0) -> list[Piece]:
        for size in sizes:
            self.sender.send(bytes(size))
        self.sender.transmit(now)
        return self.look()

    def look(self) -> list[Piece]:
        wrote, self.wrote = self.wrote, []
        return wrote

    def tell(self, *ranges: tuple[int, int], now: float, waits_for: int = 0, closed: bool = False) -> list[int]:
        """An acknowledgment; the numbers of the datagrams of which pieces are sent because of it."""
        self.sender.acknowledged(ranges, 0.0, now, waits_for, closed=closed)
        self.sender.transmit(now)
        return [piece.datagram for piece in self.look()]

    def told(self, *names: str) -> list[Any]:
        told = [each for each in self.path.told if (each if isinstance(each, str) else each[0]) in names]
        self.path.told.clear()
        return told


# --- sending ---


def test_a_datagram_is_cut_into_pieces_that_are_numbered() -> None:
    desk = Desk()
    data = bytes(range(250))
    desk.sender.send(data)
    assert (desk.sender.unsent, desk.sender.in_flight) == (250, 0)
    desk.sender.transmit(0.0)
    assert desk.look() == [
        Piece(0, 0, 0, 3, data[:100]),
        Piece(1, 0, 1, 3, data[100:200]),
        Piece(2, 0, 2, 3, data[200:]),
    ]
    assert (desk.sender.unsent, desk.sender.in_flight) == (0, 250 + 3 * HEADING_SIZE)
    assert [(piece.number, piece.datagram, piece.of) for piece in desk.send(100)] == [(3, 1, 1)]


def test_as_much_is_under_way_as_the_path_allows_and_a_piece_if_there_is_any_room() -> None:
    desk = Desk()
    desk.path.window = 2 * SEGMENT + 1
    assert len(desk.send(1000)) == 3
    assert desk.sender.unsent == 700
    assert desk.sender.due_at() == desk.path.timeout, "nothing more can be sent before"
    assert len(desk.tell((0, 0), now=1.0)) == 1
    desk.path.window = 3 * SEGMENT
    assert desk.send() == [], "no room at all"
    assert desk.sender.due_at() == 2.0


def test_of_one_datagram_so_many_pieces_are_sent_by_one_call() -> None:
    desk = Desk()
    desk.send((MAX_TRAIN + 5) * BODY)
    assert [each[2] for each in desk.told("sent")] == [MAX_TRAIN, 5]
    desk.path.at_once = 2 * SEGMENT
    desk.send(5 * BODY)
    assert desk.told("sent") == [
        ("sent", 2 * SEGMENT, 2, 45 * SEGMENT),
        ("sent", 2 * SEGMENT, 2, 47 * SEGMENT),
        ("sent", SEGMENT, 1, 49 * SEGMENT),
    ]


def test_nothing_is_sent_before_its_time() -> None:
    desk = Desk()
    desk.path.opens_at = 2.0
    assert desk.send(100, now=1.9) == []
    assert desk.sender.due_at() == 2.0
    desk.sender.tick(2.0)
    assert len(desk.look()) == 1
    assert desk.sender.due_at() == 3.0, "when it may have been lost"


def test_what_is_paced_waits_for_its_time_also_while_something_is_under_way() -> None:
    desk = Desk()
    desk.send(100)
    desk.path.opens_at = 0.5
    assert desk.send(100) == []
    assert desk.sender.due_at() == 0.5


def test_who_has_no_room_is_sent_one_piece_at_a_time() -> None:
    desk = Desk()
    desk.path.at_once = SEGMENT
    desk.send(100)
    assert desk.tell((0, 0), now=1.0, waits_for=1, closed=True) == []
    assert len(desk.send(300, now=1.0)) == 1
    assert desk.sender.due_at() == 2.0, "that it is answered, or lost"
    desk.told()
    assert desk.tell((1, 1), now=1.5, waits_for=1, closed=True) == [1]
    assert desk.told("ran out") == [("ran out", SEGMENT)], "the rate says nothing of the path"
    assert desk.tell((2, 2), now=1.6, waits_for=1) == [1]


def test_a_path_is_told_when_there_was_too_little_to_send() -> None:
    desk = Desk()
    desk.sender.send(bytes(100))
    assert desk.told("ran out") == [("ran out", 0)]
    desk.sender.send(bytes(100))
    assert desk.told("ran out") == [], "the first one still waits"
    desk.sender.transmit(0)
    desk.path.window = 2 * SEGMENT
    desk.sender.send(bytes(100))
    assert desk.told("ran out") == [], "all that may be is under way"
    desk = Desk()
    desk.send(100)
    desk.told()
    desk.path.window = SEGMENT + 1
    desk.sender.send(bytes(100))
    assert desk.told("ran out") == [("ran out", SEGMENT)]


def test_enough_waits_if_it_takes_two_round_trips() -> None:
    desk = Desk()
    assert desk.sender.enough_unsent() == 160


def test_it_has_nothing_to_do_before_something_is_sent() -> None:
    desk = Desk()
    assert desk.sender.due_at() is None
    desk.send(100)
    desk.tell((0, 0), now=0.5, waits_for=1)
    assert desk.sender.due_at() is None


# --- acknowledgments ---


def test_what_arrived_is_not_under_way_and_is_measured() -> None:
    desk = Desk()
    desk.send(250, now=1.0)
    desk.send(100, now=1.005)
    desk.sender.acknowledged([(0, 0), (2, 3)], 0.001, 1.05, 0, closed=False)
    arrived = 250 + 3 * HEADING_SIZE
    assert desk.told("measured", "acknowledged") == [
        ("measured", 0.044, 1.05),
        ("acknowledged", arrived, 1.005, 1.05, SEGMENT),
    ]
    assert desk.sender.in_flight == SEGMENT
    desk.sender.acknowledged([(0, 3)], 0.001, 1.06, 2, closed=False)
    assert desk.told("measured", "acknowledged") == [("acknowledged", SEGMENT, 1.0, 1.06, 0)], "it was not the latest"
    desk.sender.acknowledged([(0, 3)], 0.001, 1.07, 2, closed=False)
    assert desk.told("measured", "acknowledged") == [], "nothing new"


def test_a_delay_that_is_told_counts_up_to_a_bound() -> None:
    desk = Desk()
    for number, (delay, seconds) in enumerate(((0.0, 0.05), (2 * ACK_DELAY, 0.042), (1.0, 0.042))):
        desk.send(100, now=float(number))
        desk.sender.acknowledged([(number, number)], delay, number + 0.05, number + 1, closed=False)
        assert desk.told("measured") == [("measured", seconds, number + 0.05)]
    desk.send(100, now=9.0)
    desk.sender.acknowledged([(3, 3)], 1.0, 9.001, 4, closed=False)
    assert desk.told("measured") == [("measured", 1e-6, 9.001)], "no round trip is negative"


def test_ranges_are_of_any_numbers() -> None:
    desk = Desk()
    for _ in range(5):
        desk.send(200)
    desk.tell((1, 2), (5, 5), (9, 40), now=0.01)
    assert [each[1] for each in desk.told("acknowledged")] == [4 * SEGMENT]
    assert {piece.datagram for piece in desk.look()} == set(), "all copies were looked at"
    assert desk.sender.in_flight == 6 * SEGMENT, "two that may be late, and four copies"


def test_what_the_other_side_is_done_with_needs_no_acknowledgment() -> None:
    desk = Desk()
    desk.send(250)
    desk.send(100)
    desk.tell(now=0.5, waits_for=1)
    assert desk.sender.in_flight == SEGMENT
    assert desk.sender.due_at() == 1.0
    desk.tell(now=0.5, waits_for=2)
    assert desk.sender.in_flight == 0
    assert desk.sender.due_at() is None
    assert desk.told("measured", "acknowledged") == [], "of when they arrived nothing is known"


def test_what_arrived_and_is_waited_for_all_the_same_is_sent_again() -> None:
    """Somebody forged the acknowledgment, or a piece."""
    desk = Desk()
    desk.send(200)
    desk.send(100)
    assert desk.tell((0, 1), now=0.5) == [0, 0]
    assert desk.sender.repeated == 2
    assert desk.tell((2, 4), now=0.6, waits_for=1) == [1]
    assert desk.tell((5, 5), now=0.7, waits_for=2) == []


def test_what_was_said_to_be_handed_over_stays_so() -> None:
    desk = Desk()
    desk.send(100, 100, 100)
    desk.tell((0, 2), now=0.5, waits_for=3)
    desk.send(100, now=0.6)
    assert desk.tell((3, 3), now=0.7, waits_for=1) == [3], "an old acknowledgment: 3 is what is waited for"


# --- losses ---


def test_three_packets_later_it_is_lost() -> None:
    desk = Desk()
    for _ in range(5):
        desk.send(100)
    assert desk.tell((1, 2), now=0.001) == []
    assert desk.tell((3, 3), now=0.001) == [0]
    assert desk.told("lost") == [("lost", 1)]
    assert (desk.sender.repeated, desk.sender.in_flight) == (1, 2 * SEGMENT)
    assert desk.sender.due_at() == 1.001, "nothing else may be lost before a timeout"
    assert desk.tell((5, 5), now=0.002, waits_for=4) == [], "the copy arrived; 4 may be late"


def test_so_it_is_an_eighth_of_a_round_trip_later() -> None:
    """Something that was sent later has arrived, and it itself is overdue."""
    desk = Desk()
    desk.send(100, now=1.0)
    desk.send(100, now=1.005)
    assert desk.tell((1, 1), now=1.085) == []
    due = desk.sender.due_at()
    assert due is not None
    assert due == pytest.approx(1.0 + ROUND_TRIP + ROUND_TRIP / 8)
    desk.sender.tick(due - 0.0001)
    assert desk.look() == []
    desk.sender.tick(due + 1e-9)
    assert [piece.datagram for piece in desk.look()] == [0]


def test_of_several_that_may_be_late_the_first_is_looked_for_first_and_at_its_very_time() -> None:
    desk = Desk()
    desk.path.smoothed = desk.path.latest = 1 / 16  # times that are exact
    for number in range(3):
        desk.send(100, now=1 + number / 512)
    assert desk.tell((2, 2), now=1 + 1 / 16) == []
    for number in range(2):
        due = desk.sender.due_at()
        assert due == 1 + number / 512 + 1 / 16 + 1 / 128
        desk.sender.tick(due)
        assert [piece.datagram for piece in desk.look()] == [number]


def test_of_what_was_taken_to_be_lost_the_last_64_are_remembered() -> None:
    desk = Desk()
    desk.send(*[100] * 68)
    desk.path.window = 0
    assert desk.tell((67, 67), now=0.001) == []
    assert desk.told("lost") == [("lost", 65)]
    desk.tell((0, 1), now=0.002)
    desk.path.window = 1 << 20
    assert desk.tell(now=0.003) == [0, *range(2, 65)], "that the first one has arrived is not known any more"


def test_or_if_it_was_sent_so_much_before_what_arrived() -> None:
    desk = Desk()
    desk.send(100, now=1.0)
    desk.send(100, now=1.0 + ROUND_TRIP / 8)
    assert desk.tell((1, 1), now=1.02) == [0], "however quickly that came"


def test_a_round_trip_that_was_longer_just_now_gives_more_time() -> None:
    desk = Desk()
    desk.send(100, now=1.0)
    desk.send(100, now=1.001)
    desk.path.latest = 0.2
    desk.tell((1, 1), now=1.2)
    assert desk.sender.due_at() == pytest.approx(1.2 + ROUND_TRIP / 8)


def test_what_was_sent_after_the_latest_that_arrived_is_not_lost() -> None:
    desk = Desk()
    for _ in range(9):
        desk.send(100, now=1.0)
    assert desk.tell((0, 4), now=1.9, waits_for=5) == []
    assert desk.sender.due_at() == 2.0, "only a timeout may tell"


def test_pieces_of_a_train_are_lost_one_by_one() -> None:
    desk = Desk()
    desk.send(900)
    assert desk.tell((2, 2), (4, 6), now=0.001) == [0, 0, 0]
    assert desk.told("lost") == [("lost", 3)], "0, 1 and 3: each three or more before 6"


def test_what_is_lost_again_is_sent_again() -> None:
    desk = Desk()
    desk.send(100)
    for number in range(3, 15, 4):
        desk.send(100, 100, 100)
        assert desk.tell((number - 2, number), now=0.001, waits_for=0) == [0]
    assert desk.sender.repeated == 3


def test_what_was_taken_to_be_lost_and_arrives_gives_later_ones_more_time() -> None:
    """A quarter of a round trip, then twice that, up to a round trip; packets do not count any more."""
    desk = Desk()
    number = datagram = 0
    for allowed in (ROUND_TRIP / 4, ROUND_TRIP / 2, ROUND_TRIP, ROUND_TRIP):
        begin = float(number + 1)
        desk.send(100, now=begin)
        later = begin + 2 * ROUND_TRIP
        desk.send(100, 100, 100, now=later)
        assert desk.tell((number + 1, number + 3), now=later + 0.001, waits_for=datagram) == [datagram]
        desk.tell((number, number + 4), now=later + 0.002, waits_for=datagram + 4)
        number, datagram, begin = number + 5, datagram + 4, begin + 0.5
        desk.send(100, now=begin)
        desk.send(100, 100, 100, now=begin + 0.001)
        assert desk.tell((number + 1, number + 3), now=begin + 0.002, waits_for=datagram) == []
        assert desk.sender.due_at() == pytest.approx(begin + ROUND_TRIP + allowed)
        desk.tell((number, number + 3), now=begin + 0.003, waits_for=datagram + 4)
        number, datagram = number + 4, datagram + 4


def test_a_copy_of_what_arrives_meanwhile_is_not_sent() -> None:
    desk = Desk()
    for _ in range(4):
        desk.send(100)
    desk.path.window = 0
    assert desk.tell((1, 3), now=0.001) == [], "0 is lost, and there is no room for its copy"
    desk.path.window = 1 << 20
    assert desk.tell((0, 0), now=0.002, waits_for=4) == []
    assert (desk.sender.repeated, desk.sender.in_flight) == (0, 0)


def test_when_all_that_was_under_way_is_lost_nothing_is_waited_for() -> None:
    """And there is no room to send it again."""
    desk = Desk()
    for _ in range(4):
        desk.send(100)
    desk.path.window = 0
    desk.tell((3, 3), now=0.001)
    due = desk.sender.due_at()
    assert due is not None
    desk.sender.tick(due + 1e-9)
    assert desk.told("lost") == [("lost", 1), ("lost", 2)]
    assert desk.sender.due_at() is None


@pytest.mark.parametrize("late", [False, True])
def test_nor_is_one_of_what_the_other_side_is_done_with_or_what_was_only_late(late: bool) -> None:
    desk = Desk()
    for _ in range(5):
        desk.send(100)
    desk.path.window = 0
    assert desk.tell((2, 4), now=0.001) == [], "0 and 1 are lost"
    desk.path.window = 1 << 20
    if late:
        assert desk.tell((1, 1), now=0.002, waits_for=0) == [0]
    else:
        assert desk.tell(now=0.002, waits_for=1) == [1]


def test_when_nothing_was_late_for_long_packets_count_again() -> None:
    desk = Desk()
    for _ in range(4):
        desk.send(100)
    desk.tell((1, 3), now=0.001)
    desk.tell((0, 4), now=0.002, waits_for=4)  # 0 was late
    number, datagram = 5, 4
    for losses in range(1, 10):  # which do not count any more when one is late again
        now, number, datagram = losses / 10, number + 5, datagram + 4
        desk.send(100, now=now)
        desk.send(100, 100, 100, now=now + ROUND_TRIP)
        assert desk.tell((number - 4, number - 2), now=now + ROUND_TRIP, waits_for=datagram - 4) == [datagram - 4]
        desk.tell((number - 1, number - 1), now=now + ROUND_TRIP, waits_for=datagram)
    desk.tell((number - 5, number - 5), now=0.99, waits_for=datagram)
    assert desk.sender._losses_in_order == 0
    desk.sender._reordering = ROUND_TRIP / 4
    for losses in range(1, 67):
        now = float(losses)
        for _ in range(4):
            desk.send(100, now=now)
        found = desk.tell((number + 1, number + 3), now=now + 0.001, waits_for=datagram)
        assert found == [datagram] * (losses == 66), "65 losses that were losses"
        if not found:
            due = desk.sender.due_at()
            assert due is not None
            desk.sender.tick(due + 1e-9)
            assert [piece.datagram for piece in desk.look()] == [datagram]
        number, datagram = number + 5, datagram + 4
        desk.tell((number - 1, number - 1), now=now + 0.5, waits_for=datagram)


# --- timeouts ---


def test_after_a_timeout_the_two_oldest_are_sent_once_more_twice_as_late_each_time() -> None:
    desk = Desk()
    desk.send(300, 100)
    due, waits = desk.sender.due_at(), []
    for _ in range(8):
        assert due is not None
        desk.sender.tick(due)
        assert [(piece.datagram, piece.place) for piece in desk.look()] == [(0, 0), (0, 1)]
        again = desk.sender.due_at()
        assert again is not None
        waits.append(again - due)
        due = again
    assert waits == [2, 4, 8, 16, 32, 32, 32, 32]
    assert desk.told("collapsed", "lost") == ["collapsed"], "with the third"


def test_what_is_acknowledged_makes_timeouts_short_again() -> None:
    for told, waits_for in (((3, 3),), 0), ((), 1):  # a piece, or that a datagram is handed over
        desk = Desk()
        desk.send(100, 100, 100)
        desk.sender.tick(1.0)
        assert desk.sender.due_at() == 3.0
        desk.sender.acknowledged(told, 0.0, 1.1, waits_for, closed=False)
        desk.sender._loss_at = None
        assert desk.sender._times_out_at() == 2.0


def test_nothing_times_out_before_its_time() -> None:
    desk = Desk()
    desk.send(100)
    desk.sender.tick(0.999)
    assert desk.look() == []
    desk.sender.tick(1.0)
    assert len(desk.look()) == 1
