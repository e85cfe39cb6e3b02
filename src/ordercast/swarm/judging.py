"""What is wrong with a run: what the reference audit finds in its trace, and whether it came to its end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ordercast.audit.completeness import complete
from ordercast.audit.judge import Verdict, judge
from ordercast.audit.logs import COLUMNS, RunLogs, logs_of
from ordercast.model.config import Rules
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Machine
from ordercast.model.nodes import mask_of
from ordercast.model.runs import RunConfig
from ordercast.model.services import Service
from ordercast.simulator import RunResult, simulate
from ordercast.simulator.fault_recorder import FaultRecorder
from ordercast.simulator.simulation import Simulation
from ordercast.simulator.workloads import to_send
from ordercast.swarm.draw_sequencer import quorum
from ordercast.trace.schema import EVENT_COLUMNS, EventKind, EventRow

INCOMPLETE, RESTLESS, RAISES = "incomplete", "restless", "raises"
"""The ways of failing that are no broken property: it does not come to its end, somebody waits, a machine raises."""

_LEAST_EVENTS = 50_000
_EVENTS_OF_A_DELIVERY = 60  # a run that goes well has ten

ENDINGS = frozenset({EventKind.VIEW.value, EventKind.CRASH.value, EventKind.ABORT.value})
"""The events about members: what tells whether a group can go on."""


@dataclass(frozen=True)
class Failure:
    """One way in which a run failed."""

    kind: str
    """The property that is broken, or one of the other ways; `raises` with the name of what was raised."""
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence}"


class EndlessError(Exception):
    """A run has more events than anybody wants."""


@dataclass(frozen=True)
class Attempt:
    """A run of whatever may be wrong with it."""

    rows: list[EventRow]
    failures: list[Failure]
    """All that is wrong with it, the gravest first."""


def most_events(config: RunConfig) -> int:
    """A run with more events than this does not end, as far as anybody who waits can tell."""
    return _LEAST_EVENTS + _EVENTS_OF_A_DELIVERY * sum(to_send(config)) * config.group.nodes


def failures_of(config: RunConfig, machine: type[Machine] | None = None) -> list[Failure]:
    """Runs a configuration and tells all that is wrong with it, the gravest first; `machine` in place of its own.

    Raises `ConfigError` if it is none that can be run.
    """
    return attempt(config, machine).failures


def attempt(
    config: RunConfig, machine: type[Machine] | None = None, fault_recorder: FaultRecorder | None = None
) -> Attempt:
    """The same with its rows; of a run that did not end, with those before."""
    rows: list[EventRow] = []
    most = most_events(config)

    def keep(batch: Sequence[EventRow]) -> None:
        rows.extend(batch)
        if len(rows) > most:
            raise EndlessError

    try:
        result = Simulation(config, keep, machine=machine, fault_recorder=fault_recorder).run()
    except ConfigError:
        raise
    except EndlessError:
        return Attempt(rows, [Failure(INCOMPLETE, f"it goes on and on: after {most:,} events it has not ended")])
    except Exception as error:  # whatever a machine raises is a mistake of its own
        return Attempt(rows, [Failure(f"{RAISES} {type(error).__name__}", str(error) or "without a word")])
    return Attempt(rows, found_in(result, judge_rows(config, rows), rows))


def run_and_judge(config: RunConfig, machine: type[Machine] | None = None) -> tuple[RunResult, Verdict]:
    """A run, and what the reference audit says of its trace."""
    rows: list[EventRow] = []
    result = simulate(config, rows=rows, machine=machine)
    return result, judge_rows(config, rows)


def judge_rows(config: RunConfig, rows: list[EventRow]) -> Verdict:
    """What the reference audit says of the rows of a trace."""
    verdict = Verdict()
    logs = logs_from_rows(config.name(), config.group.nodes, rows)
    group = config.group
    uniform = config.protocol == "sequencer" and group.sequencer.resilience >= 1 and group.rules is Rules.SOUND
    judge(replace(logs, uniform=uniform), Service(config.protocol), verdict)
    return verdict


def logs_from_rows(run: str, nodes: int, rows: list[EventRow]) -> RunLogs:
    """The logs of a run from the rows of its trace, without a file between."""
    names = [column.name for column in EVENT_COLUMNS[1:]]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    return logs_of(run, nodes, [{name: columns[name] for name in COLUMNS}] if rows else [])


def failures(result: RunResult, verdict: Verdict) -> list[str]:
    """What is wrong with a run that must come to its end, in words; nothing if it is as it must be."""
    return [str(failure) for failure in found_in(result, verdict)]


def found_in(result: RunResult, verdict: Verdict, rows: Iterable[EventRow] = ()) -> list[Failure]:
    """What is wrong with a run, the broken properties first.

    The rows, of which the endings suffice, tell whether anybody could go on: who could not owes nothing more.
    """
    found = [
        Failure(name, witness.violation.sentence)
        for name, finding in verdict.findings.items()
        for witness in finding.witnesses
        if name != complete.__name__ or witness.violation.places  # lacking is told by the run itself, below
    ]
    if result.complete:
        lacking = verdict.findings.get(complete.__name__)
        if (
            lacking is not None
            and not lacking.holds
            and not any(witness.violation.places for witness in lacking.witnesses)
        ):
            found.append(Failure(complete.__name__, lacking.witnesses[0].violation.sentence))
        if any(result.waits):
            found.append(Failure(RESTLESS, f"complete, but not at rest: {_waits(result)}"))
    elif not is_blocked(result, list(rows)):
        how = "stalled" if result.stalled else "a node gave up" if result.aborted else "it ended"
        found.append(Failure(INCOMPLETE, f"{how}, and not all was delivered: {_waits(result)}"))
    return found


def _waits(result: RunResult) -> str:
    told = [f"E{node + 1}: {', '.join(waits)}" for node, waits in enumerate(result.waits) if waits]
    return "; ".join(told) or "nobody waits for anything"


def is_blocked(result: RunResult, rows: Sequence[EventRow]) -> bool:
    """Whether so many stopped that the rest owes nothing more: with views less than a quorum is left, else anybody."""
    group = result.config.group
    gone = mask_of(row[0] for row in rows if row[3] in {EventKind.CRASH, EventKind.ABORT})
    crashed = any(row[3] == EventKind.CRASH for row in rows)
    if result.config.protocol != Service.SEQUENCED.value or group.rules is not Rules.SOUND:
        return crashed
    members = (1 << group.nodes) - 1
    views = [row for row in rows if row[3] == EventKind.VIEW]
    if views:
        last = max(views, key=lambda row: int((row[9] or "0:").split(":")[0]))
        members = mask_of(last[6] or ())
    return (members & ~gone).bit_count() < quorum(members.bit_count(), group.sequencer.resilience)
