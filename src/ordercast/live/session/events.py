"""The inputs and outputs of a session: two closed sets, as a protocol's machine has them."""

import msgspec

from ordercast.model.config import MILLISECOND, SECOND, ConfigValue, require
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.control import Control

HEARTBEATS_PER_TIMEOUT = 12
"""Heartbeats that must all be lost, and the answers to as many questions, before a live member is suspected."""


def heartbeat_interval(failure_timeout: int) -> int:
    """How often a member sends a heartbeat, for this failure timeout."""
    return failure_timeout // HEARTBEATS_PER_TIMEOUT


class SessionConfig(ConfigValue, frozen=True, kw_only=True):
    """The timing of a session. Times are whole nanoseconds."""

    repeat: int = 50 * MILLISECOND
    """τ: after this time without an answer a message is sent again; spread over [τ, 2τ)."""
    handshake_timeout: int = 60 * SECOND
    """The time that members have to find each other and to agree."""
    heartbeat: int = 250 * MILLISECOND
    """The interval of heartbeats while this member closes."""
    failure_timeout: int = 3 * SECOND
    """After so long without traffic the failure detector of a view suspects a member."""

    def __post_init__(self) -> None:
        require(self.repeat > 0, f"repeat must be a positive number of nanoseconds, not {self.repeat}")
        require(self.repeat <= self.heartbeat, "repeat must not be longer than heartbeat")
        require(
            self.failure_timeout >= 4 * self.heartbeat,
            "failure_timeout must be at least four heartbeats, or one lost heartbeat counts as a failure",
        )
        require(
            self.handshake_timeout >= 10 * self.repeat,
            "handshake_timeout must be at least ten times repeat",
        )

    @classmethod
    def for_failure_timeout(cls, failure_timeout: int, *, handshake_timeout: int) -> "SessionConfig":
        """The rest is derived; with a short failure timeout, messages are repeated sooner."""
        heartbeat = heartbeat_interval(failure_timeout)
        return cls(
            repeat=min(cls().repeat, heartbeat),
            handshake_timeout=handshake_timeout,
            heartbeat=heartbeat,
            failure_timeout=failure_timeout,
        )

    @property
    def notice_period(self) -> int:
        """For how long a member that was refused or has aborted still tells others so."""
        return 4 * self.heartbeat

    @property
    def linger(self) -> int:
        """For how long a member that has closed still answers others: longer than they can be silent and live."""
        return 2 * self.failure_timeout + 20 * self.repeat


class Begin(msgspec.Struct, frozen=True, gc=False):
    """Input: begin, with the handshake or with discovery."""


class ControlReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: a control message of a member; one of `IN_SESSION` only if it has the tag of this session."""

    member: int
    message: Control


class TrafficReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: anything else arrived from a member in this session; once per half heartbeat and member is enough."""

    member: int


class Close(msgspec.Struct, frozen=True, gc=False):
    """Input: this member sends nothing more. The host then reports anew whether it is at rest."""

    within: int = 0
    """Abort the group if it is not closed after this time; 0: wait for the others as long as they are alive."""


class AtRest(msgspec.Struct, frozen=True, gc=False):
    """Input: whether the protocol is at rest: all that was sent is stable, and nothing is waited for.

    Reported whenever it changes, before anything that arrives later is handed over.
    """

    at_rest: bool


class Remaining(msgspec.Struct, frozen=True, gc=False):
    """Input: the protocol continues with these members."""

    members: int
    joined: tuple[tuple[int, str], ...] = ()
    """Those of them that were none before, and their names."""


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """Input: the protocol or the application aborts the group."""

    why: str


Input = Begin | ControlReceived | TrafficReceived | TimerFired | Close | AtRest | Remaining | GiveUp


class SendControl(msgspec.Struct, frozen=True, gc=False):
    """Output: send a control message."""

    message: Control
    to: int | None = None
    """One member; None: all the others."""


class Opened(msgspec.Struct, frozen=True, gc=False):
    """Output: all members take part in this session; the protocol may begin."""

    session: int
    incarnations: tuple[int, ...]
    first_seqs: tuple[int, ...]


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Output: the group did not open, or not with us."""

    why: str


class Suspected(msgspec.Struct, frozen=True, gc=False):
    """Output: this member refused to join, though the session is open: the others may continue without it."""

    member: int


class Aborted(msgspec.Struct, frozen=True, gc=False):
    """Output: the group is aborted."""

    why: str


class Closed(msgspec.Struct, frozen=True, gc=False):
    """Output: all members have closed and have everything; the protocol is no longer needed, the network still is."""


class Left(msgspec.Struct, frozen=True, gc=False):
    """Output: nobody needs an answer from us any more; the end of every session."""


Output = SendControl | SetTimer | CancelTimer | Opened | Refused | Suspected | Aborted | Closed | Left
