"""How long a datagram takes to the other members and back, as the joins of the opening tell it.

Every join names the last of ours that its sender has heard. The time since we said that one is a round trip, and
however long the other waited before it spoke: so the shortest time of each member counts. Of the members, that in the
middle counts, the nearer of two: when losses hide the quick answers of some, their time is too long, and timers that
are too long cost more than timers that are too short, which only send some copies that nobody needs.
"""

from ordercast.wire.control import Join

REMEMBERED = 1024
"""Joins of ours: who is given answers without end must not fill our memory."""


class RoundTrips:
    """Times are whole nanoseconds of any clock that never goes back."""

    def __init__(self, me: int, nodes: int) -> None:
        self._me = me
        self._incarnation = 0
        self._said: dict[int, int] = {}  # when, by round
        self._shortest: list[int | None] = [None] * nodes

    def said(self, join: Join, now: int) -> None:
        """We said this."""
        self._incarnation = join.incarnation
        self._said[join.round] = now
        self._said.pop(join.round - REMEMBERED, None)

    def heard(self, member: int, join: Join, now: int) -> None:
        """A member said that."""
        if self._me < len(join.heard):
            mine = join.heard[self._me]
            then = self._said.get(mine.round)
            if then is not None and mine.incarnation == self._incarnation:
                shortest = self._shortest[member]
                self._shortest[member] = now - then if shortest is None else min(now - then, shortest)

    def typical(self) -> int | None:
        """That of the member in the middle; None if nobody has answered."""
        known = sorted(time for time in self._shortest if time is not None)
        return known[(len(known) - 1) // 2] if known else None
