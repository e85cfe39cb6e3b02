"""The contract of a protocol: one input in, a list of outputs out, and nothing else happens.

A machine has no clock, socket, chance or log. Whatever may happen to it is an `Input`; whatever it may do to the
world is an `Output`; both sets are closed. Equal inputs in equal order give equal outputs. The simulator, the
explorer and a live host therefore run the same object.

A host hands over only well-formed units: sources and destinations within the group, vectors with an entry for each
node; whoever reads bytes sees to that. It owes a machine four things more: it hands over inputs one at a time, carries
out outputs in their order, fires a timer at most once for each `SetTimer` (a second one of the same name replaces the
first), and, where the machine asks for an echo, hands a node its own units back.
"""

from enum import Enum, IntEnum
from typing import ClassVar, Protocol

import msgspec

from ordercast.model.config import GroupConfig
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
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
    """How a node hears its own units."""

    NONE = "none"
    """It does not: the machine counts its own packet as heard when it sends it."""
    SAFE = "safe"
    """By a loop-back that loses nothing."""
    CHANNEL = "channel"
    """From the channel, like everybody else, at the place that the channel gave it; and it may miss it."""


class Submit(msgspec.Struct, frozen=True, gc=False):
    """Input: the application sends a batch of one or more messages to one set of destinations."""

    destinations: int
    lengths: tuple[int, ...]
    payload: bytes
    priority: int = 0


class Receive(msgspec.Struct, frozen=True, gc=False):
    """Input: the channel handed us a unit."""

    unit: Unit


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    """Input: the time of a timer that was set has come."""

    name: str


class Drained(msgspec.Struct, frozen=True, gc=False):
    """Input: nothing more waits to be received now; a good moment to pay what is owed."""


class Suspect(msgspec.Struct, frozen=True, gc=False):
    """Input: the host takes these members for dead, perhaps wrongly; only a protocol with views heeds it."""

    members: int


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """Input: the host gives the group up. What is certain is delivered, and then the machine aborts."""

    why: str


Input = Submit | Receive | TimerFired | Drained | Suspect | GiveUp


class Send(msgspec.Struct, frozen=True, gc=False):
    """Output: put a unit on the channel."""

    unit: Unit
    again: bool = False
    """It is a copy of a data unit sent before."""
    to: int | None = None
    """The one node that hears it, the sender itself perhaps; None is everybody, and the echo that the machine wants."""


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """Output: a submission got its number and entered the sending log (the papers' SL)."""

    packet: Packet


class Reached(msgspec.Struct, frozen=True, gc=False):
    """Output: what this node knows of a packet rose to a level."""

    level: Level
    packet: Packet


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Output: hand the packet's messages to the application; it enters the receipt log (the papers' RL)."""

    packet: Packet


class Discard(msgspec.Struct, frozen=True, gc=False):
    """Output: a unit was received and thrown away."""

    unit: Unit
    why: str


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Output: fire the timer of this name after so many nanoseconds; replaces one of the same name."""

    name: str
    after: int


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    """Output: forget the timer of this name."""

    name: str


class Abort(msgspec.Struct, frozen=True, gc=False):
    """Output: the machine gave the group up; it answers nothing any more."""

    why: str


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """Output: something is missing, or much has come, and the group agrees on its order; nothing rises meanwhile."""

    why: str


class Resumed(msgspec.Struct, frozen=True, gc=False):
    """Output: the order is agreed on, and all goes on."""

    asked: int
    """Packets that this node had lost and asked for."""
    inserted: int
    """Packets that came while it had stopped, or were sent again, and were put in their places."""
    resorted: int
    """Packets from the first of these places on, if there are several: what sorting them takes."""


class View(msgspec.Struct, frozen=True, gc=False):
    """Output: the group goes on with these members; a node that is not among them is shut out, and answers nothing."""

    number: int
    members: int
    why: str


Output = Send | Numbered | Reached | Deliver | Discard | SetTimer | CancelTimer | Stopped | Resumed | View | Abort


class LogSizes(msgspec.Struct, frozen=True, gc=False):
    """How much a machine holds, in packets."""

    waiting: int
    """Submitted, not yet numbered: the window is closed."""
    sent: int
    """Numbered, not yet accepted by every destination (SL)."""
    held: int
    """Received ahead of a gap."""
    accepted: int
    """Accepted, not yet pre-acknowledged."""
    preacknowledged: int
    """Pre-acknowledged, not yet acknowledged."""


class Machine(Protocol):
    """A protocol at one node."""

    echo: ClassVar[Echo]
    needs: ClassVar[Channel]
    """The weakest channel that it works on."""
    has_views: ClassVar[bool]
    """Whether the group goes on without nodes that fail; if not, it is given up."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        """The machine of the node `me`."""
        ...

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it, when the transition is over."""
        ...

    def snapshot(self) -> Snapshot:
        """The whole state; equal states give equal snapshots."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Makes this machine's state what it was when the snapshot was taken (on a machine of equal configuration)."""
        ...

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words; empty when it is idle."""
        ...

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        ...
