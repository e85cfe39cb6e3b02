"""All links of one member, rule by rule, with a clock and an event loop of the test's own."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.live.transport import links as module
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.link_receiver import ACKNOWLEDGE_AFTER
from ordercast.live.transport.links import MAX_UNSENT, Links
from ordercast.live.transport.path_model import ACK_DELAY, INITIAL_PACKETS
from ordercast.live.transport.pieces import HEADING, HEADING_SIZE, MAGIC
from ordercast.wire.control import LinkAcknowledgment

BODY = 1000
SEGMENT = BODY + HEADING_SIZE
A, B, C = (Address("127.0.0.1", port) for port in (7000, 7001, 7002))
AT = {place: ("127.0.0.1", 7000 + place) for place in range(3)}
STREAM = 7
LEAST_UNSENT = MAX_UNSENT // 2


class Timer:
    def __init__(self, due: float, what: Callable[[], None]) -> None:
        self.due, self.what, self.cancelled = due, what, False

    def cancel(self) -> None:
        self.cancelled = True


class Member:
    """The links of A, in a view with B and C, unless told; and all that they do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, passes_on: bool = False) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []
        loop = SimpleNamespace(call_later=self.call_later)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
        self.wrote: list[tuple[int, int, int, int]] = []
        """Stream, number, datagram, port."""
        self.said: list[tuple[int, LinkAcknowledgment]] = []
        self.full: list[bool] = []
        self.links = Links(
            SEGMENT, self.write, lambda place, message: self.said.append((place, message)), self.full.append
        )
        self.enter(passes_on=passes_on)

    def enter(self, tag: int = STREAM, *addresses: Address, passes_on: bool = False, round_trip: float = 0.0) -> None:
        self.links.enter(tag, addresses or (A, B, C), 0, passes_on=passes_on, round_trip=round_trip)

    def call_later(self, delay: float, what: Callable[[], None]) -> Timer:
        assert delay >= 0
        self.timers.append(Timer(self.now + delay, what))
        return self.timers[-1]

    def write(self, parts: list[bytes | memoryview], where: Any) -> None:
        for heading in parts[::2]:
            magic, stream, number, datagram, _, _ = HEADING.unpack(heading)
            assert magic == MAGIC
            self.wrote.append((stream, number, datagram, where[1]))

    def due(self) -> list[float]:
        """After how many milliseconds timers fire."""
        return sorted(round((timer.due - self.now) * 1000, 3) for timer in self.timers if not timer.cancelled)

    def passes(self, seconds: float) -> None:
        """Timers fire at their time."""
        end = self.now + seconds
        while waiting := [timer for timer in self.timers if not timer.cancelled and timer.due <= end]:
            first = min(waiting, key=lambda timer: timer.due)
            self.timers.remove(first)
            self.now = max(self.now, first.due)
            first.what()
        self.now = end

    def hears(self, place: int, *numbers: int, waits_for: int = 0, closed: bool = False) -> None:
        """An acknowledgment of a range."""
        self.links.acknowledged(place, LinkAcknowledgment(numbers, 0, waits_for, closed))

    def reads(self, place: int, *pieces: tuple[int, int], stream: int = STREAM, count: int = 1) -> list[bytes]:
        """Pieces of whole datagrams, number and datagram each, that arrived together."""
        data = b"".join(
            HEADING.pack(MAGIC, stream, number, datagram, 0, count) + bytes([datagram]) * BODY
            for number, datagram in pieces
        )
        found = self.links.take(memoryview(data), SEGMENT, AT[place])
        self.links.after_reading()
        return [bytes(datagram[:1]) for datagram in found]

    def look(self) -> list[tuple[int, int, int, int]]:
        wrote, self.wrote = self.wrote, []
        return wrote


# --- out ---


def test_datagrams_go_to_one_member_or_to_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.links.send(bytes(10), 1)
    assert member.look() == [(STREAM, 0, 0, 7001)]
    member.links.send_to_all(bytes(10))
    assert member.look() == [(STREAM, 1, 1, 7001), (STREAM, 0, 0, 7002)]


def test_a_stream_is_the_low_half_of_a_views_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.enter(0x1_8000_0002)
    member.links.send(bytes(10), 1)
    assert member.look() == [(0x8000_0002, 0, 0, 7001)]


def test_what_is_not_acknowledged_is_sent_again_and_counted_also_after_the_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member(monkeypatch)
    member.links.send(bytes(10), 1)
    member.passes(0.067)  # a round trip that is not known is 20 ms, and varies by 10; 8 ms for acknowledgments
    assert (len(member.look()), member.links.repeated) == (1, 0)
    member.passes(0.002)
    assert (len(member.look()), member.links.repeated) == (1, 1)
    assert len(member.due()) == 1, "it goes on"
    member.enter()
    assert member.links.repeated == 1
    member.links.send(bytes(10), 1)
    member.passes(0.1)
    assert member.links.repeated == 2


def test_the_timer_is_for_the_link_that_needs_it_first(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.links.send(bytes(10), 1)
    (first,) = member.due()
    member.now += 0.01
    member.links.send(bytes(10), 2)
    assert member.due() == [pytest.approx(first - 10)]
    member.hears(1, 0, 0, waits_for=1)
    member.now += 0.001
    member.links.send(bytes(10), 1)  # of which the round trip is known to be 10 ms
    (due,) = member.due()
    assert due < first - 11


def test_a_round_trip_is_expected_and_what_is_known_of_a_path_outlives_the_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member(monkeypatch)
    assert member.links.round_trip() == 0.02
    member.links.send(bytes(10), 1)
    member.now += 0.5
    member.hears(1, 0, 0, waits_for=1)
    assert member.links.round_trip() == pytest.approx(0.5)
    member.enter(8, A, C, B)
    assert member.links.round_trip() == pytest.approx(0.5)
    member.enter(9, A, C, round_trip=0.1)
    assert member.links.round_trip() == 0.02
    member.enter(10, A, B, round_trip=0.1)
    assert member.links.round_trip() == 0.1
    member.enter(11, A)
    assert member.links.round_trip() is None


def test_what_waits_for_those_of_the_view_before_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.links.send(bytes(100 * BODY), 1)
    assert len(member.look()) == INITIAL_PACKETS
    member.reads(1, (1, 1))
    member.enter(8)
    member.passes(0.2)
    assert member.look() == []
    assert [said for said in member.said if said[1].ranges] == member.said[:1], "of this view nothing has come"


def test_an_acknowledgment_makes_room_and_shows_what_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.links.send(bytes(100 * BODY), 1)
    member.look()
    member.now += 0.01
    member.hears(1, 1, 2)
    assert len(member.look()) >= 2
    (due,) = member.due()
    assert due < 5, "0 is lost in a moment, and not after a timeout"


def test_what_arrived_from_a_member_that_is_none_any_more_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.reads(2, (0, 0))
    member.enter(8, A, B)
    member.links.after_reading()
    member.passes(1)
    assert member.said == []


def test_who_is_no_member_any_more_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.enter(8, A, B)
    member.hears(2, 0, 0)
    assert member.reads(2, (0, 0), stream=8) == []
    assert member.said == []


# --- too much ---


def full_member(monkeypatch: pytest.MonkeyPatch, *, passes_on: bool) -> Member:
    """A member with more than may wait for B; C has heard from it, and it from C."""
    member = Member(monkeypatch, passes_on=passes_on)
    member.reads(2, (0, 0))
    member.passes(1)
    member.said.clear()
    while not member.full:
        member.links.send(bytes(10 * BODY), 1)
    return member


def drained(member: Member) -> None:
    """B takes everything, acknowledgment by acknowledgment."""
    for number in range(1000):
        member.passes(0.001)
        member.hears(1, 0, number, waits_for=number // 10)
        if member.links._senders[1].unsent < LEAST_UNSENT:
            break


@pytest.mark.parametrize("passes_on", [False, True])
def test_who_has_too_much_to_send_says_so_once_and_once_that_it_is_over(
    monkeypatch: pytest.MonkeyPatch, passes_on: bool
) -> None:
    member = full_member(monkeypatch, passes_on=passes_on)
    sender = member.links._senders[1]
    assert MAX_UNSENT < sender.unsent <= MAX_UNSENT + 10 * BODY
    for _ in range(3):
        member.links.send(bytes(10 * BODY), 1)
    assert (member.full, member.links.is_full) == ([True], True)
    member.hears(1, 0, 0, waits_for=0)
    assert member.full == [True], "much waits still"
    drained(member)
    member.hears(1, 0, 0, waits_for=0)
    assert (member.full, member.links.is_full) == ([True, False], False)


def test_so_it_does_when_what_waited_goes_out_by_the_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    member = full_member(monkeypatch, passes_on=False)
    member.links._paths[B].window = 1 << 30
    member.passes(0.2)
    assert member.full == [True, False]


def test_too_much_is_more_than_a_quarter_of_a_megabyte_and_less_than_half_of_that_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member(monkeypatch, passes_on=True)
    member.links._paths[B].window = 0
    member.reads(2, (1, 1))
    for _ in range(4):
        member.links.send(bytes(MAX_UNSENT // 4), 1)
    assert member.full == []
    member.links.send(b"!", 1)
    assert member.full == [True]
    member.reads(2, (3, 3))
    sender = member.links._senders[1]
    sender.unsent = LEAST_UNSENT
    member.hears(1)
    assert ([said.closed for _, said in member.said], member.full) == ([False, True, False], [True]), "others first"
    sender.unsent = LEAST_UNSENT - 1
    member.hears(1)
    assert member.full == [True, False]


def test_in_a_new_view_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    member = full_member(monkeypatch, passes_on=True)
    member.enter(8, passes_on=True)
    assert (member.full, member.links.is_full) == ([True, False], False)
    member.reads(1, (1, 1), stream=8)
    assert [message.closed for _, message in member.said] == [False]


@pytest.mark.parametrize("passes_on", [False, True])
def test_who_passes_on_what_others_send_lets_them_wait_while_it_has_too_much(
    monkeypatch: pytest.MonkeyPatch, passes_on: bool
) -> None:
    member = full_member(monkeypatch, passes_on=passes_on)
    member.reads(2, (2, 2))
    assert [(place, message.closed) for place, message in member.said] == [(2, passes_on)]
    member.said.clear()
    member.hears(1, 0, 0)
    assert member.said == [], "much waits still"
    drained(member)
    assert [(place, message.closed) for place, message in member.said] == [(2, False)] * passes_on, "who was told so"


def test_what_goes_out_within_two_round_trips_is_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch, passes_on=True)
    path = member.links._paths[B]
    path.window, path.shortest = 0, 1.0
    path._note((MAX_UNSENT + 10) / 2)  # bytes a second
    member.reads(2, (0, 0))
    member.links.send(bytes(MAX_UNSENT + 10), 1)
    assert member.full == [True]
    member.passes(ACK_DELAY + 1e-6)
    assert [message.closed for _, message in member.said] == [False]


# --- in ---


def test_datagrams_of_members_are_handed_over_one_by_one_or_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    assert member.reads(1, (0, 0)) == [b"\0"]
    assert member.reads(1, (1, 1), (2, 2)) == [b"\1", b"\2"], "two datagrams"
    train = b"".join(HEADING.pack(MAGIC, STREAM, 3 + at, 3, at, 2) + bytes([at]) * BODY for at in range(2))
    assert member.links.take(memoryview(train), SEGMENT, AT[1]) == [bytes(BODY) + bytes([1]) * BODY]


def test_those_of_strangers_and_of_other_views_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    piece = HEADING.pack(MAGIC, STREAM, 0, 0, 0, 1) + b"x"
    assert member.links.take(memoryview(piece), SEGMENT, ("127.0.0.1", 9)) == []
    assert member.reads(1, (0, 0), stream=8) == []
    train = b"".join(HEADING.pack(MAGIC, 8, at, 0, at, 2) + bytes(BODY) for at in range(2))
    assert member.links.take(memoryview(train), SEGMENT, AT[1]) == []
    member.passes(1)
    assert member.said == []


def test_an_acknowledgment_waits_a_little_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.reads(1, (0, 0))
    assert (member.said, member.due()) == ([], [ACK_DELAY * 1000])
    member.passes(ACK_DELAY / 2)
    member.reads(1, (1, 1))
    member.reads(2, (0, 0))
    assert len(member.due()) == 1
    member.passes(ACK_DELAY / 2 + 1e-6)
    assert [(place, said.ranges, said.waits_for) for place, said in member.said] == [(1, (0, 1), 2), (2, (0, 0), 1)]
    assert [said.delay for _, said in member.said] == [pytest.approx(2000, abs=2)] * 2, "since the latest"
    assert member.due() == []
    member.reads(1, (2, 2))
    assert member.due() == [ACK_DELAY * 1000], "and so does the next one"
    member.passes(ACK_DELAY + 1e-6)
    assert len(member.said) == 3


def test_it_does_not_wait_for_many_or_for_long_or_where_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.reads(1, *[(number, number) for number in range(ACKNOWLEDGE_AFTER - 1)])
    assert member.said == []
    member.reads(1, (ACKNOWLEDGE_AFTER - 1, ACKNOWLEDGE_AFTER - 1))
    assert len(member.said) == 1
    member.reads(2, (1, 1))
    assert [place for place, _ in member.said] == [1, 2], "number 0 is missing"
    member.reads(1, (ACKNOWLEDGE_AFTER, ACKNOWLEDGE_AFTER))
    assert len(member.said) == 2
    member.now += ACK_DELAY  # the loop was busy
    member.links.after_reading()
    assert len(member.said) == 3
    member.passes(1)
    assert len(member.said) == 3, "what was said is not said again"


def test_who_is_seen_at_another_address_is_heard_there_and_at_its_last_one_not_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member(monkeypatch)
    for port in (40, 41):
        member.links.heard_from(("9.9.9.9", port))
        member.links.is_seen_as_stranger(1)
        assert member.links.stranger is None
    piece = memoryview(HEADING.pack(MAGIC, STREAM, 0, 0, 0, 1) + b"x")
    assert member.links.take(piece, SEGMENT, ("9.9.9.9", 40)) == []
    assert member.links.take(piece, SEGMENT, ("9.9.9.9", 41)) == [b"x"]
    member.links.heard_from(AT[1])
    assert member.links.stranger is None, "where it is said to be, it is heard too"
    member.links.heard_from(("9.9.9.9", 42))
    member.links.is_seen_as_stranger(7)
    assert member.links.stranger == ("9.9.9.9", 42), "nobody is there"


# --- the end ---


def test_who_has_closed_says_and_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    member.links.send(bytes(10), 1)
    member.reads(1, (0, 0))
    assert len(member.due()) == 2
    member.look()
    member.links.close()
    assert member.due() == []
    member.links.send_to_all(bytes(10))
    member.hears(1, 0, 0)
    assert member.reads(1, (1, 1)) == []
    assert (member.look(), member.said) == ([], [])
    member.links.close()
