"""The timers of one node: which are running, and the counters by which they back off.

- "need": a member that waits for something asks the sequencer again;
- "gap": what is missing is requested when it is not merely late;
- "status": the sequencer asks for acknowledgments that are overdue;
- "view" and "answer" belong to the view agreement, which always replaces them and need not know whether they run.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import CancelTimer, Output, SetTimer
from ordercast.protocols.shared.jitter import spread

MAX_BACKOFF = 8
"""Timers back off by doubling while nothing changes, up to this multiple of their duration."""
MAX_BACKOFF_UNANSWERED = 2
"""The same while nodes that were asked do not reply and may have to be suspected."""


class Timers(DeclaredState):
    """Running timers and back-off counters."""

    me: Final[int]

    need: bool  # running: when it expires, what this node awaits from the sequencer is asked for
    gap: bool  # running: when it expires, what is missing is requested
    status: bool  # running: when it expires, the sequencer asks for overdue acknowledgments
    need_rests: bool  # it was set for a heartbeat, by a node that awaited nothing: what is awaited then sets it anew
    status_rests: bool  # the same for the status timer
    need_backoff: int  # how many times its usual duration the need timer lasts
    status_backoff: int  # how many times its usual duration the status timer lasts
    unanswered: int  # requests in a row after which nothing at all was received from the sequencer
    unresolved: int  # expiries of the view timer since this node stopped for an agreement

    def __init__(self, me: int) -> None:
        self.me = me
        self.need = self.gap = self.need_rests = False
        self.start_view()

    def start_view(self) -> None:
        """Back-off counters are those of one view."""
        self.status = self.status_rests = False
        self.need_backoff = self.status_backoff = 1
        self.unanswered = self.unresolved = 0

    def set(self, name: str, duration: int, received_below: int, out: list[Output]) -> None:
        """Sets a timer to between once and twice the duration.

        Which, depends on the node and on what differs from one time to the next, so that nodes do not act in step.
        """
        backoff = self.need_backoff + self.status_backoff + self.unanswered
        out.append(SetTimer(name, spread(duration, self.me, received_below + 31 * backoff + 1009 * self.unresolved)))

    def stop(self, out: list[Output]) -> None:
        """Cancels the timers of normal operation."""
        if self.need:
            out.append(CancelTimer("need"))
        if self.gap:
            out.append(CancelTimer("gap"))
        if self.status:
            out.append(CancelTimer("status"))
        self.need = self.gap = self.status = False
