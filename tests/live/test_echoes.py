"""Echoes: who sent much by a relay that is a member is sent a number back, at the place in the order that all have."""

from collections.abc import Sequence

import pytest

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.relay import _MAX_KEPT, _MAX_KEPT_BYTES, ECHO_FROM, Relay, RelayClient
from ordercast.live.transport.transport import Transport
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.wire.datagram import ECHO, HEADER, RELAY
from ordercast.wire.seal import seal_for
from tests.live.groups import group_of, hear, run
from tests.live.test_transport import ADDRESSES, CODEC, SESSION, Deaf, Listener

SHORT, LARGE = b"short", bytes(ECHO_FROM)
A, B, C = range(3)
Sent = list[tuple[bytes, int | None]]
"""Datagrams, and the places that they go to; None: all others."""


class Line(Deaf):
    """An endpoint that notes where datagrams go."""

    def __init__(self, *, multicast: bool) -> None:
        super().__init__()
        self.has_multicast = multicast
        self.said: Sent = []

    def send_to_all(self, datagram: bytes) -> None:
        self.said.append((datagram, None))

    def send(self, datagram: bytes, address: Address) -> None:
        self.said.append((datagram, ADDRESSES.index(address)))


class Members:
    """Without a network: A is the relay, the others are not."""

    def __init__(self, count: int = 3, *, multicast: bool = False) -> None:
        self.endpoints, self.listeners, self.lines = [], [], []
        addresses, seal = ADDRESSES[:count], seal_for("g", None)
        for me in range(count):
            endpoint, listener = Line(multicast=multicast), Listener()
            lines = Transport(endpoint, list(addresses), me, seal_for("g", None), CODEC, max_datagram_size=1000)  # type: ignore[arg-type]
            lines.start(1, listener)
            lines.open(SESSION, Channel.ONE, addresses[A] if me else Relay(seal, 5, endpoint.send_to_all), gather=10**9)
            self.endpoints.append(endpoint)
            self.listeners.append(listener)
            self.lines.append(lines)

    def said(self, place: int) -> Sent:
        found, self.endpoints[place].said = self.endpoints[place].said, []
        return found

    def relayed(self, place: int, *units: Data | Ready, lost: Sequence[int] = ()) -> Sent:
        """What the relay makes of units of a member, each in a datagram; some are lost on the way there."""
        for unit in units:
            self.lines[place].send(unit, None)
            self.lines[place].flush()
        for number, (datagram, to) in enumerate(self.said(place)):
            assert to == A
            if number not in lost:
                self.endpoints[A].receive(datagram)
        return self.said(A)

    def deliver(self, sent: Sent) -> None:
        for datagram, to in sent:
            for place in range(1, len(self.lines)):
                if to in {None, place}:
                    self.endpoints[place].receive(datagram)

    def heard(self) -> list[list[object]]:
        return [[unit for _, unit in listener.messages] for listener in self.listeners]


def data(source: int, seq: int, payload: bytes) -> Data:
    packet = Packet(source, 0b111, seq, (seq,) * 3, seq, (len(payload),), payload)
    return Data(packet, Status(seq + 1, (0, 0, 0), (0, 0, 0)))


def ready(source: int) -> Ready:
    return Ready(source, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0)))


def headings(sent: Sent) -> list[tuple[int, int, int | None]]:
    """Sender and counter of each datagram, and where it goes."""
    return [(*HEADER.unpack_from(datagram)[4::3], to) for datagram, to in sent]


def test_who_sent_much_is_sent_its_number_and_hears_its_own_at_its_place() -> None:
    members = Members()
    units = [data(B, 0, SHORT), data(B, 1, LARGE), data(B, 2, SHORT)]
    sent = members.relayed(B, *units)
    assert headings(sent) == [(RELAY, 0, None), (RELAY, 1, C), (ECHO, 1, B), (RELAY, 2, None)]
    assert len(sent[2][0]) < 80
    members.deliver(sent)
    assert members.heard() == [units] * 3
    assert not any(lines.dropped for lines in members.lines)


def test_an_echo_takes_along_what_waits_as_the_data_do() -> None:
    async def test() -> None:
        members = Members()
        assert members.relayed(C, ready(C)) == []
        sent = members.relayed(B, data(B, 0, LARGE))
        assert headings(sent) == [(RELAY, 0, C), (ECHO, 0, B)]
        members.deliver(sent)
        assert members.heard()[B:] == [[ready(C), data(B, 0, LARGE)]] * 2

    run(test)


def test_in_a_group_of_two_the_echo_is_all_that_is_sent() -> None:
    members = Members(2)
    sent = members.relayed(B, data(B, 0, LARGE))
    assert headings(sent) == [(ECHO, 0, B)]


def test_what_was_lost_on_its_way_to_the_relay_is_not_taken_for_what_follows() -> None:
    members = Members()
    units = [data(B, seq, LARGE) for seq in range(3)]
    members.deliver(members.relayed(B, *units, lost=[1]))
    assert members.heard()[B:] == [[units[0], units[2]]] * 2


def test_an_echo_is_for_one_member_and_stands_for_what_that_has_sent() -> None:
    """An echo that came twice, or to another member, would give what it stands for another place in the order."""
    members = Members()
    sent = members.relayed(B, data(B, 0, LARGE))
    echo = next(datagram for datagram, to in sent if to == B)
    members.endpoints[C].receive(echo)
    assert members.heard()[C] == []
    assert members.lines[C].dropped == {"not_addressed": 1}
    members.deliver(sent)
    members.endpoints[B].receive(echo)
    assert [len(each) for each in members.heard()] == [1, 1, 1]
    again = bytearray(echo)
    again[23] = 1  # the next counter
    members.endpoints[B].receive(bytes(again))
    assert members.lines[B].dropped == {"replayed": 1, "unknown_echo": 1}
    assert len(members.heard()[B]) == 1


def test_by_multicast_all_are_sent_the_same() -> None:
    members = Members(multicast=True)
    assert headings(members.relayed(B, data(B, 0, LARGE))) == [(RELAY, 0, None)]


def test_a_relay_process_echoes_nothing_and_nothing_is_kept_for_it() -> None:
    client = RelayClient(ADDRESSES[A], is_member=False, max_hold=0)
    client.keep(0, LARGE)
    assert client.echoed((0).to_bytes(8)) is None
    client = RelayClient(ADDRESSES[A], is_member=True, max_hold=0)
    client.keep(0, LARGE)
    assert client.echoed(b"\0") is None
    assert client.echoed((0).to_bytes(8)) == LARGE


@pytest.mark.parametrize("order", ["total", "priority"])
def test_what_a_member_sends_goes_to_the_relay_and_from_there_to_the_others_only(order: str) -> None:
    """Two datagrams with the payload in a group of three; with its own back to the sender they would be three."""

    async def test() -> None:
        count, size = 40, 8000
        async with group_of("A", "B", "C", order=order) as groups:
            before = sum(group.stats().bytes_sent for group in groups.values())
            for _ in range(count):
                await groups["B"].send(bytes(size))
            for group in groups.values():
                await hear(group, count)
            used = sum(group.stats().bytes_sent for group in groups.values()) - before
            assert 2 <= used / (count * size) < 2.3

    run(test)


def test_what_is_kept_for_echoes_is_bounded_in_bytes_and_in_number() -> None:
    for size, most in ((_MAX_KEPT_BYTES // 4, 4), (ECHO_FROM, _MAX_KEPT)):
        client = RelayClient(ADDRESSES[A], is_member=True, max_hold=0)
        records = bytes(size)
        for number in range(most + 3):
            client.keep(number, records)
        assert client.echoed(number_of(2)) is None, "the first ones count as lost"
        for number in range(3, most + 3):
            assert client.echoed(number_of(number)) is records
        for number in range(most):
            client.keep(most + 3 + number, records)
        assert client.echoed(number_of(most + 3)) is records, "room is made by what comes back"


def number_of(counter: int) -> bytes:
    return counter.to_bytes(8, "big")
