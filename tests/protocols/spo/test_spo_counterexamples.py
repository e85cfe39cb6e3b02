"""Where the printed SPO fails: each schedule under the printed rules, failing as stated, and under the sound ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.model.config import HearsayRule, PaperRules
from ordercast.model.machine import Level
from ordercast.model.units import RetransmitRequest
from ordercast.protocols.spo import Spo
from ordercast.protocols.spo_paper import SpoPaper
from tests.protocols.harness import E1, E2, E3, Group
from tests.protocols.spo.schedules import EVERYBODY, OTHERS, SCHEDULES, fig_4

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "golden-spo-st.json").read_text())


def printed(name: str) -> Group[SpoPaper]:
    """A group under the printed rules, after a schedule."""
    return SCHEDULES[name].run(SpoPaper)


def nobody_does_anything(group: Group[Any]) -> bool:
    """Nothing is under way and no timer runs: what is missing now is missing for ever."""
    return not any(group.links.values()) and not any(group.timers)


def test_every_counterexample_to_spo_has_its_schedule() -> None:
    known = {entry["id"].removeprefix("SPO-") for entry in GOLDEN["counterexamples"] if "SPO-" in entry["id"]}
    assert known == set(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_under_the_sound_rules_it_comes_to_a_good_end(name: str) -> None:
    group = SCHEDULES[name].run(Spo)
    assert group.settle(), "it does not fall silent"
    group.assert_complete()
    assert not group.unfounded
    assert not group.aborted


def test_lemma_4_2_is_false_a1() -> None:
    """No loss at all: x is acknowledged at E2 while E3, a destination, has only accepted it."""
    group = printed("A1")
    said = [group.units[name].status.expects for name in ("q2", "q3", "r2")]
    assert said == [(1, 0, 0), (1, 0, 0), (1, 1, 1)]
    machine = group.machines[E2]
    assert machine.preacknowledged_below[E1][E2] == machine.preacknowledged_below[E1][E3] == 1
    assert group.levels[E2]["x"] is Level.ACKNOWLEDGED
    assert group.levels[E3]["x"] is Level.ACCEPTED
    assert group.unfounded == [(E2, Level.ACKNOWLEDGED, "x")]


def test_a1_lasts_when_what_was_not_for_e3_is_lost_there() -> None:
    """q2 and r2 are not addressed to E3, so nobody ever sends them to it again."""
    group = printed("A1")
    group.lose(E3, "q2", "r2")
    group.settle()
    assert group.levels[E3]["x"] is Level.ACCEPTED
    assert "x" in group.delivered[E2]


def test_a2_is_never_acknowledged_while_e2_sends_nothing_to_itself() -> None:
    group = printed("A2")
    assert group.levels[E2]["a"] is Level.PREACKNOWLEDGED
    assert group.machines[E2].preacknowledged_below[E1][E2] == 0
    group.submit(E2, "me", to=[E2])  # the own column moves with what it sends to itself, and only with that
    for name, source in (("p", E1), ("q", E3), ("r", E2)):
        group.submit(source, name, EVERYBODY)
    group.settle()
    assert group.levels[E2]["a"] is Level.ACKNOWLEDGED


def test_theorem_5_1_is_false_c0_reordering_alone_loses_a_unit() -> None:
    """JP: theorem 4.3. Acceptance condition (2) discards b; when a comes, its timer is stopped and b forgotten."""
    group = printed("C0")
    assert group.discarded[E3] == [("b", "hearsay")]
    assert group.accepted[E3] == ["a"]
    assert not group.timers[E3]
    assert not group.controls(E3)
    assert group.settle()
    assert group.accepted[E3] == ["a"]


@pytest.mark.parametrize("rule", [HearsayRule.ALL, HearsayRule.OTHERS])
def test_c0_is_not_cured_by_leaving_the_source_out_of_condition_2(rule: HearsayRule) -> None:
    group = Group(SpoPaper, paper=PaperRules(condition_2=rule))
    SCHEDULES["C0"].play(group)
    assert group.accepted[E3] == ["a"]


def test_c0_is_cured_by_dropping_condition_2() -> None:
    group = Group(SpoPaper, paper=PaperRules(condition_2=HearsayRule.NONE))
    SCHEDULES["C0"].play(group)
    assert group.accepted[E3] == ["b", "a"]


def test_c1_a_lost_foreign_unit_shuts_its_source_out() -> None:
    """b.PSEQ_3 = PREQ_1, but b.ACK_1 = 1 > TREQ_1 = 0: discarded, and no failure condition holds."""
    group = printed("C1")
    assert group.packets["b"].seq_to[E3] == group.machines[E3].expected_to_me[E1] == 0
    assert group.discarded[E3] == [("b", "hearsay")]
    assert not group.timers[E3]
    assert not group.controls(E3)
    for name in ("c", "d", "e"):
        group.submit(E1, name, EVERYBODY)
        group.receive_all(E3, E1)
        group.receive_all(E1, E3)
        group.receive_all(E3, E1)
    assert len(group.controls(E3)) >= 6
    assert group.copies(E1)[:2] == ["b", "c"]
    assert group.machines[E3].expected[E1] == 0
    assert group.accepted[E3] == []


def test_c1_ends_when_the_foreign_unit_is_sent_again_for_somebody_else() -> None:
    group = printed("C1")
    group.lose(E2, "a")
    group.receive(E2, "b")  # b is not for E2, but shows it that a was
    group.receive_all(E1, E2)
    group.receive_all(E3, E1)
    assert group.machines[E3].expected[E1] == 1
    group.submit(E1, "c", to=[E3])  # and with that b, which nobody else needs, can be asked for
    assert group.settle()
    assert group.accepted[E3] == ["b", "c"]


def test_c1_is_cured_by_leaving_the_source_out_of_condition_2() -> None:
    group = Group(SpoPaper, paper=OTHERS)
    SCHEDULES["C1"].play(group)
    assert group.accepted[E3] == ["b"]


def test_c2_a_request_for_what_was_for_others_is_answered_by_nothing() -> None:
    group = printed("C2")
    assert group.controls(E3) == [RetransmitRequest(E3, (0, 0, 0))]
    assert group.copies(E1) == []
    assert group.copies(E2) == ["b"]
    assert group.discarded[E3] == [("b", "hearsay"), ("b", "hearsay")]
    assert not group.settle(), "it asks for ever"
    assert len(group.controls(E3)) > 100
    assert group.accepted[E3] == []


def test_c2_ends_if_the_source_happens_to_send() -> None:
    group = printed("C2")
    group.submit(E1, "c", to=[E2])
    assert group.settle()
    assert group.accepted[E3] == []  # the timer is stopped and b forgotten, as in C0 …
    group.submit(E2, "d", to=[E3])  # … until its own source shows the gap
    assert group.settle()
    assert group.accepted[E3] == ["b", "d"]


def test_c3_the_loss_of_the_last_unit_is_never_seen() -> None:
    group = printed("C3")
    group.settle()
    assert nobody_does_anything(group)
    assert group.accepted[E2] == []
    assert group.machines[E2].waits_for() == ()
    assert group.machines[E1].waits_for() == ("keeps its number 0, not known to be accepted by {E2}",)


def test_c4_a_lost_request_is_not_repeated() -> None:
    group = printed("C4")
    assert group.controls(E2) == [RetransmitRequest(E2, (0, 0, 0))]
    group.settle()
    assert nobody_does_anything(group)
    assert group.accepted[E2] == []
    assert group.machines[E2].waits_for() == ("misses from E1 its number 0 on",)


def test_c5_a_silent_node_closes_the_window_of_everybody() -> None:
    group = printed("C5")
    group.settle()
    assert nobody_does_anything(group)
    assert group.accepted[E2] == ["a", "b"]
    assert "c" not in group.packets
    assert min(group.machines[E1].accepted_below[E1]) == group.machines[E1].accepted_below[E1][E3] == 0
    assert group.machines[E1].waits_for()[0] == (
        "its window is closed: {E3} is known to have accepted only what is below its number 0"
    )


def test_c6_the_example_of_the_paper_stalls_when_j_overtakes_i() -> None:
    (stalled,) = [outcome for outcome in GOLDEN["spo_fig4"]["retrans"]["outcomes"] if not outcome["complete"]]
    group = printed("C6")
    machine = group.machines[E3]
    assert machine.expected == stalled["E3"]["TREQ"] == [9, 3, 5]
    assert machine.expected_to_me == stalled["E3"]["PREQ"]
    assert group.discarded[E3][-1] == ("j", "hearsay")
    assert not group.timers[E3]
    assert len(group.controls(E3)) == 1
    group.settle()
    assert "j" not in group.accepted[E3]


def test_c7_simultaneous_bursts_close_every_window() -> None:
    group = printed("C7")
    assert all(len(accepted) == 6 for accepted in group.accepted)
    group.settle()
    assert nobody_does_anything(group)
    for node, machine in enumerate(group.machines):
        assert min(machine.accepted_below[node]) == 0
        assert machine.next_seq == 2
        assert machine.log_sizes().waiting == 1


@pytest.mark.parametrize("scarce", [{"window": 1}, {"paper": PaperRules(initial_buffers=9)}], ids=["window", "buffers"])
def test_c7_with_room_for_one_no_burst_is_needed(scarce: dict[str, Any]) -> None:
    """The own column lags: a says that its source has not yet heard a. minF / (H n^2) = 9 / 9 = 1."""
    group = Group(SpoPaper, **scarce)
    for node, name in ((E1, "a"), (E2, "b"), (E3, "c")):  # each hears all before it sends
        group.submit(node, name, EVERYBODY)
        group.everybody_receives(name)
    assert group.machines[E1].accepted_below[E1] == [0, 1, 1]
    for node in EVERYBODY:
        group.submit(node, f"more{node}", EVERYBODY)
    group.settle()
    assert nobody_does_anything(group)
    assert set(group.packets) == {"a", "b", "c"}


def test_d1_unless_duplicates_are_told_first_a_number_runs_backwards() -> None:
    group = printed("D1")
    assert group.packets["a"].seq_to[E3] == group.machines[E3].expected_to_me[E1] == 0
    assert group.machines[E3].expected[E1] == 1  # it was 2
    group = Group(SpoPaper)
    SCHEDULES["D1"].play(group)
    assert group.machines[E3].expected[E1] == 2
    assert group.discarded[E3][-1] == ("a", "duplicate")


def test_lemma_4_2_is_false_r1_with_fresh_acknowledgments_even_if_all_goes_to_all() -> None:
    group = printed("R1")
    assert group.copies(E1) == ["c", "e"]
    assert group.unfounded == [(E2, Level.ACKNOWLEDGED, "a")]
    assert group.levels[E3]["a"] is Level.ACCEPTED


def test_r1_does_not_happen_with_verbatim_copies() -> None:
    group = Group(SpoPaper, paper=OTHERS)
    SCHEDULES["R1"].play(group)
    assert group.copies(E1) == ["c", "e"]
    assert group.levels[E2]["a"] is Level.ACCEPTED  # the copy says what c said, and that was before E1 heard a
    assert group.settle()
    assert group.levels[E2]["a"] >= Level.PREACKNOWLEDGED
    assert group.unfounded == []


def test_fig_4_under_the_sound_rules_e3_keeps_what_it_hears_ahead_of_h() -> None:
    """The papers' example needs no more than the copy of h: i and j are not thrown away."""
    group = Group(Spo, first_seq=(5, 0, 3))
    fig_4(group)
    assert "i" in group.accepted[E3]
    assert group.settle()
    assert [group.copies(node) for node in EVERYBODY] == [["h"], [], []]
    group.assert_complete()
