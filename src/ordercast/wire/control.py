"""What members say to each other besides the units of their protocol: finding, opening, keeping alive, abort, close.

Every field is bounded, so that a message that was decoded costs no more than it should; whether its vectors fit the
group is asked by whoever handles it. `Join` and the other messages of the opening travel under the sender's
incarnation, `Heartbeat` and `AbortNotice` under the session that was agreed on; see `IN_SESSION`.
"""

from enum import IntEnum
from typing import Annotated

import msgspec

MAX_MEMBERS = 64
"""A set of members is one number on the wire, and MessagePack's numbers have 64 bits."""
MAX_HEARD = 2 * MAX_MEMBERS
"""Lives that a hello names, those of strangers among them."""
MAX_NAME_LENGTH = 64
MAX_REASON_LENGTH = 500
MAX_PARAMETERS_LENGTH = 16_384

U64 = Annotated[int, msgspec.Meta(ge=0)]  # no number of MessagePack has more than 64 bits
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 60)]
Index = Annotated[int, msgspec.Meta(ge=0, lt=MAX_MEMBERS)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Reason = Annotated[str, msgspec.Meta(max_length=MAX_REASON_LENGTH)]
Parameters = Annotated[str, msgspec.Meta(max_length=MAX_PARAMETERS_LENGTH)]


class Stage(IntEnum):
    """How far a member has closed. Each stage is for good, and implies the ones below it."""

    OPEN = 0
    """It may still send."""
    CLOSING = 1
    """It sends nothing more, and all that it sent is known to be everywhere."""
    DONE = 2
    """Everybody is closing, and it waits for nothing any more."""
    BYE = 3
    """It knows that everybody is done."""


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A process that was found: its name, and the life that it leads."""

    name: Name
    incarnation: U64


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=100):
    """I look for a group of this name and size, and know these."""

    group: Name
    name: Name
    incarnation: U64
    address: Name
    size: Annotated[int, msgspec.Meta(ge=1, le=MAX_MEMBERS)]
    round: Number
    """How often it has said hello: of two that use one name the one that was there first knows it by this."""
    knows: Annotated[tuple[Known, ...], msgspec.Meta(max_length=MAX_MEMBERS)]
    """Whom it knows, itself included, by name."""
    found: bool
    """All of these know each other: they are the group."""
    hears: Annotated[tuple[U64, ...], msgspec.Meta(max_length=MAX_HEARD)] = ()
    """The lives that it heard last: whoever finds its own here knows that this is not from an earlier day."""


class HelloRejection(msgspec.Struct, frozen=True, array_like=True, tag=101):
    """To one process that said hello: there is no place for it."""

    group: Name
    name: Name
    incarnation: U64
    """Which process is meant."""
    why: Reason


class LastJoin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last `Join` that came from a member; all zero if none has."""

    incarnation: U64 = 0
    round: Number = 0
    """0: it came, but did not show that it was said in this life of ours. That life is named, so that it can."""
    session: U64 = 0


class Join(msgspec.Struct, frozen=True, array_like=True, tag=102):
    """I take part: what I begin with, what I was configured with, and what I have heard from each of us.

    `heard` is also what the sender wants: a member that is not in it, or with an older session than its own, answers
    at once.
    """

    incarnation: U64
    """A random number, never 0, for each life of a process."""
    round: Number
    """The sender's joins, from 1: an older one says nothing new."""
    first_seq: Number
    session: U64
    """0, or the session that follows from the joins of all members: the sender agrees to it."""
    heard: Annotated[tuple[LastJoin, ...], msgspec.Meta(max_length=MAX_MEMBERS)]
    parameters: Parameters
    """Everything that all must have alike, as JSON with sorted names."""


class Refuse(msgspec.Struct, frozen=True, array_like=True, tag=103):
    """To one process that takes part: the group does not open, or not with you."""

    incarnation: U64
    """Who refuses."""
    refused: U64
    """Who is refused: another life of that process does not take it for its own."""
    why: Reason
    """A sentence that is true whoever reads it."""


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag=104):
    """I am alive, and have closed so far."""

    stage: Stage
    asks: bool = False
    """The receiver is to answer at once."""


class AbortNotice(msgspec.Struct, frozen=True, array_like=True, tag=105):
    """The group is given up."""

    why: Reason
    suspect: Index | None = None
    """The member that is taken for dead."""


Control = Hello | HelloRejection | Join | Refuse | Heartbeat | AbortNotice
CONTROL: tuple[type[Control], ...] = (Hello, HelloRejection, Join, Refuse, Heartbeat, AbortNotice)
IN_SESSION: tuple[type[Control], ...] = (Heartbeat, AbortNotice)
"""These travel under the session's tag, all others under the sender's incarnation."""


def truncated(why: str) -> str:
    """A reason that fits into a message."""
    return why if len(why) <= MAX_REASON_LENGTH else why[: MAX_REASON_LENGTH - 1] + "…"
