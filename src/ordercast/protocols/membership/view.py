"""Views of a group as values: who is in it, what follows it, and which members are a quorum.

A *place* is an index in a view's list of members; sets of places are bit masks. Lists are sorted by node number, so
that place 0 is the oldest member; joiners are appended.
"""

from enum import Enum
from hashlib import sha256

import msgspec

from ordercast.model.config import MILLISECOND, SECOND, ConfigValue, require
from ordercast.model.nodes import everybody, members
from ordercast.protocols.membership.epoch import Cut

MAX_MEMBERS = 64
MAX_NAME = 64
"""Characters of a name."""
MAX_ADDRESS = 128
MAX_WHY = 400
TAG_SIZE = 8

Ballot = tuple[int, int]
"""A ballot for the next view: its round and the place of its coordinator, compared in this order."""


class Reason(Enum):
    """Why a member is not in the next view."""

    LEFT = "left"
    SILENT = "silent"
    REPLACED = "replaced"
    """It did not answer, and a new incarnation of its name joined."""
    STATELESS = "stateless"
    """It had no state yet, and those with state would not have been a quorum: it joins again."""
    UNREACHABLE = "unreachable"
    """It lives, but it and another member do not hear each other: it joins again when it reaches all."""


_REPORTED = frozenset({Reason.LEFT, Reason.STATELESS, Reason.UNREACHABLE})
"""Reasons why one that has reported is not in the next view; those that have not are silent, or replaced."""


class Incarnation(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One life of a process. Two incarnations of a name are two members."""

    name: str
    number: int
    """Drawn at random by the host when the process starts or returns."""
    address: str

    def is_well_formed(self) -> bool:
        """Whether name, number and address are within their bounds."""
        return (
            0 < len(self.name) <= MAX_NAME
            and self.name.isprintable()
            and 0 <= self.number < 1 << 64
            and 0 < len(self.address) <= MAX_ADDRESS
        )

    def is_same(self, other: "Incarnation") -> bool:
        """The same life, whatever its address."""
        return self.name == other.name and self.number == other.number


class GroupView(msgspec.Struct, frozen=True, array_like=True):
    """One view: its members in their places."""

    number: int
    members: tuple[Incarnation, ...]
    nodes: tuple[int, ...]
    """By place: the node number, given when an incarnation first enters a view and never given again."""
    tag: bytes
    """What the units of this view travel under."""
    next_node: int = 0
    """The node number of the next one that joins."""

    @property
    def everybody(self) -> int:
        """All places."""
        return everybody(len(self.members))

    def place_of(self, member: Incarnation) -> int | None:
        """The place of this incarnation; None if it is no member."""
        return next((place for place, other in enumerate(self.members) if other.is_same(member)), None)

    def names(self, places: int) -> str:
        """The names of some members, for sentences."""
        return ", ".join(self.members[place].name for place in members(places))

    def is_well_formed(self) -> bool:
        """Whether it can be a view: for one that came over the network."""
        count = len(self.members)
        return (
            self.number >= 0
            and 1 <= count <= MAX_MEMBERS
            and len({member.name for member in self.members}) == count
            and all(member.is_well_formed() for member in self.members)
            and len(self.nodes) == count
            and list(self.nodes) == sorted(set(self.nodes))
            and self.nodes[0] >= 0
            and self.nodes[-1] < self.next_node
            and len(self.tag) == TAG_SIZE
        )


class NextView(msgspec.Struct, frozen=True, array_like=True):
    """The value that the members of a view agree on: the view that follows, and where the epoch ends."""

    number: int
    stay: int
    """Places of the old view that go on. Empty: all of them left, and the group ends."""
    joined: tuple[Incarnation, ...]
    """In the order of their places, after those who stay."""
    heard: int
    """Places of the old view whose reports made the cut: these can finish the epoch."""
    left: tuple[tuple[int, Reason], ...]
    """Places of the old view that do not go on."""
    cut: Cut
    stateless: int
    """Places of the new view that do not have the state yet."""
    donors: tuple[int, ...]
    """Places of the new view that give the state of this view to those that joined."""
    next_node: int
    why: str


class Departed(msgspec.Struct, frozen=True, array_like=True):
    """An incarnation that is no member any more: it never enters again."""

    name: str
    number: int
    node: int
    view: int
    """The first view without it."""
    end: int
    """Its packets of the view before that were delivered: those below this number."""


class MembershipConfig(ConfigValue, frozen=True, kw_only=True):
    """Times and bounds of the membership protocol, equal at all members. Times are whole nanoseconds."""

    repeat: int = 50 * MILLISECOND
    """A round: after it, what was not answered is sent again. Spread over [T, 2T)."""
    failure_timeout: int = 3 * SECOND
    gather: int = 50 * MILLISECOND
    """How long ready applicants wait for others, so that one view takes in all of them."""
    guard: int = 50 * MILLISECOND
    """Time in which a member of the previous view is answered at most once."""
    blocked_repeat: int = 2 * SECOND
    """How often a member that is blocked asks its view again."""
    patience: int = 8
    """Rounds that a coordinator waits for members that are not suspected."""
    suspected_patience: int = 2
    """Rounds that it waits for members that are suspected."""
    grace: int = 0
    """Time that only suspected members are waited for, when all others have reported; 0: as many rounds.

    They are asked again at its beginning. Spread over [T, 2T).
    """
    least: int = 1
    """No view is proposed in which fewer members go on; half of the planned group and one: a static majority."""
    has_state: bool = True
    """Members that join have to get a state; False: the application has none."""

    def __post_init__(self) -> None:
        for name in ("repeat", "failure_timeout", "gather", "guard", "blocked_repeat"):
            require(
                getattr(self, name) > 0, f"{name} must be a positive number of nanoseconds, not {getattr(self, name)}"
            )
        require(self.grace >= 0, f"grace must not be negative: {self.grace}")
        require(self.patience >= 0, f"patience must not be negative: {self.patience}")
        require(self.suspected_patience >= 0, f"suspected_patience must not be negative: {self.suspected_patience}")
        require(1 <= self.least <= MAX_MEMBERS, f"least must be 1 to {MAX_MEMBERS}, not {self.least}")


def is_quorum(places: int, size: int) -> bool:
    """More than half of a view's members, or exactly half with place 0: any two quorums have a member in common."""
    count = places.bit_count()
    return 2 * count > size or (2 * count == size and bool(places & 1))


def founding_view(founders: tuple[Incarnation, ...], tag: bytes) -> GroupView:
    """View 0, which its members open together."""
    return GroupView(0, founders, tuple(range(len(founders))), tag, len(founders))


def view_after(view: GroupView, value: NextView) -> GroupView:
    """The next view; its tag follows from the whole history of views."""
    stay = members(value.stay)
    tag = sha256(view.tag + msgspec.msgpack.encode(value)).digest()[:TAG_SIZE]
    return GroupView(
        value.number,
        (*(view.members[place] for place in stay), *value.joined),
        (*(view.nodes[place] for place in stay), *range(view.next_node, value.next_node)),
        tag,
        value.next_node,
    )


def places_after(stay: int, places: int) -> int:
    """Places of the old view as places of the new one, in which these stay; the others are left out."""
    found = 0
    for new, old in enumerate(members(stay)):
        found |= (places >> old & 1) << new
    return found


def place_after(value: NextView, place: int) -> int:
    """The place in the new view of one that goes on."""
    return (value.stay & ((1 << place) - 1)).bit_count()


def departed_with(view: GroupView, value: NextView) -> tuple[Departed, ...]:
    """Those that the next view is without."""
    found = []
    for place, _ in value.left:
        member = view.members[place]
        found.append(Departed(member.name, member.number, view.nodes[place], value.number, value.cut.ends[place]))
    return tuple(found)


def heard_members(
    view: GroupView, value: NextView | None, departed: tuple[Departed, ...]
) -> tuple[tuple[int, int], ...]:
    """Whose reports ended the view before this one: their incarnation and node numbers.

    `value`: what was agreed on; `departed`: those that went, among them all that went with this view.
    """
    if value is None:
        return ()
    found: dict[int, tuple[int, int]] = {
        place: (view.members[new].number, view.nodes[new]) for new, place in enumerate(members(value.stay))
    }
    gone = [one for one in departed if one.view == value.number]
    found |= {place: (one.number, one.node) for (place, _), one in zip(value.left, gone, strict=False)}
    return tuple(found[place] for place in members(value.heard) if place in found)


def is_possible(value: NextView, view: GroupView) -> bool:
    """Whether this can follow a view: for a value that came over the network."""
    size, stay = len(view.members), value.stay.bit_count()
    if not (
        value.number == view.number + 1
        and value.stay >= 0
        and 0 <= value.heard <= view.everybody
        and value.stay & ~value.heard == 0
        and is_quorum(value.heard, size)
        and tuple(place for place, _ in value.left) == members(view.everybody & ~value.stay)
        and all(value.heard >> place & 1 == (reason in _REPORTED) for place, reason in value.left)
        and (value.stay != 0 or all(reason is Reason.LEFT for _, reason in value.left))
        and value.next_node == view.next_node + len(value.joined)
        and len(value.why) <= MAX_WHY
        and _is_cut_of(value.cut, size)
    ):
        return False
    return _can_join(value, view) and _has_state(value, stay + len(value.joined))


def is_possible_welcome(value: NextView, view: GroupView) -> bool:
    """Whether a view can be the one that a value makes, for one that does not know the view before."""
    kept, old = value.stay.bit_count(), len(value.cut.ends)
    return (
        value.number == view.number > 0
        and view.is_well_formed()
        and 0 < kept <= old <= MAX_MEMBERS
        and value.stay & ~value.heard == 0
        and 0 <= value.heard < 1 << old
        and tuple(place for place, _ in value.left) == members(everybody(old) & ~value.stay)
        and view.members[kept:] == value.joined
        and len(view.members) == kept + len(value.joined)
        and value.next_node == view.next_node
        and len(value.why) <= MAX_WHY
        and _is_cut_of(value.cut, old)
        and _has_state(value, len(view.members))
    )


def _is_cut_of(cut: Cut, size: int) -> bool:
    return (
        len(cut.ends) == size
        and len(cut.base) in {0, size}
        and len(cut.units) in {0, size}
        and min(*cut.ends, *cut.base, *cut.units, cut.round, cut.numbered_below) >= 0
    )


def _can_join(value: NextView, view: GroupView) -> bool:
    """An incarnation enters once, names are unique, and a view has at most 64 members."""
    after = [view.members[place] for place in members(value.stay)] + list(value.joined)
    return (
        len(after) <= MAX_MEMBERS
        and len({member.name for member in after}) == len(after)
        and all(member.is_well_formed() and view.place_of(member) is None for member in value.joined)
        and (value.stay != 0 or not value.joined)
    )


def _has_state(value: NextView, size: int) -> bool:
    """Those with state are a quorum of the new view, and donors are among them."""
    if size == 0:
        return value.stateless == 0 and value.donors == ()
    with_state = everybody(size) & ~value.stateless
    return (
        0 <= value.stateless <= everybody(size)
        and is_quorum(with_state, size)
        and len(value.donors) <= 2
        and all(0 <= donor < size and with_state >> donor & 1 for donor in value.donors)
    )
