"""The promises of a group whose members have durable logs: what a majority had on its disks stays, in one order.

Of a view k, let a node's *beginning* be what its log had before the first message of k. A message is *told durable* in
view k when more than half of its members were told that it, and all before it in their logs, is on their disks. At all
times the following holds, and once it does not hold it never does again:

- the beginnings of one view are equal at all of its members, so that positions have one meaning, and hashes agree;
- what was told durable in a view is in the beginnings of all later views, at the same positions;
- a view that began anew from logs was agreed on by a quorum of the view before it: the last one that anybody entered.

That a process finds all that it was told to be on its disk is how disks are made (`node_disk`); that it believes no
more of it is checked by the node alone (`promise_checker`).

A fair continuation must end with equal logs, all of them on the disks. If nobody goes on, but a quorum of the last view
was started again, and of every view that one of them may have been the beginning of, they begin anew.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ordercast.explorer.node_state import JOINS, Logged, NodeState
from ordercast.explorer.scenario import Scenario
from ordercast.model.nodes import mask_of, name_of, names_of
from ordercast.protocols.membership.view import is_quorum
from ordercast.protocols.restart.standing import decode_standing

_Place = tuple[int, ...]
"""The items of a log up to some position."""


def lasting(nodes: Sequence[NodeState], returning: Mapping[int, int]) -> list[NodeState]:
    """The nodes without views that ended with a process before they were on its disk, and that process has returned.

    Nobody else was told of such a view, or its beginning would have been on that disk, and its application ended, too.
    """
    found = list(nodes)
    for node, old in returning.items():
        here, disk = nodes[old], nodes[old].disk
        if here.crashed and disk is not None and here.logged is not None and nodes[node].submitted != JOINS:
            standing = decode_standing(disk.note)
            last = -1 if standing is None else standing.view.number
            found[old] = _without_views_above(here, here.logged, last)
    return found


def _without_views_above(here: NodeState, logged: Logged, last: int) -> NodeState:
    at = next((at for at, view in enumerate(here.views) if view.number > last), None)
    if at is None:
        return here
    gone = here.views[at]
    return replace(
        here,
        views=here.views[:at],
        delivered=gone.delivered,
        log=here.log[: gone.delivered.bit_count()],
        reached=(*here.reached[:3], gone.acknowledged),
        logged=logged._replace(begins=tuple(each for each in logged.begins if each[0] <= last)),
    )


class LogPromises:
    """Checks the nodes of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._items = scenario, scenario.items

    # --- safety ---

    def problem(self, nodes: Sequence[NodeState]) -> str:
        """The first promise that is broken, as a sentence; empty if none is."""
        beginnings: dict[int, tuple[NodeState, _Place]] = {}
        for here in nodes:
            for view, before in _begins(here):
                mine = _items(here)[:before]
                other, theirs = beginnings.setdefault(view, (here, mine))
                if mine != theirs:
                    return f"view {view} begins after {self._log(here, mine)}, and after {self._log(other, theirs)}"
        for view, members in _views(nodes).items():
            durable = self._told_durable(nodes, view, len(members))
            for later, (here, mine) in beginnings.items():
                if later > view and mine[: len(durable)] != durable:
                    log, told = self._log(here, mine), self._named(durable)
                    return f"<{told}> was told durable in view {view}, and view {later} begins after {log}"
        return self._begun_anew(nodes)

    def _told_durable(self, nodes: Sequence[NodeState], view: int, size: int) -> _Place:
        """The longest log that more than half of the members of a view were told to be on their disks."""
        logs = [log for here in nodes if (log := _durable_in(here, view)) is not None]
        found: _Place = ()
        while True:
            longer = {log[: len(found) + 1] for log in logs if len(log) > len(found)}
            chosen = [each for each in longer if 2 * sum(log[: len(each)] == each for log in logs) > size]
            if not chosen:
                return found
            found = chosen[0]

    def _begun_anew(self, nodes: Sequence[NodeState]) -> str:
        views = _views(nodes)
        for here in nodes:
            for own in here.views[:1]:
                before = max((number for number in views if number < own.number), default=None)
                if not own.anew or before is None:
                    continue
                names = {self._scenario.process(node) for node in range(len(nodes)) if own.anew >> node & 1}
                there = mask_of(at for at, node in enumerate(views[before]) if self._scenario.process(node) in names)
                if not is_quorum(there, len(views[before])):
                    who = f"view {own.number} of {name_of(here.node)} began anew with {names_of(own.anew)}"
                    return f"{who}, no quorum of view {before}: {names_of(mask_of(views[before]))}"
        return ""

    def _log(self, here: NodeState, log: _Place) -> str:
        return f"<{self._named(log)}> at {name_of(here.node)}"

    def _named(self, log: _Place) -> str:
        return " ".join(str(self._items[number]) for number in log)

    # --- liveness ---

    def can_begin_anew(self, nodes: Sequence[NodeState]) -> bool:
        """Whether a quorum of the last view was started again with its logs, and of views that may have followed it."""
        views = _views(nodes)
        last = views[max(views)]
        again = {
            self._scenario.process(node): (nodes[node], nodes[old])
            for node, old in self._scenario.returning.items()
            if nodes[old].crashed and _goes_on(nodes[node])
        }
        places = [tuple(map(self._scenario.process, last))]
        for here, before in again.values():
            note = before.disk if here.disk is None or not here.disk.note else here.disk
            standing = None if note is None else decode_standing(note.note)
            if standing is None or standing.forgot:
                return False  # it may be that they can; it is not asked for
            places += [tuple(int(name[1:]) - 1 for name in names) for names in standing.possible_views()]
        return all(
            is_quorum(mask_of(at for at, process in enumerate(each) if process in again), len(each)) for each in places
        )

    def lacking(self, survivors: Sequence[NodeState]) -> str:
        """Why the logs of a quiescent group's members are not as they should be; empty if they are."""
        for here in survivors:
            mine, first = _items(here), survivors[0]
            if mine != _items(first):
                return f"the logs stay different: {self._log(here, mine)}, {self._log(first, _items(first))}"
            if here.logged is not None and here.logged.durable < len(mine):
                return f"{self._log(here, mine)} is never told to be on its disk"
        return ""


def _goes_on(here: NodeState) -> bool:
    return not here.crashed and not here.left


def _items(here: NodeState) -> _Place:
    return () if here.logged is None else here.logged.items


def _begins(here: NodeState) -> Iterator[tuple[int, int]]:
    if here.logged is not None:
        yield from here.logged.begins


def _views(nodes: Sequence[NodeState]) -> dict[int, tuple[int, ...]]:
    """All views that anybody has entered: by number, their members."""
    return {view.number: view.members for here in nodes for view in here.views}


def _durable_in(here: NodeState, view: int) -> _Place | None:
    """What a node was told to be on its disk while it was in this view, and had caught up; None: it was not."""
    at = next((at for at, own in enumerate(here.views) if own.number == view), None)
    if at is None or here.logged is None or view not in dict(here.logged.begins):
        return None
    durable = here.views[at + 1].durable if at + 1 < len(here.views) else here.logged.durable
    return here.logged.items[:durable]
