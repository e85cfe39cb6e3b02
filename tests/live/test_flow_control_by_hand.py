"""Flow control of one member, by hand and by a clock of its own: what it says and when, and for whom it waits."""

from ordercast.live.host.flow_control import FORGET, REPEAT, FlowControl
from ordercast.live.host.inbox import Inbox
from ordercast.model.units import Packet
from ordercast.wire.control import FlowNotice
from tests.live.hand_clock import Clock

LIMIT = 1 << 20


class Room:
    """One member's flow control."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.inbox = Inbox(("A", "B", "C"), 1 << 20)
        self.inbox.limit = LIMIT
        self.sent: list[FlowNotice] = []
        self.opened = 0
        with self.clock.running():
            self.flow = FlowControl(self.inbox, self.sent.append, self.open)

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
    room.flow._close()
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
    room.flow._closed[2] = 2 * REPEAT
    room.clock.advance(REPEAT)
    assert room.flow.closed == {2}
    room.clock.advance(REPEAT)
    assert room.flow.closed == set(), "not longer than that"


def test_in_another_view_nobody_is_closed_and_numbers_begin_anew() -> None:
    room = Room()
    room.hears(2, 10, closed=True)
    room.flow.enter_view()
    assert not room.waits(), "places are others"
    room.clock.advance(0)
    assert room.opened == 1
    room.hears(2, 1, closed=True)
    assert room.waits()


def test_who_has_closed_the_group_need_not_read() -> None:
    room = Room()
    room.put(2 * LIMIT)
    room.flow.disable()
    assert room.said() == [True, False]
    room.put(2 * LIMIT)
    room.flow._close()
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
    assert room.flow._timer is None
    for _ in range(5):
        room.inbox.take()
    room.fill()
    assert room.said() == [True]
    room.flow.stop()
