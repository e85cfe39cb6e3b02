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

ACCEPTED, PREACKNOWLEDGED, KNOWN_STABLE = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.KNOWN_STABLE


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
        self.bytes_in_flight = 0
        """Of those that are numbered and have no position in the order yet."""
        self.max_bytes_in_flight = MAX_BYTES_IN_FLIGHT if flight is None else flight.limit
        self.latencies = LatencySamples()

    def submit(self, batch: OutgoingBatch) -> None:
        """A batch is given to the machine."""
        self.submitted[self._next_message] = batch
        self._next_message += len(batch.parts)

    def numbered(self, packet: Packet) -> bool:
        """A batch became a packet of this member. False if it was one in an earlier view."""
        first = packet.first
        batch = self.submitted.pop(first, None)
        if batch is None:
            return False
        counts = self._counts
        if batch.level < ACCEPTED:  # else it is sent again, since this member was left out, and was counted
            counts.sent += batch.messages
        counts.numbered += len(packet.lengths)
        self._unstable[first] = batch
        if self._log is not None:
            self._unlogged[first] = batch
        batch.in_flight = size = len(packet.payload)
        self.bytes_in_flight += size
        if self._flight is not None:
            batch.sent_at = time.monotonic()
        batch.reached(ACCEPTED)
        return True

    def follow(self, packet: Packet, place: int) -> None:
        """How long a packet takes that was just numbered is measured, unless another one is. `place`: this member's."""
        ends = 1 << self._highest_level - ACCEPTED | (packet.destinations >> place & 1) << DELIVERED
        self.latencies.numbered(packet.first, ends, time.monotonic_ns())

    def reached(self, packet: Packet, level: Level) -> None:
        """An own packet reached a level."""
        first = packet.first
        if first == self.latencies.followed:
            self.latencies.reached(level - ACCEPTED, time.monotonic_ns())
        if level < PREACKNOWLEDGED:
            return  # it was numbered before
        batch = self._unstable.get(first)
        if batch is not None and level > batch.level:
            if batch.in_flight:
                self._has_position(batch)
            if level >= self._highest_level:
                del self._unstable[first]
                level = KNOWN_STABLE
            batch.reached(level)

    def delivered(self, packet: Packet) -> None:
        """An own packet is delivered here."""
        first = packet.first
        if first == self.latencies.followed:
            self.latencies.reached(DELIVERED, time.monotonic_ns())
        batch = self._unstable.get(first)
        if batch is not None and batch.in_flight:
            self._has_position(batch)

    def logged(self, packet: Packet, position: int) -> None:
        """An own packet is delivered up to a position: it is durable when a majority has the log up to there."""
        batch = self._unlogged.pop(packet.first, None)
        if batch is not None and batch.durable is not None and self._log is not None:
            self._log.durability.delivered(batch.durable, position)

    def withdrawn(self, first: int) -> None:
        """Nobody is left for whom a batch was."""
        batch = self.submitted.pop(first, None) or self._unstable.pop(first, None)
        if batch is not None:
            self.bytes_in_flight -= batch.in_flight
            batch.in_flight = 0
            batch.give_up(Undelivered("all destinations of the message have left the group or failed"))

    def _has_position(self, batch: OutgoingBatch) -> None:
        size, batch.in_flight = batch.in_flight, 0
        self.bytes_in_flight -= size
        if self._flight is not None:
            now = time.monotonic()
            self._flight.placed(size, now - batch.sent_at, now)
            self.max_bytes_in_flight = self._flight.limit

    def has_room(self) -> bool:
        """True if another batch may be given to the machine."""
        return not self.submitted and self.bytes_in_flight < self.max_bytes_in_flight

    def is_idle(self) -> bool:
        """True if none is awaiting its position in the order."""
        return not (self.bytes_in_flight or self.submitted)

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
