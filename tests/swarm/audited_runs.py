"""Runs that must complete, simulated and audited."""

from ordercast.audit.verdict import Verdict
from ordercast.model.machine import Machine
from ordercast.model.runs import RunConfig
from ordercast.simulator import RunResult
from ordercast.simulator.simulation import Simulation
from ordercast.swarm.run_audit import audit_rows, failures_in, is_blocked
from ordercast.trace.schema import EventRow


def run_and_audit(config: RunConfig, machine: type[Machine] | None = None) -> tuple[RunResult, Verdict]:
    rows: list[EventRow] = []
    result = Simulation(config, rows.extend, machine=machine).run()
    return result, audit_rows(config, rows)


def failures(result: RunResult, verdict: Verdict) -> list[str]:
    """What is wrong with a run, as sentences; being blocked is no excuse."""
    found = [str(failure) for failure in failures_in(result, verdict)]
    if not result.complete and is_blocked(result):
        found.append("incomplete: too few nodes were left to go on")
    return found
