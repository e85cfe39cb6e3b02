"""What a member counts: for programs a struct, for people a view, for monitors a text."""

from collections.abc import Mapping

import msgspec

from ordercast.model.machine import LogSizes


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """How a member of a group stands. Counts are since the group was opened, and only grow."""

    group: str
    me: str
    protocol: str
    members: tuple[str, ...]
    """Those that take part now."""
    view: int
    """How often a sequenced group went on with other members."""
    uptime: float
    """Seconds since the group was opened."""
    round_trip: float | None
    """Seconds to a member and back, as measured when the group opened."""

    sent: int
    """Messages of ours that the protocol has taken; a large one counts once, when its last piece is."""
    delivered: dict[str, int]
    """Messages by sender, likewise, that were delivered here."""

    units: int
    """What the protocol put on the network: data, copies, and what it has to say besides."""
    retransmissions: int
    """Copies of data that somebody lacked."""
    requests: int
    """Units that asked for such copies."""
    recoveries: int
    """How often the group agreed on its order anew after a loss."""
    discarded: dict[str, int]
    """Units that the protocol had no use for, by reason."""

    datagrams_in: int
    datagrams_out: int
    bytes_in: int
    bytes_out: int
    dropped: dict[str, int]
    """Datagrams, or records in them, that were not for us or not understood, by reason.

    Among the reasons: `incomplete`, a datagram that went in parts of which not all came; `oversized`, a message that
    was larger than any may be.
    """
    not_sent: dict[str, int]
    """Datagrams that the system did not take, by its reason; `oversized` are records that no datagram can carry."""
    overrun: int
    """Units that were dropped since the application here does not listen; they are sent again."""

    waiting_bytes: int
    """Sent by the application, and not yet taken by the protocol."""
    inbox_bytes: int
    """Delivered, and not yet read by the application."""
    logs: LogSizes
    """Packets that the protocol holds."""
    record_failed: str | None = None
    """Why the record of this member ends before the group does."""


def counted(counts: Mapping[str, int], **more: int) -> dict[str, int]:
    """Counts by reason, and those that are kept elsewhere, if there are any."""
    return {**counts, **{reason: count for reason, count in more.items() if count}}
