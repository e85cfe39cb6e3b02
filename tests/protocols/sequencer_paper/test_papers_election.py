"""The election that the paper imagines: who says what, who takes over, and with which state."""

from typing import Any

import pytest

from ordercast.model.machine import CancelTimer, Output, Receive, Send, SetTimer, Submit, TimerFired
from ordercast.protocols.sequencer.paper.machine import SequencerPaper
from ordercast.protocols.sequencer.paper.units import (
    PaperBroadcast,
    PaperData,
    PaperElected,
    PaperElection,
    PaperPhase,
    PaperRetransmit,
)
from tests.protocols.sequencer_paper.datagrams import E2, E3, SEQUENCER
from tests.protocols.sequencer_paper.entity import broadcast, data, message, node, sends

ELECTS: dict[str, Any] = {"acknowledges_last": True, "advances_own_row": True, "elects": True, "asks_once": True}


def elector(me: int, received: int = 0, **more: Any) -> SequencerPaper:
    """A node that has received so many broadcasts of E3."""
    machine = node(me, **ELECTS | more)
    for number in range(received):
        machine.handle(broadcast(number, source=E3))
    return machine


def heard(machine: SequencerPaper, *claims: tuple[int, int]) -> list[Output]:
    """Others claim numbers; then the time is over."""
    for source, number in claims:
        machine.handle(Receive(PaperElection(source, number)))
    return machine.handle(TimerFired("election"))


def test_who_hears_of_an_election_says_its_own_number_once() -> None:
    machine = elector(E2, received=3)
    outputs = machine.handle(Receive(PaperElection(E3, 1)))
    assert sends(outputs) == [Send(PaperElection(E2, 3))]
    assert [output.name for output in outputs if isinstance(output, SetTimer)] == ["election"]
    assert machine.handle(Receive(PaperElection(SEQUENCER, 2))) == []
    assert machine.claims == {SEQUENCER: 2, E2: 3, E3: 1}


def test_the_highest_number_takes_over_and_of_equals_the_first_node() -> None:
    for claims, wins in (([(E3, 1)], True), ([(E3, 2)], True), ([(E3, 3)], False), ([(SEQUENCER, 2)], False)):
        outputs = heard(elector(E2, received=2), *claims)
        assert (sends(outputs) == [Send(PaperElected(E2, 1))]) == wins


def test_claims_of_an_election_are_not_those_of_the_next() -> None:
    machine = elector(E2, received=2)
    assert sends(heard(machine, (E3, 9))) == []
    assert sends(heard(machine, (SEQUENCER, 1))) == [Send(PaperElected(E2, 1))]


def test_who_takes_over_knows_what_was_broadcast_and_nothing_of_what_others_have() -> None:
    machine = elector(E2, received=2)
    machine.handle(broadcast(5))
    machine.acknowledged = [7, 7, 7]
    outputs = heard(machine, (E3, 0))
    assert machine.is_sequencer
    assert (machine.next_number, machine.known_below, machine.ahead) == (2, 2, {})
    assert machine.acknowledged == [-1, 1, -1]
    assert machine.last_message == [0, 0, 2], "the last that it has of each sender"
    assert CancelTimer("request") in outputs


def test_who_takes_over_numbers_what_follows() -> None:
    machine = elector(E2, received=2)
    heard(machine, (E3, 0))
    machine.handle(data(E3, 2, last=1))
    assert machine.next_number == 2, "a message of the old sequencer's time is a duplicate"
    (sent,) = sends(machine.handle(data(E3, 3, last=1)))
    assert sent.unit == PaperBroadcast(message(E3, 3), E2, 2, 3)


@pytest.mark.parametrize("missing", [False, True])
def test_whoever_suspects_goes_on_with_what_it_waits_for(*, missing: bool) -> None:
    machine = elector(E2, received=1)
    machine.handle(Submit(7, (1,), b"x"))
    if missing:
        machine.handle(broadcast(2))
    fired = [machine.handle(TimerFired("data")) for _ in range(machine.config.polls_to_abort + 1)]
    names = [[output.name for output in outputs if isinstance(output, SetTimer)] for outputs in fired]
    assert names[:-1] == [["data"]] * machine.config.polls_to_abort
    assert names[-1] == ["data", *["request"] * missing, "election"]


def test_who_takes_over_is_in_no_phase_of_the_old_sequencer() -> None:
    machine = elector(E2, received=1)
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 1)))
    assert machine.handle(Submit(7, (1,), b"x")) == []
    units = [send.unit for send in sends(heard(machine, (E3, 0)))]
    assert [type(unit) for unit in units] == [PaperElected, PaperData]


def test_who_gives_way_turns_to_the_new_sequencer() -> None:
    machine = elector(E2, received=1)
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 1)))
    machine.handle(Submit(7, (1,), b"x"))
    machine.handle(Receive(PaperElection(E3, 1)))
    outputs = machine.handle(Receive(PaperElected(E3, 0)))
    assert [(type(send.unit), send.to) for send in sends(outputs)] == [(PaperData, E3)]
    assert CancelTimer("election") in outputs
    assert not machine.in_election


@pytest.mark.parametrize("last", [1, 2])
def test_who_gives_way_is_brought_up_to_date(last: int) -> None:
    machine = elector(E2, received=1)
    outputs = machine.handle(Receive(PaperElected(E3, last)))
    assert sends(outputs) == [Send(PaperRetransmit(E2, 0), to=E3)]
    assert [output.name for output in outputs if isinstance(output, SetTimer)] == ["request"]
    assert machine.waits_for() == ("misses broadcast 1",)


def test_what_was_heard_beyond_the_number_of_the_new_sequencer_was_nothing() -> None:
    machine = elector(E2, received=1)
    machine.handle(broadcast(5))
    outputs = machine.handle(Receive(PaperElected(E3, 0)))
    assert sends(outputs) == []
    assert CancelTimer("request") in outputs
    assert (machine.ahead, machine.waits_for()) == ({}, ())


def test_an_old_sequencer_that_hears_of_the_new_one_gives_way() -> None:
    machine = elector(SEQUENCER, history=1)
    machine.handle(data(E2, 1, last=-1))
    machine.handle(data(E2, 2, last=-1))
    assert machine.phase == 1
    machine.handle(Receive(PaperElected(E3, 0)))
    assert (machine.is_sequencer, machine.phase, machine.sync_through) == (False, 0, None)
