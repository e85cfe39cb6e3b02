"""SPO as printed, EN 4.5 (JP 3.5): each condition and action of failures, retransmission and duplicates."""

import pytest

from ordercast.model.config import LossInference
from ordercast.model.machine import CancelTimer, Discard, Level, Reached, Send, SetTimer, TimerFired
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data, RetransmitRequest
from tests.protocols.spo_paper.entity import entity, hears, is_accepted, sends, unit, units
from tests.protocols.spo_paper.group import E1, E2, E3


def waiting_for_e1(**paper: bool) -> SpoPaper:
    """E2 has heard from E3 that E1 sent something, and its timer for E1 runs."""
    machine = entity(paper=paper)
    hears(machine, unit(E3, "2", 0, (0, 0, 0), (1, 0, 0)))
    return machine


def test_4_5_fp_condition_1_and_lost_pdu_action_1() -> None:
    """PREQ_j < p.PSEQ_k: something for me is missing before p. RETRANS at once."""
    machine = entity()
    machine.expected[:] = [0, 4, 3]
    late = unit(E1, "2", 2, (0, 1, 0), (0, 0, 0))
    assert hears(machine, late) == [Discard(late, "gap"), Send(RetransmitRequest(E2, (0, 4, 3)))]
    assert list(machine.accepted[E1]) == []


def test_4_5_fp_condition_1_shows_also_by_what_is_not_for_me() -> None:
    machine = entity()
    assert units(hears(machine, unit(E1, "3", 1, (0, 1, 0), (0, 0, 0)))) == [RetransmitRequest(E2, (0, 0, 0))]


def test_4_5_fp_condition_2_and_lost_pdu_action_2() -> None:
    """TREQ_j < q.ACK_j for a j other than the source: perhaps it was not for me. A timer for E_j, no request yet."""
    machine = entity()
    later = unit(E3, "2", 0, (0, 0, 0), (1, 0, 0))
    out = hears(machine, later)
    assert out == [Discard(later, "hearsay"), SetTimer(f"wait-{E1}", machine.config.timing.inferred_loss)]


def test_4_5_fp_condition_2_is_not_about_the_source_itself() -> None:
    """Condition (2) of acceptance is, so p is discarded and nothing is done about it (C1)."""
    p = unit(E1, "2", 1, (0, 0, 0), (1, 0, 0))
    assert hears(entity(), p) == [Discard(p, "hearsay")]


def test_4_5_lost_pdu_action_2_accepts_what_satisfies_the_condition() -> None:
    """Both at once can be only if condition (2) of acceptance is not asked."""
    machine = entity(E2, LossInference.NONE)
    out = hears(machine, unit(E3, "2", 0, (0, 0, 0), (1, 0, 0)))
    assert is_accepted(out)
    assert [output.name for output in out if isinstance(output, SetTimer)] == [f"wait-{E1}"]


def test_4_5_lost_pdu_action_2_a_timer_that_runs_is_not_started_again() -> None:
    machine = waiting_for_e1()
    assert not any(isinstance(it, SetTimer) for it in hears(machine, unit(E3, "2", 0, (0, 0, 0), (1, 0, 0))))


def test_4_5_lost_pdu_action_2_1() -> None:
    """If the timer expires: RETRANS; once."""
    machine = waiting_for_e1()
    assert machine.handle(TimerFired(f"wait-{E1}")) == [Send(RetransmitRequest(E2, (0, 0, 0)))]
    assert machine.handle(TimerFired(f"wait-{E1}")) == []


def test_4_5_lost_pdu_action_2_2_what_comes_is_accepted() -> None:
    """r.PSEQ_k = PREQ_j: what is missing was not for me. The timer is stopped."""
    machine = waiting_for_e1()
    r = unit(E1, "2", 1, (0, 0, 0), (0, 0, 0))
    assert hears(machine, r) == [CancelTimer(f"wait-{E1}"), Reached(Level.ACCEPTED, r.packet)]
    assert machine.handle(TimerFired(f"wait-{E1}")) == []


@pytest.mark.parametrize("number", [0, 1])
def test_4_5_lost_pdu_action_2_2_what_comes_is_not_accepted(number: int) -> None:
    """Then RETRANS, one for both reasons if PREQ_j < r.PSEQ_k too."""
    machine = waiting_for_e1()
    out = hears(machine, unit(E1, "2", 1, (0, number, 0), (0, 1, 0)))
    assert CancelTimer(f"wait-{E1}") in out
    assert units(out) == [RetransmitRequest(E2, (0, 0, 0))]


def test_4_5_lost_pdu_action_2_2_is_about_units_of_that_source_only() -> None:
    machine = waiting_for_e1()
    hears(machine, unit(E3, "2", 0, (0, 0, 0), (0, 0, 0)))
    assert units(machine.handle(TimerFired(f"wait-{E1}"))) == [RetransmitRequest(E2, (0, 0, 1))]


def test_4_5_retrans_procedure_2() -> None:
    """E_j rebroadcasts what it keeps with g.TSEQ >= rt.ACK_j and E_k in g.DST, as it was first sent."""
    machine = entity()
    kept = [sends(machine, to) for to in ("3", "13", "1", "123")]
    machine.expected[E1] = 1
    assert hears(machine, RetransmitRequest(E3, (9, 1, 9))) == [Send(kept[1], again=True), Send(kept[3], again=True)]
    assert hears(machine, RetransmitRequest(E1, (9, 2, 9))) == [Send(kept[2], again=True), Send(kept[3], again=True)]
    assert hears(machine, RetransmitRequest(E2, (0, 0, 0))) == [], "its own request comes back to it"


def test_4_5_retrans_procedure_2_with_fresh_acknowledgments() -> None:
    machine = entity(paper={"verbatim_copies": False})
    first = sends(machine, "3")
    machine.expected[E1] = 1
    [copy] = units(hears(machine, RetransmitRequest(E3, (0, 0, 0))))
    assert isinstance(copy, Data)
    assert (copy.packet, first.status.expects, copy.status.expects) == (first.packet, (0, 0, 0), (1, 0, 0))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("seq", "number"), [(3, 2), (3, 1), (4, 1)])
def test_4_5_duplicate_condition_and_action(seq: int, number: int, first: bool) -> None:
    """p.TSEQ < TREQ_j or p.PSEQ_k < PREQ_j: neglected, whatever else it says; it does not even stop the timer.

    Asked before acceptance or after it: the same for what is not accepted. For what is, see D1.
    """
    machine = waiting_for_e1(duplicates_first=first)
    machine.expected[E1], machine.expected_to_me[E1] = 4, 2
    before = machine.snapshot()
    again = unit(E1, "2", seq, (0, number, 0), (0, 0, 9))
    assert hears(machine, again) == [Discard(again, "duplicate")]
    assert machine.snapshot() == before
