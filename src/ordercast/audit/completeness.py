"""Completeness: each node delivered all messages addressed to it, nothing else and nothing twice.

Nothing else: only what had been sent, to those that its `send` names, and by nodes that had not crashed. Whether a
message had been sent is decided by steps at its own source, elsewhere by the run's one clock; the same time counts as
after, since a simulated network may have no delay.
"""

from dataclasses import replace
from itertools import islice

from ordercast.audit.logs import LEVELS, Moment, RunLogs, Sent
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import members, name_of, names_of
from ordercast.trace.schema import EventKind

_DID = {EventKind.ACCEPT: "accepted", EventKind.PREACK: "pre-acknowledged", EventKind.ACK: "acknowledged"}


def complete(logs: RunLogs) -> Violations:
    """Information-preserved (L5), with destinations selectively so (L5'): RL contains what is addressed to its node.

    A stopped node may lack anything. What a stopped node sent may be missing too, but then everywhere: if one of the
    nodes that go on has it, all its destinations among them must have it. Where members may join, what is missing is
    asked view by view instead: see `virtual_synchrony`.
    """
    yield from _numbered_twice(logs)
    if logs.epochs is None:
        yield from _lacking(logs)
    for node, log in enumerate(logs.delivered):
        for violation in _surplus(logs, node, log):
            yield replace(violation, breaks=complete.__name__)
    if logs.crashed_at:
        yield from _after_crash(logs)


def _numbered_twice(logs: RunLogs) -> Violations:
    for message in logs.numbered_twice:
        sentence = f"{name_of(message[0])} gave the name {message_name(message)} to two messages"
        yield Violation(complete.__name__, sentence, messages=(message,), nodes=(message[0],))


def _lacking(logs: RunLogs) -> Violations:
    seen = [set(log) for log in logs.delivered]
    going_on = [node for node in range(logs.nodes) if node not in logs.stopped]
    for message, sent in logs.sent.items():
        lacking = [to for to in members(sent.destinations) if message not in seen[to] and to not in logs.stopped]
        if not lacking or (message[0] in logs.stopped and not any(message in seen[node] for node in going_on)):
            continue
        for node in lacking:
            sentence = f"{name_of(node)} lacks {message_name(message)}, sent to {names_of(sent.destinations)}"
            yield Violation(complete.__name__, sentence, messages=(message,), nodes=(node,))


def delivered_twice(node: int, message: Message, places: tuple[int, int]) -> Violation:
    """The violation of a node that delivered a message at two places of its log."""
    sentence = (
        f"{name_of(node)} delivered {message_name(message)} twice, as numbers {places[0]} and {places[1]} of its log"
    )
    return Violation(delivered_once.__name__, sentence, messages=(message,), nodes=(node,), places=places)


def _after_crash(logs: RunLogs) -> Violations:
    """What nodes sent, and levels that they reached, after they had crashed; deliveries are found by `_surplus`."""
    for message, sent in logs.sent.items():
        if sent.moment.step > logs.crashed_at.get(message[0], sent.moment.step):
            sentence = f"{name_of(message[0])} sent {message_name(message)} after it had crashed"
            yield Violation(complete.__name__, sentence, messages=(message,), nodes=(message[0],))
    for level in LEVELS:
        for node, crash in sorted(logs.crashed_at.items()):
            for message, moment in logs.first[level][node].items():
                if moment.step > crash:
                    sentence = f"{name_of(node)} {_DID[level]} {message_name(message)} after it had crashed"
                    yield Violation(complete.__name__, sentence, messages=(message,), nodes=(node,))


def _is_before(moment: Moment, node: int, sent: Sent) -> bool:
    """True if a node did something at a moment before a message was sent."""
    if node == sent.message[0]:
        return moment.step < sent.moment.step
    return moment.time < sent.moment.time


def _surplus(logs: RunLogs, node: int, log: tuple[Message, ...]) -> Violations:
    """The first thing that is wrong with each delivery."""
    for place, message in enumerate(log):
        yield from islice(_wrong(logs, node, place, message), 1)


def _wrong(logs: RunLogs, node: int, place: int, message: Message) -> Violations:
    """All that is wrong with a delivery, by the parts of `complete`; of a second one only that it is the second."""
    first = logs.first_places[node][message]
    if first < place:
        yield delivered_twice(node, message, (first, place))
        return
    sent, moment, crash = (
        logs.sent.get(message),
        logs.first[EventKind.DELIVER][node][message],
        logs.crashed_at.get(node),
    )
    found: list[tuple[str, str]] = []
    if sent is None:
        found.append((nothing_extra.__name__, ", which no node sent"))
    else:
        to = logs.named.get(message, sent.destinations)
        if not to >> node & 1:
            found.append((nothing_extra.__name__, f", which was sent to {names_of(to)} only"))
        if _is_before(moment, node, sent):
            found.append((sent_first.__name__, f" before {name_of(message[0])} sent it"))
    if crash is not None and moment.step > crash:
        found.append((nothing_after_crash.__name__, " after it had crashed"))
    for part, how in found:
        sentence = f"{name_of(node)} delivered {message_name(message)}{how}"
        yield Violation(part, sentence, messages=(message,), nodes=(node,), places=(place,))


# --- its parts, for profiles that ask for some of them ---


def all_delivered(logs: RunLogs) -> Violations:
    """Each node delivered all messages addressed to it: the part of `complete` that a loss violates."""
    for violation in _lacking(logs) if logs.epochs is None else ():
        yield replace(violation, breaks=all_delivered.__name__)


def delivered_once(logs: RunLogs) -> Violations:
    """No node delivered a message twice: the part of `complete` that a service promises not which delivers again."""
    return _part(logs, delivered_once.__name__)


def nothing_extra(logs: RunLogs) -> Violations:
    """Each node delivered only what was sent, to those that its `send` names; and no name is that of two messages."""
    for violation in _numbered_twice(logs):
        yield replace(violation, breaks=nothing_extra.__name__)
    yield from _part(logs, nothing_extra.__name__)


def sent_first(logs: RunLogs) -> Violations:
    """No node delivered a message before it was sent; between nodes that is known where the run has one clock."""
    return _part(logs, sent_first.__name__)


def nothing_after_crash(logs: RunLogs) -> Violations:
    """A node does nothing after it crashed."""
    yield from _part(logs, nothing_after_crash.__name__)
    for violation in _after_crash(logs) if logs.crashed_at else ():
        yield replace(violation, breaks=nothing_after_crash.__name__)


PARTS = (all_delivered, delivered_once, nothing_extra, sent_first, nothing_after_crash)
"""What `complete` consists of."""


def _part(logs: RunLogs, part: str) -> Violations:
    for node, log in enumerate(logs.delivered):
        for place, message in enumerate(log):
            yield from (violation for violation in _wrong(logs, node, place, message) if violation.breaks == part)
