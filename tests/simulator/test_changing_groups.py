"""Groups with views in the simulator: nodes crash, join, leave, return, are cut off and suspected, in every order."""

from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.audit.services import OF_VIEWS
from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, RecoveryPolicy, SequencerConfig
from ordercast.model.errors import ConfigError
from ordercast.model.faults import (
    Crash,
    Fault,
    Join,
    Leave,
    Loss,
    Pause,
    Return,
    Split,
    Suspicion,
)
from ordercast.model.machine import NotSent, Numbered, Output, Submit
from ordercast.model.nodes import everybody
from ordercast.model.runs import Network, RunConfig, ScriptedSend, Workload, wants_views, with_later_nodes
from ordercast.protocols.membership.by_node import by_node
from ordercast.simulator import RunResult
from ordercast.simulator.simulation import Simulation
from ordercast.swarm.draw_membership import draw_changing
from ordercast.swarm.run_audit import audit_rows, failures_in
from ordercast.swarm.soak import EVERY_PROTOCOL, soak_config
from ordercast.trace.schema import EventField, EventRow

CHANGES: tuple[Fault, ...] = (
    Crash(node=1, at=3 * MILLISECOND),
    Join(node=4, at=2 * MILLISECOND),
    Leave(node=2, at=6 * MILLISECOND),
    Return(node=1, at=60 * MILLISECOND),
)


def config_of(protocol: str, *faults: Fault, nodes: int = 6, seed: int = 0, **work: Any) -> RunConfig:
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, views=True, sequencer=SequencerConfig(resilience=nodes)),
        network=Network(channel=by_node(protocol).needs),
        workload=Workload(**{"messages": 12, "spread": 0.5 if protocol in {"spo", "st"} else 1.0, **work}),
        faults=faults,
        seed=seed,
    )


def simulated(config: RunConfig) -> tuple[RunResult, list[EventRow]]:
    rows: list[EventRow] = []
    result = Simulation(config, rows.extend).run()
    verdict = audit_rows(config, rows, ended=result.complete)
    assert failures_in(result, verdict) == []
    if result.complete and any(row[EventField.EVENT] == "ack" for row in rows):
        assert verdict.findings.keys() >= {promise.__name__ for promise in OF_VIEWS}
    return result, rows


def of_kind(rows: list[EventRow], *kinds: str) -> list[tuple[int, str, int | None, str | None]]:
    fields = EventField
    return [
        (row[fields.NODE], row[fields.EVENT], row[fields.SEQ], row[fields.DETAIL])
        for row in rows
        if row[fields.EVENT] in kinds
    ]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_members_come_and_go(protocol: str) -> None:
    result, rows = simulated(config_of(protocol, *CHANGES, Loss(rate=0.05), seed=1))
    assert (result.complete, result.stalled, result.aborted, result.blocked) == (True, False, False, False)
    assert (result.left, result.crashed, result.members) == ((1, 2), (1,), (0, 3, 4, 5))
    assert of_kind(rows, "leave", "crash") == [(1, "crash", None, None), (2, "leave", None, "drained")]
    sent = {row[EventField.NODE] for row in rows if row[EventField.EVENT] == "send"}
    assert sent >= {0, 3, 4, 5}, "those that joined and returned send, too"
    first = {
        row[EventField.NODE]: row[EventField.EVENT] for row in reversed(rows) if row[EventField.EVENT] != "timeout"
    }
    assert {first[node] for node in range(4)} == {"view"}, "founders begin with the first view"


def test_equal_configurations_give_equal_traces_also_from_json() -> None:
    config = config_of("to", *CHANGES, Loss(rate=0.1))
    assert simulated(config)[1] == simulated(RunConfig.from_json(config.to_json()))[1]


@pytest.mark.parametrize("protocol", ["spo", "prito", "sequencer"])
def test_a_minority_that_is_cut_off_blocks_and_is_excluded(protocol: str) -> None:
    split = Split(side=(2, 3), at=2 * MILLISECOND, lasting=400 * MILLISECOND)
    result, rows = simulated(config_of(protocol, split, nodes=5))
    assert (result.complete, result.left, result.members) == (True, (2, 3), (0, 1, 4))
    blocked = of_kind(rows, "block", "unblock", "exclude")
    for node in (2, 3):
        assert [kind for at, kind, *_ in blocked if at == node] == ["block", "unblock", "exclude"]
    assert {(number, detail) for _, kind, number, detail in blocked if kind == "block"} == {(None, "{E1,E2,E5}")}


def test_who_is_excluded_returns_as_a_new_node_with_its_name() -> None:
    split = Split(side=(3,), at=2 * MILLISECOND, lasting=200 * MILLISECOND)
    result, rows = simulated(config_of("st", split, Return(node=3, at=300 * MILLISECOND), nodes=5, messages=30))
    assert (result.members, result.left) == ((0, 1, 2, 4), (3,))
    assert of_kind(rows, "crash", "exclude")[0][:2] == (3, "exclude")
    assert of_kind(rows, "view")[-1][3] == "heard=0,1,2; E4 joined"


def test_a_process_that_runs_ends_when_it_starts_again() -> None:
    result, rows = simulated(config_of("po", Return(node=2, at=MILLISECOND), nodes=4, messages=40))
    assert of_kind(rows, "crash") == [(2, "crash", None, None)]
    assert (result.members, result.left) == ((0, 1, 3), (2,))


def test_a_wrong_suspicion_costs_a_view_and_excludes_nobody() -> None:
    result, _ = simulated(config_of("spo", Suspicion(node=2, by=0, at=MILLISECOND), nodes=4, messages=40))
    assert (result.view, result.members, result.left) == (1, (0, 1, 2, 3), ())


def test_without_a_quorum_a_run_is_blocked_and_not_complete() -> None:
    crashes = [Crash(node=node, at=MILLISECOND) for node in (0, 1)]
    result, rows = simulated(config_of("to", *crashes, nodes=4, messages=40))
    assert (result.complete, result.blocked) == (False, True)
    assert {node for node, *_ in of_kind(rows, "block")} == {2, 3}
    assert not simulated(config_of("to", Crash(node=3, at=MILLISECOND), nodes=4, messages=40))[0].blocked


def test_one_member_alone_is_a_group_and_grows() -> None:
    result, _ = simulated(config_of("spo", Join(node=1, at=MILLISECOND), nodes=2, spread=1.0))
    assert (result.complete, result.members) == (True, (0, 1))
    assert simulated(config_of("sequencer", nodes=1))[0].complete


def test_a_failure_that_nobody_noticed_does_not_keep_others_out() -> None:
    """The group is idle when its coordinator crashes; nothing would show it but the one that wants to join."""
    faults = (Crash(node=0, at=100 * MILLISECOND), Join(node=3, at=200 * MILLISECOND))
    result, _ = simulated(config_of("st", *faults, nodes=4, messages=2))
    assert (result.complete, result.members) == (True, (1, 2, 3))


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_one_that_crashed_is_not_asked_all_the_time(protocol: str) -> None:
    """Until it is suspected, 40 ms later, everybody waits for it; a round trip takes 2 us."""
    network = Network(channel=by_node(protocol).needs, propagation=MICROSECOND)
    config = config_of(protocol, Crash(node=4, at=MILLISECOND // 2), nodes=5, messages=4, gap=300 * MICROSECOND)
    timing = config.workload.timing(network, 5)
    config = replace(config, network=network, group=replace(config.group, timing=timing))
    result, _ = simulated(config)
    assert result.complete
    assert result.counters.control < 500


def test_who_leaves_waits_for_what_go_back_n_sends_again() -> None:
    """A message that all had discarded, and that was not sent again yet, was lost. A random run."""
    config = draw_changing(81, "st")
    simulated(replace(config, group=replace(config.group, log_limit=2, recovery=RecoveryPolicy.GO_BACK_N)))


# --- who is addressed ---


def test_a_message_to_nobody_that_is_there_is_not_sent() -> None:
    sends = (ScriptedSend(node=0, to=(2,)), ScriptedSend(node=0, to=(1, 2), at=10_000), ScriptedSend(node=2, to=(0,)))
    config = config_of("spo", Join(node=2, at=20 * MILLISECOND), nodes=3, script=sends)
    result, rows = simulated(config)
    assert result.complete
    assert [row[EventField.DESTINATIONS] for row in rows if row[EventField.EVENT] == "send"] == [(1,), (0,)]


@pytest.mark.parametrize("protocol", ["spo", "st"])
def test_what_is_to_all_is_to_all_of_the_view_in_which_it_gets_its_number(protocol: str) -> None:
    """What waits for the window when a view ends has no number yet."""
    config = config_of(protocol, Join(node=2, at=0), nodes=3, messages=80, senders=(0,), spread=1.0, gap=0)
    result, rows = simulated(RunConfig.from_json(config.to_json().replace('"window":32', '"window":1')))
    mine = [row for row in rows if row[EventField.NODE] == 0]
    place = next(at for at, row in enumerate(mine) if row[EventField.EVENT] == "view" and row[EventField.SEQ] == 1)
    sent = [
        {row[EventField.DESTINATIONS] for row in part if row[EventField.EVENT] == "send"}
        for part in (mine[:place], mine[place:])
    ]
    assert (result.complete, sent) == (True, [{(0, 1)}, {(0, 1, 2)}])


@pytest.mark.parametrize("protocol", ["spo", "st"])
def test_what_is_to_all_and_sent_again_is_also_to_who_joined_meanwhile(protocol: str) -> None:
    """Nobody was given it in the view in which it was sent first."""
    faults = (Join(node=2, at=0), Loss(rate=0.3))
    sends = {"messages": 80, "senders": (0,), "spread": 1.0, "gap": MILLISECOND // 5}
    config = config_of(protocol, *faults, nodes=3, seed=4, **sends)
    result, rows = simulated(config)
    again = {row[EventField.DESTINATIONS] for row in rows if row[EventField.EVENT] == "renumber"}
    assert (result.complete, again) == (True, {(0, 1, 2)})


def test_submissions_whose_destinations_all_went_are_told() -> None:
    machine: Any = by_node("spo")(0, GroupConfig(nodes=2, views=True, window=1))
    out: list[Output] = []
    for _ in range(2):
        out += machine.handle(Submit(0b10, (1,), b"x"))
    assert [type(one) for one in out if isinstance(one, Numbered | NotSent)] == [Numbered]
    joiner: Any = by_node("spo", 1)(0, GroupConfig(nodes=2, views=True))
    assert NotSent(2) in joiner.handle(Submit(0b10, (1, 1), b"xy"))
    assert not any(isinstance(one, NotSent) for one in joiner.handle(Submit(everybody(2), (1,), b"x")))


# --- what makes no sense ---


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([Join(node=1, at=0), Join(node=1, at=5)], "E2 joins twice"),
        ([Join(node=3, at=0), Return(node=0, at=5)], "E4 is the node of a process that returns"),
        ([Join(node=node, at=0) for node in range(4)], "none founds the group"),
        ([Join(node=1, at=5), Crash(node=1, at=4)], "the fault 'crash' of E2 is too early: E2 starts at 5 ns"),
        ([Return(node=0, at=5), Suspicion(node=3, by=1, at=4)], "the fault 'suspect' of E4 is too early"),
        ([Return(node=0, at=5), Pause(node=3, at=4, lasting=1)], "the fault 'pause' of E4 is too early"),
        ([Leave(node=7, at=5)], "a fault names E8"),
    ],
)
def test_faults_that_make_no_sense_are_refused(faults: list[Fault], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config_of("spo", *faults, nodes=4)


def test_members_change_only_in_groups_with_views() -> None:
    for fault in (Join(node=1, at=0), Leave(node=1, at=0), Return(node=1, at=0), Suspicion(node=1, by=0, at=0)):
        with pytest.raises(ConfigError, match="needs a group with views"):
            RunConfig(protocol="spo", group=GroupConfig(nodes=3), faults=(fault,))
    with pytest.raises(ConfigError, match="at most 64 members"):
        config_of("spo", nodes=65)


def test_views_are_the_default_where_a_run_needs_them() -> None:
    sound = GroupConfig(nodes=2).rules
    crash, join, split = Crash(node=0, at=0), Join(node=6, at=0), Split(side=(0,), at=0, lasting=1)
    assert wants_views("spo", sound, (crash,))
    assert not wants_views("sequencer", sound, (crash,)), "it has views of its own"
    assert wants_views("sequencer", sound, (crash, join))
    assert not wants_views("spo", sound, (split,))
    assert with_later_nodes(4, (crash, split)) == 4
    assert with_later_nodes(4, (join, Return(node=0, at=0), Return(node=0, at=9))) == 9


# --- random groups ---


@pytest.mark.parametrize("number", range(21))
def test_random_groups_hold_all_that_is_promised(number: int) -> None:
    config = soak_config(number, views=True)
    simulated(config)


def test_one_that_missed_its_welcome_is_let_in_by_members_that_are_blocked_without_it() -> None:
    """E1 took E3 and E4 in, and crashed; E4 did not hear of it, and without it there is no quorum. A random run."""
    network = Network(propagation=1_000, drained=True)
    work = Workload(messages=1, spread=0.1, senders=(0,))
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=4, views=True, window=8, timing=work.timing(network, 4)),
        network=network,
        workload=work,
        faults=(
            Loss(rate=0.2),
            Join(node=2, at=967_843),
            Join(node=3, at=1_109_591),
            Crash(node=0, at=1_839_936),
            Leave(node=2, at=1_828_609),
        ),
        seed=1,
    )
    assert config.group.timing.poll == 408_000
    result, rows = simulated(config)
    assert {row[EventField.NODE] for row in of_kind(rows, "block")} == {1, 2}
    assert (result.complete, result.members) == (True, (1, 3))


def test_what_a_sequencer_without_resilience_gave_to_one_that_is_excluded_may_come_later() -> None:
    assert simulated(soak_config(591, views=True))[0].complete
