"""The counters of a run, kept whatever its trace contains."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from ordercast.model.machine import Level

_FINE = 5  # significant bits of a bucket: the histogram is accurate to 3 %


@dataclass(slots=True)
class Durations:
    """A histogram of durations, accurate to 3 %, of bounded size."""

    count: int = 0
    total: int = 0
    """Their sum, which is exact."""
    highest: int = 0
    _buckets: dict[int, int] = field(default_factory=dict)

    def add(self, duration: int) -> None:
        """Adds one duration."""
        coarse = duration.bit_length() - _FINE - 1
        bucket = duration if coarse <= 0 else (coarse << _FINE) + (duration >> coarse)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.total += duration
        if duration > self.highest:
            self.highest = duration

    def percentile(self, percent: float) -> int:
        """The duration that this percentage does not exceed; 0 if there are none."""
        rank, below = self.count * percent / 100, 0
        for bucket, count in sorted(self._buckets.items()):
            below += count
            if below >= rank:
                coarse = (bucket >> _FINE) - 1
                lowest = bucket if coarse <= 0 else (bucket - (coarse << _FINE)) << coarse
                return min(lowest, self.highest)
        return 0

    def as_document(self) -> dict[str, int]:
        """A summary for JSON."""
        return {
            "count": self.count,
            "total": self.total,
            "p50": self.percentile(50),
            "p99": self.percentile(99),
            "most": self.highest,
        }


@dataclass(slots=True)
class Counters:
    """Counts of one run: messages as applications send and receive them, units as the network carries them."""

    sent: int = 0
    """Messages numbered by their sources."""
    delivered: int = 0
    """Deliveries of messages to applications."""
    transmitted: int = 0
    """Data units put on the channel for the first time."""
    retransmitted: int = 0
    """Data units retransmitted."""
    control: int = 0
    """Units without data."""
    requests: int = 0
    """Those of them that request a retransmission."""
    received: int = 0
    """Data units that reached a node."""
    interrupts: int = 0
    """Units that reached a node from the network, with data or without."""
    lost: int = 0
    """Units that should have reached a node but did not."""
    lost_data: int = 0
    """Data units among them that were addressed to that node."""
    duplicated: int = 0
    """Units that reached a node twice."""
    discarded: int = 0
    """Data units that a node received and discarded."""
    bytes: int = 0
    """Bytes of all units put on the channel."""
    control_bytes: int = 0
    """Bytes of those without data."""
    recoveries: int = 0
    """Times that a node stopped until the group agreed on a new order."""
    insertions: int = 0
    """Those in which it inserted one packet."""
    sortings: int = 0
    """Those in which it inserted several and sorted; in the rest it lacked nothing."""
    inserted: int = 0
    """Packets inserted."""
    resorted: int = 0
    """Packets sorted."""
    processing: int = 0
    """Their cost in the unit of the paper on ST: 1 to insert a packet, h to sort h packets."""
    frozen_time: int = 0
    """Total time that nodes were stopped."""
    longest_sent: int = 0
    """The most packets of its own that a node did not know to be accepted by all their destinations."""
    longest_accepted: int = 0
    """The most packets that a node had accepted and not yet pre-acknowledged."""
    longest_preacknowledged: int = 0
    """The most packets that a node had pre-acknowledged and not yet acknowledged."""
    latency: dict[Level, Durations] = field(default_factory=lambda: {level: Durations() for level in Level})
    """Time from the send to each level, at each destination."""
    sent_together: int = 0
    """Messages sent while all senders were sending: until the first of them had sent all of its own."""
    together: int = 0
    """The time of that moment."""

    waiting: dict[int, Durations] = field(default_factory=dict)
    """Time from the send to the delivery, by priority."""

    def packets(self) -> int:
        """Units put on the network; a broadcast counts once."""
        return self.transmitted + self.retransmitted + self.control

    def columns(self) -> Iterator[tuple[str, int]]:
        """The counters by name."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int):
                yield each.name, value
