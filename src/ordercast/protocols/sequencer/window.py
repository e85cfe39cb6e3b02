"""Own packets: submissions that wait for the window, and packets that are not yet delivered here (flow control)."""

from collections import deque
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Submit
from ordercast.model.units import Packet


class SendWindow(DeclaredState):
    """At most `size` own packets are outstanding: numbered by this node, not delivered here in their place."""

    me: Final[int]
    size: Final[int]

    next_seq: int  # PacketId: the number of the next own packet
    next_message: int  # the number of the next own message
    waiting: deque[Submit]  # submitted while the window was full
    outstanding: deque[Packet]  # own packets that are not delivered here yet

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.size = me, config.window
        self.next_seq = config.first_seqs()[me]
        self.next_message = 0
        self.waiting = deque()
        self.outstanding = deque()

    def has_room(self) -> bool:
        """True if another packet may be sent."""
        return len(self.outstanding) < self.size

    def next_packet(self) -> Packet:
        """Makes the first waiting submission an outstanding packet."""
        event = self.waiting.popleft()
        packet = Packet(
            self.me,
            event.destinations,
            self.next_seq,
            (),
            self.next_message,
            event.lengths,
            event.payload,
            event.priority,
        )
        self.next_seq += 1
        self.next_message += len(event.lengths)
        self.outstanding.append(packet)
        return packet

    def find(self, seq: int) -> Packet | None:
        """The outstanding packet with this number, if it is one."""
        return next((packet for packet in self.outstanding if packet.seq == seq), None)
