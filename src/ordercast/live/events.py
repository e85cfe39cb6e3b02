"""What a group hands to its application: messages, views, and receipts for what was sent."""

from asyncio import CancelledError, Future, get_running_loop
from collections.abc import Mapping
from typing import Protocol, Self

import msgspec

from ordercast.live.durability import DurableWaiters
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Level


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A change of membership: from here on the group consists of these members.

    Every member that takes part in a view is handed it at the same position among the messages.
    """

    number: int
    """0 for the view that the group opened with, larger for later ones."""
    position: int
    """The position of the first message that is delivered in this view."""
    members: tuple[str, ...]
    """Their names; the first one is the oldest member."""
    joined: tuple[str, ...] = ()
    """Members that the view before did not have. One that returned may also be among those that left."""
    left: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Members of the view before that are gone, and why.

    "left": by itself; "silent": it did not answer; "replaced": it did not answer, and its name has joined again;
    "stateless": it was about to get the state, and joins again; "unreachable": it and another member do not hear each
    other, and it joins again when it reaches all.
    """
    together: tuple[str, ...] = ()
    """Members that were in the view before, too: they were delivered the same messages in it as this member was, if
    that is among them, of all that were sent to both."""
    why: str = ""
    """A sentence."""

    def __hash__(self) -> int:
        return hash((self.number, self.position, self.members, self.why))


class Excluded(msgspec.Struct, frozen=True):
    """The others continue without this member, which lives: it was not heard for too long.

    It returns by itself, unless it was joined with `rejoin=False`; its next event is then a `View`. Messages of others
    that were delivered in between are not delivered here. If it leaves before it has returned, it ends without them.
    """

    why: str
    """A sentence."""
    delivered: int | None = None
    """Own messages that were not known to be stable, and that the others were delivered; None: not known yet."""
    not_delivered: int | None = None
    """Own messages that nobody was delivered: they are sent again when this member has returned, in their order."""


class Blocked(msgspec.Struct, frozen=True):
    """Too few members can be reached to agree on the next view: nothing is delivered until that is over.

    It has no place in the order of the group.
    """

    lacks: tuple[str, ...]
    """Members that are not reached."""


class Unblocked(msgspec.Struct, frozen=True):
    """Enough members can be reached again; a `View` follows, or `Excluded`."""


Event = View | Excluded | Blocked | Unblocked
"""What a group tells besides messages."""


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What consecutive messages have in common. Not public: `Message` has it as properties."""

    priority: int = 0
    destinations: tuple[str, ...] = ()
    first_position: int = 0
    view: int = 0


_UNKNOWN = Origin()


class Message(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A delivered message: its `sender`, `payload`, `priority`, `destinations`, `position` and `view`."""

    # Very many are made: what consecutive messages share is held once, which takes half the time of six plain fields.
    sender: str
    """The name of the member that sent it."""
    payload: bytes
    _index: int = 0
    _origin: Origin = _UNKNOWN

    @classmethod
    def make(
        cls,
        sender: str,
        payload: bytes,
        *,
        priority: int = 0,
        destinations: tuple[str, ...] = (),
        position: int = 0,
        view: int = 0,
    ) -> Self:
        """A message with these fields, for tests of applications: delivered messages are made by the group."""
        return cls(sender, payload, 0, Origin(priority, destinations, position, view))

    @property
    def priority(self) -> int:
        """0 to 255; 0 in orders without priorities."""
        return self._origin.priority

    @property
    def destinations(self) -> tuple[str, ...]:
        """The names of the members that it was sent to."""
        return self._origin.destinations

    @property
    def position(self) -> int:
        """Its place among all messages that this member was delivered, from 0.

        Where every message goes to all members in one order ("priority", "sequenced", and "total" without `to`), it is
        the same number at all members.
        """
        return self._origin.first_position + self._index

    @property
    def view(self) -> int:
        """The number of the view in which it was delivered."""
        return self._origin.view

    def _fields(self) -> tuple[str, bytes, int, tuple[str, ...], int, int]:
        return self.sender, self.payload, self.priority, self.destinations, self.position, self.view

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Message(sender={self.sender!r}, payload={_shortened(self.payload)}, priority={self.priority}, "
            f"destinations={self.destinations!r}, position={self.position}, view={self.view})"
        )


_SHOWN_BYTES = 80


def _shortened(payload: bytes) -> str:
    if len(payload) <= _SHOWN_BYTES:
        return repr(payload)
    return f"{payload[:_SHOWN_BYTES]!r}... ({len(payload)} bytes)"


class Tracked(Protocol):
    """A packet that was sent, and what is known of it."""

    level: int
    durable: DurableWaiters | None
    """None: this member has no log."""

    def when(self, level: Level, future: "Future[None]") -> "Future[None]":
        """The future, which is completed when the level is reached, or fails when it never will be."""
        ...

    def forget(self, future: "Future[None]") -> None:
        """Nobody waits for this future any more."""
        ...


class Receipt:
    """How far a message has got. A level that will never be reached raises `GroupAborted` or `GroupClosed`.

    If all destinations left the group or failed before, it raises `Undelivered`.

    Messages that share a packet share a receipt.
    """

    __slots__ = ("_packet",)

    def __init__(self, packet: Tracked) -> None:
        self._packet = packet

    def __repr__(self) -> str:
        return f"<Receipt: {_IN_WORDS[self._packet.level]}>"

    async def accepted(self) -> None:
        """Waits until this member's protocol has numbered the message, and keeps it until it is stable."""
        await self._reaches(Level.ACCEPTED)

    async def stable(self) -> None:
        """Waits until every destination has the message (the papers' "pre-acknowledged")."""
        await self._reaches(Level.STABLE)

    async def known_stable(self) -> None:
        """Waits until every destination knows that every destination has the message (the papers' "acknowledged").

        The protocol of the order "sequenced" cannot tell: there it is the same as `stable`.
        """
        await self._reaches(Level.KNOWN_STABLE)

    async def durable(self) -> None:
        """Waits until the message is on the disks of a majority of the view, in the logs of its members.

        From then on it is never lost while a majority of these disks lives. Only in a group whose members have logs:
        `join(..., log=...)`.
        """
        waiters = self._packet.durable
        if waiters is None:
            raise LocalProtocolError("this member has no log: join the group with log=..., at all members")
        await waiters.when(get_running_loop().create_future())

    async def _reaches(self, level: Level) -> None:
        future = get_running_loop().create_future()
        try:
            await self._packet.when(level, future)
        except CancelledError:
            self._packet.forget(future)
            raise

    @property
    def level(self) -> Level | None:
        """What is known now; None: the message waits to be sent."""
        return Level(self._packet.level) if self._packet.level else None


_IN_WORDS = ("waits to be sent", "accepted", "stable", "known to be stable")
