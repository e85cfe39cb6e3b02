"""Completeness: each node delivered all messages addressed to it, nothing else and nothing twice.

Nothing else: only what had been sent, to those that its `send` names, and by nodes that had not crashed. Whether a
message had been sent is decided by steps at its own source, elsewhere by the run's one clock; the same time counts as
after, since a simulated network may have no delay.
"""

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
        yield from _surplus(logs, node, log)
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
    return Violation(complete.__name__, sentence, messages=(message,), nodes=(node,), places=places)


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
    first_place: dict[Message, int] = {}
    moments, crash = logs.first[EventKind.DELIVER][node], logs.crashed_at.get(node)
    for place, message in enumerate(log):
        name = f"{name_of(node)} delivered {message_name(message)}"
        sent = logs.sent.get(message)
        sentence = ""
        if message in first_place:
            yield delivered_twice(node, message, (first_place[message], place))
        elif sent is None:
            sentence = f"{name}, which no node sent"
        elif not (to := logs.named.get(message, sent.destinations)) >> node & 1:
            sentence = f"{name}, which was sent to {names_of(to)} only"
        elif _is_before(moments[message], node, sent):
            sentence = f"{name} before {name_of(message[0])} sent it"
        elif crash is not None and moments[message].step > crash:
            sentence = f"{name} after it had crashed"
        first_place.setdefault(message, place)
        if sentence:
            yield Violation(complete.__name__, sentence, messages=(message,), nodes=(node,), places=(place,))
