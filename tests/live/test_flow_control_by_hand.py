"""Flow control of one member, by hand and by a clock of its own: what it says and when, and for whom it waits."""

from ordercast.live.host.flow_control import FORGET, REPEAT, FlowControl
from ordercast.live.host.inbox import Inbox
from ordercast.model.units import Packet
from ordercast.wire.control import FlowNotice, LeaveRequest
from tests.live.hand_clock import Clock

LIMIT = 1 << 20
PATIENCE = 9.5 * REPEAT


class Room:
    """One member's flow control."""

    def __init__(self, patience: float = 0.0) -> None:
        self.clock = Clock()
        self.inbox = Inbox(("A", "B", "C"), 1 << 20)
        self.inbox.limit = LIMIT
        self.sent: list[FlowNotice] = []
        self.requests: list[tuple[int, int | None]] = []
        self.opened = self.asked = 0
        with self.clock.running():
            self.flow = FlowControl(
                *(self.inbox, self.send),
                on_open=self.open,
                on_leave_request=self.ask,
                slow_reader_timeout=patience,
            )

    def send(self, message: FlowNotice | LeaveRequest, place: int | None) -> None:
        if isinstance(message, LeaveRequest):
            self.requests.append((message.number, place))
        else:
            assert place is None
            self.sent.append(message)

    def ask(self) -> None:
        self.asked += 1

    def open(self) -> None:
        self.opened += 1

    def waits(self) -> bool:
        return self.flow.must_wait

    def said(self) -> list[bool]:
        return [notice.closed for notice in self.sent]

    def hears(self, place: int, number: int, *, closed: bool) -> None:
        self.flow.received(place, FlowNotice(number, closed=closed))

    def put(self, size: int) -> None:
        self.inbox.put(Packet(1, 7, 0, (0, 0, 0), 0, (size,), b"\0" + bytes(size)))

    def fill(self) -> None:
        for _ in range(4):
            self.put(LIMIT // 4 - 1)
        self.put(1)


def test_it_says_when_it_is_full_and_again_and_when_half_was_read() -> None:
    room = Room()
    room.fill()
    assert room.said() == [True]
    assert room.waits(), "its own messages come back to it"
    room.clock.advance(2.5 * REPEAT)
    assert room.said() == [True] * 3
    room.inbox.take()
    assert room.waits()
    room.inbox.take()
    room.inbox.take()
    assert not room.waits()
    room.clock.advance(10 * REPEAT)
    assert room.said() == [True] * 3 + [False] * 2, "one may be lost"
    assert [notice.number for notice in room.sent] == [1, 2, 3, 4, 5]
    assert room.opened == 1
    assert not room.clock.due, "nothing more happens"


def test_one_that_is_full_says_so_once_a_period_however_full_it_becomes() -> None:
    room = Room()
    room.fill()
    room.put(LIMIT)
    room.flow.close()
    assert room.said() == [True]
    room.clock.advance(REPEAT)
    assert room.said() == [True] * 2


def test_members_that_are_closed_are_waited_for_until_all_have_opened() -> None:
    room = Room()
    room.hears(1, 5, closed=True)
    room.hears(2, 9, closed=True)
    assert room.flow.closed == {1, 2}
    room.hears(1, 4, closed=False)
    room.hears(1, 5, closed=False)
    assert room.flow.closed == {1, 2}, "it was overtaken, and what has a number that came already says nothing"
    room.hears(1, 6, closed=False)
    assert room.flow.closed == {2}
    assert room.waits()
    assert room.said() == [], "for what others say nothing is said"
    room.hears(2, 10, closed=False)
    assert not room.waits()
    room.clock.advance(0)
    assert room.opened == 1
    room.hears(2, 11, closed=False)
    room.clock.advance(FORGET)
    assert room.opened == 1


def test_a_member_that_is_closed_is_waited_for_as_long_as_it_says_so() -> None:
    room = Room()
    room.hears(2, 0, closed=True)
    room.clock.advance(FORGET - 1.5 * REPEAT)
    room.hears(2, 1, closed=True)
    room.clock.advance(FORGET - 1.5 * REPEAT)
    assert room.waits(), "it has said it again"
    room.clock.advance(3 * REPEAT)
    assert not room.waits(), "nothing was heard of it any more"
    assert (room.opened, room.clock.due) == (1, [])


def test_one_that_is_silent_is_forgotten_at_the_first_tick_at_which_its_time_is_over() -> None:
    room = Room()
    room.hears(2, 0, closed=True)
    room.flow.closed_until[2] = 2 * REPEAT
    room.clock.advance(REPEAT)
    assert room.flow.closed == {2}
    room.clock.advance(REPEAT)
    assert room.flow.closed == set(), "not longer than that"


def test_in_another_view_nobody_is_closed_and_numbers_begin_anew() -> None:
    room = Room()
    room.hears(2, 10, closed=True)
    room.flow.enter_view({})
    assert not room.waits(), "places are others"
    room.clock.advance(0)
    assert room.opened == 1
    room.hears(2, 1, closed=True)
    assert room.waits()


def test_who_is_in_no_view_tells_and_waits_for_nobody_until_it_is_in_one() -> None:
    room = Room()
    room.hears(2, 10, closed=True)
    room.flow.leave_view()
    assert not room.waits()
    room.fill()
    room.clock.advance(3.5 * REPEAT)
    assert room.said() == []
    room.flow.enter_view({})
    room.clock.advance(REPEAT)
    assert room.said() == [True], "it is closed, as before"


def test_who_has_closed_the_group_need_not_read() -> None:
    room = Room()
    room.put(2 * LIMIT)
    room.flow.disable()
    assert room.said() == [True, False]
    room.put(2 * LIMIT)
    room.flow.close()
    assert room.said() == [True, False]


def test_who_reads_and_closes_the_group_has_nothing_to_say() -> None:
    room = Room()
    room.flow.disable()
    assert (room.said(), room.clock.due) == ([], [])


def test_members_that_do_not_read_are_named() -> None:
    room = Room()
    members = ("A", "B")
    assert room.flow.names("A", members) == []
    room.hears(1, 1, closed=True)
    room.hears(2, 1, closed=True)
    assert room.flow.names("A", members) == ["B"], "place 2 is none of these"
    room.fill()
    assert room.flow.names("A", members) == ["B", "A"]


def test_when_it_is_stopped_nothing_is_said_any_more() -> None:
    room = Room()
    room.fill()
    room.flow.stop()
    room.clock.advance(10 * REPEAT)
    assert room.said() == [True]
    assert room.flow.timer is None
    for _ in range(5):
        room.inbox.take()
    room.fill()
    assert room.said() == [True]
    room.flow.stop()


def keep_closed(room: Room, place: int, seconds: float, number: int) -> int:
    """A member says so again and again for so long; the number of its last notice."""
    for _ in range(int(seconds / REPEAT + 1e-9)):
        number += 1
        room.hears(place, number, closed=True)
        room.clock.advance(REPEAT)
    return number


def test_one_that_reads_and_has_waited_long_enough_asks_the_other_to_leave_until_it_does() -> None:
    room = Room(PATIENCE)
    number = keep_closed(room, 2, 10 * REPEAT, 0)
    assert room.requests == [(number, 2)], "not before the time is over"
    last = keep_closed(room, 2, 2 * REPEAT, number)
    assert room.requests == [(number, 2), (last - 1, 2), (last, 2)], "a request may be lost"
    room.flow.enter_view({})
    room.clock.advance(PATIENCE)
    assert len(room.requests) == 3


def test_the_time_begins_anew_when_a_member_opens_is_forgotten_or_leaves() -> None:
    room = Room(PATIENCE)
    number = keep_closed(room, 2, PATIENCE - REPEAT, 0)
    room.hears(2, number + 1, closed=False)
    number = keep_closed(room, 2, PATIENCE - REPEAT, number + 1)
    room.flow.enter_view({})
    number = keep_closed(room, 2, PATIENCE - FORGET - 2 * REPEAT, number)
    room.clock.advance(FORGET + REPEAT)
    keep_closed(room, 2, PATIENCE - REPEAT, number)
    assert room.requests == []


def test_views_that_come_often_do_not_win_a_member_time() -> None:
    room = Room(PATIENCE)
    number = 0
    for place, next_place in ((2, 1), (1, 1), (1, 2)):
        number = keep_closed(room, place, REPEAT, number)
        room.flow.enter_view({place: next_place})
        room.flow.enter_view({next_place: next_place})
        assert not room.waits(), "it says so again"
    assert room.requests == []
    keep_closed(room, 2, 7 * REPEAT, number)
    assert {place for _, place in room.requests} == {2}, "it is asked as if there had been one view"


def test_who_was_not_closed_in_the_next_view_soon_or_says_so_is_waited_for_anew() -> None:
    for opens in (True, False):
        room = Room(PATIENCE)
        number = keep_closed(room, 2, PATIENCE - REPEAT, 0)
        room.flow.enter_view({2: 2})
        if opens:
            room.hears(2, number + 1, closed=False)
        else:
            room.clock.advance(FORGET)
        keep_closed(room, 2, PATIENCE - REPEAT, number + 1)
        assert room.requests == []


def test_who_does_not_read_or_has_closed_the_group_asks_nobody_to_leave() -> None:
    room = Room(PATIENCE)
    room.fill()
    number = keep_closed(room, 2, 2 * PATIENCE, 0)
    for _ in range(5):
        room.inbox.take()
    keep_closed(room, 2, REPEAT, number)
    assert room.requests == [(number + 1, 2)], "it reads now, and the other has been closed for long"
    other = Room(PATIENCE)
    other.flow.disable()
    keep_closed(other, 2, 2 * PATIENCE, 0)
    assert other.requests == []


def test_without_a_limit_the_others_wait_for_ever() -> None:
    room = Room()
    keep_closed(room, 2, 100 * PATIENCE, 0)
    assert room.requests == []
    room.fill()
    room.flow.asked_to_leave(LeaveRequest(1))
    assert room.asked == 0, "nor is anybody's request obeyed"


def test_a_request_counts_only_for_one_that_has_been_closed_ever_since() -> None:
    room = Room(PATIENCE)
    room.flow.asked_to_leave(LeaveRequest(0))
    assert room.asked == 0
    room.fill()
    room.clock.advance(REPEAT)
    for _ in range(5):
        room.inbox.take()
    room.clock.advance(3 * REPEAT)
    room.fill()
    before = room.sent[-1].number - 1
    room.flow.asked_to_leave(LeaveRequest(before))
    assert room.asked == 0, "it is about the time before it opened"
    room.flow.asked_to_leave(LeaveRequest(before + 1))
    assert room.asked == 1
