"""Own messages, from the protocol's machine to their last level, and what becomes of them at the end.

submitted → numbered → has a position in the order → stable as far as the protocol reports it
                  └──→ delivered here → durable, with a log
"""

import time
from typing import TYPE_CHECKING, NamedTuple

from ordercast.live.host.batching import OutgoingBatch
from ordercast.live.host.congestion import MAX_BYTES_IN_FLIGHT, FlightWindow
from ordercast.live.host.latency_samples import DELIVERED, LatencySamples
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.model.errors import Undelivered
from ordercast.model.machine import Level, Submit
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.machine import MembershipMachine

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

_LOOKED_AT = 63  # one packet in so many is looked at, when the message whose latency is followed may be overdue


class Settled(NamedTuple):
    """Own batches of a member that was excluded, in the order in which they were submitted."""

    delivered: list[OutgoingBatch]
    not_delivered: list[OutgoingBatch]
    unknown: list[OutgoingBatch]


class OwnBatches:
    """All by their first message, which is numbered over all views."""

    def __init__(
        self, highest_level: Level, counts: UnitCounts, flight: FlightWindow | None, log: "MemberLog | None"
    ) -> None:
        """`highest_level`: the highest one that the protocol reports; `flight`: limits what is in flight."""
        self._highest_level, self._counts, self._flight, self._log = highest_level, counts, flight, log
        self._next_message = 0  # the number of the next message that is given to the machine
        self.submitted: dict[int, OutgoingBatch] = {}
        """Given to the machine, not numbered yet."""
        self._unstable: dict[int, OutgoingBatch] = {}  # numbered, below the highest level
        self._unlogged: dict[int, OutgoingBatch] = {}  # numbered, not delivered yet: if there is a log
        self._in_flight: dict[int, int] = {}  # bytes of those without a position in the order yet
        self._sent_at: dict[int, float] = {}  # of these, if there is a `flight`
        self.bytes_in_flight = 0
        """The sum of these."""
        self.max_bytes_in_flight = MAX_BYTES_IN_FLIGHT if flight is None else flight.limit
        self.latencies = LatencySamples()

    def submit(self, batch: OutgoingBatch) -> None:
        """A batch is given to the machine."""
        self.submitted[self._next_message] = batch
        self._next_message += len(batch.parts)

    def numbered(self, packet: Packet, place: int) -> bool:
        """A batch became a packet of this member, which has this place. False if it was one in an earlier view."""
        first = packet.first
        batch = self.submitted.pop(first, None)
        if batch is None:
            return False
        self._counts.sent += batch.messages
        self._counts.numbered += len(packet.lengths)
        self._unstable[first] = batch
        if self._log is not None:
            self._unlogged[first] = batch
        if self.latencies.followed < 0 or not packet.seq & _LOOKED_AT:  # it may be overdue
            ends = 1 << self._highest_level - Level.ACCEPTED | (packet.destinations >> place & 1) << DELIVERED
            self.latencies.numbered(first, ends, time.monotonic_ns())
        self._in_flight[first] = size = len(packet.payload)
        self.bytes_in_flight += size
        if self._flight is not None:
            self._sent_at[first] = time.monotonic()
        batch.reached(Level.ACCEPTED)
        return True

    def reached(self, packet: Packet, level: Level) -> None:
        """An own packet reached a level."""
        first = packet.first
        if first == self.latencies.followed:
            self.latencies.reached(level - Level.ACCEPTED, time.monotonic_ns())
        if level > Level.ACCEPTED:
            self._has_position(first)
        batch = self._unstable.get(first)
        if batch is not None and level > batch.level:
            batch.reached(level)
            if level >= self._highest_level:
                del self._unstable[first]
                batch.reached(Level.KNOWN_STABLE)

    def delivered(self, packet: Packet) -> None:
        """An own packet is delivered here."""
        if packet.first == self.latencies.followed:
            self.latencies.reached(DELIVERED, time.monotonic_ns())
        self._has_position(packet.first)

    def logged(self, packet: Packet, position: int) -> None:
        """An own packet is delivered up to a position: it is durable when a majority has the log up to there."""
        batch = self._unlogged.pop(packet.first, None)
        if batch is not None and batch.durable is not None and self._log is not None:
            self._log.durability.delivered(batch.durable, position)

    def withdrawn(self, first: int) -> None:
        """Nobody is left for whom a batch was."""
        batch = self.submitted.pop(first, None) or self._unstable.pop(first, None)
        self.bytes_in_flight -= self._in_flight.pop(first, 0)
        self._sent_at.pop(first, None)
        if batch is not None:
            batch.give_up(Undelivered("all destinations of the message have left the group or failed"))

    def _has_position(self, first: int) -> None:
        size = self._in_flight.pop(first, 0)
        self.bytes_in_flight -= size
        if self._flight is not None and (sent := self._sent_at.pop(first, 0.0)):
            now = time.monotonic()
            self._flight.placed(size, now - sent, now)
            self.max_bytes_in_flight = self._flight.limit

    def has_room(self) -> bool:
        """True if another batch may be given to the machine."""
        return not self.submitted and self.bytes_in_flight < self.max_bytes_in_flight

    def is_idle(self) -> bool:
        """True if none is awaiting its position in the order."""
        return not (self._in_flight or self.submitted)

    def is_stable(self) -> bool:
        """True if none is below the highest level."""
        return not (self.submitted or self._unstable)

    def unconfirmed(self) -> int:
        """Messages that are not known to be stable."""
        batches = (*self._unstable.values(), *self.submitted.values())
        return sum(batch.messages for batch in batches if batch.level < Level.STABLE)

    def give_up(self, why: BaseException) -> None:
        """Receipts that are waited for raise `why`."""
        for batch in (*self._unstable.values(), *self.submitted.values(), *self._unlogged.values()):
            batch.give_up(why)

    def settle(self, end: int | None, member: MembershipMachine) -> Settled:
        """After the end: which were delivered. `end`: own packets of the last view below it were.

        None: nobody knows.
        """
        unsettled = {**self._unstable, **self.submitted}
        self._unstable, self.submitted = {}, {}
        if end is None:
            return Settled([], [], list(unsettled.values()))
        again = _submissions_from(end, member)
        settled = Settled([], [], [])
        for first, batch in sorted(unsettled.items()):
            if first in again:
                batch.restore(again[first])
                settled.not_delivered.append(batch)
            else:
                settled.delivered.append(batch)
        return settled


def _submissions_from(end: int, member: MembershipMachine) -> dict[int, Submit]:
    """Own submissions that are in no packet below this one, by first message."""
    found: dict[int, Submit] = {}
    size, place = member.current.size, member.current.place
    cut = Cut(tuple(end if each == place else 0 for each in range(size)))
    flush = member.epoch.flush
    number = flush.next_message(cut)
    for submit in flush.left_over(cut):
        found[number + submit.skips] = submit
        number += submit.skips + len(submit.lengths)
    number += member.submissions.skips
    for submit in member.waiting:
        found[number + submit.skips] = submit
        number += submit.skips + len(submit.lengths)
    return found
