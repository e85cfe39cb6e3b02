"""Compares the logs of all members while they grow: positions, running hashes, views. No file, no clock.

The running hash at a position stands for everything below it, and packets end at the same positions in all logs. So two
members agree if each end of a packet of one is an end of a packet of the other, with the same hash, as far as both are.

A member that was killed, or cut off, may have messages at the end of its last view that no majority of this view has,
and that the others went on without, to a view without it. That is no disagreement: recovery drops them. Whether the
others went on is known when their next view is on a disk, so a difference that may be of this kind is suspected first.
"""

from bisect import bisect_left
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


class LeftBehind(msgspec.Struct, frozen=True):
    """A member has messages at its end that the group went on without."""

    member: str
    position: int
    """From here on."""
    view: int
    """The number of the next view of another member, which this one is not in."""


class Suspected(msgspec.Struct, frozen=True):
    """Two members that differ, and nobody has a later view yet that would say why."""

    one: str
    other: str
    position: int


class _Member:
    def __init__(self) -> None:
        self.places: deque[OrderPlace] = deque()
        self.hashes: dict[int, bytes] = {}
        self.views: dict[int, tuple[int, View]] = {}
        self.entered: list[tuple[int, int]] = []
        """Position and number of each view, in the order of the log."""

    def keep(self, place: OrderPlace) -> None:
        if place.position not in self.hashes:
            self.places.append(place)
        self.hashes[place.position] = place.hash
        if len(self.places) > WINDOW:
            del self.hashes[self.places.popleft().position]

    def covers(self, position: int) -> bool:
        return bool(self.places) and self.places[0].position <= position <= self.places[-1].position

    def view_below(self, position: int) -> int:
        """The number of the view in which the message before a position was delivered."""
        place = bisect_left(self.entered, (position, -1))
        return self.entered[place - 1][1] if place else 0


class Comparison:
    """What the members have said so far, as much of it as is needed."""

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}
        self.compared = 0
        """Places of two members that were compared."""
        self.agreed = 0
        """The highest position at which two members agree."""
        self.left_behind: dict[str, LeftBehind] = {}
        """Whose last messages are not of the order."""
        self.suspected: dict[frozenset[str], Suspected] = {}
        """The first difference of two members that is not judged yet."""

    def begin(self, name: str) -> None:
        """A member whose log is read from its beginning, again if it was before."""
        self._members[name] = _Member()
        self.left_behind.pop(name, None)
        self.suspected = {pair: each for pair, each in self.suspected.items() if name not in pair}

    def place(self, name: str, place: OrderPlace) -> Disagreement | None:
        """A member has this hash at this position, and all between the last one and this in one packet."""
        me = self._members[name]
        before = me.places[-1].position if me.places else place.position
        me.keep(place)
        for other, its in self._members.items():
            if other == name:
                continue
            wrong = None
            if its.covers(place.position):
                self.compared += 1
                if its.hashes.get(place.position) == place.hash:
                    self.agreed = max(self.agreed, place.position)
                else:
                    wrong = place.position
            elif its.places and before < its.places[-1].position < place.position and its.covers(before):
                wrong = its.places[-1].position
            if wrong is not None:
                found = self.judge(Suspected(name, other, wrong))
                if found is not None:
                    return found
        return None

    def judge(self, suspected: Suspected, *, final: bool = False) -> Disagreement | None:
        """What is known now of two members that differ; `final`: nobody has had a later view for so long."""
        one, other, position = suspected.one, suspected.other, suspected.position
        pair = frozenset((one, other))
        self.suspected.setdefault(pair, suspected)
        waits = False
        for behind, ahead in ((one, other), (other, one)):
            left = self._left_behind(behind, ahead, position)
            if isinstance(left, LeftBehind):
                self.left_behind.setdefault(behind, left)
                self.suspected.pop(pair)
                return None
            waits = waits or left
        if waits and not final:
            return None
        self.suspected.pop(pair)
        sentence = f"the logs of {one} and {other} have different orders below position {position}"
        return Disagreement("order", (one, other), position, sentence)

    def _left_behind(self, behind: str, ahead: str, position: int) -> LeftBehind | bool:
        """Whether one of two that differ has what the other went on without; True: it may turn out so."""
        mine, theirs = self._members[behind], self._members[ahead]
        number = mine.view_below(position)
        members = mine.views[number][1].members if number in mine.views else ()
        if behind not in members or mine.entered[-1][1] != number:
            return False
        place = next(each for each in mine.places if each.position >= position)
        if sum(self._has(each, place) for each in members) * 2 > len(members):
            return False
        later = next((each for _, each in theirs.entered if each > number), None)
        if later is None or behind in theirs.views[later][1].members:
            return True
        same = (each.position for each in reversed(mine.places) if theirs.hashes.get(each.position) == each.hash)
        return LeftBehind(behind, next(same, mine.places[0].position), later)

    def _has(self, name: str, place: OrderPlace) -> bool:
        return name in self._members and self._members[name].hashes.get(place.position) == place.hash

    def view(self, name: str, position: int, view: View) -> Disagreement | None:
        """A member has this view, from this position on."""
        if not view.members:
            return None
        me = self._members[name]
        if view.number not in me.views:
            me.entered.append((position, view.number))
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
