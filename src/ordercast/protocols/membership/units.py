"""Units of the membership protocol: kinds 60 to 79.

The first group travels under the tag of the view that `view` numbers, from member to member and never through a relay;
`source` is the sender's place in that view. The second group is between members and those that are in no view.

`problem_of` says what is wrong with a unit that came over the network: such a unit is discarded.
"""

import msgspec

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit
from ordercast.protocols.membership.epoch import EpochReport, Ranges
from ordercast.protocols.membership.view import (
    MAX_ADDRESS,
    MAX_MEMBERS,
    MAX_NAME,
    MAX_WHY,
    Ballot,
    Departed,
    GroupView,
    Incarnation,
    NextView,
    is_possible,
    is_possible_welcome,
)

MAX_RANGES = 64
"""Ranges that one request names."""
MAX_COPIES = 32
"""Packets that are fetched at once."""
MAX_DEPARTED = 1024
MAX_TERMS = 64
MAX_TERM = 16_384
"""Characters of the name or the value of a term."""
_BALLOT_SIZE = 2 * NUMBER_SIZE

AcceptedValue = tuple[Ballot, NextView]
"""A value, and the ballot in which it was accepted."""


class MemberUnit(Unit, frozen=True, gc=False, kw_only=False, tag=0):
    """A unit from one member of a view to another."""

    view: int
    source: int
    """The sender's place in that view."""

    def size(self) -> int:
        """As encoded."""
        return FIXED_SIZE + len(msgspec.msgpack.encode(self))

    def label(self) -> str:
        """The membership changes."""
        return "view"


class Flush(MemberUnit, frozen=True, gc=False, tag=60):
    """Stop, and report."""

    ballot: Ballot
    heard: int
    """Places that need not answer again."""
    why: str


class Report(MemberUnit, frozen=True, gc=False, tag=61):
    """I have stopped; what I have."""

    ballot: Ballot
    accepted: AcceptedValue | None
    leaving: bool
    has_state: bool
    report: EpochReport


class Propose(MemberUnit, frozen=True, gc=False, tag=62):
    """As Flush, and: accept this."""

    ballot: Ballot
    value: NextView
    heard: int
    """Places that have accepted it and need not answer again."""


class Accepted(MemberUnit, frozen=True, gc=False, tag=63):
    """I hold all that it asks of me, and have accepted it."""

    ballot: Ballot


class Overruled(MemberUnit, frozen=True, gc=False, tag=64):
    """I have promised a later ballot."""

    ballot: Ballot
    """The one that was refused."""
    promised: Ballot


class Install(MemberUnit, frozen=True, gc=False, tag=65):
    """The view after `view` is decided."""

    value: NextView


class Entered(MemberUnit, frozen=True, gc=False, tag=66):
    """I am in this view; and whether I have the state."""

    has_state: bool
    applicant: int | None = None
    """Of the probe that it answers."""


class Fetch(MemberUnit, frozen=True, gc=False, tag=67):
    """Requests packets below the cut that the sender lacks; sequencer only."""

    ranges: Ranges

    def asks_for(self) -> str | None:
        """The missing ranges."""
        return "+".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in self.ranges)


class Supply(DataUnit, frozen=True, gc=False, tag=68):
    """A packet in reply to Fetch."""

    view: int
    source: int
    number: int

    def size(self) -> int:
        """A packet and five numbers."""
        return FIXED_SIZE + 5 * NUMBER_SIZE + self.packet.body_size()


class Leave(MemberUnit, frozen=True, gc=False, tag=69):
    """I want to go; repeated until a view without me comes."""


class Suspicion(MemberUnit, frozen=True, gc=False, tag=70):
    """The sender's failure detector suspects these members."""

    members: int
    why: str
    unheard: int = 0
    """Members that live, as others say, but that the sender does not hear."""


class Probe(MemberUnit, frozen=True, gc=False, tag=71):
    """Are you there? `Entered` is the answer."""

    applicant: int | None = None
    """The incarnation that applies with the name of the one that is asked, if that is why.

    What that one sent before does not say that it is there still.
    """


class Find(Unit, frozen=True, gc=False, tag=75):
    """Asks whether there is a group."""

    group: str
    name: str
    incarnation: int
    nonce: int

    def size(self) -> int:
        """As encoded."""
        return FIXED_SIZE + len(msgspec.msgpack.encode(self))

    def label(self) -> str:
        """A member comes."""
        return "join"


class Found(Find, frozen=True, gc=False, tag=76):
    """Yes; the first four fields are those of the Find."""

    member: Incarnation
    """The one that answers."""
    view: int
    place: int
    """Of the one that answers."""
    blocked: bool
    is_member: bool
    """The one that asks is a member of this view."""
    addresses: tuple[str, ...]
    """Of all members, by place."""
    apply_at: int
    """The place of the member to apply at."""
    to: int
    """The incarnation number of that member."""
    terms: tuple[tuple[str, str], ...] = ()
    """The parameters that must be equal at all members, by name."""
    ticket: int = 0
    """What an application at the one that answers has to show."""
    is_founder: bool = False
    """The group was opened with a member at the address of the one that asks; the host of the one that answers says."""
    names: tuple[str, ...] = ()
    """Of all members, by place, for people; the host of the one that answers says."""


class Apply(Unit, frozen=True, gc=False, tag=77):
    """Take me in."""

    applicant: Incarnation
    to: int
    """The incarnation number of the member applied to."""
    view: int
    terms: tuple[tuple[str, str], ...]
    """The parameters that must be equal at all members, by name."""
    old: int | None
    """The node that it was before."""
    reached: int
    """Places that it has exchanged Find and Found with, directly."""
    nonce: int
    ticket: int = 0
    """From the last `Found` of the member applied to. Who is dead cannot show a new one, whoever repeats its words."""

    def size(self) -> int:
        """As encoded."""
        return FIXED_SIZE + len(msgspec.msgpack.encode(self))

    def label(self) -> str:
        """A member comes."""
        return "join"


class Answer(Unit, frozen=True, gc=False, tag=78):
    """Not yet, or never, and why."""

    incarnation: int
    """Of the applicant."""
    nonce: int
    refused: bool
    why: str
    reach: int
    """Places that it has to reach first."""

    def size(self) -> int:
        """As encoded."""
        return FIXED_SIZE + len(msgspec.msgpack.encode(self))

    def label(self) -> str:
        """A member comes."""
        return "join"


class Welcome(Unit, frozen=True, gc=False, tag=79):
    """You are in."""

    incarnation: int
    """Of the one that joined."""
    source: int
    """The sender's place in the new view."""
    value: NextView
    view: GroupView
    """The new view, in which the receiver is a member."""
    departed: tuple[Departed, ...]
    end_of_old: Departed | None
    """Of the node that the joiner was before, if it is remembered."""
    position: int = 0
    """Messages that the sender was delivered before this view, for orders in which these are the same at all members;
    the host of the sender counts them."""
    partials: int = 0
    """Bytes that the host of the sender has for the joiner besides: of messages that began before this view."""
    founders: tuple[str, ...] = ()
    """Addresses of the members that opened the group, as far as the host of the sender knows them."""

    def size(self) -> int:
        """As encoded."""
        return FIXED_SIZE + len(msgspec.msgpack.encode(self))

    def label(self) -> str:
        """A member comes."""
        return "join"


ControlUnit = (
    Flush | Report | Propose | Accepted | Overruled | Install | Entered | Fetch | Supply | Leave | Suspicion | Probe
)
OutsideUnit = Find | Found | Apply | Answer | Welcome
CONTROL_UNITS: tuple[type[Unit], ...] = (
    *(Flush, Report, Propose, Accepted, Overruled, Install, Entered, Fetch, Supply, Leave, Suspicion, Probe),
)
OUTSIDE_UNITS: tuple[type[Unit], ...] = (Find, Found, Apply, Answer, Welcome)


def problem_of(unit: ControlUnit, view: GroupView) -> str | None:
    """What is wrong with a unit of this view; None if it can have come from a correct member."""
    if not 0 <= unit.source < len(view.members):
        return "its source is no member"
    if isinstance(unit, Flush | Report | Propose | Accepted | Overruled):
        return _problem_of_ballot(unit, view)
    good = True
    if isinstance(unit, Install):
        good = is_possible(unit.value, view)
    elif isinstance(unit, Fetch):
        ranges = unit.ranges
        good = 0 < len(ranges) <= MAX_RANGES and all(0 <= start < stop for start, stop in ranges)
    elif isinstance(unit, Supply):
        packet = unit.packet
        good = 0 <= packet.source < len(view.members) and 0 < packet.destinations <= view.everybody
        good = good and min(unit.number, packet.seq, packet.first) >= 0
    elif isinstance(unit, Entered | Probe):
        good = unit.applicant is None or 0 <= unit.applicant < 1 << 64
    elif isinstance(unit, Suspicion):
        good = min(unit.members, unit.unheard) >= 0 and max(unit.members, unit.unheard) <= view.everybody
        good = good and len(unit.why) <= MAX_WHY
    return None if good else "impossible"


def _is_ballot(ballot: Ballot, view: GroupView) -> bool:
    return 0 < ballot[0] < 1 << 32 and 0 <= ballot[1] < len(view.members)


def _problem_of_ballot(unit: Flush | Report | Propose | Accepted | Overruled, view: GroupView) -> str | None:
    if not _is_ballot(unit.ballot, view):
        return "impossible ballot"
    good = True
    if isinstance(unit, Report):
        good = _is_report(unit, view)
    elif isinstance(unit, Overruled):
        good = _is_ballot(unit.promised, view) and unit.promised > unit.ballot
    elif isinstance(unit, Flush | Propose):
        good = unit.ballot[1] == unit.source and 0 <= unit.heard <= view.everybody
    if isinstance(unit, Propose):
        good = good and is_possible(unit.value, view)
    elif isinstance(unit, Flush):
        good = good and len(unit.why) <= MAX_WHY
    return None if good else "impossible"


def _is_report(unit: Report, view: GroupView) -> bool:
    report, size = unit.report, len(view.members)
    vectors = (report.expected, *(each for each in (report.stable, report.base) if each))
    if any(len(vector) != size or min(vector) < 0 for vector in vectors):
        return False
    if min(report.units, default=0) < 0:  # how many there are is the order's matter
        return False
    if min(report.round, report.numbered_below) < 0:
        return False
    return unit.accepted is None or (_is_ballot(unit.accepted[0], view) and is_possible(unit.accepted[1], view))


def problem_of_outside(unit: OutsideUnit) -> str | None:
    """The same for a unit from or to one that is in no view."""
    good = True
    if isinstance(unit, Found):
        good = (
            min(unit.view, unit.ticket) >= 0
            and 0 < len(unit.addresses) <= MAX_MEMBERS
            and all(0 < len(address) <= MAX_ADDRESS for address in unit.addresses)
            and len(unit.names) in {0, len(unit.addresses)}
            and all(0 < len(name) <= MAX_NAME for name in unit.names)
            and 0 <= unit.place < len(unit.addresses)
            and 0 <= unit.apply_at < len(unit.addresses)
            and _are_terms(unit.terms)
        )
    elif isinstance(unit, Apply):
        good = unit.applicant.is_well_formed() and 0 <= unit.reached < 1 << MAX_MEMBERS and _are_terms(unit.terms)
    elif isinstance(unit, Answer):
        good = 0 <= unit.reach < 1 << MAX_MEMBERS and len(unit.why) <= MAX_WHY
    elif isinstance(unit, Welcome):
        good = (
            is_possible_welcome(unit.value, unit.view)
            and 0 <= unit.source < len(unit.view.members)
            and len(unit.departed) <= MAX_DEPARTED
            and 0 <= unit.position < 1 << 60
            and 0 <= unit.partials < 1 << 60
            and len(unit.founders) <= MAX_MEMBERS
            and all(0 < len(address) <= MAX_ADDRESS for address in unit.founders)
        )
    return None if good else "malformed"


def _are_terms(terms: tuple[tuple[str, str], ...]) -> bool:
    return len(terms) <= MAX_TERMS and all(len(text) <= MAX_TERM for term in terms for text in term)
