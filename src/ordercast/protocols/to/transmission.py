"""Transmission (section 4.1): the numbers of own units, the window, and own packets that may have to be sent again."""

from collections import deque
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Submit
from ordercast.model.units import Packet


class Transmission(DeclaredState):
    """What this node sends."""

    me: Final[int]
    window: Final[int]
    """W."""
    next_seq: int
    """SEQ: the number of the next sequenced unit."""
    next_packet: int
    """The number of the next own packet."""
    next_message: int
    """The number of the next own message; a packet may carry several."""
    stamp: int
    """Counts transmissions of this node; the spread of timers depends on it."""
    waiting: deque[Submit]
    """Submitted, not yet numbered: the window or the quota is exhausted."""
    sent: deque[tuple[int, Packet]]
    """SL: own packets that are not pre-acknowledged here, with their seq."""
    resend: deque[Packet]
    """Own packets that a recovery discarded, to be sent again under new numbers."""
    discarded_below: int
    """Own packets below this have been discarded by a recovery at least once."""
    congestion_window: int
    """Own packets that may be in flight: the window, or less after a loss (AIMD)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        first = config.first_seqs()[me]
        self.me, self.window = me, config.window
        self.next_seq = self.next_packet = self.discarded_below = first
        self.next_message, self.stamp = 0, 0
        self.waiting, self.sent, self.resend = deque(), deque(), deque()
        self.congestion_window = config.window

    def window_is_open(self) -> bool:
        """Flow condition. Units without data are not subject to it."""
        return len(self.sent) < self.congestion_window

    def number(self, event: Submit) -> Packet:
        """Makes a packet of a submission."""
        packet = Packet(
            self.me,
            event.destinations,
            self.next_packet,
            (),
            self.next_message,
            event.lengths,
            event.payload,
            event.priority,
        )
        self.next_packet += 1
        self.next_message += len(event.lengths)
        return packet

    def confirm(self, seq: int) -> None:
        """An own data unit is pre-acknowledged: it leaves the window, which grows by one (additive increase)."""
        if self.sent and self.sent[0][0] == seq:
            self.sent.popleft()
            self.congestion_window = min(self.window, self.congestion_window + 1)

    def roll_back(self) -> None:
        """A recovery discarded what is left in `sent`: all of it is sent again, half as much at a time."""
        if self.sent:
            self.discarded_below = max(self.discarded_below, self.sent[-1][1].seq + 1)
            self.resend.extendleft([packet for _, packet in reversed(self.sent)])
            self.sent.clear()
            self.congestion_window = max(1, self.congestion_window // 2)

    def discarded_before(self) -> tuple[int, Packet] | None:
        """The first packet that may be discarded now, with its seq, if it has been discarded before."""
        if self.sent:
            seq, packet = self.sent[0]
        elif self.resend:
            seq, packet = self.next_seq, self.resend[0]
        else:
            return None
        return (seq, packet) if packet.seq < self.discarded_below else None
