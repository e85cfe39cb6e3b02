"""What one member makes of datagrams, without a network: whose they are, of which session, and by which relay."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import ordercast.live.transport.reorder_buffer
import ordercast.live.transport.sending
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.packing import BY_RELAY
from ordercast.live.transport.relay import ORIGIN, RELAY_INCARNATION, Relay
from ordercast.live.transport.transport import Transport
from ordercast.model.config import MILLISECOND
from ordercast.model.runs import Channel
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.units import CONTROL_UNITS, Apply, ControlUnit, Find, Leave
from ordercast.protocols.membership.view import Incarnation, NextView, Reason, founding_view, view_after
from ordercast.protocols.spo.units import Ready, Status
from ordercast.wire import lru_map
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL, AbortNotice, Heartbeat, Stage
from ordercast.wire.datagram import FROM_RELAY, HANDSHAKE, RELAY, TO_RELAY, UNKNOWN, UNORDERED, Datagram, pack_records
from ordercast.wire.keys import GroupKeys
from ordercast.wire.outside import Outside
from ordercast.wire.seal import seal_for

SESSION = 77
ADDRESSES = [Address("127.0.0.1", 7000 + place) for place in range(3)]
SECOND_OF_TIME = 1000 * MILLISECOND
CODEC = Codec("st", (*CONTROL, Outside, *CONTROL_UNITS))
BEAT = pack_records([CODEC.encode(Heartbeat(Stage.OPEN))])


class Deaf:
    """An endpoint to which nothing comes by itself."""

    packet_size = 0
    has_multicast = False

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.to: list[Address] = []
        self.known: list[Address] = []
        self.not_sent: Counter[str] = Counter()

    def start(self, receive: Any, *_: Any) -> None:
        self.receive = receive

    def knows(self, addresses: Any) -> None:
        self.known += addresses

    def reach(self, others: Any) -> None:
        pass

    def send_to_all(self, datagram: bytes) -> None:
        self.sent.append(datagram)

    def send(self, datagram: bytes, address: Address) -> None:
        self.sent.append(datagram)
        self.to.append(address)

    def read(self) -> bool:
        return True

    def close(self) -> None:
        pass


class Listener:
    """A listener that only counts."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, object]] = []

    def session_received(self, *_: int) -> None:
        pass

    def drained(self) -> None:
        pass

    def paused(self) -> None:
        pass

    def control_received(self, member: int, message: object) -> None:
        self.messages.append((member, message))

    def unit_received(self, member: int, unit: object) -> None:
        self.messages.append((member, unit))

    def membership_received(self, unit: ControlUnit) -> None:
        self.messages.append((unit.source, unit))

    def outside_received(self, unit: object, address: str) -> None:
        self.messages.append((UNKNOWN, (unit, address)))

    def inspect_received(self, question: object) -> None:
        self.messages.append((UNKNOWN, question))

    def other_view_received(self, place: int) -> None:
        self.messages.append((place, "other view"))


def lines_of(me: int) -> tuple[Transport, Deaf, Listener]:
    endpoint, listener = Deaf(), Listener()
    lines = Transport(endpoint, ADDRESSES, me, seal_for("g", None), CODEC, max_datagram_size=1000)  # type: ignore[arg-type]
    lines.start(1, listener)
    return lines, endpoint, listener


def passed_on(incarnation: int, session: int, origin: int = 1) -> bytes:
    """What a relay with this incarnation sends to all."""
    sent: list[bytes] = []
    Relay(seal_for("g", None), incarnation, sent.append).pass_on(origin, session, BEAT)
    return sent[0]


def test_a_relay_of_another_session_does_not_make_us_deaf_to_ours() -> None:
    """Its clock may have been ahead of that of ours, and what it once said may come again."""
    lines, endpoint, listener = lines_of(me=2)
    lines.open(SESSION, Channel.ONE, ADDRESSES[0])
    endpoint.receive(passed_on(incarnation=10_000, session=SESSION - 1))
    endpoint.receive(passed_on(incarnation=10, session=SESSION))
    endpoint.receive(passed_on(incarnation=9, session=SESSION))
    assert [member for member, _ in listener.messages] == [1]
    assert lines.dropped == {"session": 1, "late": 1}


def test_what_is_sent_to_a_relay_names_the_life_of_it_that_was_heard_last() -> None:
    lines, endpoint, listener = lines_of(me=2)
    lines.open(SESSION, Channel.ONE, Address("127.0.0.1", 7100))
    sent: list[bytes] = []
    for life in (10, 9, 11):
        Relay(seal_for("g", None), life, sent.append).announce(SESSION)
        endpoint.receive(sent[-1])
        lines.send_records(BEAT, BY_RELAY)
    named = [int.from_bytes(datagram[32:40]) for datagram in endpoint.sent]
    assert named == [0, 10, 10, 11], "a former one may be heard late"
    assert not listener.messages
    assert lines.dropped == {"late": 1}


def test_the_network_knows_members_and_channel_from_strangers() -> None:
    lines, endpoint, _ = lines_of(me=2)
    assert endpoint.known == ADDRESSES
    channel = Address("127.0.0.1", 7100)
    lines.open(SESSION, Channel.ONE, channel)
    assert endpoint.known == [*ADDRESSES, channel]


def test_what_came_in_the_session_is_remembered_whatever_comes_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lru_map, "REMEMBERED", 8)
    lines, endpoint, listener = lines_of(me=2)
    lines.open(SESSION, Channel.ANY, None)
    seal = seal_for("g", None)
    said = seal.seal(0, 1, SESSION, 0, BEAT)
    endpoint.receive(said)
    for life in range(100, 200):
        endpoint.receive(seal.seal(HANDSHAKE, 1, life, 0, b""))
    endpoint.receive(said)
    assert len(listener.messages) == 1
    assert lines.dropped == {"replayed": 1}


@pytest.mark.parametrize("channel", [Channel.ANY, Channel.MANY, Channel.ONE])
def test_what_was_said_to_one_member_only_is_not_heard_by_another(channel: Channel) -> None:
    said, endpoint, _ = lines_of(me=1)
    said.open(SESSION, channel, ADDRESSES[0])
    for to in (None, 0, 2):
        said.send_control(Heartbeat(Stage.OPEN), to)
        said.send(Ready(1, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0))), 0 if to is None else to)
        said.flush()
    hearers = {me: lines_of(me) for me in (0, 2)}
    for lines, place, _ in hearers.values():
        lines.open(SESSION, channel, ADDRESSES[0])
        for datagram in endpoint.sent:
            place.receive(datagram)
    heard = {me: [type(message) for _, message in listener.messages] for me, (_, _, listener) in hearers.items()}
    assert heard == {0: [Heartbeat, Ready, Heartbeat, Ready], 2: [Heartbeat, Heartbeat, Ready]}
    assert [lines.dropped["not_addressed"] for lines, _, _ in hearers.values()] == [2, 3]


def test_what_our_own_relay_said_is_nobody_elses() -> None:
    """A multicast brings it back to us: it is neither heard again nor counted as a stranger's."""
    lines, endpoint, listener = lines_of(me=0)
    relay = Relay(seal_for("g", None), 5, endpoint.send_to_all)
    lines.open(SESSION, Channel.ONE, relay)
    relay.pass_on(1, SESSION, BEAT)
    endpoint.receive(endpoint.sent[0])
    assert not listener.messages
    assert not lines.dropped


def test_a_relay_goes_on_after_a_listener_that_fails() -> None:
    lines, endpoint, listener = lines_of(me=0)
    lines.open(SESSION, Channel.ONE, Relay(seal_for("g", None), 5, endpoint.send_to_all))
    received = listener.control_received
    listener.control_received = lambda *_: 1 / 0  # type: ignore[method-assign, assignment]
    seal = seal_for("g", None)
    with pytest.raises(ZeroDivisionError):
        endpoint.receive(seal.seal(TO_RELAY, 1, SESSION, 0, RELAY_INCARNATION.pack(0) + BEAT))
    listener.control_received = received  # type: ignore[method-assign]
    endpoint.receive(seal.seal(TO_RELAY, 1, SESSION, 1, RELAY_INCARNATION.pack(0) + BEAT))
    assert [member for member, _ in listener.messages] == [1]


# --- what overtakes ---


class Clock:
    """A time that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 0

    def monotonic_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(ordercast.live.transport.reorder_buffer, "time", found)
    monkeypatch.setattr(ordercast.live.transport.sending, "time", found)
    return found


class Talk:
    """What comes to one member, by numbers; each record says its own."""

    def __init__(self, me: int, channel: Channel, relay: Any, clock: Clock) -> None:
        self.lines, self.endpoint, self.listener = lines_of(me)
        self._channel, self.relay, self._clock = channel, relay, clock
        self._seal = seal_for("g", None)

    def come(self, datagram: bytes) -> None:
        self.endpoint.receive(datagram)

    def come_directly(self, number: int, flags: int = 0) -> None:
        life = RELAY_INCARNATION.pack(0) if flags & TO_RELAY else b""
        self.come(self._seal.seal(flags, 1, SESSION, number, life + record(number)))

    def come_by_relay(self, number: int) -> None:
        body = ORIGIN.pack(1, SESSION) + record(number)
        self.come(self._seal.seal(FROM_RELAY, RELAY, 9, number, body))

    def hear(self, come: Callable[[int], None]) -> list[int]:
        """1 is late by a millisecond, which is learned: 4 waits for 3. Then 5 is lost, and waited for in vain."""

        async def test() -> None:
            self.lines.open(SESSION, self._channel, self.relay, max_hold=10 * MILLISECOND)
            for number in (0, 2):
                come(number)
            self._clock.now += MILLISECOND
            for number in (1, 4, 3, 6, 7):
                come(number)
            assert len(self.listener.messages) == 4, "6 waits"
            self._clock.now += 2 * MILLISECOND
            await asyncio.sleep(0.02)

        asyncio.run(test())
        assert self.lines.dropped == {"late": 1}
        return [message.suspect for _, message in self.listener.messages]  # type: ignore[attr-defined]


def record(number: int) -> bytes:
    return pack_records([CODEC.encode(AbortNotice("it is known by its number", number))])


def test_each_senders_order_is_kept_where_some_overtake(clock: Clock) -> None:
    talk = Talk(2, Channel.MANY, None, clock)
    assert talk.hear(talk.come_directly) == [0, 2, 3, 4, 6, 7]


def test_the_order_of_a_relay_is_kept_where_some_overtake(clock: Clock) -> None:
    talk = Talk(2, Channel.ONE, ADDRESSES[0], clock)
    assert talk.hear(talk.come_by_relay) == [0, 2, 3, 4, 6, 7]


def test_our_own_relay_passes_on_in_each_senders_order(clock: Clock) -> None:
    """Its beats, which are not passed on, are counted with the rest: nothing is missing there."""
    talk = Talk(0, Channel.ONE, None, clock)
    talk.relay = Relay(seal_for("g", None), 5, talk.endpoint.send_to_all)
    assert talk.hear(lambda number: talk.come_directly(number, 0 if number == 4 else TO_RELAY)) == [0, 2, 3, 4, 6, 7]
    assert len(talk.endpoint.sent) == 5


def test_on_one_channel_beats_need_no_order(clock: Clock) -> None:
    talk = Talk(2, Channel.ONE, ADDRESSES[0], clock)
    talk.lines.open(SESSION, Channel.ONE, ADDRESSES[0])
    for number in (5, 3, 9, 4):
        talk.come_directly(number)
    assert len(talk.listener.messages) == 4
    assert not talk.lines.dropped


def test_nothing_of_a_former_relay_is_heard_however_high_its_number(clock: Clock) -> None:
    talk = Talk(2, Channel.ONE, ADDRESSES[0], clock)
    talk.lines.open(SESSION, Channel.ONE, ADDRESSES[0])
    talk.come(passed_on(10, SESSION))
    talk.come_by_relay(5)  # of the life 9
    assert len(talk.listener.messages) == 1
    assert talk.lines.dropped == {"late": 1}


def test_what_waits_when_we_leave_is_not_heard(clock: Clock) -> None:
    talk = Talk(2, Channel.MANY, None, clock)

    async def test() -> None:
        talk.lines.open(SESSION, Channel.MANY, None, max_hold=10 * MILLISECOND)
        talk.come_directly(0)
        talk.lines.streams[1].hold = MILLISECOND
        talk.come_directly(2)
        talk.lines.close()
        clock.now += 5 * MILLISECOND
        await asyncio.sleep(0.02)
        assert len(talk.listener.messages) == 1

    asyncio.run(test())


def test_what_waits_of_a_relay_is_heard_before_its_successor(clock: Clock) -> None:
    talk = Talk(2, Channel.ONE, ADDRESSES[0], clock)

    async def test() -> None:
        talk.lines.open(SESSION, Channel.ONE, ADDRESSES[0], max_hold=10 * MILLISECOND)
        talk.come_by_relay(0)
        talk.come_by_relay(2)
        clock.now += MILLISECOND
        talk.come_by_relay(1)
        talk.come_by_relay(4)
        assert len(talk.listener.messages) == 2
        talk.come(passed_on(10, SESSION))
        assert len(talk.listener.messages) == 4

    asyncio.run(test())


# --- a channel that may be dead ---

CHANNEL_PLACE = Address("127.0.0.1", 7100)


def test_a_channel_that_was_spoken_to_is_asked_and_its_silence_counted() -> None:
    lines, endpoint, _ = lines_of(me=1)
    lines.open(SESSION, Channel.ONE, CHANNEL_PLACE)
    assert [lines.watch_relay() for _ in range(9)] == [0] * 9, "nobody has said anything"
    say_something(lines)
    sent = len(endpoint.sent)
    assert [lines.watch_relay() for _ in range(3)] == [1, 2, 3]
    assert len(endpoint.sent) == sent, "it has its time"
    assert [lines.watch_relay() for _ in range(2)] == [4, 5]
    assert len(endpoint.sent) == sent + 2, "each time"
    endpoint.receive(passed_on(10, SESSION, origin=0))
    assert lines.watch_relay() == 6, "it hears another, and perhaps not us"
    endpoint.receive(passed_on(11, SESSION, origin=1))
    assert [lines.watch_relay() for _ in range(9)] == [0] * 9
    say_something(lines)
    assert lines.watch_relay() == 1
    Relay(seal_for("g", None), 12, endpoint.receive).announce(SESSION)
    assert lines.watch_relay() == 0, "a new life of it has heard us"


def test_a_channel_that_is_a_member_is_watched_as_members_are() -> None:
    lines, _, _ = lines_of(me=1)
    lines.open(SESSION, Channel.ONE, ADDRESSES[0])
    say_something(lines)
    assert not any(lines.watch_relay() for _ in range(9))


def say_something(lines: Transport) -> None:
    lines.send(Ready(1, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0))), None)
    lines.flush()


# --- views ---

PEOPLE = tuple(Incarnation(name, number, str(ADDRESSES[number])) for number, name in enumerate("ABC"))
FIRST = founding_view(PEOPLE, SESSION.to_bytes(8, "big"))
WITHOUT_B = NextView(1, 0b101, (), 0b101, ((1, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "B did not answer")
SECOND = view_after(FIRST, WITHOUT_B)
TAG = int.from_bytes(SECOND.tag, "big")
THIRD = view_after(SECOND, NextView(2, 0b11, (), 0b11, (), Cut((0, 0)), 0, (), 3, "again"))
FOURTH = view_after(THIRD, NextView(3, 0b11, (), 0b11, (), Cut((0, 0)), 0, (), 3, "once more"))


def of_order(nodes: int, source: int) -> bytes:
    vector = (0,) * nodes
    return pack_records([CODEC.encode(Ready(source, 0, vector, Status(0, vector, vector)))])


def entered(me: int = 2, channel: Channel = Channel.ANY) -> tuple[Transport, Deaf, Listener]:
    """C, in the view after B was left out: its place was 2, and is 1."""
    lines, endpoint, listener = lines_of(me)
    relay = ADDRESSES[0] if channel is Channel.ONE else None
    lines.enter_view(FIRST, 2, ADDRESSES, channel, relay)
    lines.enter_view(SECOND, 1, [ADDRESSES[0], ADDRESSES[2]], channel, relay)
    return lines, endpoint, listener


def test_in_a_view_members_are_its_places() -> None:
    lines, endpoint, listener = entered()
    seal = seal_for("g", None)
    endpoint.receive(seal.seal(0, 0, TAG, 0, of_order(2, 0)))
    endpoint.receive(seal.seal(0, 2, TAG, 0, BEAT))  # this place is no more
    endpoint.receive(seal.seal(0, 0, TAG, 1, BEAT, to=3))  # that was our own
    endpoint.receive(seal.seal(0, 0, TAG, 2, BEAT, to=2))
    endpoint.receive(seal.seal(0, 0, TAG, 3, of_order(3, 0)))
    assert [(place, type(message)) for place, message in listener.messages] == [(0, Ready), (0, Heartbeat)]
    assert lines.dropped == {"non_member": 1, "not_addressed": 1, "invalid": 1}
    lines.send_control(Heartbeat(Stage.OPEN), 0)
    assert endpoint.to == [ADDRESSES[0]]
    assert seal.open(endpoint.sent[0]) == Datagram(0, 1 | UNORDERED, TAG, 0, BEAT, to=1)


def test_of_the_view_before_only_membership_units_count_and_who_sends_in_it_is_named() -> None:
    lines, endpoint, listener = entered()
    seal = seal_for("g", None)
    leave = pack_records([CODEC.encode(Leave(0, 1))])
    endpoint.receive(seal.seal(0, 1, SESSION, 0, leave))
    endpoint.receive(seal.seal(0, 1, SESSION, 1, of_order(3, 1)))
    endpoint.receive(seal.seal(TO_RELAY, 1, SESSION, 2, RELAY_INCARNATION.pack(0) + of_order(3, 1)))
    assert listener.messages == [(1, Leave(0, 1)), (1, "other view"), (1, "other view")]
    endpoint.receive(seal.seal(0, 1, SESSION, 2, leave))
    endpoint.receive(seal.seal(0, 1, SESSION, 3, BEAT))
    endpoint.receive(seal.seal(0, 3, SESSION, 0, leave))
    endpoint.receive(seal.seal(0, 0, SESSION, 0, leave))  # it names another place
    endpoint.receive(seal.seal(0, 1, SESSION, 4, leave, to=1))
    endpoint.receive(seal.seal(0, 1, SESSION, 5, pack_records([CODEC.encode(Leave(1, 1))])))
    endpoint.receive(seal.seal(0, 1, SESSION, 6, pack_records([b"x"])))
    endpoint.receive(seal.seal(0, 1, SESSION, 7, b"x"))
    assert len(listener.messages) == 3
    expected = {"replayed": 1, "session": 1, "non_member": 1, "invalid": 2, "not_addressed": 1, "malformed": 2}
    assert lines.dropped == expected


def test_a_view_before_the_last_two_is_forgotten() -> None:
    lines, endpoint, listener = entered()
    lines.enter_view(THIRD, 1, [ADDRESSES[0], ADDRESSES[2]], Channel.ANY, None)
    seal = seal_for("g", None)
    endpoint.receive(seal.seal(0, 0, SESSION, 0, BEAT))
    endpoint.receive(seal.seal(0, 0, TAG, 0, pack_records([CODEC.encode(Leave(1, 0))])))
    assert listener.messages == [(0, Leave(1, 0))]
    assert lines.dropped == {"session": 1}


def test_what_waits_for_the_end_of_a_turn_is_not_sent_in_the_next_view() -> None:
    lines, endpoint, _ = lines_of(me=2)
    lines.enter_view(FIRST, 2, ADDRESSES, Channel.ANY, None)
    lines.send(Ready(2, 0, (0,) * 3, Status(0, (0,) * 3, (0,) * 3)), None)
    lines.enter_view(SECOND, 1, [ADDRESSES[0], ADDRESSES[2]], Channel.ANY, None)
    lines.flush()
    assert endpoint.sent == []


def test_membership_units_are_sent_in_both_views_under_the_place_of_each() -> None:
    lines, endpoint, _ = entered()
    lines.send_membership(Leave(1, 1), 0, 1)
    lines.send_membership(Leave(0, 2), 1, 0)
    lines.send_membership(Leave(0, 2), None, 0)
    lines.send_membership(Leave(7, 0), None, 7)
    assert endpoint.to == [ADDRESSES[0], ADDRESSES[1], ADDRESSES[0], ADDRESSES[1]]
    seal = seal_for("g", None)
    found = [seal.open(datagram) for datagram in endpoint.sent]
    assert [(each.sender ^ UNORDERED, each.tag, each.to) for each in found if isinstance(each, Datagram)] == [
        *((1, TAG, 1), (2, SESSION, 2), (2, SESSION, 1), (2, SESSION, 2)),
    ]


def test_a_membership_unit_may_be_the_last_of_its_view() -> None:
    """What stands behind it in the same datagram is of the view before."""
    lines, endpoint, listener = lines_of(me=2)
    lines.enter_view(FIRST, 2, ADDRESSES, Channel.ANY, None)

    def enters(unit: ControlUnit) -> None:
        listener.messages.append((unit.source, unit))
        lines.enter_view(SECOND, 1, [ADDRESSES[0], ADDRESSES[2]], Channel.ANY, None)

    listener.membership_received = enters  # type: ignore[method-assign]
    records = [CODEC.encode(Leave(0, 0)), CODEC.encode(Ready(0, 0, (0,) * 2, Status(0, (0,) * 2, (0,) * 2)))]
    endpoint.receive(seal_for("g", None).seal(0, 0, SESSION, 0, pack_records(records)))
    assert listener.messages == [(0, Leave(0, 0))]


def test_own_datagrams_are_known_by_place_and_view() -> None:
    """B was at the place that is ours now: what it sends in the view before is not our own."""
    lines, endpoint, listener = entered()
    seal = seal_for("g", None)
    endpoint.receive(seal.seal(0, 1, TAG, 0, BEAT))
    endpoint.receive(seal.seal(0, 2, SESSION, 0, BEAT))
    endpoint.receive(seal.seal(HANDSHAKE, 2, 1, 0, BEAT))
    assert (listener.messages, lines.dropped) == ([], {})
    endpoint.receive(seal.seal(0, 1, SESSION, 0, pack_records([CODEC.encode(Leave(0, 1))])))
    assert listener.messages == [(1, Leave(0, 1))]


def test_the_relay_of_the_view_before_is_not_heard() -> None:
    """Its clock may be ahead of that of the next one, which is another member."""
    lines, endpoint, listener = entered(channel=Channel.ONE)
    endpoint.receive(passed_on(incarnation=10_000, session=SESSION))
    endpoint.receive(passed_on(incarnation=10, session=TAG, origin=0))
    assert [place for place, _ in listener.messages] == [1, 0]
    assert listener.messages[0] == (1, "other view")
    assert lines.dropped == {}


def test_a_relay_of_its_own_counts_on_over_a_view() -> None:
    async def test() -> None:
        lines, endpoint, listener = lines_of(me=2)
        relay = Address("127.0.0.1", 7100)
        lines.enter_view(FIRST, 2, ADDRESSES, Channel.ONE, relay, max_hold=SECOND_OF_TIME)
        sent: list[bytes] = []
        process = Relay(seal_for("g", None), 10, sent.append)
        for tag in (SESSION, SESSION, TAG):
            process.pass_on(0, tag, BEAT)
        endpoint.receive(sent[0])
        lines.enter_view(SECOND, 1, [ADDRESSES[0], ADDRESSES[2]], Channel.ONE, relay, max_hold=SECOND_OF_TIME)
        endpoint.receive(sent[1])
        endpoint.receive(sent[2])
        assert [message for _, message in listener.messages] == [
            *(Heartbeat(Stage.OPEN), "other view", Heartbeat(Stage.OPEN)),
        ]
        lines.close()

    asyncio.run(test())


def test_who_is_in_no_view_is_answered_at_the_address_that_it_names() -> None:
    lines, endpoint, listener = entered()
    find = Find("g", "D", 9, 1)
    seal = seal_for("g", None)
    for counter, address in enumerate(("10.0.0.9:7000", "nowhere")):
        record = CODEC.encode(Outside(address, find))
        endpoint.receive(seal.seal(HANDSHAKE, UNKNOWN, 9, counter, pack_records([record])))
    assert listener.messages == [(UNKNOWN, (find, "10.0.0.9:7000"))]
    assert lines.dropped == {"invalid": 1}
    lines.send_outside(find, "10.0.0.9:7000")
    assert endpoint.to == [Address("10.0.0.9", 7000)]
    sent = seal.open(endpoint.sent[0])
    assert isinstance(sent, Datagram)
    assert (sent.flags, sent.sender, sent.tag) == (HANDSHAKE, UNKNOWN, 1)
    assert sent.body == pack_records([CODEC.encode(Outside(str(ADDRESSES[2]), find))])


def application(keys: GroupKeys, counter: int) -> bytes:
    """As D sealed it, and somebody recorded it."""
    unit = Apply(Incarnation("D", 9, "10.0.0.9:7000"), 1, 0, (), None, 0b111, 1)
    record = CODEC.encode(Outside("10.0.0.9:7000", unit))
    return seal_for("g", keys).seal(HANDSHAKE, UNKNOWN, 9, counter, pack_records([record]))


def test_recorded_applications_and_units_of_earlier_views_are_not_heard_again() -> None:
    """And nothing is that comes from one whose key was removed."""
    old, new = GroupKeys({1: bytes(32)}), GroupKeys({2: bytes(range(32))})
    endpoint, listener = Deaf(), Listener()
    lines = Transport(endpoint, ADDRESSES, 2, seal_for("g", old), CODEC, max_datagram_size=1000)  # type: ignore[arg-type]
    lines.start(1, listener)
    lines.enter_view(FIRST, 2, ADDRESSES, Channel.ANY, None)
    leave = seal_for("g", old).seal(0, 1, SESSION, 0, pack_records([CODEC.encode(Leave(0, 1))]))
    recorded = [application(old, 0), leave]
    for datagram in recorded:
        endpoint.receive(datagram)
    assert len(listener.messages) == 2
    for view, places in ((FIRST, 3), (SECOND, 2), (THIRD, 2)):
        if view is not FIRST:
            lines.enter_view(view, 1, [ADDRESSES[0], ADDRESSES[2]][:places], Channel.ANY, None)
        for datagram in recorded:
            endpoint.receive(datagram)
    assert len(listener.messages) == 2, "each was heard once"
    lines.rotate_keys(new)
    endpoint.receive(application(old, 7))
    assert len(listener.messages) == 2
    assert lines.dropped["key"] == 1
    endpoint.receive(application(new, 8))
    assert len(listener.messages) == 3


def test_what_goes_to_one_member_leaves_no_gap_for_the_others() -> None:
    lines, endpoint, _ = entered()
    lines.send_control(Heartbeat(Stage.OPEN), 0)
    lines.send_membership(Leave(1, 1), 0, 1)
    lines.send_records(of_order(2, 1), 0)
    found = [seal_for("g", None).open(datagram) for datagram in endpoint.sent]
    assert [(each.sender, each.counter) for each in found if isinstance(each, Datagram)] == [
        *((1 | UNORDERED, 0), (1 | UNORDERED, 1), (1, 0)),
    ]


def test_a_thread_that_is_late_says_nothing_of_a_view_whose_counters_are_forgotten() -> None:
    """A counter that was used twice would reveal the key."""
    lines, endpoint, _ = entered()
    late = lines.heartbeats(Stage.OPEN, [0])
    late()
    lines.send_control(Heartbeat(Stage.OPEN), 0)
    lines.enter_view(THIRD, 1, [ADDRESSES[0], ADDRESSES[2]], Channel.ANY, None)
    late()
    counters = [datagram.counter for datagram in map(seal_for("g", None).open, endpoint.sent)]  # type: ignore[union-attr]
    assert counters == [0, 1, 2], "of the view before it still is"
    lines.enter_view(FOURTH, 1, [ADDRESSES[0], ADDRESSES[2]], Channel.ANY, None)
    late()
    assert len(endpoint.sent) == 3
