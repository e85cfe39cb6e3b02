"""SPO as printed: any well-formed unit at any time, timers, texts; what holds for every machine is in `contract`."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.config import GroupConfig, LossInference, PaperRules
from ordercast.model.machine import (
    Deliver,
    Drained,
    Input,
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from tests.protocols.spo_paper.group import E2, paper_group

NODES = 3
NUMBERS = st.integers(0, 6)
VECTORS = st.tuples(*[NUMBERS] * NODES)
SETS = st.integers(1, everybody(NODES))
SOURCES = st.integers(0, NODES - 1)
STATUSES = st.builds(Status, NUMBERS, VECTORS, free=st.integers(0, 20))
PACKETS = st.builds(Packet, SOURCES, SETS, NUMBERS, VECTORS, NUMBERS, st.just((1,)), st.just(b"x"))
INPUTS: st.SearchStrategy[Input] = st.one_of(
    st.builds(Submit, SETS, st.lists(st.just(1), min_size=1, max_size=3).map(tuple), st.just(b"xyz")),
    st.builds(Receive, st.builds(Data, PACKETS, STATUSES)),
    st.builds(Receive, st.builds(Data, PACKETS, STATUSES)),
    st.builds(Receive, st.builds(RetransmitRequest, SOURCES, VECTORS)),
    st.builds(Receive, st.builds(Ready, SOURCES, NUMBERS, VECTORS, STATUSES)),
    st.builds(TimerFired, st.sampled_from(["wait-0", "wait-1", "wait-2", "poll", ""])),
    st.just(Drained()),
)
CONFIGS = st.builds(
    lambda rule, first, verbatim, window: GroupConfig(
        nodes=NODES,
        window=window,
        paper=PaperRules(condition_2=rule, duplicates_first=first, verbatim_copies=verbatim, initial_buffers=30),
    ),
    st.sampled_from(LossInference),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 32]),
)


@settings(max_examples=100, deadline=None)
@given(CONFIGS, st.lists(INPUTS, max_size=30))
def test_machine_takes_whatever_is_well_formed(config: GroupConfig, events: list[Input]) -> None:
    """It raises nothing, what it knows of a packet rises one level at a time, and it hands over what rose."""
    machine = SpoPaper(E2, config)
    out: list[Output] = [output for event in events for output in machine.handle(event)]
    reached = {
        level: [output.packet for output in out if isinstance(output, Reached) and output.level is level]
        for level in Level
    }
    assert [output.packet for output in out if isinstance(output, Deliver)] == reached[Level.ACKNOWLEDGED]
    for source in range(NODES):
        accepted, preacknowledged, acknowledged = (
            [packet for packet in reached[level] if packet.source == source] for level in Level
        )
        assert acknowledged == preacknowledged[: len(acknowledged)]
        assert preacknowledged == accepted[: len(preacknowledged)]
        assert all(packet.destinations >> E2 & 1 for packet in accepted)
    numbers = [output.packet.seq for output in out if isinstance(output, Numbered)]
    assert numbers == list(range(len(numbers)))
    sizes = machine.log_sizes()
    assert sizes.accepted == len(reached[Level.ACCEPTED]) - len(reached[Level.PREACKNOWLEDGED])
    assert sizes.preacknowledged == len(reached[Level.PREACKNOWLEDGED]) - len(reached[Level.ACKNOWLEDGED])
    assert sizes.waiting == sum(isinstance(event, Submit) for event in events) - len(numbers)


def test_machine_timers_are_those_that_run() -> None:
    """In a long walk, no timer fires or is stopped that was not set; the group would stumble over it."""
    for seed in range(30):
        group = paper_group(list(LossInference)[seed % 3])
        group.wander(Random(seed), 300)
        names = {output.name for _, output in group.outputs if isinstance(output, SetTimer)}
        assert names <= {f"wait-{node}" for node in group.nodes}
        for node, machine in enumerate(group.machines):
            running = set(group.timers[node])
            for name in sorted({f"wait-{source}" for source in group.nodes} - running):
                assert machine.handle(TimerFired(name)) == [], "it does not run"
            for name in sorted(running):
                assert machine.handle(TimerFired(name)) != []


def test_machine_says_what_it_waits_for() -> None:
    group = paper_group(window=1)
    assert group.machines[0].waits_for() == ()
    group.submit(0, "a", "2")
    group.submit(0, "b", "2")
    waiting = group.machines[0].waits_for()
    assert len(waiting) == 2, "its window is closed, and a may have to be sent again"
    group.hear(1, "a")
    assert len(group.machines[1].waits_for()) == 1
    assert group.machines[2].waits_for() == ()
