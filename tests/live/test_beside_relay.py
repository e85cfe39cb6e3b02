"""In a group of three statuses go to each member beside the relay, and are handled behind a place in its order."""

import asyncio

import pytest

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.beside_relay import POSITION, EarlyStatuses, OnTheWay
from ordercast.live.transport.relay import ECHO_FROM, Relay
from ordercast.live.transport.transport import Transport
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.st.units import PlacedReady, PlacedStatus
from ordercast.protocols.to.units import Heading, OrderedReady, UnorderedReady
from ordercast.wire.datagram import BESIDE_RELAY, UNORDERED
from ordercast.wire.seal import seal_for
from tests.live.groups import group_of, member_of, run
from tests.live.test_transport import ADDRESSES, CODEC, SESSION, Deaf, Listener

A, B, C = range(3)
RELAYS_FIRST = 5
"""The incarnation of the relay."""


class Line(Deaf):
    """An endpoint whose datagrams are carried by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.for_place: dict[int, list[bytes]] = {place: [] for place in range(3)}

    def send_to_all(self, datagram: bytes) -> None:
        for waiting in self.for_place.values():
            waiting.append(datagram)

    def send(self, datagram: bytes, address: Address) -> None:
        self.for_place[ADDRESSES.index(address)].append(datagram)


class Members:
    """A relay and two others."""

    def __init__(self, *, beside: bool = True, stable: bool = True) -> None:
        self.endpoints, self.listeners, self.lines = [], [], []
        for me in range(3):
            endpoint, listener = Line(), Listener()
            lines = Transport(endpoint, list(ADDRESSES), me, seal_for("g", None), CODEC, max_datagram_size=1000)  # type: ignore[arg-type]
            lines.start(1, listener)
            relay = ADDRESSES[A] if me else Relay(seal_for("g", None), RELAYS_FIRST, endpoint.send_to_all)
            lines.open(SESSION, Channel.ONE, relay, beside=beside, stable=stable)
            self.endpoints.append(endpoint)
            self.listeners.append(listener)
            self.lines.append(lines)

    def say(self, place: int, *units: Data | Ready) -> None:
        """All in one turn."""
        for unit in units:
            self.lines[place].send(unit, None)
        while self.lines[place].flush():
            pass

    def carry(self, source: int, target: int) -> int:
        """All that the one has said to the other; how many datagrams that was."""
        waiting = self.endpoints[source].for_place[target]
        found = len(waiting)
        for datagram in waiting:
            self.endpoints[target].receive(datagram)
        waiting.clear()
        while self.lines[target].flush():
            pass
        return found

    def heard(self, place: int) -> list[object]:
        return [unit for _, unit in self.listeners[place].messages]


def data(source: int, seq: int = 0, size: int = 1) -> Data:
    packet = Packet(source, 0b111, seq, (seq,) * 3, seq, (size,), bytes(size))
    return Data(packet, Status(seq + 1, (0, 0, 0), (0, 0, 0)))


def status(source: int, stamp: int = 1) -> Ready:
    return Ready(source, 0, (0, 0, 0), Status(stamp, (0, 0, 0), (0, 0, 0)))


def test_a_status_goes_to_each_member_and_its_sender_hears_it_at_once() -> None:
    members = Members()
    members.say(B, status(B))
    assert members.heard(B) == [status(B)]
    assert [members.carry(B, place) for place in (A, C)] == [1, 1]
    assert members.heard(A) == members.heard(C) == [status(B)]
    assert members.carry(A, C) == 0, "nothing of it went by the relay"


def test_a_status_waits_until_what_its_sender_had_received_is_there() -> None:
    """Else it would acknowledge to a member what that has not heard of, and count as a loss there."""
    members = Members()
    members.say(A, data(A))
    members.carry(A, B)
    members.say(B, status(B))
    members.carry(B, C)
    assert members.heard(C) == []
    members.carry(A, C)
    assert members.heard(C) == [data(A), status(B)]


def test_what_waits_is_handled_when_the_next_datagram_shows_that_one_is_lost() -> None:
    members = Members()
    members.say(A, data(A))
    members.carry(A, B)
    members.say(B, status(B))
    members.carry(B, C)
    members.endpoints[A].for_place[C].clear()
    members.say(A, data(A, 1))
    members.carry(A, C)
    assert members.heard(C) == [data(A, 1), status(B)], "behind it: what it acknowledges is lost here for good"


def test_who_has_something_on_its_way_to_the_relay_sends_its_status_behind_it() -> None:
    members = Members()
    members.say(B, data(B))
    members.say(B, status(B))
    assert members.carry(B, C) == 0
    members.carry(B, A)
    members.carry(A, C)
    assert members.heard(C) == [data(B), status(B)]
    members.carry(A, B)
    assert members.heard(B) == [data(B), status(B)]
    members.say(B, status(B, 2))
    assert members.carry(B, C) == 1, "all of its own is back"


def test_a_status_of_the_same_turn_stays_behind_the_data() -> None:
    members = Members()
    members.say(B, data(B), status(B))
    assert (members.carry(B, C), members.carry(B, A)) == (0, 1)
    members.carry(A, C)
    assert members.heard(C) == [data(B), status(B)]


def test_what_is_lost_on_its_way_to_the_relay_is_not_waited_for_once_something_later_is_back() -> None:
    members = Members()
    members.say(B, data(B))
    members.endpoints[B].for_place[A].clear()
    members.say(B, status(B))
    assert members.carry(B, C) == 0
    members.carry(B, A)
    members.carry(A, B)
    members.say(B, status(B, 2))
    assert members.carry(B, C) == 1


def test_what_is_large_comes_back_as_an_echo_and_is_back_then() -> None:
    members = Members()
    members.say(B, data(B, size=ECHO_FROM))
    members.carry(B, A)
    members.carry(A, B)
    assert members.heard(B) == [data(B, size=ECHO_FROM)]
    members.say(B, status(B))
    assert members.carry(B, C) == 1


def test_what_the_relay_says_itself_goes_with_what_it_passes_on() -> None:
    members = Members()
    members.say(B, data(B))
    for datagram in members.endpoints[B].for_place[A]:
        members.endpoints[A].receive(datagram)
    assert not members.endpoints[A].for_place[C], "its turn is not over"
    members.say(A, status(A))
    assert members.carry(A, C) == 1
    assert members.heard(C) == members.heard(A) == [data(B), status(A)]


def test_the_relays_own_member_hears_what_it_has_passed_on_before_a_status_that_answers_it() -> None:
    members = Members()
    for seq in range(2):
        members.lines[A].send(data(A, seq, 600), None)  # the second one does not fit, so the first leaves in mid-turn
    members.carry(A, B)
    members.say(B, status(B))
    for datagram in members.endpoints[B].for_place[A]:
        members.endpoints[A].receive(datagram)
    assert members.heard(A) == [data(A, 0, 600), status(B)]


def test_what_is_large_is_passed_on_at_once_behind_what_waited() -> None:
    members = Members()
    members.say(B, data(B))
    members.say(B, data(B, 1, ECHO_FROM))
    for datagram in members.endpoints[B].for_place[A]:
        members.endpoints[A].receive(datagram)
    assert len(members.endpoints[A].for_place[C]) == 2
    members.carry(A, C)
    assert members.heard(C) == [data(B), data(B, 1, ECHO_FROM)]


def test_much_that_is_short_does_not_wait_for_the_end_of_a_turn() -> None:
    members = Members()
    for seq in range(12):
        members.say(B, data(B, seq, 400))
    for datagram in members.endpoints[B].for_place[A]:
        members.endpoints[A].receive(datagram)
    assert members.endpoints[A].for_place[C]
    members.carry(A, C)
    members.lines[A].flush()
    members.carry(A, C)
    assert members.heard(C) == [data(B, seq, 400) for seq in range(12)]


def test_where_a_second_round_follows_the_first_status_after_data_goes_by_the_relay() -> None:
    """It takes the second one of the relay along."""
    members = Members(stable=False)
    members.say(A, data(A))
    members.carry(A, B)
    members.say(B, status(B))
    assert members.carry(B, C) == 0
    members.carry(B, A)
    members.carry(A, B)
    members.say(B, status(B, 2))
    assert members.carry(B, C) == 1
    members.carry(A, C)
    assert members.heard(C) == [data(A), status(B), status(B, 2)]


def test_in_larger_groups_all_goes_by_the_relay() -> None:
    members = Members(beside=False)
    members.say(B, status(B))
    assert (members.carry(B, C), members.carry(B, A)) == (0, 1)


@pytest.mark.parametrize(
    ("unit", "needs"),
    [
        (status(B), False),
        (Ready(B, 0, (0, 0, 0), Status(1, (0, 0, 0)), wants=1), True),
        (Ready(B, 0, (0, 0, 0), Status(1, (0, 0, 0)), missing=((A, ((0, 1),)),)), True),
        (data(B), True),
        (UnorderedReady(Heading(B, 0, 0, (0, 0, 0), 0)), False),
        (UnorderedReady(Heading(B, 0, 0, (0, 0, 0), 0, wants=1)), True),
        (OrderedReady(Heading(B, 0, 0, (0, 0, 0), 0)), True),
        (PlacedReady(B, 0, (0, 0, 0), PlacedStatus(1, (0, 0, 0), (0, 0, 0), 0)), True),
    ],
)
def test_only_what_just_tells_needs_no_place(unit: Ready | UnorderedReady, needs: bool) -> None:
    assert unit.needs_place() is needs


def test_a_status_of_an_earlier_relay_or_without_a_position_is_dropped() -> None:
    members = Members()
    members.say(A, data(A))
    members.carry(A, C)
    seal = seal_for("g", None)
    for counter, body in enumerate((b"short", POSITION.pack(RELAYS_FIRST - 1, 0) + b"x")):
        members.endpoints[C].receive(seal.seal(BESIDE_RELAY, B | UNORDERED, SESSION, counter, body))
    assert members.lines[C].dropped == {"truncated": 1, "late": 1}


def test_in_a_group_that_sends_nothing_beside_a_relay_such_a_status_is_nobodys() -> None:
    members = Members(beside=False)
    seal = seal_for("g", None)
    members.endpoints[C].receive(seal.seal(BESIDE_RELAY, B | UNORDERED, SESSION, 0, POSITION.pack(0, 0) + b"x"))
    assert members.lines[C].dropped == {"non_member": 1}


def test_of_many_that_wait_the_first_are_lost_and_those_of_an_earlier_relay() -> None:
    early = EarlyStatuses()
    early.add(1, 0, (A, b"of the relay before"))
    for number in range(70):
        early.add(2, number, (B, bytes([number])))
    assert [records for _, records in early.take(2, 10)] == [bytes([number]) for number in range(6, 11)]
    assert [records for _, records in early.take(2, 100)] == [bytes([number]) for number in range(11, 70)]
    assert not early
    early.add(3, 7, (A, b"of the next relay"))
    assert list(early.take(2, 100)) == []
    assert list(early.take(3, 7)) == [(A, b"of the next relay")]


def test_what_came_back_ends_the_wait_for_what_was_sent_before_it() -> None:
    way = OnTheWay(10, 1000)
    for number, records in enumerate((b"a", b"b", b"c")):
        way.add(number, records)
    way.came_back(memoryview(b"x"))
    assert way
    way.came_back(memoryview(b"b"))
    assert way.back(1) is None
    assert way
    assert way.back(2) == b"c"
    assert not way


@pytest.mark.parametrize(
    ("order", "delivery", "most"),
    [("total", "known_stable", 11), ("total", "stable", 7), ("priority", "known_stable", 11)],
)
def test_a_message_in_a_group_of_three_costs_few_datagrams(order: str, delivery: str, most: int) -> None:
    """To the relay, from there with its own status to both others; a round by the relay, then one beside it.

    By the relay both others' statuses and its own second one share datagrams if they arrive in one turn, which is so
    where all have one event loop. With delivery of what is stable there is only the round beside it.
    """

    async def test() -> None:
        async with group_of("A", "B", "C", order=order, delivery=delivery, round_trip=0.5) as groups:
            for each in groups.values():  # timers and heartbeats far away: what is counted is what a message needs
                member_of(each).arrivals.detection.stop()
            used = []
            for _ in range(5):
                before = sum(each.stats().datagrams_sent for each in groups.values())
                await groups["C"].send(b"a message")
                await asyncio.gather(*(each.receive() for each in groups.values()))
                await asyncio.sleep(0.05)
                used.append(sum(each.stats().datagrams_sent for each in groups.values()) - before)
            assert min(used) <= most

    run(test)
