"""Views themselves: there is one sequence of them, every node passes through its part of it, and no two sides go on."""

from ordercast.audit.logs import RunLogs
from ordercast.audit.shrinking_views import disagreements, minorities
from ordercast.audit.view_epochs import Epochs, ViewRow
from ordercast.audit.violations import Violation, Violations, message_name
from ordercast.model.nodes import mask_of, name_of, names_of
from ordercast.trace.schema import EventKind

_DID = {
    EventKind.SEND.value: "sent",
    EventKind.ACCEPT.value: "accepted",
    EventKind.PREACK.value: "pre-acknowledged",
    EventKind.ACK.value: "acknowledged",
    EventKind.DELIVER.value: "delivered",
    EventKind.VIEW.value: "installed a view",
    EventKind.STATE.value: "loaded a state",
}


def same_views(logs: RunLogs) -> Violations:
    """All nodes that installed a view of one number have the same members in the same places.

    Of views without numbers, whose members only go, one of any two contains the other, and all that go on in a complete
    run have the last one.
    """
    if logs.epochs is None:
        for sentence, nodes in disagreements(logs.installed(), logs.stopped, ended=logs.ended):
            yield Violation(same_views.__name__, sentence, nodes=nodes)
        return
    for number, epochs in logs.epochs.of_view.items():
        first = epochs[0]
        for other in epochs[1:]:
            if other.view.places != first.view.places:
                sentence = (
                    f"{name_of(first.node)} installed view {number} with {_names(first.view.places)}, "
                    f"{name_of(other.node)} with {_names(other.view.places)}"
                )
                yield Violation(same_views.__name__, sentence, nodes=(first.node, other.node))


def views_in_order(logs: RunLogs) -> Violations:
    """The numbers of a node's views rise by one, and it does nothing before its first view or after it left.

    Whoever has left or was excluded still answers the others: it may receive and discard, but not more.
    """
    if logs.epochs is None:
        return
    for mine in logs.epochs.by_node:
        for epoch in mine:
            if epoch.next_view is not None and epoch.next_view != epoch.number + 1:
                sentence = f"{name_of(epoch.node)} installed view {epoch.next_view} after view {epoch.number}"
                yield Violation(views_in_order.__name__, sentence, nodes=(epoch.node,))
    seen: set[int] = set()
    for node, _, kind, message in logs.epochs.outside:
        if node in seen or (logs.unrecorded >> node & 1 and not logs.epochs.by_node[node]):
            continue
        seen.add(node)  # one is enough: all that follows is as wrong
        what = f" {message_name(message)}" if message is not None else ""
        ends = [epoch.end for epoch in logs.epochs.by_node[node] if epoch.end is not None]
        when = f"after it {_ended(ends[0].kind)}" if ends else "before it installed a view"
        sentence = f"{name_of(node)} {_DID[kind]}{what} {when}"
        yield Violation(views_in_order.__name__, sentence, (message,) if message is not None else (), (node,))


def self_inclusion(logs: RunLogs) -> Violations:
    """A node is a member of each view that it installs."""
    for epoch in logs.epochs or ():
        if epoch.node not in epoch.view.places:
            sentence = f"{name_of(epoch.node)} installed view {epoch.number} with {_names(epoch.view.places)}"
            yield Violation(self_inclusion.__name__, sentence, nodes=(epoch.node,))


def primary(logs: RunLogs) -> Violations:
    """A view follows only from reports of a quorum of the view before, and all that go on are among these.

    A quorum is more than half of the members, or half of them with the first; so there is one successor of each view.
    Views without numbers do not say who reported: they have more than half of the members of the view before.
    """
    if logs.epochs is None:
        for sentence, nodes in minorities(logs.nodes, logs.installed()):
            yield Violation(primary.__name__, sentence, nodes=nodes)
        return
    for epoch in logs.epochs:
        before = logs.epochs.views.get(epoch.number - 1)
        wrong = "" if epoch.number == 0 else _not_primary(epoch.view, before, logs.epochs)
        if wrong:
            sentence = f"{name_of(epoch.node)} installed view {epoch.number}, {wrong}"
            yield Violation(primary.__name__, sentence, nodes=(epoch.node,))


def _not_primary(view: ViewRow, before: ViewRow | None, epochs: Epochs) -> str:
    if view.heard is None:
        return "which does not say whose reports it follows from"
    if before is None:
        return ""
    heard = mask_of(set(view.heard) & set(before.places))
    count, size = heard.bit_count(), len(before.places)
    if 2 * count < size or (2 * count == size and not heard >> before.places[0] & 1):
        return (
            f"which follows from reports of {names_of(heard) if heard else 'nobody'} only, of {_names(before.places)}"
        )
    unheard = view.members & epochs.members(before.number) & ~heard
    return f"in which {names_of(unheard)} goes on without having reported" if unheard else ""


def _ended(kind: EventKind) -> str:
    return "left" if kind is EventKind.LEAVE else "was excluded"


def _names(places: tuple[int, ...]) -> str:
    return ", ".join(map(name_of, places)) or "no members"
