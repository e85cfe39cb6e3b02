"""Nodes that stopped: those that crashed, were excluded from a view, or aborted the group.

The nodes that go on have one log. A stopped node delivered a prefix of it, and then possibly a tail that only it
delivered, unless the run promises *uniform* delivery: whatever any node delivered, all that go on deliver.
"""

from dataclasses import replace

from ordercast.audit.logs import RunLogs
from ordercast.audit.view_epochs import Epochs
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.audit.virtual_synchrony import is_uniform_view
from ordercast.model.nodes import everybody, mask_of, name_of


def delivered_uniformly(logs: RunLogs) -> Violations:
    """If the run promises it: the log of a stopped node is a prefix of the log of those that go on.

    Without a majority of the latest view no node goes on: then all logs are prefixes of the longest.
    """
    if not logs.uniform:
        return
    blocked = not _is_majority(logs)
    common = max(logs.delivered, key=len) if blocked else _common_log(logs)
    for node in range(logs.nodes) if blocked else sorted(logs.stopped):
        log = logs.delivered[node]
        place = _departs_at(log, common)
        if place < len(log):
            there = (
                f"delivered {message_name(common[place])} there" if place < len(common) else "delivered nothing there"
            )
            sentence = (
                f"{name_of(node)} delivered {message_name(log[place])} as number {place} of its log; others {there}"
            )
            yield Violation(delivered_uniformly.__name__, sentence, (log[place],), (node,), (place,))


def _is_majority(logs: RunLogs) -> bool:
    """True if those that go on are a majority of the latest view."""
    latest = max(logs.views, key=len, default=())
    members = latest[-1][1] if latest else everybody(logs.nodes)
    going_on = members & ~mask_of(logs.stopped)
    return 2 * going_on.bit_count() > members.bit_count()


def without_tails(logs: RunLogs) -> RunLogs:
    """The same run without the tails of stopped nodes: each log is cut where it departs from the common log."""
    if not logs.stopped:
        return logs
    if logs.epochs is not None:
        return _without_tails_of_epochs(logs, logs.epochs)
    common = _common_log(logs)
    delivered = [
        log[: _departs_at(log, common)] if node in logs.stopped else log for node, log in enumerate(logs.delivered)
    ]
    return replace(logs, delivered=tuple(delivered))


def _without_tails_of_epochs(logs: RunLogs, epochs: Epochs) -> RunLogs:
    """Each log is cut in its last view where others go on with something else, unless that view is uniform."""
    delivered = list(logs.delivered)
    for node in logs.stopped:
        last = epochs.by_node[node][-1] if epochs.by_node[node] else None
        if last is None or last.closed or is_uniform_view(logs, last.number):
            continue
        others = [
            other.delivered
            for other in epochs.of_view[last.number]
            if other.closed or (other.node not in logs.stopped and other.number == epochs.last)
        ]
        if others:
            place = _departs_at(last.delivered, max(others, key=len))
            delivered[node] = delivered[node][: len(delivered[node]) - len(last.delivered) + place]
    return replace(logs, delivered=tuple(delivered))


def _common_log(logs: RunLogs) -> tuple[Message, ...]:
    """The longest log of those that go on; if none does, of those that installed the most views."""
    going_on = [node for node in range(logs.nodes) if node not in logs.stopped]
    most = max((len(views) for views in logs.views), default=0)
    last = [node for node in range(logs.nodes) if not logs.views or len(logs.views[node]) == most]
    return max((logs.delivered[node] for node in going_on or last), key=len)


def _departs_at(log: tuple[Message, ...], common: tuple[Message, ...]) -> int:
    """The first position at which a log differs from another, or one of them ends."""
    for place, (message, other) in enumerate(zip(log, common, strict=False)):
        if message != other:
            return place
    return min(len(log), len(common))
