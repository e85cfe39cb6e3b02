"""Round-trip times to the other members, measured by the joins of the handshake.

Every join names the last join of ours that its sender has received. The time since we sent that one is a round trip
plus however long the other waited before it sent: so the shortest time of each member counts. Of the members the median
counts, the lower of two: when losses hide the quick answers of some, their time is too long, and timers that are too
long cost more than timers that are too short, which only send some copies that nobody needs.
"""

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
