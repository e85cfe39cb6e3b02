"""What is counted in a run, whatever is recorded of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.model.machine import Level

_FINE = 5  # bits of a duration that are told apart: its histogram is right to 3 %


@dataclass(slots=True)
class Durations:
    """A histogram of durations, right to 3 %, whatever their number."""

    count: int = 0
    total: int = 0
    """All of them added up; unlike the histogram it is exact."""
    highest: int = 0
    _buckets: dict[int, int] = field(default_factory=dict)

    def add(self, duration: int) -> None:
        """Counts one."""
        coarse = duration.bit_length() - _FINE - 1
        bucket = duration if coarse <= 0 else (coarse << _FINE) + (duration >> coarse)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.total += duration
        if duration > self.highest:
            self.highest = duration

    def percentile(self, percent: float) -> int:
        """The duration that so many percent do not exceed; 0 if there are none."""
        rank, below = self.count * percent / 100, 0
        for bucket, count in sorted(self._buckets.items()):
            below += count
            if below >= rank:
                coarse = (bucket >> _FINE) - 1
                lowest = bucket if coarse <= 0 else (bucket - (coarse << _FINE)) << coarse
                return min(lowest, self.highest)
        return 0

    def as_document(self) -> dict[str, int]:
        """For JSON."""
        return {
            "count": self.count,
            "total": self.total,
            "p50": self.percentile(50),
            "p99": self.percentile(99),
            "most": self.highest,
        }


@dataclass(slots=True)
class Counters:
    """Counts of one run. Messages are counted where people send and get them, units where the network carries them."""

    sent: int = 0
    """Messages numbered by their sources."""
    delivered: int = 0
    """Deliveries of messages to applications."""
    transmitted: int = 0
    """Data units put on the channel for the first time."""
    retransmitted: int = 0
    """Data units put on it again."""
    control: int = 0
    """Units without data."""
    requests: int = 0
    """Those of them that ask for a retransmission."""
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
    """Data units that a node received and threw away."""
    bytes: int = 0
    """What all units put on the channel take."""
    control_bytes: int = 0
    """What those of them take that carry no data."""
    recoveries: int = 0
    """How often a node stopped and the group agreed on an order anew."""
    insertions: int = 0
    """Those in which it put one packet in its place."""
    sortings: int = 0
    """Those in which it sorted several; in the rest it lacked nothing."""
    inserted: int = 0
    """Packets that were put in their places then."""
    resorted: int = 0
    """Packets that had to be sorted for it."""
    processing: int = 0
    """What that took, in the unit of the paper on ST: to insert a packet 1, to sort h packets h."""
    frozen_time: int = 0
    """How long nodes had stopped, added up."""
    longest_sent: int = 0
    """The most packets of its own that a node did not know to be accepted by all their destinations."""
    longest_accepted: int = 0
    """The most packets that a node had accepted and not yet pre-acknowledged."""
    longest_preacknowledged: int = 0
    """The most packets that a node had pre-acknowledged and not yet acknowledged."""
    latency: dict[Level, Durations] = field(default_factory=lambda: {level: Durations() for level in Level})
    """From the send to each level, at each destination."""
    sent_together: int = 0
    """Messages that were sent before the first sender had sent all of its own: while all were sending."""
    together: int = 0
    """When that was."""

    waiting: dict[int, Durations] = field(default_factory=dict)
    """From the send to the delivery, by priority."""

    def packets(self) -> int:
        """Units put on the network; one that goes to everybody counts once."""
        return self.transmitted + self.retransmitted + self.control

    def columns(self) -> Iterator[tuple[str, int]]:
        """The counts by name."""
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, int):
                yield name, value
