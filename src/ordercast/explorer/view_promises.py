"""The promises of a group with membership: what members deliver in one view, and what all must end with.

Let D(p, k) be what p delivered in view k. Member q *closes* k when it enters view k + 1, or leaves the group after k.
Of any two nodes p and q, failed and excluded ones included, the following holds at all times, and once it does not hold
it never does again, so that the order in which nodes come to it does not matter:

- views of one number have the same members, in the same places, and no two incarnations of one process;
- m in D(p, k): its source is in view k, and no node delivers m in another view;
- m in D(p, k), and q, a destination of m in view k, closes k: m in D(q, k). Where agreement is not uniform (a sequencer
  with little resilience), p must close k as well;
- m acknowledged at p in view k, and q closes k: the same. So "acknowledged because it is in the cut" is checked where
  it counts: when others enter the view;
- where every message goes to all: D(p, k) begins like D(q, k), or D(q, k) like D(p, k).

A fair continuation must end with all living members of the primary view in it, and everything that they sent delivered,
as far as a quorum of the last view lives.
"""

from collections.abc import Sequence

from ordercast.explorer.log_promises import LogPromises, lasting
from ordercast.explorer.membership import MemberMachine
from ordercast.explorer.node_state import NodeState, OwnView
from ordercast.explorer.scenario import Item, Scenario
from ordercast.model.machine import Level
from ordercast.model.nodes import everybody, mask_of, members, name_of, names_of
from ordercast.protocols.membership.order import SELECTIVE
from ordercast.protocols.membership.view import is_quorum


class _Part:
    """What one node did in one view."""

    def __init__(self, here: NodeState, view: OwnView, after: OwnView | None, *, logged: bool) -> None:
        self.node, self.number, self.members = here.node, view.number, view.members
        delivered = here.delivered if after is None else after.delivered
        acknowledged = here.reached[Level.ACKNOWLEDGED] if after is None else after.acknowledged
        self.delivered, self.acknowledged = delivered & ~view.delivered, acknowledged & ~view.acknowledged
        self.log = here.log[view.delivered.bit_count() : delivered.bit_count()] if logged else ()
        self.closed = after is not None or here.departed


class ViewPromises:
    """Checks the nodes of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._items = scenario, scenario.items
        self._logs = LogPromises(scenario) if scenario.logs else None
        everyone = everybody(scenario.group.nodes)
        self._to_all = all(item.submission.destinations == everyone for item in self._items)
        self._logged = scenario.promise.one_order
        # A message to selected members is for those that were members when it was sent: that is not known of joiners.
        self._destinations = [
            tuple(node for node in item.destinations if node < scenario.founders() or not _is_selective(scenario))
            for item in self._items
        ]

    # --- safety ---

    def problem(self, nodes: Sequence[NodeState]) -> str:
        """The first promise that is broken, as a sentence; empty if none is."""
        if self._logs is not None:
            nodes = lasting(nodes, self._scenario.returning)
        parts: dict[int, list[_Part]] = {}
        for here in nodes:
            for at, view in enumerate(here.views):
                after = here.views[at + 1] if at + 1 < len(here.views) else None
                parts.setdefault(view.number, []).append(_Part(here, view, after, logged=self._logged))
        delivered_in: dict[int, _Part] = {}
        for number in sorted(parts):
            found = self._of_view(parts[number]) or self._in_one_view(parts[number], delivered_in)
            if found:
                return found
        return "" if self._logs is None else self._logs.problem(nodes)

    def _of_view(self, parts: list[_Part]) -> str:
        first = parts[0]
        for part in parts:
            if part.members != first.members:
                return f"view {part.number} has {_names(first)}, and {_names(part)}"
            processes = [self._scenario.process(node) for node in part.members]
            for process in processes:
                if processes.count(process) > 1:
                    return f"view {part.number} has two incarnations of {name_of(process)}: {_names(part)}"
            for number in members(part.delivered):
                if self._items[number].source not in part.members:
                    return f"{self._what(number, part)}, and its source is no member"
        uniform = self._is_uniform(len(first.members))
        for part in parts:
            for other in parts:
                found = self._pair(part, other, uniform=uniform)
                if found:
                    return found
        return ""

    def _pair(self, part: _Part, other: _Part, *, uniform: bool) -> str:
        """What one member did, and another does not."""
        if other.closed and (uniform or part.closed):
            for number in members((part.delivered | part.acknowledged) & ~other.delivered):
                if other.node in self._destinations[number]:
                    verb = "delivered" if part.delivered >> number & 1 else "acknowledged"
                    return f"{self._what(number, part, verb)}, but {name_of(other.node)} ended that view without it"
        if self._logged and self._to_all:
            common = min(len(part.log), len(other.log))
            if part.log[:common] != other.log[:common]:
                return f"view {part.number} has different logs: {self._log(part)}, {self._log(other)}"
        return ""

    def _in_one_view(self, parts: list[_Part], delivered_in: dict[int, _Part]) -> str:
        uniform = self._is_uniform(len(parts[0].members))
        for part in parts:
            for number in members(part.delivered if uniform or part.closed else 0):
                before = delivered_in.setdefault(number, part)
                if before.number != part.number:
                    return f"{self._what(number, before)}, and in view {part.number} at {name_of(part.node)}"
        return ""

    def _is_uniform(self, size: int) -> bool:
        if not self._scenario.promise.uniform:
            return False
        resilience = self._scenario.group.sequencer.resilience
        return self._scenario.promise.ladder or resilience >= size // 2

    def _what(self, number: int, part: _Part, verb: str = "delivered") -> str:
        return f"{self._items[number].describe()} is {verb} in view {part.number} at {name_of(part.node)}"

    def _log(self, part: _Part) -> str:
        return f"{name_of(part.node)} <{' '.join(str(self._items[number]) for number in part.log)}>"

    # --- liveness ---

    def has_no_quorum(self, nodes: Sequence[NodeState]) -> bool:
        """True if too few members of the last view that a living member is in are left to agree on the next one."""
        present = _present(nodes)
        if self._logs is not None and self._logs.can_begin_anew(nodes):
            return False
        if not present:
            return any(here.crashed or here.gave_up for here in nodes)
        places = _latest(present).members
        living = {here.node for here in present}
        left = mask_of(place for place, node in enumerate(places) if node in living)
        return not is_quorum(left, len(places)) or left.bit_count() < self._reports_needed(len(places))

    def _reports_needed(self, size: int) -> int:
        resilience = 0 if self._scenario.promise.ladder else self._scenario.group.sequencer.resilience
        return size - resilience if resilience else 1  # in a small view a quorum is more

    def lacking(self, nodes: Sequence[NodeState]) -> str:
        """Why a group that is quiescent, and has a quorum, has not reached its goal; empty if it has."""
        present = _present(nodes)
        if not present:
            if _all_have_left(nodes):
                return ""
            again = " and so many were started again with their logs that they can begin anew"
            return f"no node goes on, though {'none crashed' if self._logs is None else again}"
        latest = _latest(present)
        survivors = {here.node: here for here in present if here.node in latest.members}
        for node, here in survivors.items():
            name = name_of(node)
            if here.views[-1].number != latest.number:
                return f"{name} is in view {here.views[-1].number}, and {_names_of(latest)} in view {latest.number}"
            if here.leaves:
                return f"{name} never leaves the group"
        problem = self._joining(nodes) or self._undelivered(nodes, survivors)
        return problem or ("" if self._logs is None else self._logs.lacking(list(survivors.values())))

    def _joining(self, nodes: Sequence[NodeState]) -> str:
        ever = {node for here in nodes for view in here.views for node in view.members}
        for here in nodes:
            old = self._scenario.returning.get(here.node)
            if old is not None and not nodes[old].crashed:
                continue
            if not here.views and not here.crashed and not (here.left and here.node in ever):
                return f"{name_of(here.node)} never joins the group"
        return ""

    def _undelivered(self, nodes: Sequence[NodeState], survivors: dict[int, NodeState]) -> str:
        founders = self._scenario.founders()
        for item in self._items:
            source = nodes[item.source]
            goes_on = item.source in survivors or source.departed
            receivers = [node for node in self._destinations[item.number] if node in survivors]
            mine = [other.number for other in self._items if other.source == item.source]
            sent = mine.index(item.number) < source.numbered
            if item.source in survivors and not sent and receivers:
                return f"{name_of(item.source)} never sends {item}"
            for node in receivers:
                here = survivors[node]
                due = (goes_on and sent and node < founders) or self._is_given(item, survivors, here.views[0].number)
                verb = self._lacks(here, item) if due else ""
                if verb:
                    return f"{item.describe()} is never {verb} at {name_of(node)}"
            if item.source in survivors and receivers and self._misses_level(source, item):
                return f"{item.describe()} never reaches its level at its source"
        return ""

    def _is_given(self, item: Item, survivors: dict[int, NodeState], first: int) -> bool:
        """Whether a survivor delivered it in this view or a later one."""
        for here in survivors.values():
            entered = next((view for view in here.views if view.number >= first), None)
            if entered is not None and (here.delivered & ~entered.delivered) >> item.number & 1:
                return True
        return False

    def _lacks(self, here: NodeState, item: Item) -> str:
        if not here.delivered >> item.number & 1:
            return "delivered"
        return "known as stable" if self._misses_level(here, item) else ""

    def _misses_level(self, here: NodeState, item: Item) -> bool:
        level = Level.ACKNOWLEDGED if self._scenario.promise.ladder else Level.PREACKNOWLEDGED
        return not here.reached[level] >> item.number & 1


def _is_selective(scenario: Scenario) -> bool:
    machine = scenario.machine
    return isinstance(machine, MemberMachine) and machine.protocol in SELECTIVE


def _present(nodes: Sequence[NodeState]) -> list[NodeState]:
    """The members that live: neither crashed nor excluded nor gone."""
    return [here for here in nodes if here.views and not here.crashed and not here.left]


def _all_have_left(nodes: Sequence[NodeState]) -> bool:
    """Whether the last view ended because its last member left: the group is over, as its members wanted."""
    entered = [here for here in nodes if here.views]
    return bool(entered) and all(nodes[node].departed for node in _latest(entered).members)


def _latest(present: Sequence[NodeState]) -> OwnView:
    return max((here.views[-1] for here in present), key=lambda view: view.number)


def _names(part: _Part) -> str:
    return f"{', '.join(map(name_of, part.members))} at {name_of(part.node)}"


def _names_of(view: OwnView) -> str:
    return names_of(mask_of(view.members))
