"""PriTO as printed: any well-formed unit at any time, texts, runs without loss; for every machine: `contract`."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.config import MICROSECOND, GroupConfig, PriorityConfig, Rules
from ordercast.model.faults import Loss
from ordercast.model.machine import (
    Abort,
    Deliver,
    Drained,
    Input,
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.model.units import Packet, Unit
from ordercast.protocols.prito.paper.machine import PritoPaper
from ordercast.protocols.prito.paper.units import (
    Lost,
    PrintedData,
    PrintedReady,
    Rejected,
    RunSync,
    RunSyncAck,
    RunSyncPack,
)
from ordercast.protocols.registry import machine_class
from tests.protocols.one_channel import E1, E2
from tests.protocols.prito_paper.group import PaperGroup
from tests.swarm.audited_runs import failures, run_and_audit

NODES = 3
EVERYBODY = everybody(NODES)
NUMBERS = st.integers(0, 4)
VECTORS = st.tuples(*[NUMBERS] * NODES)
TIMED_OUT = st.tuples(*[st.integers(-1, 3)] * NODES)
SOURCES = st.integers(0, NODES - 1)


def packet(source: int, seq: int, priority: int) -> Packet:
    """A source numbers one packet once: its priority follows from its number."""
    return Packet(source, EVERYBODY, seq, (), seq, (1,), b"x", (seq * 7 + priority) % 3)


PACKETS = st.builds(packet, SOURCES, NUMBERS, st.just(0))
INPUTS: st.SearchStrategy[Input] = st.one_of(
    st.builds(Submit, st.just(EVERYBODY), st.just((1,)), st.just(b"x"), st.integers(0, 3)),
    st.builds(Receive, st.builds(PrintedData, PACKETS, VECTORS, st.booleans())),
    st.builds(Receive, st.builds(PrintedData, PACKETS, VECTORS, st.booleans())),
    st.builds(Receive, st.builds(PrintedReady, SOURCES, NUMBERS, VECTORS, st.booleans())),
    st.builds(Receive, st.builds(PrintedReady, SOURCES, NUMBERS, VECTORS, st.booleans())),
    st.builds(Receive, st.builds(Lost, SOURCES, VECTORS)),
    st.builds(Receive, st.builds(Rejected, SOURCES, VECTORS)),
    st.builds(Receive, st.builds(RunSync, SOURCES, TIMED_OUT, VECTORS)),
    st.builds(Receive, st.builds(RunSyncPack, SOURCES, TIMED_OUT, VECTORS)),
    st.builds(Receive, st.builds(RunSyncAck, SOURCES, TIMED_OUT, VECTORS)),
    st.builds(TimerFired, st.sampled_from(["ready", "run-0-0", "run-1-0", "run-2-1", ""])),
    st.just(Drained()),
)
RECOVERY: list[Input] = [
    *(Receive(Lost(node, (0, 0, 0))) for node in range(NODES)),
    *(Receive(Rejected(node, (4, 4, 4))) for node in range(NODES)),
]
AGREEMENT: list[Input] = [
    *(Receive(RunSync(node, (1, 1, 1), (2, 2, 2))) for node in range(NODES)),
    *(Receive(RunSyncAck(node, (1, 1, 1), (2, 2, 2))) for node in range(NODES)),
]
HISTORIES = st.builds(
    lambda before, between, after: [*before, *between, *after],
    st.lists(INPUTS, max_size=15),
    st.sampled_from([[], RECOVERY, AGREEMENT, RECOVERY + AGREEMENT]),
    st.lists(INPUTS, max_size=15),
)
CONFIGS = st.builds(
    lambda synchronises, window: GroupConfig(
        nodes=NODES, window=window, priority=PriorityConfig(synchronises=synchronises)
    ),
    st.booleans(),
    st.sampled_from([1, 3, 32]),
)


@settings(max_examples=100, deadline=None)
@given(CONFIGS, HISTORIES)
def test_machine_takes_whatever_is_well_formed(config: GroupConfig, events: list[Input]) -> None:
    """It raises nothing, says what it waits for, tells each thing once, and numbers one after the other."""
    machine = PritoPaper(E2, config)
    out: list[Output] = []
    for event in events:
        out += machine.handle(event)
        assert all(isinstance(line, str) for line in machine.waits_for())
    told = Counter(
        (output.level, output.packet.source, output.packet.seq) for output in out if isinstance(output, Reached)
    )
    delivered = Counter((output.packet.source, output.packet.seq) for output in out if isinstance(output, Deliver))
    assert all(count == 1 for counts in (told, delivered) for count in counts.values())
    assert all((Level.ACKNOWLEDGED, *name) in told for name in delivered)
    numbers = [output.packet.first for output in out if isinstance(output, Numbered)]
    assert numbers == list(range(len(numbers)))
    if not machine.aborted:
        assert machine.log_sizes().waiting == sum(isinstance(event, Submit) for event in events) - len(numbers)
    assert machine.aborted == any(isinstance(output, Abort) for output in out)


def test_machine_says_what_it_waits_for() -> None:
    group = PaperGroup(2, window=1)
    machine = group.machines[E1]
    assert machine.waits_for() == ()
    group.send(E1, "a")
    group.send(E1, "b")
    group.hear(E1, "a")
    assert machine.waits_for() == (
        "1 submissions wait for the window",
        "holds 1 packets, the first of them number 1 of E1, not confirmed by {E1,E2}",
    )
    machine.synchronising = True
    assert machine.waits_for()[0] == "run synchronisation: waiting for {E1,E2}"
    machine.stopped, machine.agreed, machine.ack_sent = 0b11, 0b01, True
    assert machine.waits_for()[0] == "run synchronisation: waiting for {E2}"
    machine.stopped, machine.agreed, machine.ack_sent = 0, 0, False
    machine.synchronising = False
    assert group.settle()
    assert [machine.waits_for() for machine in group.machines] == [(), ()]


def test_machine_names_the_first_on_the_channel_and_who_has_not_confirmed_it() -> None:
    group = PaperGroup(2)
    group.send(E1, "a", 1)
    group.send(E2, "b", 5)
    group.hear_rest()
    first = "holds 2 packets, the first of them number 1 of E1"
    assert group.machines[E1].waits_for() == (f"{first}, not confirmed by {{E1,E2}}",), "a, though b is more urgent"
    group.ready(E2)
    group.hear_rest()
    assert group.machines[E1].waits_for() == (f"{first}, not confirmed by {{E1}}",), "E2 has accepted it"
    sizes = group.machines[E1].log_sizes()
    assert (sizes.accepted, sizes.preacknowledged) == (2, 0), "packets, by their pseudo-PDUs; E2's RR is none"
    group.ready(E1)
    group.hear_rest()
    assert group.levels[E1]["a"] is Level.PREACKNOWLEDGED
    assert group.machines[E1].waits_for() == (f"{first}, not confirmed by {{E1,E2}}",), "none has pre-acknowledged it"


def test_machine_is_that_of_prito_under_the_paper_rules() -> None:
    assert machine_class("prito", Rules.PAPER) is PritoPaper


@pytest.mark.parametrize(
    ("unit", "size", "word"),
    [
        (PrintedData(Packet(E1, 3, 1, (), 0, (5, 2), bytes(7), 1), (1, 1)), 16 + 4 * 4 + 2 * 2 + 7, "data"),
        (PrintedReady(E1, 1, (1, 1)), 16 + 4 * 3, "status"),
        (PrintedReady(E1, 1, (1, 1), wants=True), 16 + 4 * 3, "poll"),
        (Lost(E1, (1, 1, 1)), 28, "reset"),
        (Rejected(E1, (1, 1, 1)), 28, "reply"),
        (RunSync(E1, (1, 1), (1, 1)), 32, "marker"),
        (RunSyncPack(E1, (1, 1), (1, 1)), 32, "reply"),
        (RunSyncAck(E1, (1, 1), (1, 1)), 32, "done"),
    ],
)
def test_units_have_a_size_and_a_word(unit: Unit, size: int, word: str) -> None:
    assert (unit.size(), unit.label(), unit.asks_for()) == (size, word, None)


# --- whole runs ---


def run_of(seed: int, *, loss: float = 0.0, synchronises: bool = False) -> RunConfig:
    nodes = 2 + seed % 5
    work = Workload(messages=20, priorities=4, gap=[50, 200, 1000][seed % 3] * MICROSECOND)
    network = Network(channel=Channel.ONE)
    group = GroupConfig(
        nodes=nodes,
        rules=Rules.PAPER,
        timing=work.timing(network, nodes),
        priority=PriorityConfig(synchronises=synchronises),
    )
    return RunConfig(
        protocol="prito", group=group, network=network, workload=work, faults=(Loss(rate=loss),), seed=seed
    )


@pytest.mark.parametrize("seed", range(12))
def test_runs_without_loss_keep_all_promises_if_nobody_stops(seed: int) -> None:
    """F1: with PACK and ACK after every acceptance, what is delivered follows from the order of the channel."""
    result, verdict = run_and_audit(run_of(seed))
    assert not failures(result, verdict)
    assert result.counters.delivered == 20 * (2 + seed % 5) ** 2


@pytest.mark.parametrize("seed", [4, 7, 13, 22, 28])
def test_runs_without_loss_acknowledge_too_early_where_runs_are_synchronised(seed: int) -> None:
    """At the end of a synchronisation all pre-acknowledge what any has, but not all at once; the order is kept here."""
    result, verdict = run_and_audit(run_of(seed, synchronises=True))
    assert result.complete
    assert [name for name, finding in verdict.findings.items() if not finding.holds] == ["acknowledged_truthfully"]


def test_runs_with_losses_end_in_different_orders_or_not_at_all() -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(25):
        result, verdict = run_and_audit(run_of(seed, loss=0.005))
        assert not result.aborted
        if not result.complete:
            outcomes["incomplete"] += 1
        elif not verdict.findings["same_order"].holds:
            outcomes["out of order"] += 1
        else:
            outcomes["good"] += 1
    assert all(outcomes[outcome] > 0 for outcome in ("incomplete", "out of order", "good")), outcomes
