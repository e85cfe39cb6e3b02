"""What is seen of a run beside its trace: contents, copies, and what machines keep, whatever they say of themselves."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.declared_state import DeclaredState
from ordercast.model.faults import Loss
from ordercast.model.kept import kept_by
from ordercast.model.machine import (
    Deliver,
    Input,
    Level,
    Machine,
    NotSent,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    Submit,
)
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.model.units import DataUnit, Packet
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.protocols.spo.machine import Spo
from ordercast.simulator import simulate
from ordercast.simulator.simulation import Simulation
from ordercast.simulator.watch.contents import Contents
from ordercast.simulator.watch.copies import Copies
from ordercast.simulator.watch.flight import Flight
from ordercast.simulator.watch.receipts import Receipts
from ordercast.swarm.run_audit import KEEPS, UNSAID, WINDOW, WRONG_CONTENT, failures_of


def config_of(protocol: str = "spo", *, batch: int = 1, loss: float = 0.1) -> RunConfig:
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=3),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        workload=Workload(messages=12, batch=batch),
        faults=(Loss(rate=loss),),
        seed=4,
    ).with_default_timeouts()


def kinds(machine: type[Machine], **how: Any) -> set[str]:
    return {failure.kind for failure in failures_of(config_of(**how), machine)}


# --- whole runs ---


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_watched_run_is_the_run_that_it_would_be(protocol: str) -> None:
    rows: list[Any] = []
    watched: list[Any] = []
    config = config_of(protocol)
    result = simulate(config, rows=rows)
    simulation = Simulation(config, watched.extend)
    watcher = simulation.watch()
    assert simulation.run() == result
    assert watched == rows
    observed = watcher.observed()
    assert not observed.wrong_contents
    assert not any(observed.unsaid_copies)
    assert not any(kept.packets for kept in observed.kept)


def test_of_messages_in_one_packet_each_has_a_length_of_its_own() -> None:
    rows: list[Any] = []
    simulation = Simulation(config_of(batch=4), rows.extend)
    watcher = simulation.watch()
    assert simulation.run().complete
    assert not watcher.observed().wrong_contents
    sizes = [row[8] for row in rows if row[3] == "send"]
    assert sizes[:4] == [63, 65, 61, 67]


class Altered(Spo):
    """Puts out something else instead of some outputs."""

    def handle(self, event: Input) -> list[Output]:
        return [self.instead(output) for output in super().handle(event)]

    def instead(self, output: Output) -> Output:
        return output


class LastByte(Altered):
    def instead(self, output: Output) -> Output:
        if not isinstance(output, Deliver) or self.me != 1:
            return output
        payload = output.packet.payload
        return Deliver(replace(output.packet, payload=payload[:-1] + bytes([payload[-1] ^ 1])))


class Boundaries(Altered):
    def instead(self, output: Output) -> Output:
        if not isinstance(output, Deliver):
            return output
        return Deliver(replace(output.packet, lengths=output.packet.lengths[::-1]))


class Urgency(Altered):
    def instead(self, output: Output) -> Output:
        return Deliver(replace(output.packet, priority=1)) if isinstance(output, Deliver) else output


class Zeros(Spo):
    """Sends zeros instead of what it is given."""

    def handle(self, event: Input) -> list[Output]:
        if isinstance(event, Submit):
            event = replace(event, payload=bytes(len(event.payload)))
        return super().handle(event)


class SecondFirst(Spo):
    """Takes its second submission before its first."""

    first: tuple[Submit, ...] = ()

    def handle(self, event: Input) -> list[Output]:
        if isinstance(event, Submit) and not self.next_seq:
            if not self.first:
                self.first = (event,)
                return []
            return [*super().handle(event), *super().handle(self.first[0])]
        return super().handle(event)


@pytest.mark.parametrize(
    ("machine", "batch"), [(LastByte, 1), (Boundaries, 2), (Urgency, 1), (Zeros, 1), (SecondFirst, 1)]
)
def test_other_contents_than_were_submitted_are_noticed(machine: type[Machine], batch: int) -> None:
    assert WRONG_CONTENT in kinds(machine, batch=batch)


class Twice(Spo):
    """Sends each new unit twice; the second time it says so, or not."""

    says = False

    def handle(self, event: Input) -> list[Output]:
        outputs = super().handle(event)
        new = [
            each for each in outputs if isinstance(each, Send) and isinstance(each.unit, DataUnit) and not each.again
        ]
        return [*outputs, *(replace(each, again=self.says) for each in new)]


class TwiceSaid(Twice):
    says = True


def test_a_copy_that_is_not_called_one_is_noticed_whatever_was_lost() -> None:
    assert UNSAID in kinds(Twice)
    assert UNSAID not in kinds(TwiceSaid)


class Hides(Spo):
    """Keeps what it delivers where nobody looks."""

    def handle(self, event: Input) -> list[Output]:
        outputs = super().handle(event)
        self.__dict__.setdefault("hidden", []).extend(self.of(each) for each in outputs if isinstance(each, Deliver))
        return outputs

    def of(self, output: Deliver) -> object:
        return output.packet


class HidesBytes(Hides):
    def of(self, output: Deliver) -> object:
        return bytearray(output.packet.payload * 30)


class HidesNumbers(Hides):
    def of(self, output: Deliver) -> object:
        return list(range(output.packet.first, output.packet.first + 100))


@pytest.mark.parametrize("machine", [Hides, HidesBytes, HidesNumbers])
def test_what_is_kept_where_a_machine_is_not_asked_is_noticed(machine: type[Machine]) -> None:
    assert kinds(machine) == {KEEPS}


# --- contents ---

A, B = Submit(0b11, (3,), b"aaa"), Submit(0b11, (3,), b"bbb")


def packet_of(submit: Submit, first: int = 0, **other: Any) -> Packet:
    return replace(
        Packet(0, submit.destinations, first, (), first, submit.lengths, submit.payload, submit.priority), **other
    )


def submitted(*, has_views: bool = False) -> tuple[Contents, list[Submit]]:
    contents = Contents(2, has_views=has_views)
    return contents, [contents.submit(0, each) for each in (A, B)]


def test_each_submission_has_a_content_of_its_own() -> None:
    _, given = submitted()
    assert given[0].payload != given[1].payload
    assert [len(each.payload) for each in given] == [3, 3]


@pytest.mark.parametrize(
    ("members", "order", "wrong"),
    [(None, (0, 1), 0), (None, (1,), 1), (0b11, (1,), 1), (0b100, (1,), 0), (0b100, (1, 0), 1)],
)
def test_submissions_are_numbered_in_their_order_but_those_without_a_destination_among_the_members(
    members: int | None, order: tuple[int, ...], wrong: int
) -> None:
    contents, given = submitted(has_views=members is not None)
    if members is not None:
        contents.install(0, members)
    for first, at in enumerate(order):
        contents.number(0, packet_of(given[at], first, destinations=given[at].destinations & (members or -1)))
    assert len(contents.wrong) == wrong


@pytest.mark.parametrize(
    ("views", "destinations", "wrong"),
    [
        ((), 0b01, 1),
        ((), 0b11, 0),
        ((0b11,), 0b01, 1),
        ((0b11,), 0b111, 1),
        ((0b01,), 0b01, 0),
        ((0b01, 0b11), 0b01, 1),
        ((0b01, 0b11), 0b11, 0),
    ],
)
def test_what_is_numbered_goes_to_those_of_its_destinations_that_are_members(
    views: tuple[int, ...], destinations: int, wrong: int
) -> None:
    contents = Contents(2, has_views=bool(views))
    for members in views:
        contents.install(0, members)
    contents.number(0, packet_of(contents.submit(0, A), destinations=destinations))
    assert len(contents.wrong) == wrong


@pytest.mark.parametrize(("destinations", "wrong"), [(0b01, 0), (0b11, 0), (0b10, 1)])
def test_one_that_joins_after_it_was_submitted_may_be_left_out(destinations: int, wrong: int) -> None:
    contents = Contents(2, has_views=True)
    contents.install(0, 0b01)
    given = contents.submit(0, A)
    contents.install(0, 0b11)
    contents.number(0, packet_of(given, destinations=destinations))
    assert len(contents.wrong) == wrong


@pytest.mark.parametrize(("members", "left"), [(0b11, ["E1 never sends 2"]), (0b100, [])])
def test_what_is_never_numbered_has_no_destination_among_the_members(members: int, left: list[str]) -> None:
    contents, given = submitted(has_views=True)
    contents.install(0, members)
    assert [sentence[:16] for sentence in contents.unsent([0, 1])] == left
    contents.install(0, 0b11)
    if left:
        contents.number(0, packet_of(given[0]))
        contents.number(0, packet_of(given[1], 1))
    assert not list(contents.unsent([0, 1]))


def test_what_is_delivered_is_what_was_numbered() -> None:
    contents, given = submitted()
    contents.number(0, packet_of(given[0]))
    contents.compare(1, "delivers", packet_of(given[0], seq=7))
    assert not contents.wrong
    contents.compare(1, "delivers", packet_of(given[1]))
    contents.compare(1, "delivers", packet_of(given[1], first=1))
    assert contents.wrong == [
        "E2 delivers E1#0 with another content than was sent",
        "E2 delivers E1#1 with another content than was sent",
    ]


def test_a_number_is_of_one_message() -> None:
    contents, given = submitted()
    contents.number(0, packet_of(given[0]))
    contents.number(0, packet_of(given[1]))
    assert contents.wrong == ["E1 gives the number of E1#0 to a second message"]


# --- packets in flight ---


class NoWindow(Spo):
    """Numbers all that is submitted, whatever its window."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, replace(config, window=1_000))


def test_more_packets_in_flight_than_the_window_are_noticed() -> None:
    config = replace(config_of(), group=GroupConfig(nodes=3, window=4), workload=Workload(messages=12, gap=0))
    assert WINDOW in {failure.kind for failure in failures_of(config, NoWindow)}
    assert WINDOW not in {failure.kind for failure in failures_of(config)}


def test_a_packet_is_in_flight_until_another_has_it_or_its_source_delivers_it() -> None:
    flight = Flight(2)
    own, first, second = packet_of(A, 0, destinations=0b01), packet_of(A, 1), packet_of(A, 2)
    for packet in (own, first):
        flight.number(0, packet)
    flight.reach(0, Reached(Level.ACCEPTED, first))
    flight.number(0, second)
    assert flight.most == [2, 0]
    flight.reach(1, Reached(Level.ACCEPTED, first))
    flight.deliver(1, Deliver(second))
    flight.deliver(0, Deliver(second))
    flight.number(0, packet_of(A, 3))
    flight.number(0, packet_of(A, 4))
    assert flight.most == [2, 0]
    flight.reach(1, Reached(Level.STABLE, packet_of(A, 3)))
    flight.number(0, packet_of(A, 5))
    assert flight.most == [3, 0]


# --- what applications are told ---

DUE = (Level.ACCEPTED, Level.STABLE)


def test_all_levels_of_what_is_delivered_and_that_own_messages_are_stable_must_be_told() -> None:
    receipts, packet = Receipts(2), packet_of(A)
    receipts.number(0, packet)
    receipts.deliver(1, Deliver(packet))
    assert list(receipts.lacking([0, 1], DUE)) == [
        "E1 is never told that E1#0 is preacknowledged (1 in all)",
        "E2 is never told that E1#0 is accepted (1 in all)",
    ]
    receipts.reach(1, Reached(Level.ACCEPTED, packet))
    assert list(receipts.lacking([1], DUE)) == ["E2 is never told that E1#0 is preacknowledged (1 in all)"]
    receipts.reach(1, Reached(Level.STABLE, packet))
    receipts.reach(0, Reached(Level.STABLE, packet))
    assert not list(receipts.lacking([0, 1], DUE))


def test_or_that_they_are_not_sent() -> None:
    receipts = Receipts(1)
    receipts.number(0, packet_of(A, 7))
    receipts.not_sent(0, NotSent(1))
    assert list(receipts.lacking([0], DUE))
    receipts.not_sent(0, NotSent(1, first=7))
    assert not list(receipts.lacking([0], DUE))


# --- copies ---


class Plain(DataUnit, frozen=True, gc=False):
    view: int = 0


class Other(DataUnit, frozen=True, gc=False):
    view: int = 0


PLAIN = Plain(packet_of(A))


@pytest.mark.parametrize(
    ("second", "unsaid"),
    [
        (Send(PLAIN), 1),
        (Send(PLAIN, to=1), 1),
        (Send(PLAIN, again=True), 0),
        (Send(PLAIN, to=0), 0),
        (Send(Plain(packet_of(A), view=1)), 0),
        (Send(Other(packet_of(A))), 0),
        (Send(Plain(packet_of(A, first=1))), 0),
    ],
)
def test_what_was_sent_before_to_the_same_node_is_a_copy(second: Send, unsaid: int) -> None:
    copies = Copies(3)
    copies.send(0, Send(PLAIN))
    copies.send(0, second)
    copies.send(1, Send(PLAIN))  # by another node: it has not sent it
    assert copies.unsaid == [unsaid, 0, 0]


def test_what_goes_to_another_node_is_no_copy() -> None:
    copies = Copies(3)
    for to in (1, 2, 2):
        copies.send(0, Send(PLAIN, to=to))
    assert copies.unsaid == [1, 0, 0]


# --- what is kept ---


class Part(DeclaredState):
    packets: dict[int, Packet]

    def __init__(self) -> None:
        self.packets = {}


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside: object) -> None:
        self.inside = inside


HELD = packet_of(A)


@pytest.mark.parametrize(
    "place",
    [
        lambda: HELD,
        lambda: [HELD],
        lambda: (0, {1: {HELD}}),
        lambda: {HELD: 1},
        lambda: Receive(PLAIN),
        lambda: Numbered(HELD),
        lambda: Slotted(HELD),
    ],
)
def test_a_packet_is_found_wherever_it_is(place: Callable[[], object]) -> None:
    part: Any = Part()
    assert not kept_by(part).packets
    part.anywhere = place()
    assert kept_by(part).packets == {(0, 0)}


def test_a_packet_without_messages_is_a_number() -> None:
    part = Part()
    part.packets[0] = HELD.without_messages()
    assert (kept_by(part).packets, kept_by(part).content) == (frozenset(), 0)


def test_a_number_of_many_bits_is_counted_by_its_bytes() -> None:
    part: Any = Part()
    part.ints = (1 << 63, 1 << 7999)
    assert kept_by(part).content == 1000


def test_values_and_bytes_are_counted_and_what_two_hold_once() -> None:
    part: Any = Part()
    shared = [1, 2, "c", None]
    part.lists, part.bytes = (shared, shared), b"12345"
    before = kept_by(Part())
    kept = kept_by(part)
    assert (kept.values - before.values, kept.content - before.content) == (5, 5)
