"""Inputs that come from hosts: groups are given up, one or several are suspected, no unit is left; at any moment."""

from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import default_scripts, scenario
from ordercast.explorer.schedule_files import ScheduleFile, read_schedule, write_schedule
from ordercast.explorer.state_space import StateSpace
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Abort, Deliver
from ordercast.model.runs import Channel
from ordercast.protocols.membership.by_node import ByNode
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencer.view_agreement import ViewAgreement
from ordercast.protocols.spo.machine import Spo
from tests.explorer.random_walk import random_walk

VIEWS: dict[str, Any] = {"suspect_after": 1, "polls_to_abort": 12, "rounds": 120}


def broadcasts(protocol: str, nodes: int, **how: Any) -> Scenario:
    """Without views, but those of the sequencer."""
    if protocol == "sequencer":
        return scenario(protocol, ["", "a", ""][:nodes], **{**VIEWS, **how})
    return scenario(protocol, default_scripts(protocol, nodes), liveness_goal=None, **how)


def changing(protocol: str, *lines: str, **how: Any) -> Scenario:
    if protocol == "sequencer":
        how = {"resilience": 1, "channel": Channel.MANY, **how}
    return scenario(protocol, lines, views=True, **how)


# --- a host gives the group up ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_delivered_by_whom_gives_up_is_certain_in_every_schedule(protocol: str) -> None:
    report = explore(broadcasts(protocol, 2, give_ups=1, firings=1), 30_000, reduced=True)
    assert report.exhausted, str(report)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_others_go_on_with_all_that_it_delivered(protocol: str) -> None:
    report = explore(changing(protocol, "", "a", "", give_ups=1), reduced=True)
    assert report.exhausted, str(report)
    assert report.continued > 3


@pytest.mark.parametrize("protocol", ["spo", pytest.param("sequencer", marks=pytest.mark.soak)])
def test_so_they_do_if_anybody_is_suspected_as_well(protocol: str) -> None:
    report = explore(changing(protocol, "", "a", "", give_ups=1, suspicions=1), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 1_000


def test_a_host_gives_up_once_and_its_node_takes_part_no_more() -> None:
    space = StateSpace(changing("spo", "", "a", "", give_ups=2, suspicions=1))
    [step] = parse_schedule(space, ["E2 gives the group up"])
    state, _ = space.successor(space.initial_state(), step)
    here = space.nodes.states[state[1]]
    assert (here.gave_up, here.left, here.timers) == (True, True, ())
    assert not space.nodes.can_suspect(state[1])
    assert [space.nodes.can_give_up(number) for number in state[:3]] == [True, False, True]


def test_others_wait_for_it_where_there_are_no_views() -> None:
    with pytest.raises(ConfigError, match="`give_ups` needs a group with views \\(--views\\), or --liveness-goal"):
        scenario("spo", ["a", ""], give_ups=1)


def goes_on_afterwards(patch: pytest.MonkeyPatch) -> None:
    unchanged = ByNode._give_up

    def give_up(self: ByNode, event: Any, out: Any) -> None:
        unchanged(self, event, out)
        self.aborted = False

    patch.setattr(ByNode, "_give_up", give_up)


def delivers_what_it_has(patch: pytest.MonkeyPatch) -> None:
    """Others may not have it."""

    def abort(self: Spo, why: str, out: Any) -> None:
        out += [Deliver(packet) for log in self.accepted.logs for packet in log if packet.destinations >> self.me & 1]
        self.aborted = True
        out.append(Abort(why))

    patch.setattr(Spo, "abort", abort)


@pytest.mark.parametrize(
    ("rule", "scene", "sentence"),
    [
        (goes_on_afterwards, changing("spo", "", "a", give_ups=1), "goes on after it gave the group up"),
        (delivers_what_it_has, broadcasts("spo", 2, give_ups=1), "is delivered before it was pre-acknowledged"),
        (delivers_what_it_has, changing("spo", "", "a", give_ups=1), "is delivered before it was pre-acknowledged"),
    ],
)
def test_a_rule_of_giving_up_that_is_taken_out_is_found(
    monkeypatch: pytest.MonkeyPatch, rule: Any, scene: Scenario, sentence: str
) -> None:
    rule(monkeypatch)
    report = explore(scene, 20_000, reduced=True)
    assert report.counterexample is not None, str(report)
    assert sentence in report.counterexample.sentence


# --- suspicions ---


def test_several_are_suspected_at_once_if_that_is_asked_for() -> None:
    space = StateSpace(changing("spo", "", "a", "", suspicions=1, at_once=2))
    assert space.nodes.can_suspect(space.initial_state()[0]) == (0b010, 0b100, 0b110)
    assert len(parse_schedule(space, ["E1 suspects E2, E3"])) == 1
    with pytest.raises(ConfigError, match="step 1, 'E1 suspects E1, E2', is not enabled there"):
        parse_schedule(space, ["E1 suspects E1, E2"])
    with pytest.raises(ConfigError, match="`at_once` must be at least 1, not 0"):
        changing("spo", "", "a", suspicions=1, at_once=0)


def test_every_schedule_in_which_one_or_both_others_are_suspected_is_right() -> None:
    report = explore(changing("spo", "", "a", "", suspicions=1, at_once=2), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > explore(changing("spo", "", "a", "", suspicions=1), reduced=True).states


def of_sequencer(**how: Any) -> Scenario:
    """The agreement of a sequencer that runs without the membership protocol."""
    return scenario("sequencer", ["", "a", ""], channel=Channel.MANY, **VIEWS, **how)


@pytest.mark.parametrize(
    "how", [{"suspicions": 1, "losses": 1}, {"suspicions": 1, "at_once": 2}, {"suspicions": 1, "crashes": 1}], ids=str
)
def test_a_sequencers_own_agreement_lives_through_suspicions_at_any_moment(how: dict[str, int]) -> None:
    report = explore(of_sequencer(**how), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 500


def test_a_sequencers_own_agreement_that_needs_no_quorum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ViewAgreement, "_quorum", lambda _: 1)
    report = explore(of_sequencer(suspicions=2, losses=1), 60_000, reduced=True)
    assert report.counterexample is not None, str(report)
    assert "never becomes quiescent" in report.counterexample.sentence


def test_only_who_has_views_suspects() -> None:
    with pytest.raises(ConfigError, match="`suspicions` needs a group with views"):
        scenario("spo", ["a", ""], suspicions=1)


def test_the_steps_are_written_and_read(tmp_path: Any) -> None:
    made = changing("spo", "", "a", "", suspicions=1, at_once=2, give_ups=1)
    file = ScheduleFile(scenario=made, schedule=("E1 suspects E2, E3", "E3 gives the group up"), sentence="none")
    write_schedule(tmp_path / "a.toml", file)
    assert read_schedule(tmp_path / "a.toml") == file


# --- the last member ---


@pytest.mark.parametrize("protocol", ["spo", "sequencer", "to"])
def test_the_last_member_may_leave_too(protocol: str) -> None:
    """`b` is in the cut at which a view ends; what is known of `a` then may have been told before."""
    report = explore(changing(protocol, "a b", "", suspicions=1, leaves=1, losses=0), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 800


# --- all of them, by chance ---


def any_input(protocol: str, seed: int) -> Scenario:
    """Members that send, suspect one or two, give up, crash, leave and are told that nothing waits."""
    chance = Random(seed)
    lines = [chance.choice(["a", "a b", ""]) for _ in range(3)]
    if not any(lines):
        lines[0] = "a"
    crashes = chance.choice([0, 0, 1])
    return changing(
        protocol,
        *lines,
        losses=chance.choice([0, 1, 3]),
        firings=chance.choice([0, 2, 6]),
        suspicions=chance.choice([1, 2, 4]),
        at_once=chance.choice([1, 2]),
        give_ups=chance.choice([0, 1]) if not crashes else 0,
        leaves=chance.choice([0, 1]),
        crashes=crashes,
        drained=chance.random() < 0.5,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_walks_with_all_inputs_of_hosts(protocol: str) -> None:
    for seed in range(6):
        wrong = random_walk(any_input(protocol, seed), seed, length=40 + 20 * (seed % 3))
        assert wrong is None, f"seed {seed}: {wrong}"


@pytest.mark.soak
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_walks_with_all_inputs_of_hosts(protocol: str) -> None:
    for seed in range(1_000, 1_400):
        wrong = random_walk(any_input(protocol, seed), seed, length=Random(seed).choice([20, 60, 150]))
        assert wrong is None, f"seed {seed}: {wrong}"
