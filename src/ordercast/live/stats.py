"""Counters and sizes of a member: a value for programs; `metrics` serves it to monitors, `ordercast node` shows it."""

from collections.abc import Mapping

import msgspec


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters and sizes of one member. Counters start at 0 when the group opens, and only grow."""

    group: str
    me: str
    protocol: str
    members: tuple[str, ...]
    """The current members; `Group.members` has those of the last event that was handed out."""
    view: int
    """The number of the current view."""
    uptime: float
    """Seconds since the group opened."""
    round_trip: float | None
    """Seconds of a round trip to another member, measured when the group opened."""

    messages_sent: int
    """Messages of this member that the protocol has accepted; one in several pieces counts once."""
    messages_delivered: dict[str, int]
    """Messages that were delivered here, by sender."""

    units_sent: int
    """Protocol units sent: data, retransmissions, acknowledgments and requests."""
    retransmissions: int
    """Data units sent again, for members that did not receive them."""
    retransmission_requests: int
    """Units sent that asked for retransmissions."""
    recoveries: int
    """Times that the group agreed on its order again after a loss (orders "total" and "priority")."""
    units_discarded: dict[str, int]
    """Received units that the protocol had no use for, such as duplicates, by reason."""
    units_overrun: int
    """Received units that were dropped because the application did not read, or since too many events waited to be
    recorded; they are sent again."""

    datagrams_received: int
    datagrams_sent: int
    bytes_received: int
    bytes_sent: int
    packets_repeated: int = 0
    """Packets that were sent again since they were lost, where members are on several machines."""
    state_bytes_received: int
    """Of the application's state, when this member joined or returned; over TCP, and not among `bytes_received`."""
    state_bytes_sent: int
    """Of the application's state, to members that joined."""
    datagrams_rejected: dict[str, int]
    """Received datagrams, or records in them, that were not for us, invalid or not decrypted, by reason.

    Among the reasons: `incomplete`, a datagram of which fragments were lost; `oversized`, a message that exceeded the
    maximum size.
    """
    send_errors: dict[str, int]
    """Datagrams that the operating system did not send, by its reason; `oversized`: a record that fits no datagram."""
    receive_errors: dict[str, int]
    """Errors that the operating system reported instead of a datagram, by its reason, such as an unreachable port."""

    pending_bytes: int
    """Sent by the application, not yet accepted by the protocol."""
    unread_bytes: int
    """Delivered, not yet read by the application."""
    logs: dict[str, int]
    """Packets that the protocol holds, by state.

    `waiting`: not yet numbered; `sent`: not yet accepted by all destinations; `held`: received out of order;
    `accepted`: not yet stable; `preacknowledged`: stable, not yet known to be stable everywhere.
    """
    recording_error: str | None = None
    """Why the recording of this member ends before the group does."""
    log_bytes: int = 0
    """What the durable log of this member has on its disk, with its snapshot."""
    durable_position: int = 0
    """Messages below this position are known to be in the logs of a majority, on their disks."""
    log_error: str | None = None
    """Why the durable log of this member ends before the group does."""


def counted(counts: Mapping[str, int], **more: int) -> dict[str, int]:
    """Counts by reason, together with those that are kept elsewhere and are not 0."""
    return {**counts, **{reason: count for reason, count in more.items() if count}}
