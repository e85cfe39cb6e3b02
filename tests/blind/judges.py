"""Who judges machines: search, audit, swarm and soak, each by its usual means."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec

from ordercast.audit.verdict import Verdict
from ordercast.explorer.explore import explore
from ordercast.explorer.log_scenarios import LOG_SCENARIOS
from ordercast.explorer.membership import MemberMachine
from ordercast.explorer.membership_scenarios import SCENARIOS, scenario_of
from ordercast.explorer.scenarios import default_scripts, scenario
from ordercast.model.config import MILLISECOND, GroupConfig, Rules
from ordercast.model.faults import Join, Leave, Loss
from ordercast.model.runs import Network, RunConfig, TraceDetail, Workload
from ordercast.pipeline.soak.worker import soak_one
from ordercast.protocols.registry import machine_class
from ordercast.simulator import machines, simulation
from ordercast.swarm.draw import draw_config
from ordercast.swarm.draw_long import draw_long
from ordercast.swarm.draw_membership import draw_changing
from ordercast.swarm.draw_restarts import draw_restarting
from ordercast.swarm.run_audit import attempt, audit_rows, failures_of
from tests.blind.machines import AUDIT, BY_PRIORITY, SEARCH, SOAK, SWARM, BlindMachine
from tests.blind.members import LOGS, BlindMember
from tests.protocols.prito.test_prito_bound import stream

DRAWS = 40
"""Runs that swarm and soak may draw."""
LONG_RUNS = {"many packets": 0, "many messages": 3}
"""Numbers of long runs: in one priority runs end many times, in the other a sender has more than 2¹⁶ messages."""
_PACKETS = 3_000
MOST_STATES = 60_000
"""Of a search of members, whose scenarios have up to three million: what is broken is found soon."""


def by_search(blind: BlindMachine, protocol: str) -> str:
    """The broken promise that a search of its scripts finds, or of the default ones; empty if none."""
    how = {"losses": 0, "firings": 0, "nodes": 2, "lines": (), **dict(blind.how)}
    nodes, lines = int(how.pop("nodes")), [*how.pop("lines")]
    if not lines:
        lines = default_scripts(protocol, nodes)
        lines[0] = lines[0] or "c"
    report = explore(scenario(protocol, lines, machine=blind.of(protocol), **how), max_states=200_000)
    return report.counterexample.sentence if report.counterexample is not None else ""


def by_audit(blind: BlindMachine, protocol: str) -> str:
    """The property of the service that one simulated run violates, by its trace alone; empty if none."""
    config = _run(protocol)
    verdict: Verdict = audit_rows(config, attempt(config, blind.of(protocol)).rows)
    broken = [name for name, finding in verdict.findings.items() if finding.violations]
    return ", ".join(broken)


def _run(protocol: str) -> RunConfig:
    channel = machine_class(protocol, Rules.SOUND).needs
    run = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4),
        workload=Workload(messages=30, priorities=3 if protocol in {"prito", "prio"} else 1),
        faults=(Loss(rate=0.05),),
        seed=5,
    )
    network = msgspec.structs.replace(run.network, channel=channel)
    return msgspec.structs.replace(run, network=network).with_default_timeouts()


def _draws(protocol: str) -> Iterator[tuple[str, RunConfig]]:
    """Random runs, then long ones; with priorities first a stream of urgent messages, in which others may starve."""
    if protocol in BY_PRIORITY:
        yield "stream", msgspec.structs.replace(stream(messages=200), protocol=protocol, record=TraceDetail.ALL)
    for number in range(DRAWS):
        yield f"run {number}", draw_config(number, protocol=protocol, most_nodes=4, receipts=150)
    for name, number in LONG_RUNS.items():
        yield name, draw_long(number, protocol, packets=_PACKETS)


def by_swarm(blind: BlindMachine, protocol: str) -> str:
    """The first failure of random runs; empty if none fails."""
    for name, config in _draws(protocol):
        failures = failures_of(config, blind.of(protocol))
        if failures:
            return f"{failures[0].kind} ({name})"
    return ""


def by_soak(blind: BlindMachine, protocol: str) -> str:
    """The first failure that a task of a soak finds; empty if none."""
    with patch.object(machines, "machine_class", lambda *_: blind.of(protocol)):
        for name, config in _draws(protocol):
            found = soak_one(config, time_limit=4)
            if found.failures:
                return f"{found.failures[0][0]} ({name})"
    return ""


Judge = Callable[[Any, str], str]
"""Of a machine or a member, and a protocol: what is noticed; empty if nothing."""

JUDGES: dict[str, Judge] = {
    SEARCH: by_search,
    AUDIT: by_audit,
    SWARM: by_swarm,
    SOAK: by_soak,
}

# --- members, with views and logs ---


def member_by_search(blind: BlindMember, protocol: str) -> str:
    """The broken promise that the search of its scenario finds, cut off where that is long; empty if none."""
    scenarios = LOG_SCENARIOS if blind.about == LOGS else SCENARIOS
    asked = scenarios[blind.scenario]
    returns = asked.how.get("returns", ())
    sound = scenario_of(protocol, asked, logs=blind.about == LOGS)
    assert isinstance(sound.machine, MemberMachine)
    maker = blind.member(protocol, sound.machine.founders, sound.machine.returns)
    del returns
    report = explore(replace(sound, machine=maker), max_states=MOST_STATES)
    return report.counterexample.sentence if report.counterexample is not None else ""


def _changing(blind: BlindMember, protocol: str) -> Iterator[RunConfig]:
    if blind.about != LOGS:
        yield _calm(protocol)
    for number in range(DRAWS):
        yield draw_restarting(number, protocol) if blind.about == LOGS else draw_changing(number, protocol)


def _calm(protocol: str) -> RunConfig:
    """One joins and one leaves, and nothing is lost: nobody else may be missing in the end."""
    run = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4, views=True),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        workload=Workload(messages=30),
        faults=(Join(node=3, at=2 * MILLISECOND), Leave(node=2, at=40 * MILLISECOND)),
        seed=1,
    )
    return run.with_default_timeouts()


def member_by_audit(blind: BlindMember, protocol: str) -> str:
    """The properties that some of the runs of the swarm violate, by their traces alone; empty if none does."""
    for config in _changing(blind, protocol):
        rows = attempt(config, blind.of(config)).rows
        found = audit_rows(config, rows, ended=False).findings
        broken = [name for name, finding in found.items() if finding.violations]
        if broken:
            return ", ".join(broken)
    return ""


def member_by_swarm(blind: BlindMember, protocol: str) -> str:
    """The first failure of random runs; empty if none fails."""
    for number, config in enumerate(_changing(blind, protocol)):
        failures = failures_of(config, blind.of(config))
        if failures:
            return f"{failures[0].kind} (run {number})"
    return ""


def member_by_soak(blind: BlindMember, protocol: str) -> str:
    """The first failure that a task of a soak finds; empty if none."""
    for number, config in enumerate(_changing(blind, protocol)):
        with patch.object(simulation, "machine_of", blind.of):
            found = soak_one(config, time_limit=8)
        if found.failures:
            return f"{found.failures[0][0]} (run {number})"
    return ""


OF_MEMBERS: dict[str, Judge] = {
    SEARCH: member_by_search,
    AUDIT: member_by_audit,
    SWARM: member_by_swarm,
    SOAK: member_by_soak,
}
