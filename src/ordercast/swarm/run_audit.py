"""Simulates a run and audits it: its failures are violated properties, an incomplete run, or an exception."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ordercast.audit.completeness import complete
from ordercast.audit.logs import ALL_COLUMNS, RunLogs, logs_of
from ordercast.audit.reference import check_logs
from ordercast.audit.verdict import Verdict
from ordercast.model.config import Rules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Bursts, Fault, Loss, Miss, Pause, Split
from ordercast.model.machine import Level, Machine
from ordercast.model.nodes import name_of
from ordercast.model.runs import RunConfig
from ordercast.model.services import PRIORITISED, Service
from ordercast.simulator import RunResult
from ordercast.simulator.fault_recorder import FaultRecorder
from ordercast.simulator.simulation import Simulation
from ordercast.simulator.watch import Observed
from ordercast.swarm.draw_sequencer import quorum
from ordercast.swarm.observed import (
    beyond_window,
    kept_elsewhere,
    lost_members,
    unsaid_copies,
    unsent,
    untold_with_views,
)
from ordercast.trace.schema import EVENT_COLUMNS, EventField, EventKind, EventRow

INCOMPLETE, NOT_QUIESCENT, RAISES = "incomplete", "not_quiescent", "raises"
"""Failures other than violated properties: the run does not complete, a node of a complete run still waits, a machine
raises an exception."""
NOT_SILENT, KEEPS, COPIES, STARVES = "not_silent", "keeps_messages", "needless_copies", "waits_too_long"
UNTOLD = "untold_levels"
WRONG_CONTENT, UNSAID, WINDOW = "wrong_content", "unsaid_copies", "beyond_window"
UNSENT, LOST_MEMBERS = "unsent_messages", "lost_members"
"""And of complete runs in which nobody waits: a node goes on speaking, or keeps messages that all have; messages
were sent again though nothing was lost, late or out of order; one waited longer behind others than it may; or levels
were not told, so that a receipt would wait for ever. And of any run: a message is not what was submitted, or something
is sent again that is not called a copy."""
OTHER_FAILURES = (
    INCOMPLETE,
    NOT_QUIESCENT,
    NOT_SILENT,
    KEEPS,
    COPIES,
    STARVES,
    UNTOLD,
    WRONG_CONTENT,
    UNSAID,
    WINDOW,
    UNSENT,
    LOST_MEMBERS,
)
"""All that have no further name."""

_PROGRESS = frozenset(  # each happens a limited number of times in a run; a view may follow another for ever
    kind.value
    for kind in (
        EventKind.SEND,
        EventKind.ACCEPT,
        EventKind.PREACK,
        EventKind.ACK,
        EventKind.DELIVER,
        EventKind.LEAVE,
        EventKind.EXCLUDE,
        EventKind.CRASH,
    )
)
_ROUNDS = (
    1_000  # of everybody speaking, without progress and without an outage: with back-off, 30 % lost, some 30 are usual
)
_OUTAGES = 8  # a burst of eight times the mean duration is one in three thousand


@dataclass(frozen=True)
class Failure:
    """A failure of a run."""

    kind: str
    """The violated property, or one of the other kinds; `raises` with the name of the exception."""
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence}"


class EndlessError(Exception):
    """A run goes on and on without progress."""


@dataclass(frozen=True)
class Attempt:
    """A simulated run and its failures."""

    rows: list[EventRow]
    failures: list[Failure]
    """The most severe first."""


def most_without_progress(config: RunConfig) -> int:
    """A run with more events than this since its last progress counts as endless.

    In a round everybody speaks once and everybody hears it. During an outage nodes may speak whenever a status is due;
    a group with views that has no quorum asks until the run is stalled.
    """
    nodes, timing = config.group.nodes, config.group.timing
    outage = max((_outage(fault) for fault in config.faults), default=0)
    rounds = _ROUNDS + outage // timing.status
    if config.group.views:
        rounds += 2 * config.stall_timeout // timing.poll
    return rounds * nodes * (nodes + 1)


def _outage(fault: Fault) -> int:
    """For how long nothing may come through to a node."""
    match fault:
        case Pause(lasting=lasting) | Split(lasting=lasting):
            return lasting
        case Bursts(bad=bad):
            return _OUTAGES * bad
        case _:
            return 0


def without_progress(rows: Sequence[EventRow], most: int) -> bool:
    """Whether none of the last `most` rows is progress; not if there are fewer rows."""
    return len(rows) > most and not any(row[EventField.EVENT] in _PROGRESS for row in islice(reversed(rows), most))


def failures_of(config: RunConfig, machine: type[Machine] | None = None) -> list[Failure]:
    """Simulates a configuration and returns its failures, the most severe first; `machine` replaces the protocol's own.

    Raises `ConfigError` if the configuration cannot be simulated.
    """
    return attempt(config, machine).failures


def attempt(
    config: RunConfig, machine: type[Machine] | None = None, fault_recorder: FaultRecorder | None = None
) -> Attempt:
    """Simulates a configuration; of a run that did not end, the rows up to its end are kept."""
    rows: list[EventRow] = []
    most = most_without_progress(config)

    def keep(batch: Sequence[EventRow]) -> None:
        rows.extend(batch)
        if without_progress(rows, most):
            raise EndlessError

    try:
        simulation = Simulation(config, keep, machine=machine, fault_recorder=fault_recorder)
        watcher = simulation.watch()
        result = simulation.run()
    except ConfigError:
        raise
    except EndlessError:
        return Attempt(rows, [Failure(INCOMPLETE, f"{most:,} events without progress")])
    except Exception as error:  # whatever a machine raises is a fault of its own
        return Attempt(rows, [Failure(f"{RAISES} {type(error).__name__}", str(error) or "without a message")])
    return Attempt(rows, failures_in(result, audit_rows(config, rows, ended=result.complete), watcher.observed()))


def audit_rows(config: RunConfig, rows: list[EventRow], *, ended: bool = True) -> Verdict:
    """The verdict of the reference audit on the rows of a run; `ended`: it is complete, and was not cut off."""
    verdict = Verdict()
    logs = logs_from_rows(config.name(), config.group.nodes, rows)
    group = config.group
    uniform = config.protocol == "sequencer" and group.sequencer.resilience >= 1 and group.rules is Rules.SOUND
    logs = replace(logs, uniform=uniform, resilience=group.sequencer.resilience, ended=ended)
    logs = replace(logs, delivers_stable=group.delivers_stable)
    check_logs(logs, Service(config.protocol), verdict)
    return verdict


def logs_from_rows(run: str, nodes: int, rows: list[EventRow]) -> RunLogs:
    """The logs of a run from its rows, without a file."""
    names = [column.name for column in EVENT_COLUMNS[1:]]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    return logs_of(run, nodes, [{name: columns[name] for name in ALL_COLUMNS}] if rows else [])


def failures_in(result: RunResult, verdict: Verdict, observed: Observed | None = None) -> list[Failure]:
    """The failures of a run, violated properties first. A run that is blocked need not complete.

    `observed`: what was seen of a run that was watched.
    """
    found = [
        Failure(name, witness.violation.sentence)
        for name, finding in verdict.findings.items()
        for witness in finding.witnesses
        if name != complete.__name__
        or witness.violation.places  # missing messages are reported below, by the run itself
    ]
    if observed is not None:
        found += [Failure(WRONG_CONTENT, sentence) for sentence in observed.wrong_contents[:1]]
        found += [Failure(UNSAID, sentence) for sentence in unsaid_copies(observed)]
        found += [Failure(WINDOW, sentence) for sentence in beyond_window(result, observed)]
    if result.complete:
        lacking = verdict.findings.get(complete.__name__)
        if (
            lacking is not None
            and not lacking.holds
            and not any(witness.violation.places for witness in lacking.witnesses)
        ):
            found.append(Failure(complete.__name__, lacking.witnesses[0].violation.sentence))
        if any(result.waits) and not is_blocked(result):
            found.append(Failure(NOT_QUIESCENT, f"complete, but nodes still wait: {_waits(result)}"))
        elif not any(result.waits):
            found += _wasted(result, observed)
    elif is_blocked(result):
        if (
            observed is not None and not result.crashed
        ):  # that too few are left has no other reason than they themselves
            found += [Failure(LOST_MEMBERS, sentence) for sentence in lost_members(result)]
    else:
        how = "stalled" if result.stalled else "a node aborted" if result.aborted else "it ended"
        found.append(Failure(INCOMPLETE, f"{how}, and not all was delivered: {_waits(result)}"))
    return found


def _wasted(result: RunResult, observed: Observed | None) -> Iterator[Failure]:
    """What a complete run in which nobody waits does, or did, for nothing."""
    config, counters = result.config, result.counters
    if not result.silent and not config.group.views:
        yield Failure(NOT_SILENT, "complete, and no node waits, but timers go on")
    gone = {*result.left, *result.crashed, *result.aborted_nodes}
    keeping = {node: kept for node, kept in enumerate(result.kept) if kept and node not in gone}
    if keeping:
        kept = ", ".join(f"{name_of(node)}: {packets}" for node, packets in keeping.items())
        yield Failure(KEEPS, f"complete, and no node waits, but packets are kept ({kept})")
    elif observed is not None:
        yield from (Failure(KEEPS, sentence) for sentence in kept_elsewhere(result, observed, gone))
    if observed is not None and not is_blocked(result):
        due = _levels_due(config)
        yield from (Failure(UNTOLD, sentence) for sentence in untold_with_views(result, observed, gone, due))
        yield from (Failure(UNSENT, sentence) for sentence in unsent(result, observed, gone))
        yield from (Failure(LOST_MEMBERS, sentence) for sentence in lost_members(result))
    if counters.retransmitted and not counters.lost and not _may_be_late(result):
        yield Failure(COPIES, f"{counters.retransmitted:,} messages were sent again, and nothing was lost")
    bound, longest = longest_wait(config, counters.lost), max((w.highest for w in counters.waiting.values()), default=0)
    if bound is not None and longest > bound:
        yield Failure(STARVES, f"a message waited for {longest:,} ns, longer than {bound:,} ns")
    told = [counters.latency[level].count for level in _levels_due(config)]
    if not gone and not config.group.views and (len(set(told)) > 1 or (counters.delivered and not all(told))):
        counts = ", ".join(f"{count:,}" for count in told)
        yield Failure(
            UNTOLD, f"complete, and no node waits, but levels were told so often, from the lowest on: {counts}"
        )


def _levels_due(config: RunConfig) -> list[Level]:
    """The levels that each destination is told of each packet, sooner or later; of the printed rules none is due."""
    if config.group.rules is not Rules.SOUND:
        return []
    known = config.protocol != Service.SEQUENCED.value and not config.group.delivers_stable
    return [Level.ACCEPTED, Level.PREACKNOWLEDGED, *([Level.ACKNOWLEDGED] if known else [])]


def longest_wait(config: RunConfig, lost: int) -> int | None:
    """How long a message may wait under priorities, whatever is more urgent; None if nothing is promised.

    docs/protocols/prito.md derives it: a message is delivered everywhere after 2T + 5d + 6δ, d being the longest delay
    of a unit, and each lost unit adds at most 16 polls + 4d and as much again.
    """
    group, network, timing = config.group, config.network, config.group.timing
    ends_runs = config.protocol in PRIORITISED and group.priority.synchronises and group.rules is Rules.SOUND
    slow = network.bits_per_second or network.line_bits_per_second or network.receive_time or network.send_time
    is_bounded = not (slow or group.views)
    if not ends_runs or not is_bounded or not all(isinstance(fault, Loss | Miss) for fault in config.faults):
        return None
    delay = network.propagation + network.jitter
    calm = 2 * timing.run + 5 * delay + 6 * timing.status
    return calm + lost * (16 * timing.poll + 4 * delay + calm)


def _may_be_late(result: RunResult) -> bool:
    """Whether something may arrive so late, though nothing is lost, that it has to be asked for."""
    config = result.config
    network, only_losses = config.network, all(isinstance(fault, Loss | Bursts | Miss) for fault in config.faults)
    slow = network.jitter or network.receive_time or network.bits_per_second or network.line_bits_per_second
    return bool(slow) or not only_losses or _may_lack_room(result)


def _may_lack_room(result: RunResult) -> bool:
    """Whether nodes may have sent more packets at once than there was room for.

    What a sequencer's history has no room for waits until all have acknowledged what is in it, and is offered again
    meanwhile; receivers drop what they have no buffers for, which hold what is accepted and not delivered.
    """
    group, counters = result.config.group, result.counters
    if result.config.protocol == Service.SEQUENCED.value:
        return group.nodes * group.window > group.sequencer.history
    return counters.longest_accepted + counters.longest_preacknowledged >= group.quota


def _waits(result: RunResult) -> str:
    waiting = [f"E{node + 1}: {', '.join(waits)}" for node, waits in enumerate(result.waits) if waits]
    return "; ".join(waiting) or "no node waits"


def is_blocked(result: RunResult) -> bool:
    """True if too many stopped for the rest to complete: less than a quorum is left or, without views, any crashed."""
    group = result.config.group
    if group.views:
        return result.blocked
    if result.config.protocol != Service.SEQUENCED.value or group.rules is not Rules.SOUND:
        return bool(result.crashed)
    going_on = set(result.members).difference(result.crashed, result.aborted_nodes)
    return len(going_on) < quorum(len(result.members), group.sequencer.resilience)
