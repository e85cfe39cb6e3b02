"""The printed sequencer: strays, giving up, texts, runs without loss; what holds for every machine is in `contract`."""

from random import Random

import pytest

from ordercast.model.config import SequencerReadings
from ordercast.model.errors import ConfigError
from ordercast.model.machine import (
    Discard,
    Receive,
    Submit,
)
from ordercast.protocols.sequencer.paper.units import (
    PaperCommitted,
    PaperData,
    PaperDummy,
    PaperElected,
    PaperElection,
    PaperPhase,
    PaperRetransmit,
)
from tests.protocols.sequencer_paper.datagrams import E2, E3, SEQUENCER, printed
from tests.protocols.sequencer_paper.entity import ALL, data, message, node

# --- what every machine owes its host ---


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
