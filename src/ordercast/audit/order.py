"""Orders of delivery: each sender's own, the same one at all nodes, one without cycles.

A message that a node delivered twice counts at its first position; that it came twice is reported by `complete`.
"""

from collections.abc import Iterator, Mapping, Sequence

from ordercast.audit.logs import RunLogs
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import name_of

Places = Mapping[Message, int]
"""The position of each message in a log, in the order of the log."""


def sender_order_kept(logs: RunLogs) -> Violations:
    """Order-preserved (L4): a node delivers the messages of each source in the order in which it sent them (FIFO)."""
    for node, places in enumerate(_places_of(logs)):
        latest: dict[int, Message] = {}
        for message, place in places.items():
            if message not in logs.sent:
                continue
            source = message[0]
            before = latest.get(source)
            if before is not None and logs.sent[message].place < logs.sent[before].place:
                sentence = (
                    f"{name_of(node)} delivered {message_name(before)} before {message_name(message)}, "
                    f"but {name_of(source)} sent {message_name(message)} first"
                )
                yield Violation(
                    sender_order_kept.__name__, sentence, (before, message), (node,), (places[before], place)
                )
            latest[source] = message


def same_order(logs: RunLogs) -> Violations:
    """Order-equivalent: any two nodes delivered their common messages in the same order."""
    all_places = _places_of(logs)
    # Without a cycle there is one order, and no two logs disagree: most runs need no comparison of all pairs.
    if next(_cycles(all_places), None) is None:
        return
    for one in range(logs.nodes):
        for other in range(one + 1, logs.nodes):
            yield from _disagreements(one, all_places[one], other, all_places[other])


def _disagreements(one: int, places: Places, other: int, other_places: Places) -> Violations:
    """Neighbours among the common messages that are in the opposite order in the other log.

    If there are none, all common messages are in the same order.
    """
    before: Message | None = None
    for message, place in places.items():
        other_place = other_places.get(message)
        if other_place is None:
            continue
        if before is not None and other_place < other_places[before]:
            sentence = (
                f"{name_of(one)} delivered {message_name(before)} before {message_name(message)}, "
                f"{name_of(other)} in the opposite order"
            )
            found = (places[before], place, other_places[before], other_place)
            yield Violation(same_order.__name__, sentence, (before, message), (one, other), found)
        before = message


def no_cycle(logs: RunLogs) -> Violations:
    """Consistent: the union of all receipt orders has no cycle (ST requires it besides order-equivalence).

    With g to E1 and E3, y to E1 and E2, w to E2 and E3, the logs <g y>, <y w>, <w g> agree pairwise, since no two
    nodes share two messages; yet no total order of the three contains all of them.
    """
    all_places = _places_of(logs)
    for cycle in _cycles(all_places):
        messages = [message for message, _ in cycle]
        following = [*messages[1:], messages[0]]
        steps = [
            f"{name_of(node)} delivered {message_name(message)} before {message_name(after)}"
            for (message, node), after in zip(cycle, following, strict=True)
        ]
        yield Violation(
            no_cycle.__name__,
            ", ".join(steps),
            messages=tuple(messages),
            nodes=tuple(node for _, node in cycle),
            places=tuple(all_places[node][message] for message, node in cycle),
        )


def _places_of(logs: RunLogs) -> list[Places]:
    places: list[Places] = []
    for log in logs.delivered:
        first: dict[Message, int] = {}
        for place, message in enumerate(log):
            first.setdefault(message, place)
        places.append(first)
    return places


Cycle = list[tuple[Message, int]]
"""Messages, each with a node that delivered it before the next one; the last comes before the first."""


def _cycles(logs: Sequence[Places]) -> Iterator[Cycle]:
    """Cycles in the union of some orders. Takes time proportional to the logs.

    The logs are merged: a message is removed when it is at the head of all logs that contain it. When none can be
    removed, the heads wait for each other, which is a cycle. It is yielded, its messages are skipped, and the merge
    continues; so no two of the cycles have a message in common.
    """
    merge = _Merge(logs)
    while merge.heads:
        cycle = _shortened(_waiting_for_each_other(merge), merge)
        yield cycle
        merge.skip([message for message, _ in cycle])


class _Merge:
    """A merge of logs into one, as far as possible."""

    def __init__(self, logs: Sequence[Places]) -> None:
        self.logs = logs
        self.heads: dict[Message, list[int]] = {}
        """The messages at the heads of the logs, each with the logs whose head it is."""
        self._rest = [iter(log) for log in logs]
        self._held_by: dict[Message, int] = {}
        for log in logs:
            for message in log:
                self._held_by[message] = self._held_by.get(message, 0) + 1
        self._skipped: set[Message] = set()
        self._advance(range(len(logs)))

    def skip(self, messages: Sequence[Message]) -> None:
        """Continues as if these heads were in no log."""
        self._skipped.update(messages)
        self._advance([log for message in messages for log in self.heads.pop(message)])

    def _advance(self, logs: Sequence[int]) -> None:
        waiting = list(logs)
        while waiting:
            log = waiting.pop()
            message = next((message for message in self._rest[log] if message not in self._skipped), None)
            if message is None:
                continue
            heads = self.heads.setdefault(message, [])
            heads.append(log)
            if len(heads) == self._held_by[message]:
                waiting += self.heads.pop(message)


def _waiting_for_each_other(merge: _Merge) -> Cycle:
    """A cycle among the heads: each of them is, in some log, behind another head."""
    head_of = {log: message for message, logs in merge.heads.items() for log in logs}
    message = next(iter(merge.heads))
    backwards: Cycle = []
    seen: dict[Message, int] = {}
    while message not in seen:
        seen[message] = len(backwards)
        log = next(log for log, head in head_of.items() if head != message and message in merge.logs[log])
        message = head_of[log]
        backwards.append((message, log))
    return backwards[seen[message] :][::-1]


def _shortened(cycle: Cycle, merge: _Merge) -> Cycle:
    """The shortest cycle that one shortcut makes of this one."""
    size = len(cycle)
    for length in range(2, size):
        for end in range(size):
            start = (end - length + 1) % size
            last, first = cycle[end][0], cycle[start][0]
            log = next((log for log in merge.heads[last] if first in merge.logs[log]), None)
            if log is not None:
                path = [cycle[(start + index) % size] for index in range(length - 1)]
                return [*path, (last, log)]
    return cycle
