"""The explorer finds what is broken, by itself: machines with one rule out of order, and SPO as it was printed."""

from typing import Any

import pytest

from ordercast.explorer.counterexample import Counterexample
from ordercast.explorer.explore import explore
from ordercast.explorer.scenario import Promise, Scenario
from ordercast.model.config import LossInference, PaperRules
from ordercast.model.machine import Level
from ordercast.model.runs import Channel
from ordercast.protocols.registry import MachineClass
from tests.explorer import broken
from tests.explorer.groups import spo, spo_as_printed
from tests.explorer.random_walk import random_walk

NO_INFERENCE = PaperRules(condition_2=LossInference.NONE)


def found(scenario: Scenario) -> Counterexample:
    report = explore(scenario)
    assert report.counterexample is not None, str(report)
    return report.counterexample


UNTRUE = [
    (broken.TakesDuplicates, ("a{2}", ""), {"duplicates": 1}, "a{2} of E1 at E2 is accepted a second time", 4),
    (broken.GoesBack, ("a{2} b{2}", "", ""), {"duplicates": 1}, "expected of E3 for E1 goes down from 2 to 1", 6),
    (broken.SaysPackForAck, ("x{2,3}", "", ""), {}, "acknowledged at E3, but not yet preacknowledged at its", 5),
    (broken.SaysSeenForExpected, ("a{2,3} b{2,3}", "", ""), {"losses": 1}, "preacknowledged at E2, but not yet acc", 6),
    (broken.HoldsNothingBack, ("a{2} b{2}", ""), {"losses": 1}, "b{2} of E1 at E2 is accepted before a{2}", 4),
    (broken.DeliversEarly, ("x{2,3}", "", ""), {}, "x{2,3} of E1 at E2 is delivered before it was acknowledged", 2),
    (broken.DeliversForOthers, ("a{2}", "", ""), {}, "delivered, but it is not addressed to it", 2),
]


@pytest.mark.parametrize(("machine", "lines", "how", "sentence", "steps"), UNTRUE)
def test_an_untrue_claim_is_found(
    machine: MachineClass, lines: tuple[str, ...], how: dict[str, Any], sentence: str, steps: int
) -> None:
    counterexample = found(spo(*lines, machine=machine, **how))
    assert not counterexample.live
    assert sentence in counterexample.sentence
    assert len(counterexample.schedule) == steps


STUCK = [
    (broken.NeverOpens, ("a{2} b{2}", ""), {"window": 1}, "E1 never sends all that was submitted to it", 0),
    (broken.NeverPolls, ("a{2}", ""), {"losses": 1}, "a{2} of E1 is never acknowledged at E1", 2),
    (broken.AsksOnce, ("a{2} b{2}", ""), {"losses": 2}, "E2: of E1, numbers 0–0 to me are missing", 5),
    (broken.NeverSatisfied, ("a{2}", ""), {}, "the group is not quiescent after 40 rounds: E1 has set status", 0),
    (broken.SilentWhenPolled, ("x{2,3}", "", ""), {}, "1 packets wait to be known as pre-acknowledged by {E2}", 0),
]


@pytest.mark.parametrize(("machine", "lines", "how", "sentence", "steps"), STUCK)
def test_a_group_that_is_stuck_or_never_silent_is_found(
    machine: MachineClass, lines: tuple[str, ...], how: dict[str, Any], sentence: str, steps: int
) -> None:
    counterexample = found(spo(*lines, machine=machine, **how))
    assert counterexample.live
    assert sentence in counterexample.sentence
    assert len(counterexample.schedule) == steps


def test_spo_promises_no_order_between_senders_and_gives_none() -> None:
    counterexample = found(spo("a{1,2}", "b{1,2}", promise=Promise(one_order=True)))
    assert counterexample.sentence.startswith("the orders of delivery have a cycle: E1 <")


# --- SPO as printed: the counterexamples are found, not replayed ---


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
def test_a1_acknowledged_does_not_mean_preacknowledged_everywhere(channel: Channel) -> None:
    counterexample = found(spo_as_printed("x{2,3}", "q{2} r{2}", "s{2}", channel=channel))
    assert (
        counterexample.sentence
        == "x{2,3} of E1 is acknowledged at E2, but not yet preacknowledged at its destination E3"
    )
    assert counterexample.schedule == (
        "E1 sends x{2,3}",
        "E2 receives E1#0 x",
        "E3 receives E1#0 x",
        "E2 sends q{2}",
        "E2 receives E2#0 q",
        "E3 sends s{2}",
        "E2 receives E3#0 s",
        "E2 sends r{2}",
        "E2 receives E2#1 r",
    )


def test_with_everything_to_everybody_the_printed_levels_are_true() -> None:
    for paper, losses in (PaperRules(), 0), (NO_INFERENCE, 1):
        report = explore(spo_as_printed("x{1,2,3}", "y{1,2,3}", "z{1,2,3}", paper=paper, losses=losses))
        assert report.exhausted, str(report)


def test_a2_a_message_alone_is_never_acknowledged() -> None:
    counterexample = found(spo_as_printed("a{2}", "", "", liveness_goal=Level.ACKNOWLEDGED))
    assert (counterexample.live, counterexample.schedule) == (True, ())


def test_c0_overtaking_is_taken_for_loss_on_many_channels_only() -> None:
    lines = ("a{2,3}", "b{3}", "")
    counterexample = found(spo_as_printed(*lines, liveness_goal=Level.ACCEPTED))
    assert counterexample.sentence.startswith("b{3} of E2 is never accepted at E3")
    assert counterexample.schedule == ("E1 sends a{2,3}", "E2 receives E1#0 a", "E2 sends b{3}", "E3 receives E2#0 b")
    assert explore(spo_as_printed(*lines, liveness_goal=Level.ACCEPTED, channel=Channel.ONE)).exhausted
    assert explore(spo_as_printed(*lines, liveness_goal=Level.ACCEPTED, paper=NO_INFERENCE)).exhausted


def test_c1_a_lost_unit_for_others_shuts_its_source_out() -> None:
    counterexample = found(spo_as_printed("a{2} b{3}", "", "", liveness_goal=Level.ACCEPTED, losses=1))
    assert counterexample.sentence.startswith("b{3} of E1 is never accepted at E3")
    assert counterexample.schedule == ("E1 sends a{2}", "E3 loses E1#0 a")


def test_c3_the_loss_of_the_last_unit_is_never_noticed() -> None:
    counterexample = found(spo_as_printed("a{2}", "", liveness_goal=Level.ACCEPTED, losses=1))
    assert counterexample.schedule == ("E1 sends a{2}", "E2 loses E1#0 a")


@pytest.mark.parametrize("lines", [("a{2} b{2} c{2}", "", ""), ("a{1,2} b{1,2} c{1,2}", "d{1,2} e{1,2} f{1,2}")])
def test_c5_and_c7_a_window_closes_for_good_without_a_loss(lines: tuple[str, ...]) -> None:
    counterexample = found(spo_as_printed(*lines, liveness_goal=Level.ACCEPTED, window=2))
    assert "never sends all that was submitted to it" in counterexample.sentence


def test_d1_the_duplicate_test_must_come_first() -> None:
    lines = ("a{1,2} b{2}", "", "")
    late = PaperRules(condition_2=LossInference.NONE, duplicates_first=False)
    counterexample = found(spo_as_printed(*lines, paper=late, losses=1))
    assert counterexample.sentence == "expected of E3 for E1 goes down from 2 to 1"
    assert "E2 loses E1#0 a" in counterexample.schedule
    assert explore(spo_as_printed(*lines, paper=NO_INFERENCE, losses=1)).exhausted


def test_r1_copies_must_repeat_what_the_first_transmission_said() -> None:
    lines = ("x{1,2,3} w{1,2,3} u{1,2,3}", "y{1,2,3} z{1,2,3} t{1,2,3}", "v{1,2,3} s{1,2,3}")
    fresh = PaperRules(condition_2=LossInference.NONE, verbatim_copies=False)
    walks = [random_walk(spo_as_printed(*lines, paper=fresh, losses=3), seed, length=80) for seed in range(40)]
    sentences = [walk.sentence for walk in walks if walk is not None]
    assert "x{1,2,3} of E1 is acknowledged at E3, but not yet preacknowledged at its destination E2" in sentences
    verbatim = spo_as_printed(*lines, paper=NO_INFERENCE, losses=3)
    assert all(random_walk(verbatim, seed, length=80) is None for seed in range(40))
