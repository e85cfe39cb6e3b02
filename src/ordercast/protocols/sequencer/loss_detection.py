"""Loss detection of the sequencer protocol: which broadcasts are known to exist and missing, and when to request them.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 5. All
broadcasts have one numbering, so a loss is always a **gap**: a number above the next one, from a broadcast, from an
announcement of numbers or from a status. What is missing may only be late. It is requested once when the gap timer
expires, and then by the need timer (`sender`).
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Output
from ordercast.model.units import Packet
from ordercast.protocols.sequencer.timers import Timers
from ordercast.protocols.shared.gaps import missing_ranges

MAX_COPIES = 32
"""Broadcasts that one request asks for, and that are retransmitted in reply to one."""
Ranges = tuple[tuple[int, int], ...]
"""Ranges [start, stop) of sequence numbers."""


class LossDetection(DeclaredState):
    """What is received, what is known to exist, and the gaps between."""

    timers: Final[Timers]
    gap_delay: Final[int]

    received_below: int  # LastSeqReceived, as Figure 5 uses it: the next number expected
    ahead: dict[int, Packet]  # received ahead of a gap
    known_below: int  # known to exist
    requested_below: int  # what is missing below has been requested
    gap_below: int  # what is missing below will be requested when the gap timer expires

    def __init__(self, timers: Timers, gap_delay: int) -> None:
        self.timers, self.gap_delay = timers, gap_delay
        self.received_below, self.ahead = 0, {}
        self.known_below = self.requested_below = self.gap_below = 0

    def detect_loss(self, below: int, out: list[Output], *, lacks: bool) -> None:
        """Broadcasts below exist; `lacks`: one that was not known of is missing. Sets the gap timer for it."""
        self.known_below = max(self.known_below, below)
        if lacks and not self.timers.gap:
            self._set_gap_timer(out)

    def _set_gap_timer(self, out: list[Output]) -> None:
        self.timers.gap, self.gap_below = True, self.known_below
        self.timers.set("gap", self.gap_delay, self.received_below, out)

    def due_gaps(self) -> Ranges:
        """The gap timer has expired: what is to be requested now. The need timer requests it again."""
        self.timers.gap = False
        return self.missing(self.requested_below, self.gap_below)

    def gaps_requested(self, out: list[Output]) -> None:
        """That was done; for what is missing beyond, the timer is set again."""
        self.requested_below = self.gap_below
        if self.missing(self.gap_below):
            self._set_gap_timer(out)

    def missing(self, start: int = 0, stop: int | None = None) -> Ranges:
        """What is known to exist between two numbers and missing here; no more than one request asks for."""
        if self.known_below == self.received_below + len(self.ahead):
            return ()
        stop = self.known_below if stop is None else stop
        return first_of(missing_ranges(max(start, self.received_below), stop, self.ahead), MAX_COPIES)


def first_of(ranges: Ranges, count: int) -> Ranges:
    """The first `count` numbers of these ranges."""
    found = []
    for start, stop in ranges:
        found.append((start, min(stop, start + count)))
        count -= stop - start
        if count <= 0:
            break
    return tuple(found)
