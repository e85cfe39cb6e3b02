"""Deliveries and views: all members that go on from a view to the next have delivered the same messages in it.

Where the sentence of a property speaks of the destinations of a message, these are cut down to the members of the view
in which it was delivered; an order to all has all of them. See `epochs` for what closing a view means. In a run that
was not cut off, whoever is in the latest view and has not stopped closes it at the end of the record.
"""

from collections.abc import Callable, Iterator

from ordercast.audit.logs import RunLogs
from ordercast.audit.view_epochs import Epoch, Epochs
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import members, name_of, names_of
from ordercast.model.services import PRIORITISED, SELECTIVE, Service
from ordercast.trace.schema import EventKind


def one_epoch(logs: RunLogs) -> Violations:
    """A message is delivered in one view only, at all nodes, and at most once there.

    What one that has not gone on delivered of a sequencer without enough resilience, others may deliver later.
    """
    if logs.epochs is None:
        return
    views = views_of_messages(logs)
    for epoch in logs.epochs:
        seen: set[Message] = set()
        is_tail = _is_tail(logs, epoch)
        for message in epoch.delivered:
            name = f"{name_of(epoch.node)} delivered {message_name(message)}"
            first = views[message]
            if message in seen:
                yield _violation(one_epoch, f"{name} twice in view {epoch.number}", message, epoch.node)
            elif first != epoch.number and not is_tail:
                other = next(one.node for one in logs.epochs.of_view[first] if message in one.delivered)
                sentence = f"{name} in view {epoch.number}, {name_of(other)} in view {first}"
                yield _violation(one_epoch, sentence, message, epoch.node, other)
            seen.add(message)


def same_set(logs: RunLogs) -> Violations:
    """Virtual synchrony: what one that closes a view delivered in it, all destinations that close it delivered, too."""
    for epoch, lacking, message in _lacking(logs, lambda epoch: _closes(logs, epoch)):
        sentence = (
            f"{name_of(epoch.node)} delivered {message_name(message)} in view {epoch.number}, "
            f"{name_of(lacking)} went on without it"
        )
        yield _violation(same_set, sentence, message, epoch.node, lacking)


def uniform(logs: RunLogs) -> Violations:
    """What a node delivered in a view that it does not close, all destinations that close it delivered in it.

    A sequencer promises it in views of which its resilience is at least half.
    """
    for epoch, lacking, message in _lacking(
        logs, lambda epoch: not _closes(logs, epoch) and is_uniform_view(logs, epoch.number)
    ):
        sentence = (
            f"{name_of(epoch.node)} delivered {message_name(message)} in view {epoch.number} and has not gone on; "
            f"{name_of(lacking)} went on without it"
        )
        yield _violation(uniform, sentence, message, epoch.node, lacking)


def sender_inside(logs: RunLogs) -> Violations:
    """A message is delivered in views of which its sender is a member."""
    for epoch in logs.epochs or ():
        for message in epoch.delivered:
            if message[0] not in epoch.view.places:
                sentence = (
                    f"{name_of(epoch.node)} delivered {message_name(message)} in view {epoch.number}, "
                    f"of which {name_of(message[0])} is no member"
                )
                yield _violation(sender_inside, sentence, message, epoch.node)


def no_hole(logs: RunLogs) -> Violations:
    """Of what a source sent to a node, nothing is missing between the first and the last that the node delivered.

    Where priorities decide the order, this holds of what was delivered up to the end of each view that a node closes.
    """
    if logs.epochs is None:
        return
    for node, mine in enumerate(logs.epochs.by_node):
        delivered = list(dict.fromkeys(logs.delivered[node]))
        if logs.service is not None and logs.service.value in PRIORITISED:
            closed = [epoch for epoch in mine if _closes(logs, epoch)]
            delivered = list(dict.fromkeys(message for epoch in closed for message in epoch.delivered))
        by_source: dict[int, set[int]] = {}
        for message in delivered:
            if message in logs.sent:
                by_source.setdefault(message[0], set()).add(logs.sent[message].place)
        between = {source: (min(places), max(places)) for source, places in by_source.items()}
        for message, sent in logs.sent.items():
            first, last = between.get(message[0], (0, 0))
            if first < sent.place < last and sent.destinations >> node & 1 and sent.place not in by_source[message[0]]:
                sentence = (
                    f"{name_of(node)} delivered messages that {name_of(message[0])} sent before and after "
                    f"{message_name(message)}, and not {message_name(message)}"
                )
                yield _violation(no_hole, sentence, message, node)


def kept(logs: RunLogs) -> Violations:
    """What members of the latest view sent, or those that left when all was acknowledged, was delivered.

    At each destination that was a member from then on to the end.
    """
    if logs.epochs is None:
        return
    epochs = logs.epochs
    seen, views = [set(log) for log in logs.delivered], views_of_messages(logs)
    drained = {epoch.node for epoch in epochs if epoch.end is not None and epoch.end.drained}
    keeps = {node for node in members(epochs.members(epochs.last)) if node not in logs.stopped} | drained
    for message, sent in logs.sent.items():
        source = message[0]
        if source not in keeps:
            continue
        first = views.get(message)
        if first is None:
            begun = epochs.at(source, sent.moment.step)
            first = begun.number if begun else epochs.last
        for node in members(sent.destinations & epochs.members(first)):
            if node not in logs.stopped and message not in seen[node] and epochs.is_always_in(node, first):
                sentence = (
                    f"{name_of(node)} lacks {message_name(message)}, sent to {names_of(sent.destinations)}, "
                    f"and was a member from view {first} to view {epochs.last}"
                )
                yield _violation(kept, sentence, message, node)


def state_complete(logs: RunLogs) -> Violations:
    """A node that joined got what was delivered before as the state of another, and nothing of it as messages.

    In an order to all the state of a node that was a member before is what each node delivered that was a member of all
    views. With destinations nodes have different states; there only the second part is asked.
    """
    if logs.epochs is None:
        return
    views = views_of_messages(logs)
    for row in logs.epochs.states:
        mine = logs.epochs.by_node[row.node]
        name = f"{name_of(row.node)} joined with the state of view {row.number} from {name_of(row.donor)}"
        wrong = _wrong_state(logs, row.node, row.donor, row.number, row.step)
        if wrong:
            yield Violation(state_complete.__name__, f"{name}, {wrong}", nodes=(row.node, row.donor))
            continue
        for message in (message for epoch in mine for message in epoch.delivered):
            if views[message] < row.number:
                sentence = (
                    f"{name}, and delivered {message_name(message)}, which was delivered in view {views[message]}"
                )
                yield _violation(state_complete, sentence, message, row.node)
        if logs.service not in SELECTIVE:
            yield from _different_state(logs, row.node, row.donor, row.number, name)


def acknowledged_stays(logs: RunLogs) -> Violations:
    """What anybody acknowledged in a view, all destinations that close the view delivered in it."""
    epochs = logs.epochs
    if epochs is None:
        return
    acknowledged: dict[int, dict[Message, int]] = {}  # by view and message: the first node that did
    for node, moments in enumerate(logs.first[EventKind.ACK]):
        for message, moment in moments.items():
            epoch = epochs.at(node, moment.step)
            if epoch is not None:
                acknowledged.setdefault(epoch.number, {}).setdefault(message, node)
    for number, by_message in sorted(acknowledged.items()):
        for other in epochs.of_view[number]:
            if not _closes(logs, other):
                continue
            delivered = set(other.delivered)
            for message, node in by_message.items():
                if message not in delivered and _is_for(logs, message, other):
                    sentence = (
                        f"{name_of(node)} acknowledged {message_name(message)} in view {number}, "
                        f"{name_of(other.node)} went on without it"
                    )
                    yield _violation(acknowledged_stays, sentence, message, node, other.node)


# --- parts of these, and what others need ---


def is_uniform_view(logs: RunLogs, number: int) -> bool:
    """True if what is delivered in a view by one that does not go on is delivered by all that do."""
    assert logs.epochs is not None
    size = logs.epochs.members(number).bit_count()
    return logs.service is not Service.SEQUENCED or logs.resilience >= size // 2


def views_of_messages(logs: RunLogs) -> dict[Message, int]:
    """By message: the first view in which it was delivered; where others deliver it, a tail does not count."""
    assert logs.epochs is not None
    if logs.service is not Service.SEQUENCED:
        return logs.epochs.view_of
    found: dict[Message, int] = {}
    for number, epochs in logs.epochs.of_view.items():
        for epoch in epochs:
            for message in () if _is_tail(logs, epoch) else epoch.delivered:
                found.setdefault(message, number)
    return {**logs.epochs.view_of, **found}


def _is_tail(logs: RunLogs, epoch: Epoch) -> bool:
    """True if those that go on need not have what a node delivered in a view: it does not go on itself."""
    return not is_uniform_view(logs, epoch.number) and not _closes(logs, epoch)


def _closes(logs: RunLogs, epoch: Epoch) -> bool:
    """True if a node is known to have delivered all of a view that it will."""
    assert logs.epochs is not None
    at_the_end = logs.ended and epoch.number == logs.epochs.last and epoch.end is None
    return epoch.closed or (at_the_end and epoch.node not in logs.stopped)


def _lacking(logs: RunLogs, counts: Callable[[Epoch], bool]) -> Iterator[tuple[Epoch, int, Message]]:
    """What one of some epochs has, and another of the same view lacks whose node closes it: each lack once."""
    if logs.epochs is None:
        return
    for epochs in logs.epochs.of_view.values():
        anybody: dict[Message, Epoch] = {}
        for epoch in filter(counts, epochs):
            for message in epoch.delivered:
                anybody.setdefault(message, epoch)
        for other in epochs:
            if _closes(logs, other):
                delivered = set(other.delivered)
                for message, epoch in anybody.items():
                    if message not in delivered and _is_for(logs, message, other):
                        yield epoch, other.node, message


def _is_for(logs: RunLogs, message: Message, epoch: Epoch) -> bool:
    """True if a message that was delivered in a view had to be delivered by this node, too."""
    sent = logs.sent.get(message)
    return sent is not None and bool(sent.destinations >> epoch.node & 1) and epoch.node in epoch.view.places


def _wrong_state(logs: RunLogs, node: int, donor: int, number: int, step: int) -> str:
    """What is wrong with a state, whatever it contains."""
    assert logs.epochs is not None
    first = next((epoch for epoch in logs.epochs.by_node[node]), None)
    if first is None or first.number != number:
        return f"but its first view is {first.number}" if first else "but is in no view"
    both = logs.epochs.members(number) & logs.epochs.members(number - 1)
    if donor < 0 or not both >> donor & 1:
        return f"which was not in views {number - 1} and {number}"
    delivered = next((message for at, message in logs.epochs.deliveries[node] if at < step), None)
    return f"after it had delivered {message_name(delivered)}" if delivered is not None else ""


def _different_state(logs: RunLogs, node: int, donor: int, number: int, name: str) -> Violations:
    assert logs.epochs is not None
    history = _history(logs.epochs, donor, number)
    if history is None:
        return
    have = set(history)
    for other in range(logs.nodes):
        if not logs.epochs.is_always_in(other, 0) or not _has_all_views(logs.epochs, other, number):
            continue
        theirs = dict.fromkeys(
            message for epoch in logs.epochs.by_node[other] if epoch.number < number for message in epoch.delivered
        )
        lacking = next((message for message in theirs if message not in have), None)
        surplus = next((message for message in history if message not in theirs), None)
        if lacking is not None or surplus is not None:
            message = lacking if lacking is not None else surplus
            assert message is not None
            what = f"lacks {message_name(message)}, which" if lacking is not None else f"has {message_name(message)}"
            who = f" {name_of(other)} delivered" if lacking is not None else f", which {name_of(other)} did not deliver"
            yield _violation(state_complete, f"{name}; it {what}{who} before that view", message, node, other)
            return


def _history(epochs: Epochs, node: int, number: int) -> dict[Message, None] | None:
    """What is in the state of a node at the beginning of a view; None if it is not recorded."""
    if not _has_all_views(epochs, node, number):
        return None
    mine = [epoch for epoch in epochs.by_node[node] if epoch.number < number]
    if not mine:
        return None
    found: dict[Message, None] = {}
    if mine[0].number > 0:
        row = next((row for row in epochs.states if row.node == node and row.number == mine[0].number), None)
        before = _history(epochs, row.donor, row.number) if row else None
        if before is None:
            return None
        found.update(before)
    found.update((message, None) for epoch in mine for message in epoch.delivered)
    return found


def _has_all_views(epochs: Epochs, node: int, number: int) -> bool:
    """True if a node's record reaches from its first view to the given one."""
    mine = epochs.by_node[node] if 0 <= node < len(epochs.by_node) else ()
    return any(epoch.number == number for epoch in mine)


def _violation(breaks: Callable[[RunLogs], Violations], sentence: str, message: Message, *nodes: int) -> Violation:
    return Violation(breaks.__name__, sentence, messages=(message,), nodes=nodes)
