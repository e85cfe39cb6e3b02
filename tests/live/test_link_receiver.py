"""The receiving half of a link, rule by rule: what is handed over, what is acknowledged, and what is not ours."""

import pytest

from ordercast.live.transport.link_receiver import (
    MAX_AHEAD,
    MAX_HELD_BYTES,
    MAX_NUMBERS_AHEAD,
    LinkReceiver,
)
from ordercast.live.transport.pieces import MAGIC, Heading
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE


def view(data: bytes) -> memoryview:
    return memoryview(data)


def heading(number: int, datagram: int, index: int, count: int) -> Heading:
    return MAGIC, 0, number, datagram, index, count


def took(receiver: LinkReceiver, number: int, datagram: int, piece: bytes = b"x", now: float = 0.0) -> list[bytes]:
    """A datagram of one piece."""
    return receiver.take(number, datagram, 0, 1, view(piece), now)


# --- handing over ---


def test_datagrams_are_handed_over_in_their_order_each_once() -> None:
    receiver = LinkReceiver()
    assert took(receiver, 1, 1, b"b") == []
    assert took(receiver, 2, 3, b"d") == []
    assert took(receiver, 0, 0, b"a") == [b"a", b"b"]
    assert took(receiver, 3, 0, b"a") == [], "again"
    assert took(receiver, 4, 3, b"d") == [], "it is here, and waits"
    assert took(receiver, 5, 2, b"c") == [b"c", b"d"]
    assert took(receiver, 6, 4, b"e") == [b"e"]


def test_pieces_may_come_in_any_order_and_twice() -> None:
    receiver = LinkReceiver()
    assert receiver.take(0, 0, 2, 3, view(b"c"), 0) == []
    assert receiver.take(1, 0, 0, 3, view(b"a"), 0) == []
    assert receiver.take(2, 0, 0, 3, view(b"?"), 0) == [], "the first counts"
    assert receiver.take(3, 0, 1, 3, view(b"b"), 0) == [b"abc"]


@pytest.mark.parametrize("held", [False, True])
def test_a_train_is_handed_over_whole(held: bool) -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0)
    pieces = [view(b"a"), view(b"b"), view(b"c")]
    assert receiver.take_train(heading(1, 1, 0, 3), pieces[: 2 if held else 3], 0) == ([] if held else [b"abc"])
    if held:
        assert receiver.take_train(heading(3, 1, 2, 3), pieces[2:], 0) == [b"abc"]
    assert took(receiver, 4, 2, b"d") == [b"d"]


def test_a_train_of_a_datagram_of_which_a_piece_is_here_completes_it() -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0)
    assert receiver.take(1, 1, 1, 2, view(b"b"), 0) == []
    assert receiver.take_train(heading(2, 1, 0, 2), [view(b"a"), view(b"?")], 0) == [b"ab"]
    assert took(receiver, 4, 2, b"c") == [b"c"], "it is gone"


def test_a_train_ahead_of_another_waits_and_is_handed_over_behind_it() -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0)
    assert receiver.take_train(heading(1, 2, 0, 2), [view(b"c"), view(b"d")], 0) == []
    assert receiver.take_train(heading(3, 1, 0, 2), [view(b"a"), view(b"b")], 0) == [b"ab", b"cd"]


def test_a_train_of_what_was_handed_over_is_acknowledged_and_no_more() -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0)
    assert receiver.take_train(heading(1, 0, 0, 2), [view(b"a"), view(b"b")], 0) == []
    assert receiver.acknowledgment(0)[0] == (0, 2)
    assert took(receiver, 3, 1, b"b") == [b"b"]


def test_a_train_with_a_strange_number_is_taken_piece_by_piece() -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0)
    assert receiver.take_train(heading(5, 1, 0, 2), [view(b"a"), view(b"b")], 0) == [b"ab"]
    assert receiver.acknowledgment(0)[0] == (0, 0, 5, 6)
    assert receiver.take_train(heading(3, 3, 0, 1), [view(b"d")], 0) == []
    assert receiver.acknowledgment(0)[0] == (0, 0, 3, 3, 5, 6)


# --- acknowledging ---


def test_the_numbers_that_arrived_are_acknowledged_with_the_time_since_the_latest() -> None:
    receiver, fresh = LinkReceiver(), LinkReceiver()
    took(receiver, 0, 0, now=1.0)
    assert (receiver.heard, fresh.heard) == (True, False)
    took(receiver, 1, 1, now=2.0)
    took(receiver, 5, 5, now=3.0)
    took(receiver, 3, 3, now=4.0)  # late: not the latest
    assert receiver.acknowledgment(4.5) == ((0, 1, 3, 3, 5, 5), 1_500_000, 2)
    assert receiver.acknowledgment(2.5)[1] == 0, "a clock that was set back"


@pytest.mark.parametrize("train", [False, True])
def test_what_arrives_twice_is_not_the_latest(train: bool) -> None:
    receiver = LinkReceiver()
    assert not receiver.said_closed, "it has said nothing yet"
    took(receiver, 0, 0, now=1.0)
    if train:
        receiver.take_train(heading(0, 0, 0, 1), [view(b"x")], 2.0)
    else:
        took(receiver, 0, 0, now=2.0)
    assert receiver.acknowledgment(3.0) == ((0, 0), 2_000_000, 1)


@pytest.mark.parametrize("train", [False, True])
def test_the_time_of_the_latest_is_that_of_a_train_too(train: bool) -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0, now=1.0)
    if train:
        receiver.take_train(heading(1, 1, 0, 1), [view(b"a")], 2.0)
    else:
        took(receiver, 1, 1, now=2.0)
    assert receiver.acknowledgment(2.5)[1] == 500_000


def test_what_is_not_acknowledged_is_counted_from_the_first_on() -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0, now=1.0)
    took(receiver, 1, 1, now=2.0)
    receiver.take_train(heading(2, 2, 0, 3), [view(b"a")] * 3, 3.0)
    assert (receiver.unacknowledged, receiver.since) == (5, 1.0)
    receiver.acknowledgment(3.0)
    assert receiver.unacknowledged == 0
    took(receiver, 5, 3, now=4.0)
    took(receiver, 7, 5, now=5.0)
    assert (receiver.unacknowledged, receiver.since) == (2, 4.0)
    receiver.acknowledgment(5.0)
    took(receiver, 9, 7, now=6.0)
    took(receiver, 10, 8, now=7.0)
    assert (receiver.unacknowledged, receiver.since) == (2, 6.0)
    receiver.acknowledgment(7.0)
    receiver.take_train(heading(11, 9, 0, 2), [view(b"a")] * 2, 8.0)
    took(receiver, 13, 10, now=9.0)
    assert (receiver.unacknowledged, receiver.since) == (3, 8.0)


def test_a_gap_and_what_comes_late_are_urgent_and_what_follows_is_not() -> None:
    receiver, urgent = LinkReceiver(), []
    for number in (0, 1, 3, 4, 5, 2):
        took(receiver, number, number)
        urgent.append(receiver.is_urgent)
        receiver.acknowledgment(0)
    assert urgent == [False, False, True, False, False, True]
    took(receiver, 9, 9)
    took(receiver, 10, 10)
    assert receiver.is_urgent, "until it is said"


def test_the_first_is_urgent_if_something_was_sent_before_it() -> None:
    for number, urgent in ((0, False), (1, True)):
        receiver = LinkReceiver()
        took(receiver, number, 0)
        assert receiver.is_urgent is urgent


# --- what is not ours ---


def test_what_is_too_far_ahead_is_not_taken() -> None:
    """A datagram, or a number; the first number may be any, since the member may have come late."""
    receiver = LinkReceiver()
    took(receiver, 0, MAX_AHEAD + 1)
    assert not receiver.heard
    took(receiver, 1 << 40, MAX_AHEAD)
    assert receiver.acknowledgment(0)[0] == (1 << 40, 1 << 40)
    took(receiver, (1 << 40) + MAX_NUMBERS_AHEAD + 1, 1)
    assert receiver.unacknowledged == 0
    took(receiver, (1 << 40) + MAX_NUMBERS_AHEAD, 1)
    assert receiver.unacknowledged == 1


def test_nor_is_a_train() -> None:
    receiver = LinkReceiver()
    took(receiver, 0, 0)
    receiver.acknowledgment(0)
    assert receiver.take_train(heading(1, MAX_AHEAD + 2, 0, 1), [view(b"a")], 0) == []
    assert receiver.unacknowledged == 0


def test_what_waits_is_bounded_in_bytes_and_what_is_next_is_taken_all_the_same() -> None:
    receiver, left, at = LinkReceiver(), MAX_HELD_BYTES, 0
    whole = view(bytes(MAX_DATAGRAM_SIZE))
    while left:
        at, piece = at + 1, whole[: min(left, len(whole))]
        left -= len(piece)
        receiver.take(2 * at, at, 0, 2, piece, 0)
        receiver.take(2 * at + 1, at, 0, 2, piece, 0)  # again: it is not kept twice
    receiver.take(9000, 9000, 0, 2, view(b"!"), 0)  # it may be one piece more
    assert receiver.unacknowledged == 2 * at + 1
    receiver.acknowledgment(0)
    receiver.take(9001, 9001, 0, 2, view(b"!"), 0)
    assert receiver.unacknowledged == 0
    assert took(receiver, 9002, 0, b"next") == [b"next"]
    assert receiver.take(9003, 1, 1, 2, view(b"!"), 0) == [bytes(whole) + b"!"]
    receiver.take(9004, 9004, 0, 2, view(b"!"), 0)
    assert receiver.unacknowledged == 3, "there is room again"


@pytest.mark.parametrize("others", [2, 4])
def test_pieces_that_contradict_each_other_end_their_datagram_empty(others: int) -> None:
    receiver = LinkReceiver()
    receiver.take(0, 0, 0, 3, view(b"a"), 0)
    assert receiver.take(1, 0, 0, others, view(b"b"), 0) == [b""]
    assert took(receiver, 2, 1, b"next") == [b"next"]


def test_so_do_pieces_that_are_too_much_for_a_datagram_and_they_take_no_room() -> None:
    receiver, count = LinkReceiver(), 1 << 15
    piece = view(bytes(MAX_DATAGRAM_SIZE // 2))
    receiver.take(0, 0, 0, count, piece, 0)
    receiver.take(1, 0, 1, count, piece, 0)
    assert receiver.take(2, 0, 2, count, view(b"a"), 0) == [], "as much as there may be"
    assert receiver.take(3, 0, 3, count, view(b"a"), 0) == [], "a byte more"
    assert receiver.take(4, 0, 4, count, view(b"a"), 0) == [b""]
    assert took(receiver, 5, 1, b"next") == [b"next"]
    assert receiver._held_bytes == 0
