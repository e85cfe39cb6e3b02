"""Groups whose membership changes, of every order: every schedule of small groups, and what the search notices.

At every state: views of one number are the same, and decided by a quorum of the view before; what anybody delivered or
acknowledged in a view, whoever closes that view delivered in it; each message is delivered in one view, in one order
where that is promised. From every state a fair continuation ends with all living members of the primary in one view,
with everything of theirs delivered, and with silence.
"""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.explorer.explore import Search, explore
from ordercast.explorer.membership_scenarios import SCENARIOS, membership_scenario
from ordercast.explorer.node_states import suspicion_code
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import scenario
from ordercast.explorer.schedule_files import ScheduleFile, read_schedule, write_schedule
from ordercast.explorer.state_space import StateSpace
from ordercast.explorer.view_promises import ViewPromises
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Suspect
from ordercast.model.nodes import name_of
from ordercast.model.runs import Channel
from ordercast.protocols.membership import choice, coordinator
from ordercast.protocols.membership.applicants import Applicants
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.epoch import Flush
from ordercast.protocols.membership.leaving import Leaving
from ordercast.protocols.membership.node_packets import NodePackets
from ordercast.protocols.registry import PROTOCOLS
from tests.explorer.test_reduction import finals
from tests.protocols.membership.missing_rules import v23_the_most_that_any_has

GATHER: dict[str, Any] = {"firings": 1, "fires": ("view.gather",)}
APPLY: dict[str, Any] = {"firings": 1, "fires": ("join.apply",)}
NOTICED: dict[str, Any] = {"suspicions": 1, "suspects": ("E1 suspects E2",)}
PAIRS: dict[str, dict[str, Any]] = {
    "suspicion": {"suspicions": 1},
    "crash": {"suspicions": 1, "crashes": 1},
    "leave": {"leaves": 1},
    "leave-crash": {"leaves": 1, "crashes": 1},
}


def group(protocol: str, *lines: str, **how: Any) -> Scenario:
    """With the sequencer's own default bounds: see `membership_scenario`."""
    if protocol == "sequencer":
        how = {"resilience": 1, "channel": Channel.MANY, **how}
    return scenario(protocol, lines, views=True, **how)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_schedule_of_two_members_is_right(protocol: str, name: str) -> None:
    report = explore(group(protocol, "", "a", **PAIRS[name]), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 30


@pytest.mark.parametrize("protocol", ["spo", "sequencer"])
def test_every_schedule_in_which_a_node_joins_is_right(protocol: str) -> None:
    report = explore(group(protocol, "", "a", "", joins=1, **GATHER), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 1_000


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_schedule_in_which_one_crashes_and_returns_under_its_name_is_right(protocol: str) -> None:
    how = {**NOTICED, **APPLY} if protocol in {"spo", "po", "sequencer"} else NOTICED
    report = explore(group(protocol, "", "a", "", returns=("E2",), **how), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 200


def test_who_returns_does_so_when_it_has_crashed_and_hears_nothing_before() -> None:
    space = StateSpace(group("spo", "", "a", "b", returns=("E2",)))
    with pytest.raises(Exception, match="step 1, 'E3 returns as E2', is not enabled there"):
        parse_schedule(space, ["E3 returns as E2"])
    with pytest.raises(Exception, match="step 1, 'E1 crashes', is not enabled there"):
        parse_schedule(space, ["E1 crashes"])
    with pytest.raises(Exception, match="step 2, 'E3 receives E2#0 a', is not enabled there"):
        parse_schedule(space, ["E2 sends a{1,2,3}", "E3 receives E2#0 a"])
    assert (
        len(parse_schedule(space, ["E2 sends a{1,2,3}", "E2 crashes", "E3 returns as E2", "E1 receives E3#0 join"]))
        == 4
    )


def test_a_member_suspects_any_other_and_not_itself() -> None:
    space = StateSpace(group("spo", "", "a", "", suspicions=1, joins=1))
    founders = space.initial_state()[:2]
    assert [space.nodes.can_suspect(state) for state in founders] == [(0b10,), (0b01,)]
    suspected = [space.nodes.event(founders[0], suspicion_code(members)) for members in (0b001, 0b100, 0b110)]
    assert suspected == [Suspect(0b001), Suspect(0b100), Suspect(0b110)]


def test_who_is_leaving_does_not_leave_again() -> None:
    space = StateSpace(group("spo", "", "a", leaves=2))
    assert len(parse_schedule(space, ["E2 leaves", "E1 leaves"])) == 2
    with pytest.raises(Exception, match="step 2, 'E2 leaves', is not enabled there"):
        parse_schedule(space, ["E2 leaves", "E2 leaves"])


@pytest.mark.parametrize(
    ("line", "step", "judged"),
    [
        ("", "E2 leaves", {("E1", 2, False), ("E2", 1, True)}),  # E1 enters the view without it
        ("a", "E2 sends a{1,2}", {("E1", 1, False), ("E2", 1, False)}),  # both deliver it
    ],
)
def test_views_are_judged_when_somebody_enters_one_departs_or_delivers(
    monkeypatch: pytest.MonkeyPatch, line: str, step: str, judged: set[tuple[str, int, bool]]
) -> None:
    monkeypatch.setattr(ViewPromises, "problem", lambda *_: "judged")
    space = StateSpace(group("sequencer", "", line, leaves=1))
    state, found = space.initial_state(), set()
    steps = parse_schedule(space, [step])
    while steps:
        state, effect = space.successor(state, steps[0])
        assert effect is not None
        if space.problem(state, effect) == "judged":
            here = space.nodes.states[effect.next]
            found.add((name_of(here.node), len(here.views), here.departed))
        steps = space.progress_steps(state)
    assert found == judged


def test_only_founders_return_and_each_once() -> None:
    for wrong in (("E3",), ("E2", "E2"), ("x",)):
        with pytest.raises(ConfigError, match="`returns` names founders, and those that return before, each once"):
            group("spo", "a", *[""] * 4, returns=wrong, joins=3 - len(wrong))
    with pytest.raises(ConfigError, match="`returns` needs a group with views"):
        scenario("spo", ["a", ""], returns=("E1",))


def test_every_schedule_with_a_loss_is_right() -> None:
    report = explore(group("sequencer", "", "a", suspicions=1, losses=1), reduced=True)
    assert report.exhausted, str(report)


COMPARED = {
    "spo-suspicions": group("spo", "", "a", suspicions=2),
    "spo-leave-crash": group("spo", "", "a", leaves=1, crashes=1),
    "to-leave": group("to", "", "a", leaves=1),
    "sequencer-crash": group("sequencer", "", "a", suspicions=1, crashes=1),
    "sequencer-any": group("sequencer", "", "a", leaves=1, channel=Channel.ANY),
    "spo-join": group("spo", "a", "", "", joins=1),
    "spo-return": group("spo", "", "a", "b", returns=("E2",), **NOTICED),
    "to-return": group("to", "", "a", "", returns=("E2",), **NOTICED),
    "sequencer-return-any": group("sequencer", "", "a", "", returns=("E2",), channel=Channel.ANY, **NOTICED),
}


LARGER = {
    "spo-joins": group("spo", "a", "", "", joins=2),
    "to-join-crash": group("to", "", "a", "", joins=1, crashes=1),
}


@pytest.mark.parametrize("name", [*COMPARED, *(pytest.param(name, marks=pytest.mark.soak) for name in LARGER)])
def test_the_final_states_are_the_same_with_reduction(name: str) -> None:
    scene = (COMPARED | LARGER)[name]
    every, states = finals(scene, reduced=False)
    some, fewer = finals(scene, reduced=True)
    assert some == every
    assert len(every) > 1
    assert fewer < states


# --- what is broken is found ---


def any_is_a_quorum(patch: pytest.MonkeyPatch) -> None:
    """V2."""
    for module in (coordinator, choice):
        patch.setattr(module, "is_quorum", lambda *_: True)


def nothing_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    """V10."""
    patch.setattr(Flush, "left_over", lambda *_: [])


def who_leaves_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    """V17."""
    patch.setattr(Leaving, "is_drained", lambda _: True)


def nobody_lets_others_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "leaves", lambda *_: None)


def nobody_is_ready(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Applicants, "may_enter", lambda *_: False)


def levels_are_told_early(patch: pytest.MonkeyPatch) -> None:
    """What a view acknowledges is said to be so because the destinations said so."""
    unchanged = NodePackets._tell_level

    def tell(self: NodePackets, level: Any, packet: Any, out: Any, *, by_view: bool) -> None:
        del by_view
        unchanged(self, level, packet, out, by_view=False)

    patch.setattr(NodePackets, "_tell_level", tell)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], Scenario, str]] = [
    (any_is_a_quorum, group("spo", "", "a", suspicions=2), "of view 0"),
    (nothing_is_sent_again, group("spo", "", "a", suspicions=1, losses=1), "is never delivered at E"),
    (who_leaves_does_not_wait, group("spo", "", "a", leaves=1, losses=1), "is never delivered at E1"),
    (nobody_lets_others_leave, group("spo", "", "a", leaves=1), "never becomes quiescent (its states repeat): E2 has"),
    (nobody_is_ready, group("spo", "a", "", joins=1), "E2 never joins the group"),
    (v23_the_most_that_any_has, group("spo", "", "a", suspicions=1, losses=1), "but E1 ended that view without it"),
    (levels_are_told_early, group("sequencer", "", "a", suspicions=1), "is acknowledged at E2, but not yet"),
]


@pytest.mark.parametrize(("rule", "scene", "sentence"), BROKEN, ids=[rule.__name__ for rule, *_ in BROKEN])
def test_a_rule_taken_out_is_found(
    monkeypatch: pytest.MonkeyPatch, rule: Callable[[pytest.MonkeyPatch], None], scene: Scenario, sentence: str
) -> None:
    rule(monkeypatch)
    report = explore(scene, 20_000, reduced=True)
    assert report.counterexample is not None, str(report)
    assert sentence in report.counterexample.sentence


# --- the searches that have names ---


def test_the_named_searches_have_three_founders_and_what_they_say() -> None:
    for name in SCENARIOS:
        made = membership_scenario("to", name)
        assert made.founders() == 3
        assert ("join" in name) == (made.joins == 1)
        assert ("return" in name) == (len(made.returns) == 1)
        assert ("leave" in name) == (made.leaves == 1)
        assert ("crash" in name) == (made.crashes == 1)
        assert ("loss" in name) == (made.losses == 1)
        assert (name == "several") == (made.at_once == 2)
        assert (name == "give-up") == (made.give_ups == 1)
    assert membership_scenario("to", "two-coordinators").suspicions == 2


def test_only_the_suspicions_and_timers_that_are_named_occur() -> None:
    made = membership_scenario("spo", "two-coordinators")
    space = StateSpace(made)
    lines = ["E2 suspects E1", "E1 suspects E3"]
    assert len(parse_schedule(space, lines)) == 2
    with pytest.raises(Exception, match="step 1, 'E3 suspects E1', is not enabled there"):
        parse_schedule(space, ["E3 suspects E1"])
    search = Search(group("spo", "", "a", suspicions=1, firings=1, fires=("view.round",)))
    search.run()
    timers = [search.space.nodes.timer_names[timer] for early in search.space.nodes.early_timers for timer in early]
    assert set(timers) == {"view.round"}


def test_a_schedule_with_members_that_come_and_go_is_written_and_read(tmp_path: Any) -> None:
    made = group("spo", "", "a", "", "", joins=1, returns=("E1",), leaves=1, **NOTICED)
    steps = ("E3 joins", "E1 suspects E2", "E1 crashes", "E4 returns as E1", "E2 leaves")
    file = ScheduleFile(scenario=made, schedule=steps, sentence="none")
    write_schedule(tmp_path / "a.toml", file)
    assert read_schedule(tmp_path / "a.toml") == file


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in {"two-coordinators", "takeover"}])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_schedule_of_a_named_search_or_the_shortest_of_them(protocol: str, name: str) -> None:
    report = explore(membership_scenario(protocol, name), 1_000_000, reduced=True)
    assert report.counterexample is None, str(report)
