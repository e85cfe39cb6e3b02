"""The printed sequencer: what every machine guarantees its host, whatever it receives."""

from random import Random
from typing import Any

import pytest

from ordercast.model.config import SequencerReadings
from ordercast.model.errors import ConfigError, LocalProtocolError
from ordercast.model.machine import (
    Discard,
    Input,
    Receive,
    Submit,
    TimerFired,
)
from ordercast.protocols.sequencer.paper.machine import SequencerPaper
from ordercast.protocols.sequencer.paper.units import (
    PaperCommitted,
    PaperData,
    PaperDummy,
    PaperElected,
    PaperElection,
    PaperPhase,
    PaperRetransmit,
)
from tests.protocols.sequencer_paper.datagrams import E2, E3, SEQUENCER, Group, printed
from tests.protocols.sequencer_paper.entity import ALL, RUNS, data, message, node

# --- what every machine owes its host ---


@pytest.mark.parametrize("destinations", [0, 3, 6, 15])
def test_a_broadcast_must_go_to_everybody(destinations: int) -> None:
    with pytest.raises(LocalProtocolError, match="all of the 3 nodes"):
        node(E2).handle(Submit(destinations, (1,), b"x"))


def test_units_for_another_role_are_strays() -> None:
    strays = [PaperRetransmit(E3, 0), PaperDummy(E3, 0), PaperCommitted(E3, 0), PaperElection(E3, 0)]
    for unit in [*strays, PaperElected(E3, 0), PaperData(message(E3, 1), 0, 1)]:
        assert node(E2).handle(Receive(unit)) == [Discard(unit, "stray")]
    phase = PaperPhase(E3, 0, 1)
    assert node(SEQUENCER).handle(Receive(phase)) == [Discard(phase, "stray")]


def test_an_election_needs_a_sequencer_that_counts_its_own() -> None:
    with pytest.raises(ConfigError, match="elects needs advances_own_row"):
        SequencerReadings(elects=True)


def test_what_is_given_up_stays_silent() -> None:
    group = printed()
    group.submit(E2, "a")
    group.carry()
    assert group.machines[SEQUENCER].waits_for() == (f"gave up: {group.aborted[SEQUENCER]}",)
    assert group.machines[SEQUENCER].handle(data(E3, 5)) == []


def drawn(chance: Random, group: Group) -> tuple[int, Input] | None:
    """Something that can happen: a message, a unit that arrives, late, twice or never, a timer."""
    kind, node_ = chance.random(), chance.randrange(3)
    if kind < 0.15:
        return node_, Submit(7, (1,), b"x")
    if kind < 0.25 and group.timers[node_]:
        name = chance.choice(sorted(group.timers[node_]))
        del group.timers[node_][name]
        return node_, TimerFired(name)
    if not group.under_way:
        return None
    flight = group.under_way[chance.randrange(len(group.under_way))]
    if chance.random() < 0.8:
        group.under_way.remove(flight)
    return (flight.to, Receive(flight.unit)) if chance.random() < 0.8 else None


@pytest.mark.parametrize("readings", [RUNS, ALL, ALL | {"elects": True}], ids=["printed", "mended", "elects"])
def test_a_machine_restored_before_every_input_does_the_same(readings: dict[str, Any]) -> None:
    """And whatever arrives, nothing is raised."""
    restored = 0
    for seed in range(30):
        chance, group = Random(f"restored/{seed}"), printed(history=chance_history(seed), tries=3, **readings)
        for _ in range(200):
            happens = drawn(chance, group)
            if happens is None:
                continue
            me, event = happens
            machine = group.machines[me]
            before = machine.snapshot()
            hash(before)
            twin = SequencerPaper(me, machine.config)
            twin.restore(before)
            assert twin.snapshot() == before
            expected = twin.handle(event)
            group.handle(me, event)
            assert twin.snapshot() == machine.snapshot()
            twin.restore(before)
            assert twin.handle(event) == expected
            restored += before != machine.snapshot()
    assert restored > 1_000


def test_it_says_what_it_waits_for() -> None:
    machine = node(E2)
    assert (machine.waits_for(), machine.log_sizes().sent) == ((), 0)
    machine.handle(Submit(7, (1,), b"x"))
    assert machine.log_sizes().sent == 1
    assert machine.waits_for() == ("waits for its message 1 to come back as a broadcast",)
    machine = node(E2)
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 1)))
    machine.handle(Submit(7, (1,), b"x"))
    assert machine.waits_for() == (
        "has something to send, but not while the group synchronises",
        "misses broadcast 0",
        "has stopped sending until E1 says that everybody has everything",
    )


def chance_history(seed: int) -> int:
    """Histories from one message on."""
    return 1 + seed % 4


@pytest.mark.parametrize("seed", range(20))
def test_when_nothing_is_lost_all_get_one_order_and_the_group_falls_silent(seed: int) -> None:
    chance, group = Random(f"silent/{seed}"), printed(history=chance_history(seed), **ALL)
    sent = [chance.choice("abcdefgh") for _ in range(20)]
    for letter in sent:
        group.submit(chance.randrange(3), letter)
    assert group.settle()
    assert sorted(group.delivered[0]) == sorted(sent)
    assert group.logs == [group.logs[0]] * 3
    assert [machine.waits_for() for machine in group.machines] == [()] * 3
