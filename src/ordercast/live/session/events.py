"""What may happen to a session, and what it may do to the world: two closed sets, as a protocol's machine has them."""

import msgspec

from ordercast.model.config import MILLISECOND, SECOND, ConfigValue, require
from ordercast.model.machine import CancelTimer, SetTimer
from ordercast.wire.control import Control

HEARTBEATS_PER_TIMEOUT = 12
"""Signs of life that must all be lost, and the answers to as many questions, before who lives is taken for dead."""


def heartbeat_interval(silence: int) -> int:
    """How often a member says that it is alive, where so long a silence is a death."""
    return silence // HEARTBEATS_PER_TIMEOUT


class SessionConfig(ConfigValue, frozen=True, kw_only=True):
    """How patient a session is. Times are whole nanoseconds."""

    repeat: int = 50 * MILLISECOND
    """τ: how long until something that was not answered is said again; spread over [τ, 2τ)."""
    opening: int = 60 * SECOND
    """How long members may take to come together."""
    beat: int = 250 * MILLISECOND
    """So often a member says that it is alive."""
    silence: int = 3 * SECOND
    """A member from which nothing came for so long, though it was asked, is suspected."""

    def __post_init__(self) -> None:
        require(self.repeat > 0, "repeat must be a positive number of nanoseconds")
        require(self.repeat <= self.beat, "repeat must not be longer than beat")
        require(self.silence >= 4 * self.beat, "silence must be at least four beats, or one lost beat is a death")
        require(self.opening >= 10 * self.repeat, "opening must be at least ten times repeat")

    @classmethod
    def for_silence(cls, silence: int, *, opening: int) -> "SessionConfig":
        """All else follows; where a silence is short, what is not answered is said again sooner."""
        beat = heartbeat_interval(silence)
        return cls(repeat=min(cls().repeat, beat), opening=opening, beat=beat, silence=silence)

    @property
    def farewell(self) -> int:
        """How long a member that was refused or has aborted still tells others so."""
        return 4 * self.beat

    @property
    def linger(self) -> int:
        """How long a member that has closed still answers others: beyond any silence that they survive."""
        return 2 * self.silence + 20 * self.repeat


class Begin(msgspec.Struct, frozen=True, gc=False):
    """Input: take part."""


class ControlReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: a control message of a member; one of `IN_SESSION` only if it has the tag of this session."""

    member: int
    message: Control


class TrafficReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: anything else of a member came under this session's tag; once for each beat and member is enough."""

    member: int


class TimerExpired(msgspec.Struct, frozen=True, gc=False):
    """Input: the time of a timer has come; everything that had arrived until `now` was handed over before."""

    name: str
    now: int
    """By any clock that never goes back."""


class Close(msgspec.Struct, frozen=True, gc=False):
    """Input: this member sends nothing more. The host then says anew whether it is at rest."""

    within: int = 0
    """Give the group up if it has not closed after so long; 0: wait for the others as long as they live."""


class AtRest(msgspec.Struct, frozen=True, gc=False):
    """Input: whether the protocol has nothing under way: all that was sent is everywhere, nothing is waited for.

    Said whenever it changes, before anything that comes later is handed over.
    """

    resting: bool


class Remaining(msgspec.Struct, frozen=True, gc=False):
    """Input: the protocol goes on with these members only."""

    members: int


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """Input: the protocol or the application gives the group up."""

    why: str


Input = Begin | ControlReceived | TrafficReceived | TimerExpired | Close | AtRest | Remaining | GiveUp


class SendControl(msgspec.Struct, frozen=True, gc=False):
    """Output: send a control message."""

    message: Control
    to: int | None = None
    """One member; None is all the others."""


class Opened(msgspec.Struct, frozen=True, gc=False):
    """Output: all members take part in this session; the protocol may begin."""

    session: int
    incarnations: tuple[int, ...]
    first_seqs: tuple[int, ...]


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Output: the group did not open, or not with us."""

    why: str


class Suspected(msgspec.Struct, frozen=True, gc=False):
    """Output: this member is taken for dead; the protocol, which has views, may go on without it."""

    member: int


class Aborted(msgspec.Struct, frozen=True, gc=False):
    """Output: the group is given up."""

    why: str


class Closed(msgspec.Struct, frozen=True, gc=False):
    """Output: everybody has closed and has everything; the protocol is no longer needed, the network still is."""


class Left(msgspec.Struct, frozen=True, gc=False):
    """Output: nobody needs to hear from us any more; the end of every session, after which it does nothing."""


Output = SendControl | SetTimer | CancelTimer | Opened | Refused | Suspected | Aborted | Closed | Left
