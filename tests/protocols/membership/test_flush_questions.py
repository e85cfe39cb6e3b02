"""Which reports, sets of reports and cuts can be true; each way in which one cannot. And what a member still has."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from ordercast.model.config import GroupConfig, RecoveryPolicy
from ordercast.model.machine import Deliver, Drained, Level, Numbered, Output, Reached, Receive, Send, SetTimer, Submit
from ordercast.model.machine import TimerFired as Fired
from ordercast.model.nodes import mask_of
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush
from ordercast.protocols.registry import flush_class, make_machine
from ordercast.protocols.sequencer.flush import SequencerFlush
from ordercast.protocols.sequencer.units import Broadcast
from ordercast.protocols.spo.flush import SpoFlush
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.st.flush import StFlush
from ordercast.protocols.st.place.flush import StPlaceFlush
from ordercast.protocols.st.units import PlacedData, PlacedStatus
from ordercast.protocols.to.flush import ToFlush
from tests.protocols.st.driver import E1, E2, Node, Peer


def machine_of(protocol: str, place: int, nodes: int, **settings: Any) -> Any:
    return make_machine(protocol, place, GroupConfig(nodes=nodes, views=True, **settings))


def changed(value: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(value, **fields)


# --- reports ---

REPORTS: list[tuple[type[Flush], EpochReport, list[dict[str, Any]]]] = [
    (
        SpoFlush,
        EpochReport((1, 2, 3), (0, 1, 2)),
        [{"stable": (0, 1)}, {"round": 1}, {"base": (1, 1, 1)}, {"units": (1, 1, 1)}, {"numbered_below": 1}],
    ),
    (
        ToFlush,
        EpochReport((1, 2, 3), round=1, base=(0, 0, 0), units=(1, 2, 3)),
        [{"units": (1, 2)}, {"stable": (0, 0, 0)}, {"numbered_below": 1}],
    ),
    (
        StFlush,
        EpochReport((1, 2, 3), round=1, base=(1, 2, 3)),
        [{"stable": (0, 0, 0)}, {"units": (1, 2, 3)}, {"numbered_below": 1}],
    ),
    (
        StPlaceFlush,
        EpochReport((1, 2, 3), base=(0, 0, 1), units=(2, 1, 7)),
        [{"stable": (0, 0, 0)}, {"round": 1}, {"base": (0, 0)}, {"units": (2, 1)}, {"numbered_below": 1}],
    ),
    (
        SequencerFlush,
        EpochReport((1, 2, 3), numbered_below=6),
        [{"stable": (0, 0, 0)}, {"round": 1}, {"base": (1, 1, 1)}, {"units": (1, 1, 1)}],
    ),
]


@pytest.mark.parametrize(("flush", "report", "wrong"), REPORTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_report_has_what_its_order_reports_and_no_more(
    flush: type[Flush], report: EpochReport, wrong: list[dict[str, Any]]
) -> None:
    assert flush.is_report(report, 3)
    assert [flush.is_report(changed(report, **fields), 3) for fields in wrong] == [False] * len(wrong)


BEGUN = EpochReport((2, 5), round=4, base=(3, 9), units=(4, 9))
BEHIND = EpochReport((3, 7), round=3, units=(6, 12))


@pytest.mark.parametrize(
    ("reports", "agree"),
    [
        ([BEGUN, BEHIND], True),
        ([BEGUN, changed(BEGUN, base=())], True),  # one knows already that all have begun it
        ([changed(BEGUN, base=()), BEHIND], False),
        ([BEGUN, changed(BEHIND, round=2)], False),
        ([BEGUN, changed(BEHIND, units=(2, 12))], False),  # it lacks what the round begins with
        ([BEGUN, changed(BEGUN, base=(3, 8)), BEHIND], False),
        ([changed(BEGUN, units=(6, 9)), BEHIND], False),  # vectors carried more packets than there are
    ],
)
def test_where_some_are_in_the_round_before_the_others_begin_the_next_with_what_they_have(
    reports: list[EpochReport], agree: bool
) -> None:
    assert ToFlush.agree(dict(enumerate(reports))) is agree


# --- cuts ---


@dataclass
class Case:
    """A member, a cut that it can finish at, and what it says of others."""

    flush: Flush
    good: Cut
    wrong: list[tuple[dict[str, Any], str]]


def spo() -> Case:
    """Of E1's packets to it E2 has x; it has E3's second one and not the first, and has sent one itself.

    The second one is at the cut, and so not below it.
    """
    machine = machine_of("spo", 1, 3)
    status = Status(1, (0, 0, 0), (0, 0, 0), 9, 0)
    machine.handle(Receive(Data(Packet(0, 0b010, 0, (0, 0, 0), 0, (1,), b"x"), status)))
    machine.handle(Receive(Ready(0, 1, (0, 1, 0), Status(2, (0, 0, 0), (0, 0, 0), 9, 1), 0, ())))
    machine.handle(Receive(Data(Packet(2, 0b010, 1, (0, 1, 0), 0, (1,), b"z"), status)))
    machine.handle(Submit(0b001, (1,), b"y"))
    other = "it is no cut of this order"
    settled = "what is settled is above the cut, or what was not sent is below it"
    return Case(
        SpoFlush(machine),
        Cut((1, 1, 1)),
        [
            ({"round": 1}, other),
            ({"units": (1, 1, 1)}, other),
            ({"ends": (0, 1, 1)}, settled),
            ({"ends": (1, 2, 1)}, settled),
            ({"ends": (1, 1, 2)}, "something below the cut is missing"),
        ],
    )


def st() -> Case:
    machine = machine_of("st", 0, 2)
    other = "it is no cut of this round or the next one"
    return Case(
        StFlush(machine),
        Cut((0, 0)),
        [
            ({"units": (0, 0)}, other),
            ({"numbered_below": 1}, other),
            ({"round": 2}, other),
            ({"round": -1}, other),
            ({"round": 1}, "something below the cut is missing"),  # it has not agreed with the others on this one
            ({"ends": (0, 1)}, "something below the cut is missing"),
        ],
    )


def stable_st() -> Case:
    """All have accepted what E2 sent."""
    node, e2 = Node(E1, nodes=2, views=True), Peer(E2, nodes=2)
    node.hears(e2.sends("a", E1, E2))
    node.hears(*node.handle(Drained()).units, e2.expecting(0, 1).ready())
    return Case(StFlush(node.machine), Cut((0, 1)), [({"ends": (0, 0)}, "what is stable is above the cut")])


def to() -> Case:
    """It has sent a packet, in its unit 0, which has not come back."""
    machine = machine_of("to", 0, 2)
    machine.handle(Submit(0b11, (1,), b"x"))
    other, differs = "it is no cut of this order", "its packets and its units are not the same"
    return Case(
        ToFlush(machine),
        Cut((0, 0), units=(0, 0)),
        [
            ({"numbered_below": 1}, other),
            ({"round": 1, "base": (0, 0)}, "it is no cut of this round or the next one"),  # it has not stopped
            ({"units": (0, 1)}, "something below the cut is missing"),
            ({"ends": (1, 0)}, differs),
        ],
    )


def stopped_to() -> Case:
    """It has detected a loss, and the next round may have begun elsewhere; what it sent waits to be sent again."""
    machine = machine_of("to", 0, 2)
    machine.handle(Submit(0b11, (1,), b"x"))
    (_, packet) = machine.transmission.sent.pop()
    machine.transmission.resend.append(packet)
    machine.recovery.start("loss", [])
    return Case(
        ToFlush(machine),
        Cut((0, 0), round=1, base=(0, 0), units=(0, 0)),
        [
            ({"round": 2}, "it is no cut of this round or the next one"),
            ({"units": (0, 1)}, "it is no cut of this order"),  # what the next round adds it does not have
            ({"ends": (1, 0)}, "its packets and its units are not the same"),
        ],
    )


def sequencer() -> Case:
    """It has two of E1's packets with their numbers, and none of its own was sent."""
    machine = machine_of("sequencer", 1, 3)
    for number in range(2):
        packet = Packet(0, 7, number, (), number, (1,), bytes([number]))
        machine.handle(Receive(Broadcast(packet, 0, 0, number, number + 1, 0)))
    above, unsent = "what was received is above the cut", "it has numbers for what was not sent"
    return Case(
        SequencerFlush(machine),
        Cut((2, 0, 0), numbered_below=2),
        [
            ({"round": 1}, "it is no cut of this order"),
            ({"numbered_below": 1}, above),
            ({"ends": (1, 0, 0)}, above),
            ({"ends": (1, 0, 2), "numbered_below": 3}, above),
            ({"ends": (3, 0, 0)}, unsent),
            ({"ends": (2, 1, 0), "numbered_below": 3}, unsent),
        ],
    )


def st_that_places() -> Case:
    """It has sent v and w to the others, of which all have v; of E2 all have x, and only it is known to have y."""
    machine = machine_of("st", 0, 3, recovery=RecoveryPolicy.PLACE)
    for payload in (b"v", b"w"):
        for output in machine.handle(Submit(0b110, (1,), payload)):
            if isinstance(output, Send):
                machine.handle(Receive(output.unit))
    for seq, payload in enumerate((b"x", b"y")):
        packet = Packet(1, 0b101, seq, (seq, 0, seq), seq, (1,), payload)
        machine.handle(Receive(PlacedData(packet, PlacedStatus(1 + seq, (0, 0, 0), (0, 0, 0), 9, 0, (0, 0, 0)))))
    for node in range(3):
        machine.logs.take_status(node, PlacedStatus(99, (1, 1, 0), (0, 0, 0), 9, 0, (0, 0, 0)), [])
    other, stable = "it is no cut of this order", "what is stable is above the cut"
    return Case(
        StPlaceFlush(machine),
        Cut((1, 1, 0)),
        [
            ({"round": 1}, other),
            ({"units": (1, 1, 1)}, other),
            ({"ends": (1, 1, 1)}, "something below the cut is missing"),
            ({"ends": (1, 0, 0)}, stable),
            ({"ends": (0, 1, 0)}, stable),
        ],
    )


def test_st_that_places_tells_what_is_below_the_cut_with_the_levels_that_are_left() -> None:
    flush = st_that_places().flush
    stable = [("x", "ACKNOWLEDGED"), ("x", "DELIVERED")]
    assert levels_of(flush.finish(Cut((1, 1, 0)), {})) == [*stable, ("v", "ACKNOWLEDGED")]
    rest = [(name, level) for name in "yw" for level in ("PREACKNOWLEDGED", "ACKNOWLEDGED")]
    assert levels_of(flush.finish(Cut((2, 2, 0)), {})) == [
        *stable,
        *rest[:2],
        ("y", "DELIVERED"),
        ("v", "ACKNOWLEDGED"),
        *rest[2:],
    ]
    assert [packet.payload for packet in flush.own_packets().values()] == [b"w", b"v"]
    flush.start(7)
    assert flush.message_count() == 7


@pytest.mark.parametrize("case", [spo, st, stable_st, st_that_places, to, stopped_to, sequencer])
def test_a_cut_is_refused_if_it_contradicts_what_a_member_has(case: Any) -> None:
    given: Case = case()
    assert given.flush.problem(given.good) is None
    for fields, sentence in given.wrong:
        assert given.flush.problem(changed(given.good, **fields)) == sentence, fields


# --- what a member has, and what is told at the end ---


def levels_of(outputs: list[Output]) -> list[tuple[str, str]]:
    """In the order in which they are told."""
    return [
        (output.packet.payload.decode(), output.level.name if isinstance(output, Reached) else "DELIVERED")
        for output in outputs
        if isinstance(output, Reached | Deliver)
    ]


def test_what_is_delivered_at_the_end_is_told_with_all_its_levels() -> None:
    """Below the cut; of own packets to others too, and not of what lies at the cut."""
    machine = machine_of("spo", 0, 3)
    machine.handle(Submit(0b010, (1,), b"x"))
    machine.handle(Submit(0b100, (1,), b"y"))
    status = Status(1, (2, 0, 1), (0, 0, 0), 9, 0)
    out = machine.handle(Receive(Ready(2, 0, (0, 0, 0), status, 0, ())))
    assert levels_of(out) == [("y", "PREACKNOWLEDGED")]
    machine.handle(Receive(Data(Packet(1, 0b101, 0, (0, 0, 0), 0, (1,), b"z"), changed(status, expects=(0, 1, 0)))))
    flush = SpoFlush(machine)
    given = [("z", "PREACKNOWLEDGED"), ("z", "ACKNOWLEDGED"), ("z", "DELIVERED")]
    assert levels_of(flush.finish(Cut((2, 1, 0)), {})) == [
        *given,
        ("y", "ACKNOWLEDGED"),
        ("x", "PREACKNOWLEDGED"),
        ("x", "ACKNOWLEDGED"),
    ]
    assert levels_of(flush.finish(Cut((1, 1, 0)), {})) == [*given, ("x", "PREACKNOWLEDGED"), ("x", "ACKNOWLEDGED")]
    assert levels_of(flush.finish(Cut((0, 0, 0)), {})) == []


@pytest.mark.parametrize("protocol", ["st", "to"])
def test_what_only_came_is_told_with_all_its_levels_too(protocol: str) -> None:
    sender, machine = machine_of(protocol, 1, 2), machine_of(protocol, 0, 2)
    for output in sender.handle(Submit(0b11, (1,), b"x")):
        if isinstance(output, Send):
            machine.handle(Receive(output.unit))
    flush = flush_class(protocol)(machine)
    cut = type(flush).cut({0: flush.report()}, 2)
    assert cut.ends == (0, 1)
    expected = [("x", "PREACKNOWLEDGED"), ("x", "ACKNOWLEDGED"), ("x", "DELIVERED")]
    assert levels_of(flush.finish(cut, {})) == expected


def test_what_is_not_settled_is_known_to_be_to_all() -> None:
    machine = machine_of("spo", 0, 2)
    for _ in range(2):
        machine.handle(Submit(0b11, (1,), b"x", to_all=True))
    flush = SpoFlush(machine)
    assert [flush.is_to_all(seq) for seq in range(2)] == [True, True]
    machine.handle(Receive(Ready(1, 0, (0, 0), Status(1, (1, 0), (0, 0), 9, 0), 0, ())))
    assert [flush.is_to_all(seq) for seq in range(2)] == [False, True]


def test_what_is_known_to_be_with_all_at_once_is_settled_to_its_last() -> None:
    """Two packets, of which E3 says in one status that it has both."""
    machine = machine_of("spo", 1, 3)
    for seq, payload in enumerate((b"x", b"y")):
        packet = Packet(0, 0b110, seq, (0, seq, seq), seq, (1,), payload)
        machine.handle(Receive(Data(packet, Status(1 + seq, (seq + 1, 0, 0), (0, 0, 0), 9, 0))))
    machine.handle(Receive(Ready(2, 0, (0, 0, 0), Status(1, (2, 0, 0), (0, 0, 0), 9, 0), 0, ())))
    assert SpoFlush(machine).report() == EpochReport((2, 0, 0), (2, 0, 0))


@pytest.mark.parametrize(
    ("protocol", "to"),
    [("po", (0, 1, 2)), *((protocol, to) for protocol in ("spo", "st") for to in ((0, 1, 2), (1, 2)))],
)
def test_own_packets_are_kept_until_they_are_acknowledged(protocol: str, to: tuple[int, ...]) -> None:
    """At each step of a group in which nothing is lost."""
    machines = [machine_of(protocol, place, 3) for place in range(3)]
    flush = flush_class(protocol)(machines[0])
    waiting: list[tuple[Any, Any]] = [(machines[0], Submit(mask_of(to), (1,), payload)) for payload in (b"x", b"y")]
    left: set[int] = set()
    seen: set[int] = set()
    for _ in range(200):
        if not waiting or (seen and not left):
            break
        machine, event = waiting.pop(0)
        for output in machine.handle(event):
            if isinstance(output, Send):
                waiting += [(each, Receive(output.unit)) for each in machines]
            elif isinstance(output, SetTimer):
                waiting.append((machine, Fired(output.name)))
            elif machine is machines[0] and isinstance(output, Numbered):
                left.add(output.packet.seq)
                seen.add(output.packet.seq)
            elif machine is machines[0] and isinstance(output, Reached) and output.level is Level.ACKNOWLEDGED:
                left.discard(output.packet.seq)
        assert left <= set(flush.own_packets())
    assert (seen, left) == ({0, 1}, set())
