"""Transmission: numbers, the flow condition, and what is due to be told."""

from collections import deque
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Numbered, Output, Send, Submit
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet
from ordercast.protocols.shared.alone import alone
from ordercast.protocols.shared.destinations import check_subset
from ordercast.protocols.shared.numbering import numbered
from ordercast.protocols.st.channel_logs import OWN
from ordercast.protocols.st.place.acknowledgments import Acknowledgments
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.units import PacketPosition, PlacedCopy, PlacedData, PlacedReady, PlacedStatus, Wanted

ECHO_PERIODS = 2
"""Timers after which a unit of mine that did not come back counts as lost. Until then no second one is sent: the
channel is slower than I am, and more would make it slower still."""


class Transmission(DeclaredState):
    """What one node sends."""

    me: Final[int]
    nodes: Final[int]
    everybody: Final[int]
    config: Final[GroupConfig]
    generations: Final[Generations]
    logs: Final[Acknowledgments]

    next_seq: int  # TSEQ: the number of my next packet
    next_seq_to: list[int]  # PSEQ_j: the number of my next packet among those to E_j
    next_message: int  # the number of my next message; a packet may carry several
    waiting: deque[Submit]  # submitted, but the flow condition does not hold
    stamp: int  # counts my transmissions
    expected: list[int]  # TREQ_j, by source: the number of the packet that I expect next
    expected_to_me: list[int]  # PREQ_j: the same number among those to me
    unreported: list[int]  # packets accepted of each source since my last transmission
    status_due: bool  # a peer waits for my status
    transmitted: bool  # since the status timer was set
    ready_stamp: int  # of my last status without data
    copy_stamp: int  # of my last copy
    came_back: int  # the stamp of my newest unit that the channel brought back
    silent_periods: int  # timers that ended while a status or request of mine was out

    def __init__(self, me: int, config: GroupConfig, generations: Generations, logs: Acknowledgments) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.nodes, self.everybody, self.config = me, nodes, everybody(nodes), config
        self.generations, self.logs = generations, logs
        self.next_seq, self.next_seq_to, self.next_message = first[me], [first[me]] * nodes, 0
        self.waiting, self.stamp = deque(), 0
        self.expected, self.expected_to_me, self.unreported = list(first), list(first), [0] * nodes
        self.status_due = self.transmitted = False
        self.ready_stamp = self.copy_stamp = self.came_back = self.silent_periods = 0

    def submit(self, event: Submit) -> None:
        """Queues a submission; raises LocalProtocolError if its destinations are not nodes of the group."""
        check_subset(event.destinations, self.nodes)
        self.waiting.append(event)

    def can_send(self, free: int) -> bool:
        """Flow condition; `free`: my receive buffers. Statuses without data are not subject to it, and reopen it."""
        unacknowledged = len(self.logs.accepted.logs[OWN])
        if unacknowledged >= self.config.window:
            return False
        return unacknowledged < min(free, *self.logs.free) // self.nodes

    def send(self, event: Submit, free: int, out: list[Output]) -> None:
        """Transmission action. The packet is accepted, here too, when the channel brings it."""
        packet = numbered(event, self.me, self.next_seq, self.next_seq_to, self.next_message)
        self.next_message = packet.first + len(packet.lengths)
        self.next_seq += 1
        out.append(Numbered(packet))
        if self.nodes == 1:  # there is nobody to agree with on an order
            self.expected, self.expected_to_me = [self.next_seq], list(self.next_seq_to)
            out += alone(packet)
        else:
            out.append(Send(PlacedData(packet, self.status(free))))
            self.logs.send(packet, out, to_all=event.to_all)

    def send_again(self, first: int, free: int, out: list[Output]) -> None:
        """REISSUE: a new generation begins with this packet of mine, and all later ones get new places behind it."""
        self.generations.begin(first)
        self.logs.positions.forget_from(first)
        own = self.logs.accepted.logs[OWN]
        out += [Send(PlacedData(packet, self.status(free)), again=True) for packet in own if packet.seq >= first]

    def status(self, free: int) -> PlacedStatus:
        """What I know now, for a unit that is transmitted: no acknowledgment is pending afterwards."""
        self.stamp += 1
        self.status_due, self.logs.acknowledgment_pending, self.transmitted = False, False, True
        self.unreported = [0] * self.nodes
        generations = self.generations
        return PlacedStatus(
            self.stamp,
            tuple(self.expected),
            self.logs.preacknowledged_below(self.expected),
            free,
            generations.own,
            generations.known,
            generations.starts,
        )

    def send_ready(
        self, free: int, out: list[Output], *, polls: bool, missing: tuple[Wanted, ...] = (), witness: int = -1
    ) -> None:
        """RR: a status without data, which may poll everybody and ask for what is missing."""
        wants = self.everybody if polls else 0
        numbers = self.next_seq, tuple(self.next_seq_to)
        status = self.status(free)
        self.ready_stamp, self.silent_periods = self.stamp, 0
        out.append(Send(PlacedReady(self.me, *numbers, status, wants, missing, witness)))

    def send_copy(self, packet: Packet, out: list[Output]) -> None:
        """REP: a packet that somebody lacks, and where it is."""
        self.stamp += 1
        self.copy_stamp = self.stamp
        generations, positions, seq = self.generations, self.logs.positions, packet.seq
        out.append(
            Send(
                PlacedCopy(
                    packet,
                    self.stamp,
                    generations.own,
                    generations.known,
                    positions.low[seq],
                    tuple(positions.high[seq]),
                ),
                again=True,
            )
        )

    def send_position(self, packet: Packet, low: list[int], high: list[int], out: list[Output]) -> None:
        """Where a packet of another node is, for that node."""
        self.stamp += 1
        known = self.generations.known
        out.append(
            Send(PacketPosition(self.me, (packet.source, packet.seq), self.stamp, known, tuple(low), tuple(high)))
        )

    def own_packet(self, number: int) -> Packet | None:
        """My packet with this number to myself, if it is not known to be with all."""
        for packet in self.logs.accepted.logs[OWN]:
            if packet.destinations >> self.me & 1 and packet.seq_to[self.me] == number:
                return packet
        return None

    def is_out(self) -> bool:
        """True if my last status or request has not come back, and may still do so."""
        return self.came_back < self.ready_stamp and self.silent_periods < ECHO_PERIODS
