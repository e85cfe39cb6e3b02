"""Durable logs: what is on a disk is there when its process starts again, and what a majority has on its disks stays.

A message is told durable to its sender when a majority of the members of a view have it on their disks, with all
before it. Which messages could have been told so follows from what each disk had at the end of each view.
"""

from collections import Counter
from collections.abc import Sequence

from ordercast.audit.logs import RunLogs
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import name_of


def durable_survives(logs: RunLogs) -> Violations:
    """A process that is started again has in its log all that was on its disk, at the same positions."""
    for again in logs.disks.started_again():
        who = f"{name_of(again.node)}, which is {name_of(again.old)} started again,"
        if again.missing:
            sentence = f"{who} says that {again.missing} more messages are in its log than it names"
            yield Violation(durable_survives.__name__, sentence, nodes=(again.node,))
        place = _first_difference(logs.disks.of(again.old), again.found)
        if place is not None:
            before = logs.disks.of(again.old)[place]
            has = message_name(again.found[place]) if place < len(again.found) else "nothing"
            sentence = f"{who} has {has} at position {place} of its log, where {message_name(before)} was on its disk"
            yield Violation(durable_survives.__name__, sentence, (before,), (again.node, again.old))


def one_log(logs: RunLogs) -> Violations:
    """The logs of those that have not stopped have the same message at the same position.

    Whoever stopped may have had at its end what was never agreed on: it drops that when it comes back.
    """
    remaining = [(node, logs.disks.of(node)) for node in _running(logs)]
    longest = max(remaining, key=lambda each: len(each[1]), default=(0, []))
    for node, mine in remaining:
        place = _first_difference(mine, longest[1])
        if place is not None:
            other, theirs = longest[0], longest[1][place]
            sentence = (
                f"{name_of(node)} has {message_name(mine[place])} at position {place} of its log, "
                f"{name_of(other)} has {message_name(theirs)} there"
            )
            yield Violation(one_log.__name__, sentence, (mine[place], theirs), (node, other))


def majority_survives(logs: RunLogs) -> Violations:
    """What a majority of a view had on their disks when it ended is in the log of each member of the last view."""
    if logs.epochs is None or not logs.ended:
        return
    last = logs.epochs.members(logs.epochs.last)
    finals = {node: logs.disks.of(node) for node in _running(logs) if last >> node & 1}
    for number, epochs in logs.epochs.of_view.items():
        if number == logs.epochs.last:
            continue  # disks may be behind
        ends = {}
        for epoch in epochs:
            after = [each.view.step for each in logs.epochs.by_node[epoch.node] if each.number > number]
            ends[epoch.node] = logs.disks.of(epoch.node, min(after, default=None))
        needed = logs.epochs.members(number).bit_count() // 2 + 1
        for node, final in finals.items():
            lost = _lost(final, list(ends.values()), needed)
            if lost is not None:
                place, message = lost
                has = message_name(final[place]) if place < len(final) else "nothing"
                sentence = (
                    f"{message_name(message)} was at position {place} on the disks of a majority of view {number}, "
                    f"and {name_of(node)} has {has} there"
                )
                yield Violation(majority_survives.__name__, sentence, (message,), (node,))


def _running(logs: RunLogs) -> list[int]:
    stopped = logs.stopped | {again.old for again in logs.disks.started_again()}
    return [node for node in logs.disks.rows if node not in stopped]


def _first_difference(mine: Sequence[Message], other: Sequence[Message]) -> int | None:
    """The first position of one log at which the other one is different or has ended; None: it is its beginning."""
    if list(mine) == list(other[: len(mine)]):
        return None
    return next(at for at, message in enumerate(mine) if at >= len(other) or other[at] != message)


def _lost(final: list[Message], logs: list[list[Message]], needed: int) -> tuple[int, Message] | None:
    """The first message that so many logs have at a position where the final one has another one, or none."""
    places = [_first_difference(log, final) for log in logs]
    different = [place for place in places if place is not None]
    if len(different) < needed:
        return None
    for at in range(min(different), max(map(len, logs))):
        counted = Counter(log[at] for log in logs if at < len(log)).most_common(1)
        if counted and counted[0][1] >= needed and final[at : at + 1] != [counted[0][0]]:
            return at, counted[0][0]
    return None
