"""The logs of packets in the order of the channel, and what others have acknowledged: what both kinds of ST share.

They differ in how a packet comes into a log (`normal_operation`, `place.acknowledgments`), and in what is done with it
at each level.
"""

from collections import deque
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Level, Output, Reached
from ordercast.model.nodes import everybody, names_of
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.pending_acknowledgments import UNBOUNDED, PendingAcknowledgments

RECEIVED, OWN = 0, 1
"""The two logs of pending acknowledgments: packets to me in the order of the channel, and packets that I sent."""


class ChannelLogs(DeclaredState):
    """The logs of one node, and the newest status of each node."""

    me: Final[int]
    my_bit: Final[int]
    nodes: Final[int]
    config: Final[GroupConfig]
    backoff: Final[Backoff]

    # From units that were accepted here. My own entry of AL is no exception, unlike in SPO: it comes with my own last
    # echo, because the echo has a place on the channel (Lemma A).
    stamps: list[int]  # by node: the stamp of its newest status
    free: list[int]  # BUF_j: the free receive buffers of E_j
    accepted: PendingAcknowledgments  # RRL, and SL; waiting for AL of all nodes
    preacknowledged: PendingAcknowledgments  # PRL, and own packets to others only; waiting for PAL
    unpreacknowledged: list[deque[int]]  # the seqs accepted and in RRL, by source
    to_all: set[int]  # seqs of own packets that were submitted to all, and are not known to be with all
    buffered: int  # packets to me that are accepted and not yet delivered: they use receive buffers
    acknowledgment_pending: bool  # I have received or pre-acknowledged something since my last transmission

    def __init__(self, me: int, config: GroupConfig, backoff: Backoff) -> None:
        nodes, first = config.nodes, tuple(config.first_seqs())
        self.me, self.my_bit, self.nodes, self.config, self.backoff = me, 1 << me, nodes, config, backoff
        self.stamps, self.free = [0] * nodes, [config.quota * nodes] * nodes
        self.accepted = PendingAcknowledgments(2, [first] * nodes, required=everybody(nodes))
        self.preacknowledged = PendingAcknowledgments(2, self.own_unbounded(first))
        self.unpreacknowledged = [deque() for _ in range(nodes)]
        self.to_all, self.buffered, self.acknowledgment_pending = set(), 0, False

    def own_unbounded(self, below: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The same acknowledgments for each node, except mine: what is in PRL I have pre-acknowledged."""
        return [(UNBOUNDED,) * self.nodes if node == self.me else below for node in range(self.nodes)]

    def preacknowledged_below(self, expected: list[int]) -> tuple[int, ...]:
        """PACK: by source, below which of its seqs all that is to me is pre-acknowledged."""
        return tuple([seqs[0] if seqs else expected[source] for source, seqs in enumerate(self.unpreacknowledged)])

    def rise(self, source: int, out: list[Output]) -> None:
        """All that follows from the newest status of a node: packets that waited for it reach their next level."""
        if self.accepted.waiting_for[source]:
            for log in self.accepted.unblocked_by(source):
                if log == RECEIVED:
                    self.preacknowledge(out)
                else:
                    self.release(out)
        if self.preacknowledged.waiting_for[source]:
            for log in self.preacknowledged.unblocked_by(source):
                self.acknowledge(log, out)

    def keep_own(self, packet: Packet, out: list[Output]) -> None:
        """Keeps a packet that I send until all nodes have accepted it."""
        own = self.accepted.logs[OWN]
        own.append(packet)
        if len(own) == 1:
            self.release(out)

    def release(self, out: list[Output]) -> None:
        """Drops own packets that all nodes have accepted; those not to me are pre-acknowledged thereby."""
        for packet in self.accepted.take_acknowledged(OWN):
            self.backoff.progress = True
            self.to_all.discard(packet.seq)
            self.note_released(packet)
            if not packet.destinations & self.my_bit:
                out.append(Reached(Level.PREACKNOWLEDGED, packet))
                self.await_acknowledgment(OWN, packet, out)

    def note_released(self, packet: Packet) -> None:
        """All nodes have accepted this packet of mine."""

    def preacknowledge(self, out: list[Output]) -> None:
        """PACK action: packets that all nodes have accepted or skipped."""
        raise NotImplementedError

    def await_acknowledgment(self, log: int, packet: Packet, out: list[Output]) -> None:
        """Keeps a pre-acknowledged packet until it is acknowledged."""
        packets = self.preacknowledged.logs[log]
        packets.append(packet)
        if len(packets) == 1:
            self.acknowledge(log, out)

    def acknowledge(self, log: int, out: list[Output]) -> None:
        """ACK action: packets that all their destinations have pre-acknowledged are delivered if they are to me."""
        raise NotImplementedError

    # --- inspection ---

    def has_unaccepted(self) -> bool:
        """True if a packet here is not known to be accepted by all."""
        return bool(self.accepted.logs[RECEIVED] or self.accepted.logs[OWN])

    def has_unacknowledged(self) -> bool:
        """True if a packet here is not acknowledged."""
        return self.has_unaccepted() or bool(self.preacknowledged.logs[RECEIVED] or self.preacknowledged.logs[OWN])

    def missing_acknowledgments(self) -> int:
        """The nodes whose acknowledgment a packet here lacks, as a bit mask."""
        mask = 0
        for log in (RECEIVED, OWN):
            mask |= self.accepted.blockers(log) | self.preacknowledged.blockers(log)
        return mask & ~self.my_bit

    def waits_for_acknowledgments(self) -> list[str]:
        """Which acknowledgments are missing, as text."""
        lines = []
        for log, what in ((RECEIVED, "packets received"), (OWN, "packets sent")):
            for pending, verb in ((self.accepted, "accepted"), (self.preacknowledged, "pre-acknowledged")):
                if pending.logs[log]:
                    who = names_of(pending.blockers(log))
                    lines.append(f"{len(pending.logs[log])} {what} wait to be known as {verb} by {who}")
        return lines
