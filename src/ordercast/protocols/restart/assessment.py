"""How a group begins anew from its logs, when so many members failed that no view could follow the last one.

Each process that was started again says what its log has. Its old incarnation is dead, so it accepts nothing in the
last view any more. Whoever is there may go on if it is certain that nobody else has, or will:

- The last view is the one with the highest number that any of them has noted. A quorum of it must be there: then no
  view can have followed it but one that one of them has accepted, which was on the disk before it was said.
- For each view that one of them has accepted, or agreed to begin with, and that may have followed: a quorum of that,
  too. So if it did follow, one that was in it is there, and knows it, or too few to go on were. One that was accepted
  has not followed, and will not, if those that were started again without having accepted it leave no quorum for it.
- Who has forgotten what it promised, since its log was damaged, does not count.
- The longest log of those that were in the last view and had caught up with it is that of the group: what was durable
  at a majority is in it, and all others are beginnings of it. The others are given its end.

The first of them in the order of the view makes a plan. One agrees if it has noted nothing since the plan was made, and
notes that it has, before it says so; the view begins when all have agreed and have the log. So of two plans that follow
one view only one begins, or the second is made by those who know the first.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ordercast.model.errors import ConfigError
from ordercast.model.nodes import mask_of
from ordercast.protocols.membership.view import GroupView, Incarnation, NextView, is_quorum
from ordercast.protocols.restart.standing import Plan, Standing, decode_standing, stamp_of


class Here(msgspec.Struct, frozen=True, array_like=True):
    """What a process says that has a log, and whose group is to begin anew."""

    group: str
    me: Incarnation
    note: bytes
    """What it has noted in its log: its `Standing`."""
    position: int
    hash: bytes
    """The end of its log."""
    is_member: bool = False
    """It was not started again: it is in the last view, and does not reach enough others. It gives its log only."""
    heard: tuple[tuple[str, int], ...] = ()
    """Names and incarnations of those that it has heard: who finds its own among them knows that this is not old."""
    plan: Plan | None = None
    """The plan that it has made, or has agreed to."""
    ready: bool = False
    """It has agreed to the plan, and has the log."""
    begins: bool = False
    """All have: the view begins."""

    def standing(self) -> Standing:
        """Raises `ConfigError` if it has none."""
        found = decode_standing(self.note)
        if found is None:
            raise ConfigError("its log has no view")
        return found

    def hears(self, other: Incarnation) -> bool:
        """Whether it has heard this incarnation."""
        return (other.name, other.number) in self.heard


class Assessment(msgspec.Struct, frozen=True):
    """Who could go on."""

    view: GroupView
    """The last one that is known."""
    participants: tuple[Here, ...]
    """Members of it that were started again, in their places."""
    holder: Here | None
    """Who has the longest log of it."""
    number: int
    """Of the view that would begin."""
    missing: str
    """What they wait for, and what to do; empty: they can go on."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Members of the last view that are not among them."""
        there = {one.me.name for one in self.participants}
        return tuple(one.name for one in self.view.members if one.name not in there)

    def plan(self, tag: bytes) -> Plan:
        """How they go on."""
        assert self.holder is not None, "they can go on"
        return Plan(
            *(self.number, tag, self.holder.position, self.holder.hash),
            members=tuple(one.me for one in self.participants),
            holder=self.holder.me,
            basis=tuple(stamp_of(one.standing()) for one in self.participants),
        )


def assess(present: Sequence[Here], least: int, *, force: bool) -> Assessment:
    """What those that are there could do. `least`: no view has fewer members; `force`: they need no majority."""
    standings = [one.standing() for one in present]
    view = max((each.view for each in standings), key=lambda each: each.number)
    places = {one.name: place for place, one in enumerate(view.members)}
    restarted = [
        one for one, each in zip(present, standings, strict=True) if not one.is_member and (force or not each.forgot)
    ]
    voters = {one.me.name for one in restarted}
    participants = sorted((one for one in restarted if one.me.name in places), key=lambda one: places[one.me.name])
    holders = [
        one
        for one, each in zip(present, standings, strict=True)
        if each.view.number == view.number and (each.complete or (force and each.forgot))
    ]
    holder = max(holders, key=lambda one: (one.position, not one.is_member, one.me.name), default=None)
    lacking = [] if force else _lacking(view, present, voters)
    if not participants:
        lacking.append(f"a member of view {view.number} that is started again")
    elif len(participants) < least and not force:
        lacking.append(f"at least {least} members (quorum), and {len(participants)} are here")
    if holder is None:
        lacking.append(f"a member whose log reaches view {view.number}")
    number = max(each.highest_number() for each in standings) + 1
    return Assessment(view, tuple(participants), holder, number, "; ".join(dict.fromkeys(lacking)))


def _lacking(view: GroupView, present: Sequence[Here], voters: set[str]) -> list[str]:
    """Of each view of which no quorum is there: who is missing, and what to do."""
    possible = {tuple(one.name for one in view.members): (view.number, True)}
    last = [(here, each) for here in present if (each := here.standing()).view.number == view.number]
    for _, standing in last:
        followed = standing.accepted is None or _may_follow(standing.accepted, view, last)
        each = standing if followed else replace(standing, accepted=None)
        possible |= {names: (each.highest_number(), False) for names in each.possible_views()}
    found = {}
    for names, (number, certain) in possible.items():
        there = mask_of(place for place, name in enumerate(names) if name in voters)
        if names and not is_quorum(there, len(names)):  # all members have left: nobody goes on in a view without any
            absent = tuple(name for name in names if name not in voters)
            found[absent] = _who_is_missing(absent, names, number, certain=certain)  # once, of the later view
    return list(found.values())


def _who_is_missing(absent: Sequence[str], names: Sequence[str], number: int, *, certain: bool) -> str:
    """What is waited for: completes the sentence "waiting for"."""
    was = "was" if certain and len(absent) == 1 else "were" if certain else "may have been"
    if len(names) == 1:
        place = f"the last member (view {number})"
    else:
        place = f"in the last view ({number}: {', '.join(names)})"
    start = "start it" if len(absent) == 1 else "start so many of them that a majority is there"
    return f"{', '.join(absent)}, which {was} {place}: {start}"


def _may_follow(accepted: NextView, view: GroupView, last: Sequence[tuple[Here, Standing]]) -> bool:
    """Whether so many have accepted a view, or may have, or still may, that it follows this one.

    Who was started again accepts nothing any more, and whoever has accepted another one since knows that no quorum had
    accepted this one before.
    """
    without = {here.me.name for here, each in last if not (here.is_member or each.forgot) and each.accepted != accepted}
    others = mask_of(place for place, one in enumerate(view.members) if one.name not in without)
    return is_quorum(others, len(view.members))
