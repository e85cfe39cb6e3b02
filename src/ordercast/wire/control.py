"""Control messages: what members send besides the units of their protocol.

Every field is bounded, so that a decoded message cannot use much memory; whether its vectors fit the group is checked
by whoever handles it. `Join` and the other messages of discovery and handshake travel under the sender's incarnation,
the others under the tag of a view, at first that of the session that was agreed on; see `IN_SESSION`.
"""

from enum import IntEnum
from typing import Annotated

import msgspec

MAX_MEMBERS = 64
"""A set of members is one number on the wire, and MessagePack's numbers have 64 bits."""
MAX_HEARD = 2 * MAX_MEMBERS
"""Incarnations that a hello names, those of strangers among them."""
MAX_NAME_LENGTH = 64
MAX_REASON_LENGTH = 500
MAX_PARAMETERS_LENGTH = 16_384
MAX_PARTS = 16
"""Parts of an answer that are sent for one request."""

U64 = Annotated[int, msgspec.Meta(ge=0)]  # no number of MessagePack has more than 64 bits
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 60)]
Index = Annotated[int, msgspec.Meta(ge=0, lt=MAX_MEMBERS)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Reason = Annotated[str, msgspec.Meta(max_length=MAX_REASON_LENGTH)]
Parameters = Annotated[str, msgspec.Meta(max_length=MAX_PARAMETERS_LENGTH)]


class Stage(IntEnum):
    """How far a member has closed. Each stage is final, and implies the ones below it."""

    OPEN = 0
    """It may still send."""
    CLOSING = 1
    """It sends nothing more, and all that it sent is known to be stable."""
    DONE = 2
    """All members are closing, and it waits for nothing any more."""
    ALL_DONE = 3
    """It knows that all members are done."""


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A process that was found: its name and its incarnation."""

    name: Name
    incarnation: U64


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=100):
    """Sent by a process that looks for a group of this name and size, with those that it has found."""

    group: Name
    name: Name
    incarnation: U64
    address: Name
    size: Annotated[int, msgspec.Meta(ge=1, le=MAX_MEMBERS)]
    round: Number
    """How many hellos it has sent: of two that use one name the one that began first knows it by this."""
    knows: Annotated[tuple[Known, ...], msgspec.Meta(max_length=MAX_MEMBERS)]
    """Those that it has found, itself included, by name."""
    found: bool
    """All of these have found each other: they are the group."""
    hears: Annotated[tuple[U64, ...], msgspec.Meta(max_length=MAX_HEARD)] = ()
    """The incarnations that it received from last: whoever finds its own here knows that this is not a replay."""


class HelloRejection(msgspec.Struct, frozen=True, array_like=True, tag=101):
    """To one process that sent a hello: the group has no place for it."""

    group: Name
    name: Name
    incarnation: U64
    """Of the process that is rejected."""
    why: Reason


class LastJoin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last `Join` that was received from a member; all zero if there was none."""

    incarnation: U64 = 0
    round: Number = 0
    """0: it was received, but did not name our incarnation. Its own is named here, so that it can."""
    session: U64 = 0


class Join(msgspec.Struct, frozen=True, array_like=True, tag=102):
    """The handshake: what the sender begins with, its parameters, and what it has received from each member.

    `heard` also tells what the sender lacks: a member that is not in it, or with an older session than its own, answers
    at once.
    """

    incarnation: U64
    """A random number, never 0, drawn each time that a process starts."""
    round: Number
    """Counts the sender's joins, from 1: an older one is ignored."""
    first_seq: Number
    session: U64
    """0, or the session that is derived from the joins of all members: the sender agrees to it."""
    heard: Annotated[tuple[LastJoin, ...], msgspec.Meta(max_length=MAX_MEMBERS)]
    parameters: Parameters
    """Everything that all must have in common, as JSON with sorted names."""


class Refuse(msgspec.Struct, frozen=True, array_like=True, tag=103):
    """To one process in the handshake: the group does not open, or not with it."""

    incarnation: U64
    """Of the sender."""
    refused: U64
    """The incarnation that is refused: another one of that process ignores it."""
    why: Reason
    """A sentence that holds for whoever reads it."""


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag=104):
    """The sender is alive, and has closed so far."""

    stage: Stage
    asks: bool = False
    """The receiver has to answer at once."""


class AbortNotice(msgspec.Struct, frozen=True, array_like=True, tag=105):
    """The group is aborted."""

    why: Reason
    suspect: Index | None = None
    """The member that is suspected to have failed."""


class LastHeardRequest(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=106):
    """Asks another watcher of a member when it last heard from it."""

    member: Index
    """Its place in the view."""
    tick: Number
    """The sender's tick in which it asks."""


class LastHeard(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=107):
    """The answer."""

    member: Index
    tick: Number
    """That of the request."""
    ago: Number
    """Nanoseconds since the sender heard from that member."""


class PartialsRequest(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=109):
    """From one that joined: asks for the first fragments of large messages whose others come after its first view."""

    view: Number
    """The number of that view."""
    offset: Number
    """What is before is here."""


class PartialsPart(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=110):
    """Some bytes of the answer; at most `MAX_PARTS` of them follow a request."""

    view: Number
    total: Number
    """The bytes of the whole answer."""
    offset: Number
    data: Annotated[bytes, msgspec.Meta(max_length=65_507)]


class DurablePosition(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=111):
    """The log of the sender is on its disk up to here."""

    position: Number
    """Of the first message that may not be."""
    asks: bool = False
    """The sender waits: the receiver has to answer with its own position, and to tell later ones for a while."""


class Restarting(msgspec.Struct, frozen=True, array_like=True, tag=112):
    """Between members of a group of which so many failed that it has to begin anew, from their logs.

    It travels under the sender's incarnation.
    """

    data: Annotated[bytes, msgspec.Meta(max_length=65_000)]
    """MessagePack: what the sender has in its log, and whom it hears."""


class LinkAcknowledgment(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=113):
    """Which packets of a link arrived: see `live.transport.links`."""

    ranges: Annotated[tuple[Number, ...], msgspec.Meta(max_length=64)]
    """The numbers that arrived: first and last of each range, ascending."""
    delay: Number
    """Microseconds since the latest of them arrived."""
    waits_for: Number
    """The datagram that is handed over next: those before it are done with."""
    closed: bool = False
    """The sender of this has no room for more now."""


class FlowNotice(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=114):
    """Whether others should wait before they send more: see `live.host.flow_control`."""

    number: Number
    """Counts the notices of a member: an older one is ignored."""
    closed: bool
    """Its application does not read."""


class LeaveRequest(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=117):
    """The sender reads, and has waited long enough for the receiver's application: it should leave until that reads."""

    number: Number
    """Of the receiver's last notice that it is closed: if it has opened since, it ignores this."""


Control = (
    Hello
    | HelloRejection
    | Join
    | Refuse
    | Heartbeat
    | AbortNotice
    | LastHeardRequest
    | LastHeard
    | PartialsRequest
    | PartialsPart
    | DurablePosition
    | LinkAcknowledgment
    | FlowNotice
    | LeaveRequest
    | Restarting
)
IN_SESSION: tuple[type[Control], ...] = (
    *(Heartbeat, AbortNotice, LastHeardRequest, LastHeard, PartialsRequest, PartialsPart),
    *(DurablePosition, LinkAcknowledgment, FlowNotice, LeaveRequest),
)
"""These travel under the tag of a view, all others under the sender's incarnation."""
CONTROL: tuple[type[Control], ...] = (Hello, HelloRejection, Join, Refuse, Restarting, *IN_SESSION)


def truncated(why: str) -> str:
    """A reason that fits into a message."""
    return why if len(why) <= MAX_REASON_LENGTH else why[: MAX_REASON_LENGTH - 1] + "…"
