"""What one that watches a group asks a member, and the answer: counters, latencies, and what is waited for.

Both travel under the sender's incarnation: whoever has the key may ask, and nothing changes by it.
"""

from typing import Annotated

import msgspec

from ordercast.wire.control import MAX_MEMBERS, U64, Index, Name, Number, Reason

MAX_WAITS = 6
"""Sentences of an answer."""


class Inspect(msgspec.Struct, frozen=True, array_like=True, tag=115):
    """Asks a member how it is."""

    address: Name
    """Of the one that asks: the answer goes there."""
    group: Name
    incarnation: U64
    """Of the one that asks; a random number."""
    nonce: U64


class Latency(msgspec.Struct, frozen=True, array_like=True):
    """How long it took from the number of an own message to a level at its sender, in nanoseconds."""

    count: Number
    """Of messages that were measured; 0: none, or the order has no such level."""
    median: Number = 0
    late: Number = 0
    """The 99th percentile."""


class Inspected(msgspec.Struct, frozen=True, array_like=True, tag=116):
    """The answer; counters are since the group opened."""

    incarnation: U64
    """This and the next one are those of the question."""
    nonce: U64
    view: Number
    place: Index
    uptime: Number
    """Milliseconds."""
    sent: Number
    """Messages."""
    delivered: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MAX_MEMBERS)]
    """Messages of each member, by place."""
    transmitted: Number
    """Units."""
    retransmitted: Number
    requests: Number
    recoveries: Number
    dropped: Number
    """Datagrams and units that were not taken."""
    bytes_received: Number
    bytes_sent: Number
    pending: Number
    """Bytes that wait for the protocol."""
    unread: Number
    """Bytes that wait for the application."""
    held: Number
    """Packets in the logs of the protocol."""
    latencies: Annotated[tuple[Latency, ...], msgspec.Meta(max_length=8)]
    """Accepted, stable, known to be stable everywhere, delivered."""
    waits: Annotated[tuple[Reason, ...], msgspec.Meta(max_length=MAX_WAITS)]
    """What it waits for, and for whom."""


INSPECTION = (Inspect, Inspected)
"""What members of groups decode, besides control messages and units."""
