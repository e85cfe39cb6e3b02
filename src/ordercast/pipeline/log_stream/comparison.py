"""Compares the logs of all members while they grow: positions, running hashes, views. No file, no clock.

The running hash at a position stands for everything below it, and packets end at the same positions in all logs. So two
members agree if each end of a packet of one is an end of a packet of the other, with the same hash, as far as both are.
"""

from collections import deque

import msgspec

from ordercast.log.format import View
from ordercast.pipeline.log_stream.member_log import OrderPlace

WINDOW = 200_000
"""Places that are kept of each member. One that is further behind is compared again when it has caught up that far."""


class Disagreement(msgspec.Struct, frozen=True):
    """Two members say different things."""

    kind: str
    """"order", "view", "group" or "damage"."""
    members: tuple[str, ...]
    position: int
    sentence: str


class _Member:
    def __init__(self) -> None:
        self.places: deque[OrderPlace] = deque()
        self.hashes: dict[int, bytes] = {}
        self.views: dict[int, tuple[int, View]] = {}

    def keep(self, place: OrderPlace) -> None:
        if place.position not in self.hashes:
            self.places.append(place)
        self.hashes[place.position] = place.hash
        if len(self.places) > WINDOW:
            del self.hashes[self.places.popleft().position]

    def covers(self, position: int) -> bool:
        return bool(self.places) and self.places[0].position <= position <= self.places[-1].position


class Comparison:
    """What the members have said so far, as much of it as is needed."""

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}
        self.compared = 0
        """Places of two members that were compared."""
        self.agreed = 0
        """The highest position at which two members agree."""

    def begin(self, name: str) -> None:
        """A member whose log is read from its beginning, again if it was before."""
        self._members[name] = _Member()

    def place(self, name: str, place: OrderPlace) -> Disagreement | None:
        """A member has this hash at this position, and all between the last one and this in one packet."""
        me = self._members[name]
        before = me.places[-1].position if me.places else place.position
        me.keep(place)
        for other, its in self._members.items():
            if other == name:
                continue
            if its.covers(place.position):
                self.compared += 1
                if its.hashes.get(place.position) != place.hash:
                    return _order(name, other, place.position)
                self.agreed = max(self.agreed, place.position)
            elif its.places and before < its.places[-1].position < place.position and its.covers(before):
                return _order(name, other, its.places[-1].position)
        return None

    def view(self, name: str, position: int, view: View) -> Disagreement | None:
        """A member has this view, from this position on."""
        if not view.members:
            return None
        me = self._members[name]
        known = me.views.setdefault(view.number, (position, view))
        for other, its in self._members.items():
            there = its.views.get(view.number)
            if other == name or there is None:
                continue
            if there[1].members != view.members:
                mine, theirs = ", ".join(view.members), ", ".join(there[1].members)
                return Disagreement(
                    *("view", (name, other), position),
                    f"view {view.number} has the members {mine} in the log of {name}, and {theirs} in that of {other}",
                )
            if there[0] != known[0] and self._both_cover(me, its, min(there[0], known[0])):
                return Disagreement(
                    *("view", (name, other), min(position, there[0])),
                    f"view {view.number} begins at position {known[0]} in the log of {name}, and at {there[0]} in that "
                    f"of {other}",
                )
        return None

    def _both_cover(self, one: _Member, other: _Member, position: int) -> bool:
        """Neither log begins within the view: its segment then has the view without its beginning."""
        return all(each.places and each.places[0].position < position for each in (one, other))


def _order(name: str, other: str, position: int) -> Disagreement:
    sentence = f"the logs of {name} and {other} have different orders below position {position}"
    return Disagreement("order", (name, other), position, sentence)
