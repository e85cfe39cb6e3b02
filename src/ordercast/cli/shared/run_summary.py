"""The summary of a run, as text and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.shared.printing import counted, noun
from ordercast.model.faults import Crash, Leave, back_at, founders_of, returned_nodes
from ordercast.model.machine import Level
from ordercast.model.nodes import name_of
from ordercast.model.runs import TraceDetail
from ordercast.model.services import Service
from ordercast.simulator import RunResult
from ordercast.simulator.workloads import senders

_LEVELS = {Level.ACCEPTED: "accepted", Level.PREACKNOWLEDGED: "pre-acknowledged", Level.ACKNOWLEDGED: "acknowledged"}


def as_json(result: RunResult) -> str:
    """One JSON object with everything that the summary shows."""
    latency = {
        _LEVELS[level]: {"count": times.count, "p50": times.percentile(50), "p99": times.percentile(99)}
        for level, times in result.counters.latency.items()
    }
    document = {
        "run": result.config.name(),
        "complete": result.complete,
        "stalled": result.stalled,
        "aborted": result.aborted,
        "left": [name_of(node) for node in result.left],
        "crashed": {name_of(node): time for node, time in _crash_times(result).items()},
        "view": {
            "number": result.view,
            "time": result.view_time,
            "members": [name_of(node) for node in result.members],
        },
        "virtual_time": result.virtual_time,
        "counters": dict(result.counters.columns()),
        "latency": latency,
        "waiting": {
            str(priority): {
                "count": times.count,
                "p50": times.percentile(50),
                "p99": times.percentile(99),
                "most": times.highest,
            }
            for priority, times in sorted(result.counters.waiting.items())
        },
        "waits_for": {name_of(node): lines for node, lines in enumerate(result.waits) if lines},
        "config": msgspec.Raw(result.config.to_json().encode()),
    }
    return msgspec.json.encode(document).decode()


def print_summary(result: RunResult, console: Console, out: Path | None) -> None:
    """Prints the summary."""
    counts = result.counters
    console.print(_headline(result))
    if departures := _departures(result):
        console.print(departures, soft_wrap=True, markup=False)
    console.print(_counts(result))
    levels = Table("reached", "p50", "p99", "most", "longest log", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    longest = {Level.ACCEPTED: counts.longest_accepted}
    if result.config.protocol != Service.SEQUENCED.value:  # its pre-acknowledged packets wait for nothing
        longest[Level.PREACKNOWLEDGED] = counts.longest_preacknowledged
    for level, times in counts.latency.items():
        if level is Level.ACKNOWLEDGED and result.config.protocol == Service.SEQUENCED.value:
            continue  # it has no such level
        log = f"{longest[level]:,}" if level in longest else "delivered" if level is Level.ACKNOWLEDGED else "–"
        shown_times = (times.percentile(50), times.percentile(99), times.highest)
        shown = [_time(time) if times.count else "–" for time in shown_times]
        levels.add_row(_LEVELS[level], *shown, log)
    console.print(levels)
    if counts.waiting:
        console.print(_waiting(result))
    if not result.complete:
        for node, lines in enumerate(result.waits):
            for line in lines:
                console.print(f"  {name_of(node)}: {line}", soft_wrap=True, markup=False)
    if out is not None:
        sentence = f"The trace is in {out}"
        if result.config.record is not TraceDetail.NONE:
            sentence += f"; audit it with: ordercast audit {quote(str(out))}"
        console.print(sentence, soft_wrap=True, markup=False)


def _counts(result: RunResult) -> Table:
    counts = result.counters
    control, repairs = _per(counts.control, counts.transmitted), _per(counts.retransmitted, counts.lost_data)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for name, count, explained in (
        (
            "messages",
            counts.sent,
            f"sent by {counted(len(senders(result.config)), 'node')}; {counted(counts.delivered, 'delivery')}",
        ),
        ("data units", counts.transmitted, f"put on the channel; {counts.received:,} reached a node"),
        ("control units", counts.control, f"{control} for each data unit; bytes in all {counts.bytes:,}"),
        (
            "losses",
            counts.lost,
            f"{noun(counts.lost, 'unit')} that did not reach a node; {counts.lost_data:,} of them data for it",
        ),
        (
            "repairs",
            counts.retransmitted,
            (
                f"{noun(counts.retransmitted, 'retransmission')} for {counted(counts.requests, 'request')}; "
                f"{repairs} for each such loss"
            ),
        ),
        (
            "discarded",
            counts.discarded,
            f"received {noun(counts.discarded, 'data unit')}; {counts.duplicated:,} duplicated by the network",
        ),
    ):
        table.add_row(name, f"{count:,}", explained)
    if result.config.protocol == Service.SEQUENCED.value:
        per_message = _per(counts.packets(), counts.sent), _per(counts.interrupts, counts.sent)
        table.add_row("packets", f"{counts.packets():,}", f"units put on the network, {per_message[0]} per message")
        table.add_row(
            "interrupts", f"{counts.interrupts:,}", f"units that reached a node, {per_message[1]} per message"
        )
    if counts.recoveries:
        stopped = _time(counts.frozen_time // counts.recoveries)
        if result.config.protocol == Service.SEQUENCED.value or result.config.group.views:
            text = f"{noun(counts.recoveries, 'time')} a node stopped until the next view, {stopped} on average"
            table.add_row("stops", f"{counts.recoveries:,}", text)
        else:
            times = noun(counts.recoveries, "time")
            text = f"{times} a node stopped, {stopped} on average; {counted(counts.inserted, 'packet')} inserted"
            table.add_row("recoveries", f"{counts.recoveries:,}", text)
    return table


def _waiting(result: RunResult) -> Table:
    """Times from the send to the delivery, the highest priority first."""
    table = Table("priority", "deliveries", "p50", "p99", "most", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for priority, times in sorted(result.counters.waiting.items(), reverse=True):
        shown = [_time(time) for time in (times.percentile(50), times.percentile(99), times.highest)]
        table.add_row(str(priority), f"{times.count:,}", *shown)
    return table


def _headline(result: RunResult) -> Text:
    config = result.config
    what = f"{config.protocol} ({config.group.rules.value} rules), {config.group.nodes} nodes, seed {config.seed}: "
    if result.complete:
        verdict = Text(_success(result), style="bold green")
    else:
        why = "a node aborted" if result.aborted else "no progress" if result.stalled else "no event is left"
        verdict = Text(f"incomplete, {why}", style="bold red")
    return Text(what) + verdict + Text(f" after {_time(result.virtual_time)}")


def _success(result: RunResult) -> str:
    """The result of a complete run; if a node left the group, its last messages may be lost."""
    if result.left:
        return "all messages of the remaining nodes delivered to all of them"
    reached = "delivered" if result.config.protocol == Service.SEQUENCED.value else "acknowledged"
    return f"every message {reached} everywhere"


def _departures(result: RunResult) -> str:
    """When nodes crashed, and when the others went on without them; empty if nothing of it happened."""
    if result.config.group.views:
        return "; ".join(_changes(result))
    clauses = [f"{name_of(node)} crashed at {_time(time)}" for node, time in _crash_times(result).items()]
    excluded = [node for node in range(result.config.group.nodes) if node not in result.members]
    if excluded:
        clauses.append(f"{_names(result.members)} went on without {_names(excluded)} at {_time(result.view_time)}")
    if noticed_by_none := [node for node in result.left if node not in excluded]:
        clauses.append(f"no view without {_names(noticed_by_none)} was installed")
    if clauses:
        clauses.append(f"the last progress was at {_time(result.virtual_time)}")
    return "; ".join(clauses)


def _changes(result: RunResult) -> list[str]:
    """How the members of a group with views changed."""
    config, there = result.config, set(result.members)
    clauses = [f"{name_of(node)} crashed at {_time(time)}" for node, time in _crash_times(result).items()]
    returned = returned_nodes(config.faults, config.group.nodes)
    for node, fault in returned.items():
        clauses.append(f"{name_of(fault.node)} started again at {_time(back_at(fault))}, as {name_of(node)}")
    gone = set(result.left).difference(result.crashed)
    leaving = {fault.node for fault in config.faults if isinstance(fault, Leave)}
    founders = founders_of(config.faults, config.group.nodes)
    later = set(range(config.group.nodes)).difference(founders, returned)
    for nodes, what in (
        (later & (there | set(result.left)), "joined"),
        (gone & leaving, "left"),
        (gone - leaving, "excluded"),
        (set(range(config.group.nodes)).difference(founders, there, result.left), "not taken in"),
    ):
        clauses += [f"{what}: {_names(sorted(nodes))}"] if nodes else []
    if result.blocked:
        clauses.append("too few members remain to agree on a view")
    since = f" since {_time(result.view_time)}" if result.view else ""
    return [*clauses, f"view {result.view}{since}: {_names(result.members)}"]


def _crash_times(result: RunResult) -> dict[int, int]:
    crashes = [fault for fault in result.config.faults if isinstance(fault, Crash)]
    times = {node: [fault.at for fault in crashes if fault.node == node] for node in result.crashed}
    return {node: min(found) for node, found in times.items() if found}  # others ended when they started again


def _names(nodes: Sequence[int]) -> str:
    return ", ".join(name_of(node) for node in nodes)


def _per(count: int, base: int) -> str:
    return f"{count / base:.2f}" if base else "–"


def _time(nanoseconds: int) -> str:
    """A duration with three digits, in a suitable unit."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)):
        value = nanoseconds / size
        if value >= 999.5:  # %.3g would use an exponent
            return f"{value:,.0f} {unit}"
        if value >= 0.9995:
            return f"{value:.3g} {unit}"
    return f"{nanoseconds} ns"
