"""What must hold of the logs of a group whose members change, and of what a member sends again."""

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

import msgspec

from ordercast.model.machine import Level, Submit
from ordercast.model.nodes import mask_of, members
from ordercast.protocols.membership.epoch import Cut
from tests.protocols.membership.changing_group import ONE_ORDER, PRIORITIES, Message, Node, View


def log_of(node: Node, view: int | None = None) -> list[Message]:
    """What a node delivered, in one view or in all."""
    return [message for number, message in node.deliveries if view in {None, number}]


def destinations(nodes: dict[int, Node], message: Message) -> tuple[int, ...]:
    """The nodes that a message is for, in the view in which it was last numbered."""
    return members(nodes[message[0]].submitted[message[1]].destinations)


def check_view(view: View, finished: Sequence[int], *, uniform: bool = True) -> None:
    """`same_set` and `uniform`: what anybody delivered in a view, all its destinations that finished it have."""
    nodes = {node.number: node for node in view.nodes}
    given = {number: set(log_of(node, view.number)) for number, node in nodes.items()}
    closed = {view.nodes[place].number for place in finished}
    for number, messages in given.items():
        if uniform or number in closed:
            for message in messages:
                for other in destinations(nodes, message):
                    assert other not in closed or message in given[other], (
                        f"view {view.number}: {number} was given {message}, and {other} was not"
                    )
    for number, node in nodes.items():  # `acknowledged_stays`
        if uniform or number in closed:
            for at, message in node.acknowledged:
                if at == view.number:
                    for other in destinations(nodes, message):
                        assert other not in closed or message in given[other], f"{message} was acknowledged by {number}"


def check_left_over(view: View, place: int, cut: Cut) -> None:
    """What is given and what is left over is what was submitted, in its order; numbers go on."""
    flush, node = view.flushes[place], view.nodes[place]
    first = flush.next_message(cut)
    given = [number for number in view.own[place] if number < first]
    left = [number for number in view.own[place] if number >= first]
    again = [_as_places(view, node.submitted[number]) for number in left]
    numbers, found = first, []
    for event in flush.left_over(cut):
        numbers += event.skips
        found.append((numbers, msgspec.structs.replace(event, skips=0)))
        numbers += len(event.lengths)
    assert found == list(zip(left, again, strict=True))
    for number in given:
        message = (node.number, number)
        for other in members(node.submitted[number].destinations):
            there = next(each for each in view.nodes if each.number == other)
            if view.number in there.closed:
                assert (view.number, message) in there.deliveries, f"{message} is not left over, but {other} lacks it"
        level = view.levels[place][message]  # the sequencer does not say of stable packets that they are known to be
        assert level is Level.ACKNOWLEDGED or (level is Level.STABLE and view.protocol == "sequencer")


def check_excluded(view: View, place: int, finished: Iterable[int], cut: Cut) -> None:
    """A member that is gone learns from its entry of the cut exactly which of its messages were given."""
    flush, node = view.flushes[place], view.nodes[place]
    left = flush.left_over(cut)
    closed = [view.nodes[each] for each in finished]
    for number in view.own[place]:
        event = node.submitted[number]
        owed = [each for each in closed if event.destinations >> each.number & 1]
        given = [each for each in owed if (view.number, (node.number, number)) in each.deliveries]
        is_left = _as_places(view, event) in [msgspec.structs.replace(each, skips=0) for each in left]
        assert not (is_left and given), f"{node.number} would send {number} again, which was given"
        assert is_left or len(given) == len(owed), f"{node.number} takes {number} for given, and it was not"


def _as_places(view: View, event: Submit) -> Submit:
    places = {node.number: place for place, node in enumerate(view.nodes)}
    to = mask_of(places[number] for number in members(event.destinations))
    return Submit(to, event.lengths, event.payload, event.priority)


def check_logs(protocol: str, nodes: dict[int, Node]) -> None:
    """`one_epoch`, `no_hole` and the orders, over the logs of all nodes, those that are gone among them."""
    epochs: dict[Message, int] = {}
    for node in nodes.values():
        log = log_of(node)
        assert len(log) == len(set(log)), f"{node.number} was given something twice"
        for view, message in node.deliveries:
            assert epochs.setdefault(message, view) == view, f"{message} was given in two views"
        _check_no_hole(protocol, nodes, node)
    logs = [log_of(node) for node in nodes.values()]
    if protocol in {"po", "spo"}:
        return
    if protocol in ONE_ORDER:
        for view in {view for node in nodes.values() for view in node.views}:
            of_view = sorted([log_of(node, view) for node in nodes.values()], key=len)
            for shorter, longer in pairwise(of_view):
                assert longer[: len(shorter)] == shorter, f"two orders in view {view}: {shorter} and {longer}"
    for one, other in combinations(logs, 2):
        common = set(one) & set(other)
        assert [each for each in one if each in common] == [each for each in other if each in common]
    _check_no_cycle(logs)


def _check_no_hole(protocol: str, nodes: dict[int, Node], node: Node) -> None:
    """Of each source, what a node was given is without a gap; by priority, when the view is over."""
    by_source: dict[int, list[int]] = {}
    for view, (source, number) in node.deliveries:
        if protocol not in PRIORITIES or view in node.closed:
            by_source.setdefault(source, []).append(number)
    for source, numbers in by_source.items():
        if protocol not in PRIORITIES:
            assert numbers == sorted(numbers), f"{node.number} was given {numbers} of {source}"
        to_node = [
            number
            for number, event in sorted(nodes[source].submitted.items())
            if event.destinations >> node.number & 1 and min(numbers) <= number <= max(numbers)
        ]
        assert sorted(numbers) == to_node, f"{node.number} was given {sorted(numbers)} of {source}, not {to_node}"


def _check_no_cycle(logs: Iterable[Sequence[Message]]) -> None:
    after: dict[Message, set[Message]] = {}
    before: dict[Message, int] = {}
    for log in logs:
        for message in log:
            before.setdefault(message, 0)
        for first, second in pairwise(log):
            if second not in after.setdefault(first, set()):
                after[first].add(second)
                before[second] += 1
    ready = [message for message, count in before.items() if not count]
    seen = 0
    while ready:
        seen += 1
        for message in after.get(ready.pop(), ()):
            before[message] -= 1
            if not before[message]:
                ready.append(message)
    assert seen == len(before), "the orders of several nodes make a cycle"
