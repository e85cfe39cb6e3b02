"""Soundness of the levels of knowledge: a node reached a level of a message only when what the level means was true.

The levels are accepted, pre-acknowledged, acknowledged and delivered; `truthfully` in the names of these properties
means this soundness.

A protocol may reach its levels by any reasoning; here they are compared with what had happened by then. Events of one
node are compared by their steps. Events of two nodes are compared by the run's one clock; a cause at the same time as
its effect counts as earlier, since a simulated network may have no delay.

These checks need a trace that records the levels (`RunLogs.has_levels`).
"""

from collections import defaultdict
from collections.abc import Mapping

from ordercast.audit.logs import Moment, RunLogs, Sent
from ordercast.audit.view_epochs import Epochs
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import mask_of, members, name_of, names_of
from ordercast.trace.schema import EventKind


def accepted_truthfully(logs: RunLogs) -> Violations:
    """Accepted: the node has the message, and all that its source sent to the node before it."""
    addressed: dict[tuple[int, int], list[Sent]] = defaultdict(list)
    for sent in logs.sent.values():
        for node in members(_due_at(logs, sent)):
            addressed[sent.message[0], node].append(sent)
    checks_receipt = any(logs.first[EventKind.RECEIVE])
    for node, accepts in enumerate(logs.first[EventKind.ACCEPT]):
        accepted: set[Message] = set()
        next_due: dict[int, int] = defaultdict(int)
        for message, moment in accepts.items():
            this = logs.sent.get(message)
            if this is None:
                sentence = _claim(node, EventKind.ACCEPT, message, ", which no node sent")
                yield _unsound(accepted_truthfully.__name__, sentence, message, node)
                continue
            if checks_receipt and not _had(logs, node, this, moment):
                sentence = _claim(node, EventKind.ACCEPT, message, " without having received it")
                yield _unsound(accepted_truthfully.__name__, sentence, message, node)
            source = message[0]
            due = addressed[source, node]
            while next_due[source] < len(due) and due[next_due[source]].message in accepted:
                next_due[source] += 1
            if next_due[source] < len(due) and due[next_due[source]].place < this.place:
                earlier = due[next_due[source]].message
                but = f" before {message_name(earlier)}, which was sent to it earlier"
                sentence = _claim(node, EventKind.ACCEPT, message, but)
                yield _unsound(accepted_truthfully.__name__, sentence, message, node, earlier)
            accepted.add(message)


def preacknowledged_truthfully(logs: RunLogs) -> Violations:
    """Pre-acknowledged (PACK): every destination that the node knew to be in the group has accepted the message."""
    yield from _only_after(logs, EventKind.PREACK, EventKind.ACCEPT, preacknowledged_truthfully.__name__)


def acknowledged_truthfully(logs: RunLogs) -> Violations:
    """Acknowledged (ACK): every destination has pre-acknowledged the message. This is the papers' atomicity."""
    yield from _only_after(logs, EventKind.ACK, EventKind.PREACK, acknowledged_truthfully.__name__)


def delivered_truthfully(logs: RunLogs) -> Violations:
    """A node delivered only what it had acknowledged; or pre-acknowledged, if the run delivers what is stable.

    A node that aborts the group delivers at that instant what it has pre-acknowledged too: this may have been
    acknowledged, and so delivered, elsewhere.
    """
    for node, deliveries in enumerate(logs.first[EventKind.DELIVER]):
        acknowledged, preacknowledged = logs.first[EventKind.ACK][node], logs.first[EventKind.PREACK][node]
        end = logs.aborted_at.get(node)
        for message, moment in deliveries.items():
            at_the_end = end is not None and moment.time == end.time
            if logs.delivers_stable:
                known = preacknowledged.get(message)
            else:
                known = acknowledged.get(message) or (preacknowledged.get(message) if at_the_end else None)
            if known is None or known.step > moment.step:
                what = "pre-acknowledged" if logs.delivers_stable else "acknowledged"
                sentence = f"{name_of(node)} delivered {message_name(message)} without having {what} it"
                yield _unsound(delivered_truthfully.__name__, sentence, message, node)


_PAST = {EventKind.ACCEPT: "accepted", EventKind.PREACK: "pre-acknowledged", EventKind.ACK: "acknowledged"}


def _only_after(logs: RunLogs, effect: EventKind, cause: EventKind, breaks: str) -> Violations:
    causes = logs.first[cause]
    last_cause: dict[Message, int | None] = {}
    for node, effects in enumerate(logs.first[effect]):
        for message, moment in effects.items():
            sent = logs.sent.get(message)
            if sent is None:
                yield _unsound(breaks, _claim(node, effect, message, ", which no node sent"), message, node)
                continue
            if message not in last_cause:
                last_cause[message] = _time_of_the_last(causes, sent)
            latest, own = last_cause[message], causes[node].get(message)
            if latest is not None and latest <= moment.time and (own is None or own.step < moment.step):
                continue  # the common case, without checking each destination
            late = _late(causes, sent, node, moment, logs.members_at(node, moment) & ~logs.unrecorded)
            by_view = _late_for_view(logs, effect, node, sent, moment) if late else None
            late = late if by_view is None else members(by_view)
            if late:
                but = f" before {names_of(mask_of(late))} had {_PAST[cause]} it"
                sentence = _claim(node, effect, message, but)
                yield Violation(breaks, sentence, messages=(message,), nodes=(node, *late))


def _time_of_the_last(causes: tuple[Mapping[Message, Moment], ...], sent: Sent) -> int | None:
    """When it happened at the last of the destinations; None if it never did at one of them."""
    moments = [causes[to].get(sent.message) for to in members(sent.destinations)]
    times = [moment.time for moment in moments if moment is not None]
    return max(times, default=sent.moment.time) if len(times) == len(moments) else None


def _late(
    causes: tuple[Mapping[Message, Moment], ...], sent: Sent, node: int, effect: Moment, group: int
) -> tuple[int, ...]:
    """The destinations in the node's view of the group at which it had not happened by then."""
    late: list[int] = []
    for to in members(sent.destinations & group):
        cause = causes[to].get(sent.message)
        if cause is None or (cause.step > effect.step if to == node else cause.time > effect.time):
            late.append(to)
    return tuple(late)


def _due_at(logs: RunLogs, sent: Sent) -> int:
    """Where a message must be accepted before later ones of its source.

    Where members may join: in the view in which it is delivered; what is delivered in none is due nowhere.
    """
    if logs.epochs is None:
        return sent.destinations
    number = logs.epochs.view_of.get(sent.message)
    return 0 if number is None else sent.destinations & logs.epochs.members(number)


def _late_for_view(logs: RunLogs, effect: EventKind, node: int, sent: Sent, moment: Moment) -> int | None:
    """If a level follows from the end of a view: those that go on to the next one and have not accepted the message.

    None if it does not: it is not recorded as such, and was not reached together with the next view.
    """
    epoch = logs.epochs.at(node, moment.step) if logs.epochs else None
    if logs.epochs is None or epoch is None:
        return None
    closing = logs.epochs.closing(epoch)
    if closing is None:
        return None
    time, number = closing
    if time != moment.time and (effect.value, node, sent.message) not in logs.epochs.by_view:
        return None
    accepts = logs.first[EventKind.ACCEPT]
    going_on = sent.destinations & logs.epochs.installed(number) & ~logs.unrecorded
    return mask_of(to for to in members(going_on) if sent.message not in accepts[to] and to in epoch.view.places)


def _had(logs: RunLogs, node: int, sent: Sent, moment: Moment) -> bool:
    """True if the node had received the message by then, or sent it itself."""
    if sent.message[0] == node and sent.moment.step < moment.step:
        return True
    received = logs.first[EventKind.RECEIVE][node].get(sent.message)
    if received is not None and received.step < moment.step:
        return True
    return logs.epochs is not None and _was_supplied(logs, logs.epochs, node, sent, moment)


def _was_supplied(logs: RunLogs, epochs: Epochs, node: int, sent: Sent, moment: Moment) -> bool:
    """True if the node may have got a message from another one when a view ended, and not from the channel."""
    epoch = epochs.at(node, moment.step)
    closing = epochs.closing(epoch) if epoch else None
    if closing is None or closing[0] != moment.time:
        return False
    accepts = logs.first[EventKind.ACCEPT]
    known = (accepts[other].get(sent.message) for other in range(logs.nodes) if other != node)
    return any(other is not None and other.time <= moment.time for other in known)


def _claim(node: int, level: EventKind, message: Message, but: str) -> str:
    return f"{name_of(node)} {_PAST[level]} {message_name(message)}{but}"


def _unsound(breaks: str, sentence: str, message: Message, node: int, *others: Message) -> Violation:
    return Violation(breaks, sentence, messages=(message, *others), nodes=(node,))
