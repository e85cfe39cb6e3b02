"""Urgent first: whether a prioritised service lets urgent messages overtake, as it promises.

Priority runs alone do not show it: a log cut wherever the priority rises has priority runs whatever its order. What a
node has pre-acknowledged and not delivered waits in the order of priorities, and the first is delivered; something else
is delivered before it only at a marker, which ends a run for those that have waited too long. So a delivery that
overtakes something more urgent is right only if some node sent a marker after it had acknowledged what was delivered
then, the message itself or a less urgent one.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ordercast.audit.logs import Moment, RunLogs, Sent
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import name_of
from ordercast.trace.schema import EventKind


def priority_order_kept(logs: RunLogs) -> Violations:
    """A node delivers nothing while something more urgent that it pre-acknowledged waits, unless a marker ends the run.

    Asked where levels and transmissions are recorded; markers are among the latter.
    """
    markers = _markers_by_node(logs)
    for node in range(logs.nodes):
        by_time = _by_time(logs, node) if markers else {}
        for sent, urgent, moment in _overtaking(logs, node):
            together = [at for at in by_time.get(moment.time, ()) if at.step >= moment.step]
            if not any(_covered(logs, markers, one, moment) for one in together if one.priority <= sent.priority):
                sentence = (
                    f"{name_of(node)} delivered {message_name(sent.message)} of priority {sent.priority} while "
                    f"{message_name(urgent.message)} of priority {urgent.priority} waited, and no marker ended the run"
                )
                yield Violation(priority_order_kept.__name__, sentence, (sent.message, urgent.message), (node,))


def _overtaking(logs: RunLogs, node: int) -> Iterator[tuple[Sent, Sent, Moment]]:
    """What a node delivered before something more urgent that it had pre-acknowledged: both, and when."""
    preacknowledged = [
        (moment.step, logs.sent[message])
        for message, moment in logs.first[EventKind.PREACK][node].items()
        if message in logs.sent
    ]
    waiting: list[tuple[int, int, Sent]] = []  # a heap, the most urgent first
    delivered: set[Message] = set()
    place = 0
    for message, moment in logs.first[EventKind.DELIVER][node].items():
        while place < len(preacknowledged) and preacknowledged[place][0] < moment.step:
            sent = preacknowledged[place][1]
            heappush(waiting, (-sent.priority, place, sent))
            place += 1
        delivered.add(message)
        while waiting and waiting[0][2].message in delivered:
            heappop(waiting)
        this = logs.sent.get(message)
        if this is not None and waiting and waiting[0][2].priority > this.priority:
            yield this, waiting[0][2], moment


class _Delivered(NamedTuple):
    step: int
    message: Message
    priority: int


def _by_time(logs: RunLogs, node: int) -> dict[int, list[_Delivered]]:
    """What a node delivered at each instant."""
    found: dict[int, list[_Delivered]] = {}
    for message, moment in logs.first[EventKind.DELIVER][node].items():
        if message in logs.sent:
            found.setdefault(moment.time, []).append(_Delivered(moment.step, message, logs.sent[message].priority))
    return found


def _markers_by_node(logs: RunLogs) -> dict[int, list[Moment]]:
    found: dict[int, list[Moment]] = {}
    for node, moment in sorted(logs.markers):
        found.setdefault(node, []).append(moment)
    return found


def _covered(logs: RunLogs, markers: Mapping[int, Sequence[Moment]], one: _Delivered, moment: Moment) -> bool:
    """True if a node had acknowledged a message before it sent a marker, by then."""
    for node, sent in markers.items():
        known = logs.first[EventKind.ACK][node].get(one.message)
        last = bisect_right(sent, moment.time, key=lambda at: at.time)
        if known is not None and last and known.step < sent[last - 1].step:
            return True
    return False
