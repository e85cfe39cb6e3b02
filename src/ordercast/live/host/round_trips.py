"""How long answers take: round-trip times, measured by the joins of the handshake, and rounds of acknowledgments.

Every join names the last join of ours that its sender has received. The time since we sent that one is a round trip
plus however long the other waited before it sent: so the shortest time of each member counts. Of the members the median
counts, the lower of two: when losses hide the quick answers of some, their time is too long, and timers that are too
long cost more than timers that are too short, which only send some copies that nobody needs.

While the group runs, a member measures rounds: how long all members take to acknowledge a packet. That has what no
handshake shows: how many members there are, and how busy they are. A loss makes a round longer, and timers must not
grow with losses: so members measure only where next to nothing is lost, leave out rounds in which something was, and
the shortest of the last rounds counts.
"""

from collections import deque

from ordercast.model.config import MICROSECOND, Timing
from ordercast.wire.control import Join

REMEMBERED = 1024
"""Joins of ours whose time is kept."""


class RoundTrips:
    """Times are whole nanoseconds of any monotonic clock."""

    def __init__(self, me: int, nodes: int) -> None:
        self._me = me
        self._incarnation = 0
        self._sent: dict[int, int] = {}  # time, by round
        self._shortest: list[int | None] = [None] * nodes

    def sent(self, join: Join, now: int) -> None:
        """We sent this join."""
        self._incarnation = join.incarnation
        self._sent[join.round] = now
        self._sent.pop(join.round - REMEMBERED, None)

    def received(self, member: int, join: Join, now: int) -> None:
        """A member sent that join."""
        if self._me < len(join.heard):
            mine = join.heard[self._me]
            then = self._sent.get(mine.round)
            if then is not None and mine.incarnation == self._incarnation:
                shortest = self._shortest[member]
                self._shortest[member] = now - then if shortest is None else min(now - then, shortest)

    def typical(self) -> int | None:
        """The median over the members; None if nobody has answered."""
        known = sorted(time for time in self._shortest if time is not None)
        return known[(len(known) - 1) // 2] if known else None


_ROUNDS = 8  # the last ones, of which the shortest counts
_SMALL_GROUP = 4  # as many members answer in time if timers are not extended
_WORK = 300 * MICROSECOND  # of each further one, in both rounds, if all share a machine
MAX_PACE = 32.0
"""Timers are extended so much at most."""


class Pace:
    """How much a machine's timers are extended, so that they do not fire while answers are still on their way."""

    def __init__(self, timing: Timing, *, measures: bool = True) -> None:
        """`measures`: whether rounds count, or only the number of members."""
        self._status, self.measures = timing.status, measures
        self._rounds: deque[int] = deque(maxlen=_ROUNDS)
        self.packet: tuple[int, int] | None = None
        """The source and number of the one that is measured."""
        self._since = self._losses = 0
        self._least = 1.0
        self.factor = 1.0
        """Durations are multiplied by it."""

    def use(self, timing: Timing, members: int) -> None:
        """A view begins, with timers for this round trip."""
        self._status, self.packet = timing.status, None
        self._rounds.clear()
        self._least = self.factor = 1.0 + max(0, members - _SMALL_GROUP) * _WORK / timing.status

    def accepted(self, source: int, seq: int, now: int, losses: int = 0) -> None:
        """A packet was accepted here: a round begins, unless one is being measured. `losses`: known so far."""
        if self.measures and self.packet is None:
            self.packet, self._since, self._losses = (source, seq), now, losses

    def acknowledged(self, source: int, seq: int, now: int, losses: int = 0) -> None:
        """All have acknowledged a packet: the round of the one that is measured ends."""
        if self.packet == (source, seq):
            self.packet = None
            if losses != self._losses:
                return
            self._rounds.append(now - self._since)
            measured = min(self._rounds) / (2 * self._status)
            self.factor = min(max(self._least, measured), MAX_PACE)
