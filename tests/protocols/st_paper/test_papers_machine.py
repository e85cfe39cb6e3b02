"""ST as printed: any well-formed unit at any time, timers, texts; what holds for every machine is in `contract`."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.config import GroupConfig, PaperRules, Rules
from ordercast.model.machine import (
    Deliver,
    Drained,
    Input,
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet
from ordercast.protocols.registry import machine_class
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from ordercast.protocols.st.paper.machine import StPaper
from ordercast.protocols.st.paper.state import Stage
from ordercast.protocols.st.units import Reset, ResetAgreement, ResetDone, ResetOrder
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.st_paper.entity import paper_group

NODES = 3
NUMBERS = st.integers(0, 4)
VECTORS = st.tuples(*[NUMBERS] * NODES)
SETS = st.integers(1, everybody(NODES))
SOURCES = st.integers(0, NODES - 1)
STATUSES = st.builds(Status, NUMBERS, VECTORS, free=st.integers(0, 20))
PACKETS = st.builds(Packet, SOURCES, SETS, NUMBERS, VECTORS, NUMBERS, st.just((1,)), st.just(b"x"))
ORDERS = st.permutations(range(NODES)).map(tuple)
INPUTS: st.SearchStrategy[Input] = st.one_of(
    st.builds(Submit, SETS, st.lists(st.just(1), min_size=1, max_size=3).map(tuple), st.just(b"xyz")),
    st.builds(Receive, st.builds(Data, PACKETS, STATUSES)),
    st.builds(Receive, st.builds(Data, PACKETS, STATUSES)),
    st.builds(Receive, st.builds(Ready, SOURCES, NUMBERS, VECTORS, STATUSES, SETS)),
    st.builds(Receive, st.builds(RetransmitRequest, SOURCES, VECTORS)),
    st.builds(Receive, st.builds(Reset, SOURCES, VECTORS)),
    st.builds(Receive, st.builds(ResetAgreement, SOURCES, st.just((0, 0, 0)))),
    st.builds(Receive, st.builds(ResetAgreement, SOURCES, VECTORS)),
    st.builds(Receive, st.builds(ResetOrder, SOURCES, VECTORS, VECTORS, VECTORS, ORDERS)),
    st.builds(Receive, st.builds(ResetOrder, SOURCES, st.just((0, 0, 0)), VECTORS, VECTORS, st.just((0, 1, 2)))),
    st.just(Receive(ResetDone(E1, 0))),
    st.builds(
        TimerFired, st.sampled_from(["ready", "request", "wait-0", "wait-1", "held-0-0", "held-1-0", "", "poll"])
    ),
    st.just(Drained()),
)
AGREEMENT: list[Input] = [
    Receive(Reset(E3, (0, 0, 0))),
    *(Receive(ResetAgreement(node, (0, 0, 0))) for node in range(3)),
]
HISTORIES = st.builds(
    lambda before, agreement, after: [*before, *agreement, *after],
    st.lists(INPUTS, max_size=12),
    st.sampled_from([[], AGREEMENT]),
    st.lists(INPUTS, max_size=15),
)
CONFIGS = st.builds(
    lambda keeps, time_out, verbatim, window: GroupConfig(
        nodes=NODES,
        window=window,
        paper=PaperRules(
            keeps_behind_gap=keeps,
            preacknowledged_time_out=time_out,
            verbatim_copies=verbatim,
            initial_buffers=30,
        ),
    ),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 32]),
)


@settings(max_examples=100, deadline=None)
@given(CONFIGS, HISTORIES)
def test_machine_takes_whatever_is_well_formed(config: GroupConfig, events: list[Input]) -> None:
    """It raises nothing, says what it waits for, hands over what rose, and numbers one after the other."""
    machine = StPaper(E2, config)
    out: list[Output] = []
    for event in events:
        out += machine.handle(event)
        assert all(isinstance(line, str) for line in machine.waits_for())
    acknowledged = [
        output.packet for output in out if isinstance(output, Reached) and output.level is Level.ACKNOWLEDGED
    ]
    assert [output.packet for output in out if isinstance(output, Deliver)] == acknowledged
    assert all(packet.destinations >> E2 & 1 for packet in acknowledged)
    numbers = [output.packet.seq for output in out if isinstance(output, Numbered)]
    assert numbers == list(range(len(numbers)))
    sizes = machine.log_sizes()
    assert sizes.accepted + sizes.held == len(machine.accepted)
    if not machine.aborted:
        assert sizes.waiting == sum(isinstance(event, Submit) for event in events) - len(numbers)


def test_machine_timers_are_those_that_run() -> None:
    """After any walk, a timer that does not run does nothing."""
    for seed in range(30):
        group = paper_group(keeps=bool(seed % 2))
        group.wander(Random(seed), 120, losses=seed % 3)
        for node, machine in enumerate(group.machines):
            held = {f"held-{unit.source}-{unit.packet.seq}" for unit in machine.preacknowledged}
            assert {name for name in group.timers[node] if name.startswith("held")} == held
            kept = {f"wait-{unit.packet.seq}" for unit in machine.sent}
            assert {name for name in group.timers[node] if name.startswith("wait")} <= kept
            assert ("request" in group.timers[node]) is (machine.stage is Stage.RECOVERING)
            assert ("ready" in group.timers[node]) is machine.ready_timer
            assert machine.handle(TimerFired("wait-999")) == machine.handle(TimerFired("held-0-999")) == []


def test_machine_says_what_it_waits_for() -> None:
    group = paper_group(window=1)
    assert group.machines[E1].waits_for() == ()
    group.submit_all("a1:2 b1:2")
    assert group.machines[E1].waits_for() == (
        "its window is closed: {E1,E2,E3} is known to expect its number 1",
        "keeps its number 1 of E1, not confirmed by {E2}",
    )
    group.hear(E2, "a")
    assert group.machines[E2].waits_for() == ("has accepted number 1 of E1, not confirmed by {E2}",)
    assert group.settle()
    assert all(machine.waits_for() == () for machine in group.machines)


def test_machine_says_what_it_misses() -> None:
    """What shows a gap exists, and is missing like what is before it: it was discarded."""
    machine = StPaper(E3, GroupConfig(nodes=3))
    lines = []
    for seq in (1, 0, 1):
        machine.handle(Receive(Data(Packet(E1, 0b100, seq, (seq,) * 3, seq, (1,), b"x"), Status(1, (0, 0, 0)))))
        lines.append([line for line in machine.waits_for() if line.startswith("misses")])
    assert lines == [["misses from E1 its number 0 on"], ["misses from E1 its number 1 on"], []]


def test_machine_is_that_of_st_under_the_paper_rules() -> None:
    assert machine_class("st", Rules.PAPER) is StPaper


@pytest.mark.parametrize(
    ("unit", "size"),
    [
        (Reset(E1, (1, 2, 3)), 28),
        (ResetAgreement(E1, (1, 2, 3, 4)), 32),
        (ResetOrder(E1, (1, 2), (1, 2), (1, 2), (0, 1)), 48),
    ],
)
def test_units_of_recovery_have_a_size(unit: Reset | ResetAgreement | ResetOrder, size: int) -> None:
    """16 bytes, and 4 for each number."""
    assert unit.size() == size


def test_who_waits_asks_everybody_and_who_only_owes_asks_nobody() -> None:
    for events, wants in (
        ([Submit(0b111, (1,), b"a")], 0b111),
        ([Receive(Data(Packet(E2, 0b100, 0, (0, 0, 0), 0, (1,), b"x"), Status(1, (0, 0, 0))))], 0),
    ):
        machine = StPaper(E1, GroupConfig(nodes=3))
        for event in events:
            machine.handle(event)
        [unit] = [output.unit for output in machine.handle(TimerFired("ready")) if isinstance(output, Send)]
        assert isinstance(unit, Ready)
        assert unit.wants == wants
