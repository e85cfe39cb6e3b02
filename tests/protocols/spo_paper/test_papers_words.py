"""SPO as printed: how it counts, what it refuses, and what it says in words."""

import pytest

from ordercast.model.machine import Discard, Drained, Echo, LogSizes, Receive, TimerFired
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from tests.protocols.spo_paper.entity import entity, hears, sends, unit, units
from tests.protocols.spo_paper.figure_4 import FIGURE, told
from tests.protocols.spo_paper.group import E1, E2, E3, Group, paper_group

FIRST_SEQ = tuple(FIGURE["ISS"])


def test_it_hears_its_own_units_by_a_safe_loop_back() -> None:
    assert SpoPaper.echo is Echo.SAFE


def test_what_the_printed_rules_do_not_know_is_a_stray() -> None:
    """There is no receive-ready unit in the papers; nor does anything follow from silence or from a strange timer."""
    machine = entity()
    before = machine.snapshot()
    ready = Ready(E1, 4, (4, 4, 4), Status(1, (4, 4, 4)))
    assert machine.handle(Receive(ready)) == [Discard(ready, "stray")]
    assert machine.handle(Drained()) == []
    assert machine.handle(TimerFired("wait-7")) == []
    assert machine.snapshot() == before


def sent_by_e1(group: Group[SpoPaper]) -> list[str]:
    return [letter for letter, sent in group.sent.items() if sent.source == E1]


def test_submissions_wait_behind_each_other_and_go_out_in_order() -> None:
    group = paper_group(window=2)
    for letter, to in (("a", "2"), ("b", "3")):
        group.submit(E1, letter, to)
        group.hear(E1, letter)
    for letter, to in (("c", "1"), ("d", "2")):
        group.submit(E1, letter, to)
    assert sent_by_e1(group) == ["a", "b"]
    for node, letter in ((E2, "x"), (E3, "y")):
        group.hear(node, "a")
        group.submit(node, letter, "1")
    group.hear(E1, "x")
    assert sent_by_e1(group) == ["a", "b"], "E3 has not said that it heard a"
    group.hear(E1, "y")
    assert sent_by_e1(group) == ["a", "b", "c"], "what it heard moved the window by one"
    assert group.machines[E1].log_sizes().waiting == 1


@pytest.mark.parametrize(("verbatim", "stamps"), [(True, [1, 2, 1, 2]), (False, [1, 2, 3, 4])])
def test_transmissions_are_stamped_and_a_verbatim_copy_keeps_its_stamp(verbatim: bool, stamps: list[int]) -> None:
    machine = entity(paper={"verbatim_copies": verbatim})
    sent = [sends(machine, "1"), sends(machine, "1"), *units(hears(machine, RetransmitRequest(E1, (0, 0, 0))))]
    assert [it.status.stamp for it in sent if isinstance(it, Data)] == stamps


def test_log_sizes_of_figure_4() -> None:
    """After step 9, as the figure has the logs."""
    group = told(paper_group(first_seq=FIRST_SEQ), 9)
    assert [machine.log_sizes() for machine in group.machines] == [
        LogSizes(waiting=0, sent=3, held=0, accepted=3, preacknowledged=3),
        LogSizes(waiting=0, sent=2, held=0, accepted=3, preacknowledged=3),
        LogSizes(waiting=0, sent=0, held=0, accepted=2, preacknowledged=3),
    ]


def test_it_says_what_it_waits_for() -> None:
    """Figure 4 after step 9: E3 misses h of E1 and, having discarded it, i of E2."""
    group = paper_group(first_seq=FIRST_SEQ)
    assert [machine.waits_for() for machine in group.machines] == [(), (), ()]
    told(group, 9)
    assert group.machines[E3].waits_for() == (
        "misses from E1 its number 8 on",
        "misses from E2 its number 2 on",
        "holds of E1 number 7, not known to be accepted by {E3}",
        "holds of E2 number 1, not known to be accepted by {E1,E3}",
        "holds of E1 number 6, not known to be pre-acknowledged by {E1}",
        "holds of E2 number 0, not known to be pre-acknowledged by {E1,E2}",
        "holds of E3 number 3, not known to be pre-acknowledged by {E1,E2,E3}",
    )
    assert group.machines[E2].waits_for()[0] == "keeps its number 1, not known to be accepted by {E3}"


def test_it_says_that_buffers_are_scarce() -> None:
    group = paper_group(paper={"initial_buffers": 9})
    group.submit(E1, "a", "2")
    group.all_hear("a")
    group.submit(E1, "b", "2")
    group.submit(E2, "x", "1")
    group.hear(E1, "x")
    assert group.machines[E1].free_buffers == [9, 8, 9]
    assert group.machines[E1].waits_for()[0] == "its window is closed: {E2} has only 8 buffers free for everybody"


@pytest.mark.parametrize("buffers", [18, 1000])
def test_it_says_whose_acknowledgments_close_the_window_unless_buffers_make_it_smaller(buffers: int) -> None:
    """Of 18 buffers three nodes give each sender 18 / 9 = 2, as many as the window has: they close nothing."""
    group = paper_group(window=2, paper={"initial_buffers": buffers})
    for letter in ("a", "b", "c"):
        group.submit(E1, letter, "2")
    for node in (E1, E3):
        group.hear(node, "a")
    group.submit(E3, "x", "1")
    group.hear(E1, "x")
    [closed, *_] = group.machines[E1].waits_for()
    assert closed == "its window is closed: {E1,E2} is known to have accepted only what is below its number 0"


def test_free_buffers_never_fall_below_zero() -> None:
    """The printed rules refuse nothing: with one buffer, what is held beyond it is held all the same."""
    machine = entity(E1, paper={"initial_buffers": 1})
    for source in (E2, E3):
        hears(machine, unit(source, "1", 0, (0, 0, 0), (0, 0, 0), free=1))
    assert machine.log_sizes().accepted == 2
    assert sends(machine, "2").status.free == 0


def test_free_buffers_count_what_is_preacknowledged_too() -> None:
    """Figure 4 after step 6: E2 holds f in RPL, and b, d and e in PPL; a, which is acknowledged, is gone."""
    group = told(paper_group(first_seq=FIRST_SEQ, paper={"initial_buffers": 500}), 7)
    assert group.sent["i"].status.free == 500 - 4, "sent in step 7, in which E2 has heard h, not for it"


def test_4_2_accept_action_3_takes_the_number_of_the_unit() -> None:
    """PREQ_j := p.PSEQ_k + 1, though by (1-1) alone no honest source has it accepted with another than the next."""
    machine = entity()
    hears(machine, unit(E1, "2", 0, (0, 4, 0), (0, 0, 0)))
    assert machine.expected_to_me[E1] == 5
