"""A model of the path to one member: round trip, bandwidth, and how much may be under way (BBR, version 1).

BBR ("Congestion-Based Congestion Control", Cardwell et al., 2016) measures the two quantities of which the best
operating point consists, and sends accordingly: the bandwidth of the bottleneck is the highest rate of delivery of the
last rounds, and the round trip without queues the shortest of the last seconds. Packets are paced at the first, and
twice the product may be under way. It is chosen since a loss says nothing to it: on a line that loses one packet in a
hundred at random, an algorithm that slows down at each loss (Reno, CUBIC) is left with some per cent of the line.

Four departures. Losses count where the round trip is longer than its shortest by a quarter or more, so that there is a
queue, which overflows: then less may be under way for a while (version 2 has a similar limit). The first phase, which
doubles the rate in each round, ends with the first round that was a quarter longer throughout (as HyStart does): else
what is sent too much would overflow the queue. And the shortest round trip is measured again with half of the product
under way, not with four packets, as in version 2. And 32 packets more may be under way, the same number whatever the
path: where several share a line whose queue is longer than its round trip, all are limited by what may be under way,
and would keep for ever the shares with which they began, if that was in proportion to what each has.

Timeouts are those of RFC 6298: a smoothed round trip and its variation, with the delay of acknowledgments. No clock:
times are seconds, passed in.
"""

from collections import deque
from typing import NamedTuple

STARTUP_GAIN = 2.885  # 2 / ln 2: doubles the rate in each round
CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)  # gains of the rate, each for a shortest round trip
WINDOW_GAIN = 2.0
SHARING_PACKETS, SHARING_SECONDS = 32, 0.05  # that each link may have under way besides; the latter at its own rate
GROWTH = 1.25  # of the bandwidth in a round: with less of it in three rounds the path is full
ROUNDS = 10  # for which a bandwidth counts
SHORTEST_FOR = 10.0  # seconds for which the shortest round trip counts
PROBE_SECONDS = 0.2
INITIAL_PACKETS = 32
MIN_PACKETS = 8
LOSS_WITH_QUEUE = 0.05  # of the packets of a round, above which less may be under way
_FEW_LOSSES = 3  # say nothing
QUEUE = 1.25  # times the shortest round trip: there is a queue
GRANULARITY = 0.001  # seconds, of timers
ACK_DELAY = 0.004
"""Seconds that an acknowledgment waits for more to acknowledge, at most."""
MAX_TIMEOUT = 1.0
BURST_SECONDS = 0.002  # of the rate that are sent by one call
LATE_SECONDS = 0.01  # of the rate that are sent at once, if the event loop comes so late


class Sample(NamedTuple):
    """What was known when packets were sent."""

    time: float
    delivered: int
    delivered_at: float
    first_sent: float
    """When the packet was sent that was acknowledged last."""
    limited: bool
    """There was too little to send: the rate says nothing of the path."""


class PathModel:
    """Of one direction. Its owner tells what is sent, acknowledged and lost."""

    def __init__(self, packet: int, round_trip: float) -> None:
        """`packet`: bytes of the largest; `round_trip`: seconds, as expected at first."""
        self._packet = packet
        self.smoothed, self.variation = round_trip, round_trip / 2
        """Of the round trip."""
        self.latest, self._measured = round_trip, False
        self.shortest, self._shortest_at = round_trip, -1.0
        self._bandwidths: deque[tuple[int, float]] = deque()  # by round, descending
        self._round, self._round_ends = 0, 0
        self._shortest_in_round = 0.0  # round trip; 0: none was measured
        self._full_at, self._full_rounds, self.full = 0.0, 0, False
        self._draining = False
        self._cycle, self._cycle_at = 2, 0.0
        self._probe_until = 0.0
        self._delivered, self._delivered_at, self._first_sent = 0, 0.0, 0.0
        self._limited_until = -1  # what is sent until so much has arrived says nothing of the rate
        self._lost_in_round, self._sent_in_round, self._ceiling = 0, 0, 0.0
        self._next_at = 0.0  # when the next packet may be sent
        self.window = INITIAL_PACKETS * packet
        """Bytes that may be under way."""
        self._pacing = 0.0  # bytes a second; 0: not known yet

    @property
    def bandwidth(self) -> float:
        """Bytes a second of the bottleneck; 0: not known yet."""
        return self._bandwidths[0][1] if self._bandwidths else 0.0

    @property
    def timeout(self) -> float:
        """Seconds after which an acknowledgment is overdue."""
        return min(MAX_TIMEOUT, self.smoothed + max(4 * self.variation, GRANULARITY) + 2 * ACK_DELAY)

    # --- sending ---

    def may_send_at(self) -> float:
        """When the next packet may be sent, whatever is under way."""
        return self._next_at

    def burst(self) -> int:
        """Bytes that may be sent at once."""
        return max(2 * self._packet, int(self._pacing * BURST_SECONDS)) if self._pacing else self.window

    def sent(self, size: int, packets: int, now: float, in_flight: int) -> Sample:
        """Packets of this size in all are sent; `in_flight`: bytes that were under way before."""
        if not in_flight:
            self._first_sent = self._delivered_at = now
        self._sent_in_round += packets
        if self._pacing:
            self._next_at = max(self._next_at, now - LATE_SECONDS) + size / self._pacing
        delivered = self._delivered
        return Sample(now, delivered, self._delivered_at, self._first_sent, self._limited_until >= delivered)

    def ran_out(self, in_flight: int) -> None:
        """There is nothing more to send, though more might be under way."""
        self._limited_until = self._delivered + in_flight

    # --- acknowledgments ---

    def measured(self, seconds: float, now: float) -> None:
        """A round trip was measured."""
        self.latest = seconds
        if not self._shortest_in_round or seconds < self._shortest_in_round:
            self._shortest_in_round = seconds
        if self._measured:
            self.variation += (abs(self.smoothed - seconds) - self.variation) / 4
            self.smoothed += (seconds - self.smoothed) / 8
        else:
            self._measured, self.smoothed, self.variation = True, seconds, seconds / 2
        if seconds <= self.shortest or self._shortest_at < 0:
            self.shortest, self._shortest_at = seconds, now
        elif now > self._shortest_at + SHORTEST_FOR and self.full:
            self.shortest, self._shortest_at = seconds, now
            self._probe_until = now + PROBE_SECONDS + seconds

    def acknowledged(self, size: int, latest: Sample, now: float, in_flight: int) -> None:
        """So many bytes arrived, the last of them sent as `latest` says; `in_flight`: what is still under way."""
        self._delivered += size
        self._delivered_at, self._first_sent = now, latest.time
        self._end_round(latest)
        elapsed = max(latest.time - latest.first_sent, now - latest.delivered_at, GRANULARITY / 4)
        rate = (self._delivered - latest.delivered) / elapsed
        if not latest.limited or rate > self.bandwidth:
            self._note(rate)
        self._advance(now, in_flight)
        self._set_limits(now)

    def lost(self, packets: int) -> None:
        """So many packets did not arrive."""
        self._lost_in_round += packets

    def collapsed(self) -> None:
        """Nothing was acknowledged for several timeouts: it begins again, carefully."""
        self._bandwidths.clear()
        self.window, self._pacing, self.full, self._draining = MIN_PACKETS * self._packet, 0.0, False, False
        self._full_at, self._full_rounds = 0.0, 0

    def _end_round(self, latest: Sample) -> None:
        if latest.delivered < self._round_ends:
            return
        self._round += 1
        self._round_ends = self._delivered
        has_queue = self.smoothed > self.shortest * QUEUE + GRANULARITY
        is_longer = self._shortest_in_round > self.shortest * QUEUE + 2 * GRANULARITY
        self._shortest_in_round = 0.0
        lost, sent = self._lost_in_round, self._sent_in_round
        self._lost_in_round = self._sent_in_round = 0
        product = self.bandwidth * self.shortest
        if has_queue and lost > max(_FEW_LOSSES, sent * LOSS_WITH_QUEUE):
            self._ceiling = max(product, 0.85 * (self._ceiling or WINDOW_GAIN * product))
            if not self.full:
                self.full = self._draining = True
        elif self._ceiling:
            self._ceiling *= 1.1
            if self._ceiling > WINDOW_GAIN * product:
                self._ceiling = 0.0
        if not self.full and is_longer:
            self.full = self._draining = True
        if not self.full and (has_queue or not latest.limited):
            if self.bandwidth >= self._full_at * GROWTH:
                self._full_at, self._full_rounds = self.bandwidth, 0
            else:
                self._full_rounds += 1
                if self._full_rounds >= 3:
                    self.full = self._draining = True

    def _note(self, rate: float) -> None:
        """The bandwidth is the highest rate of the last rounds."""
        rates = self._bandwidths
        while rates and rates[-1][1] <= rate:
            rates.pop()
        rates.append((self._round, rate))
        while rates[0][0] < self._round - ROUNDS:
            rates.popleft()

    def _advance(self, now: float, in_flight: int) -> None:
        """The gain of the rate, by what is known of the path."""
        if self._draining and in_flight <= self.bandwidth * self.shortest:
            self._draining, self._cycle, self._cycle_at = False, 2, now
        if self.full and not self._draining and now - self._cycle_at > self.shortest:
            self._cycle, self._cycle_at = (self._cycle + 1) % len(CYCLE), now

    def _set_limits(self, now: float) -> None:
        if not self.full:
            gain = STARTUP_GAIN
        elif self._draining:
            gain = 1 / STARTUP_GAIN
        else:
            gain = CYCLE[self._cycle]
        bandwidth = self.bandwidth
        least = (MIN_PACKETS if self.full else INITIAL_PACKETS) * self._packet
        self._pacing = max(gain * bandwidth, least / self.shortest)
        product = bandwidth * self.shortest
        allowed = WINDOW_GAIN * product
        if self.full:
            allowed += bandwidth * (ACK_DELAY + LATE_SECONDS)
            allowed += min(SHARING_PACKETS * self._packet, max(least, bandwidth * SHARING_SECONDS))
        if self._ceiling:
            allowed = min(allowed, self._ceiling)
        if now < self._probe_until:
            allowed = product / 2
        self.window = max(least, int(allowed))
