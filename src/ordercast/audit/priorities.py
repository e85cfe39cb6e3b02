"""Priority-based services: everything to everybody, by priority within runs that are the same at all nodes.

A *run* of the papers is a section of a log that is ordered by priority; here it is a priority run, since a run is a
simulation. The definition of the *maximum* run-partition is printed with the comparison reversed: with it a log would
have several, although the paper calls it unique, and the paper's own example would not be one. It is cut where the
priority rises.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ordercast.audit.logs import RunLogs, Sent
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import name_of

PriorityRun = tuple[Sent, ...]


# --- the definitions (section 3), for logs that contain each message once ---


def priority_ordered(log: Sequence[Sent]) -> bool:
    """Priority-based ordered: higher priorities first, and of equal ones each sender's in sending order."""
    return not any(before.priority < after.priority for before, after in pairwise(log)) and not any(_swapped(log))


def priority_runs(log: Sequence[Sent]) -> list[PriorityRun]:
    """The maximum run-partition of a log, if it has one: cut at each rise of priority, and nowhere else."""
    cuts = [place for place, (before, after) in enumerate(pairwise(log), start=1) if before.priority < after.priority]
    return [tuple(log[start:end]) for start, end in pairwise([0, *cuts, len(log)])] if log else []


def priority_equivalent(one: Sequence[Sent], other: Sequence[Sent]) -> bool:
    """Priority-equivalent: the same messages, in both ordered by priority."""
    return _names(one) == _names(other) and priority_ordered(one) and priority_ordered(other)


def _alike(some_runs: Sequence[PriorityRun], other_runs: Sequence[PriorityRun]) -> bool:
    return len(some_runs) == len(other_runs) and all(map(priority_equivalent, some_runs, other_runs))


def _names(log: Sequence[Sent]) -> set[Message]:
    return {sent.message for sent in log}


# --- the properties ---


def same_runs(logs: RunLogs) -> Violations:
    """All logs are run-equivalent to each other.

    The log of a stopped node may end anywhere: its last run may be any part of the corresponding run. Where members may
    join, a view ends all runs, and logs are compared view by view.
    """
    if logs.epochs is None:
        yield from _same_runs(logs)
        return
    for number, epochs in logs.epochs.of_view.items():
        delivered: list[tuple[Message, ...]] = [()] * logs.nodes
        ending = set(range(logs.nodes))
        for epoch in epochs:
            delivered[epoch.node] = epoch.delivered
            if epoch.closed or (logs.ended and number == logs.epochs.last and epoch.node not in logs.stopped):
                ending.discard(epoch.node)
        for found in _same_runs(replace(logs, delivered=tuple(delivered), stopped=frozenset(ending))):
            yield replace(found, sentence=f"in view {number} {found.sentence}")


def _same_runs(logs: RunLogs) -> Violations:
    all_runs = [priority_runs(_as_sent(logs, node)) for node in range(logs.nodes)]
    for node, runs in enumerate(all_runs):
        for number, run in enumerate(runs):
            for before, after in _swapped(run):
                yield _swap(same_runs.__name__, node, before, after, f" in the {_ordinal(number)} priority run")
    reference = max(range(logs.nodes), key=lambda node: (node not in logs.stopped, len(logs.delivered[node]), -node))
    for node in range(logs.nodes):
        if not _alike(all_runs[reference], all_runs[node]):
            yield from _first_difference(logs, reference, node, all_runs)


def sender_order_kept_by_priority(logs: RunLogs) -> Violations:
    """Each sender's messages of one priority are delivered in sending order, across all runs.

    The definition requires it within a run only; PriTO guarantees it throughout.
    """
    for node in range(logs.nodes):
        for before, after in _swapped(_as_sent(logs, node)):
            yield _swap(sender_order_kept_by_priority.__name__, node, before, after, "")


def _as_sent(logs: RunLogs, node: int) -> list[Sent]:
    """A receipt log, each message once, as it was sent; unknown messages are reported by `complete`."""
    return [logs.sent[message] for message in dict.fromkeys(logs.delivered[node]) if message in logs.sent]


def _swapped(log: Sequence[Sent]) -> Iterator[tuple[Sent, Sent]]:
    """Pairs of one sender and one priority in the opposite of their sending order."""
    latest: dict[tuple[int, int], Sent] = {}
    for sent in log:
        key = (sent.message[0], sent.priority)
        before = latest.get(key)
        if before is not None and sent.place < before.place:
            yield before, sent
        latest[key] = sent


def _swap(breaks: str, node: int, before: Sent, after: Sent, where: str) -> Violation:
    sentence = (
        f"{name_of(node)} delivered {message_name(before.message)} before {message_name(after.message)}{where}, "
        f"of the same sender and priority {after.priority}, which was sent first"
    )
    return Violation(breaks, sentence, messages=(before.message, after.message), nodes=(node,))


def _first_difference(
    logs: RunLogs, reference: int, node: int, all_runs: Sequence[Sequence[PriorityRun]]
) -> Violations:
    runs, right_runs = all_runs[node], all_runs[reference]
    for number in range(max(len(runs), len(right_runs))):
        mine, right = _messages(runs, number), _messages(right_runs, number)
        node_ends = node in logs.stopped and number >= len(runs) - 1
        reference_ends = reference in logs.stopped and number >= len(right_runs) - 1
        surplus = sorted(mine - right) if not reference_ends else []
        lacking = sorted(right - mine) if not node_ends else []
        if surplus or lacking:
            parts = [f"lacks {message_name(message)}" for message in lacking[:1]]
            parts += [f"has {message_name(message)}" for message in surplus[:1]]
            sentence = (
                f"the {_ordinal(number)} priority run of {name_of(node)} {' and '.join(parts)}, "
                f"unlike that of {name_of(reference)}"
            )
            found = (*lacking[:1], *surplus[:1])
            yield Violation(same_runs.__name__, sentence, messages=found, nodes=(node, reference), places=(number,))
            return


def _messages(runs: Sequence[PriorityRun], number: int) -> set[Message]:
    return _names(runs[number]) if number < len(runs) else set()


def _ordinal(number: int) -> str:
    number += 1
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
