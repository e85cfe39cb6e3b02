"""The contract of a protocol: one input in, a list of outputs out, and nothing else happens.

A machine has no clock, socket, randomness or log. Everything that happens to it is an `Input`; everything that it does
is an `Output`; both sets are closed. Equal inputs in equal order give equal outputs. The simulator, the explorer and a
live host therefore run the same object.

A host passes only well-formed units: sources and destinations within the group, vectors with an entry for each node;
the decoder checks that. It guarantees four more things: it passes inputs one at a time, carries out outputs in their
order, fires a timer at most once for each `SetTimer` (a second one of the same name replaces the first), and, where
the machine asks for an echo, returns a node's own units to it.
"""

from enum import Enum, IntEnum
from typing import ClassVar, Protocol

import msgspec

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import Snapshot
from ordercast.model.runs import Channel
from ordercast.model.units import Packet, Unit


class Level(IntEnum):
    """What a node knows about a packet. Each level implies the ones below it."""

    ACCEPTED = 1
    """I have it, and all that its source sent to me before it."""
    PREACKNOWLEDGED = 2
    """I know that every destination has accepted it (the papers' PACK)."""
    ACKNOWLEDGED = 3
    """I know that every destination has pre-acknowledged it (the papers' ACK)."""

    STABLE = 2
    """Every destination has it: the field's word for pre-acknowledged."""
    KNOWN_STABLE = 3
    """Every destination knows that it is stable: acknowledged."""


class Echo(Enum):
    """How a node receives its own units."""

    NONE = "none"
    """It does not: the machine counts its own packet as received when it sends it."""
    SAFE = "safe"
    """By a loop-back without loss."""
    CHANNEL = "channel"
    """From the channel, like all nodes, in the order of the channel; it may be lost."""


class Submit(msgspec.Struct, frozen=True, gc=False):
    """Input: the application sends a batch of one or more messages to one set of destinations."""

    destinations: int
    lengths: tuple[int, ...]
    payload: bytes
    priority: int = 0
    skips: int = 0
    """Message numbers left out before its first: of messages that an earlier view left over, and whose destinations are
    all gone. Only orders with selected destinations have such messages."""
    to_all: bool = False
    """It is for all members, of whatever view it is given its number in: also if that happens once more, since it was
    not delivered in the first one. `destinations` are those of the present view. Only groups with views know of it."""


class Receive(msgspec.Struct, frozen=True, gc=False):
    """Input: a unit was received from the channel."""

    unit: Unit


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    """Input: a timer fired."""

    name: str


class Drained(msgspec.Struct, frozen=True, gc=False):
    """Input: no more units are waiting to be received; a good moment to send a pending status."""


class Suspect(msgspec.Struct, frozen=True, gc=False):
    """Input: the host suspects these members, perhaps wrongly; it has no effect for protocols without views."""

    members: int


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """Input: the host aborts the group. The machine delivers what is certain to be delivered, and aborts."""

    why: str


Input = Submit | Receive | TimerFired | Drained | Suspect | GiveUp


class Enter(msgspec.Struct, frozen=True, gc=False):
    """Input: the node takes part from now on: a founder begins, any other joins."""


class Depart(msgspec.Struct, frozen=True, gc=False):
    """Input: the application leaves the group, when its own messages have arrived."""


MembershipInput = Enter | Depart
"""Inputs of machines whose members come and go, besides those of all machines."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Output: put a unit on the channel."""

    unit: Unit
    again: bool = False
    """It is a retransmission of a data unit."""
    to: int | None = None
    """The only receiver, which may be the sender; None: all nodes, with the echo that the machine asks for."""


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """Output: a submission was given its number and entered the sending log (the papers' SL)."""

    packet: Packet


class Renumbered(msgspec.Struct, frozen=True, gc=False):
    """Output: a packet was not delivered in the view in which it was sent, and is sent again in this one."""

    packet: Packet
    view: int


class Reached(msgspec.Struct, frozen=True, gc=False):
    """Output: a packet reached a level at this node."""

    level: Level
    packet: Packet


class ReachedByView(Reached, frozen=True, gc=False):
    """Output: a packet reached a level because it is in the cut that ends a view: all that go on have it."""


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Output: deliver the packet's messages to the application; it enters the receipt log (the papers' RL)."""

    packet: Packet


class Discard(msgspec.Struct, frozen=True, gc=False):
    """Output: a unit was received and discarded."""

    unit: Unit
    why: str


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Output: fire the timer of this name after so many nanoseconds; replaces one of the same name."""

    name: str
    after: int


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    """Output: cancel the timer of this name."""

    name: str


class Abort(msgspec.Struct, frozen=True, gc=False):
    """Output: the machine aborted; it handles no more inputs."""

    why: str
    without_quorum: bool = False
    """Too few members could be reached, or agreed, to go on in time: what was sent may be lost."""


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """Output: the node stopped until the group agrees on an order; no packet reaches a level meanwhile."""

    why: str


class Resumed(msgspec.Struct, frozen=True, gc=False):
    """Output: the order is agreed on, and the node resumes."""

    asked: int
    """Packets that this node had lost and requested."""
    inserted: int
    """Packets that arrived while it was stopped, or were retransmitted, and were inserted."""
    resorted: int
    """Packets from the first of these places on, if there are several: the cost of sorting them."""


class ViewInstalled(msgspec.Struct, frozen=True, gc=False):
    """Output: a new view with these members; a node that is not among them is excluded, and handles no more inputs."""

    number: int
    members: int
    why: str
    heard: int | None = None
    """Members of the view before whose reports decided where it ended; 0: the first view of the group. None: of a
    protocol whose views only ever lose members, and which does not tell it."""
    places: tuple[int, ...] = ()
    """The members in their places, where that is not the order of their numbers."""


class ExcludedFrom(msgspec.Struct, frozen=True, gc=False):
    """Output: the others went on: the view of this number is without this node, or an earlier one is."""

    number: int
    why: str


class Departed(msgspec.Struct, frozen=True, gc=False):
    """Output: this node has left the group; it handles no more submissions."""

    drained: bool
    """All of its messages are known to be where they belong."""


class CutOff(msgspec.Struct, frozen=True, gc=False):
    """Output: too few members can be reached to agree on the next view."""

    lacks: int
    """Those that are not."""


class Reconnected(msgspec.Struct, frozen=True, gc=False):
    """Output: enough members can be reached again; the next view follows, or the node learns that it is excluded."""


class NotSent(msgspec.Struct, frozen=True, gc=False):
    """Output: none of the destinations of a submission is a member: it is not sent, or not any more."""

    messages: int
    first: int | None = None
    """The number of its first message, if it has one: it was sent, and is not sent again."""


Output = (
    Send
    | Numbered
    | Renumbered
    | Reached
    | Deliver
    | Discard
    | SetTimer
    | CancelTimer
    | Stopped
    | Resumed
    | ViewInstalled
    | ExcludedFrom
    | Departed
    | CutOff
    | Reconnected
    | NotSent
    | Abort
)


class LogSizes(msgspec.Struct, frozen=True, gc=False):
    """The sizes of a machine's logs, in packets."""

    waiting: int
    """Submitted, not yet numbered: the window is closed."""
    sent: int
    """Numbered, not yet accepted by every destination (SL)."""
    held: int
    """Received out of order, after a gap."""
    accepted: int
    """Accepted, not yet pre-acknowledged."""
    preacknowledged: int
    """Pre-acknowledged, not yet acknowledged."""

    def total(self) -> int:
        """All of them."""
        return self.waiting + self.sent + self.held + self.accepted + self.preacknowledged


class Machine(Protocol):
    """A protocol at one node."""

    echo: ClassVar[Echo]
    needs: ClassVar[Channel]
    """The weakest channel that it works on."""
    has_views: ClassVar[bool]
    """True if the group goes on without nodes that fail; otherwise it aborts."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        """The machine of the node `me`."""
        ...

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs of the transition."""
        ...

    def snapshot(self) -> Snapshot:
        """The whole state; equal states give equal snapshots."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Restores the state of a snapshot, which was taken on a machine of equal configuration."""
        ...

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as sentences; empty when it is idle."""
        ...

    def log_sizes(self) -> LogSizes:
        """The current sizes of its logs."""
        ...
