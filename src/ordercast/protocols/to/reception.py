"""Reception (sections 2.2 and 4.1): acceptance, pre-acknowledgment, acknowledgment: how a unit gets its position.

**Prefix lemma.** If a unit is pre-acknowledged at a node, that node has accepted, in channel order, every sequenced
unit that precedes it on the channel in this epoch. For each node it has accepted something that was sent when the unit
had been accepted there; that came next after all sequenced units of its sender; so none of them is missing. This needs
three things: only what is accepted here counts; own units are accepted when the channel brings them back; and the first
unit that is not pre-acknowledged blocks all behind it (head-of-line blocking, which gives the total order).

**Second lemma.** Acknowledgment follows the same order: a node that acknowledges a packet has accepted all before it.
So a packet is acknowledged when for each node a *sequenced* unit that acknowledges it is pre-acknowledged, and the
position of the last of these is the same at all nodes. What only pre-acknowledges need not be sequenced.
"""

from operator import gt
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Level, Output, Reached
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.to.delivery import DeliveryPolicy
from ordercast.protocols.to.loss_detection import detect_loss
from ordercast.protocols.to.transmission import Transmission
from ordercast.protocols.to.unanimous_log import UnanimousLog
from ordercast.protocols.to.units import Heading, OrderedData, OrderedReady, PolicyUnit, Sequenced, UnorderedReady

ACCEPTED, PREACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED


class Reception(DeclaredState):
    """What this node has received in this epoch, and what it knows that others have."""

    me: Final[int]
    transmission: Final[Transmission]
    policy: Final[DeliveryPolicy]
    backoff: Final[Backoff]
    _my_bit: Final[int]

    expected: list[int]
    """REQ_j: by source, the seq that comes next. Own units count when the channel brings them back."""
    accepted_packets: list[int]
    """By source: packets below this have been accepted at least once."""
    accepted: UnanimousLog[Sequenced]
    """RRL, in channel order, with AL: what each node has accepted. PEQ_j follows from it."""
    preacknowledged: UnanimousLog[Packet]
    """PRL, in channel order, with PAL: what each node has pre-acknowledged."""
    unpreacknowledged: int
    """Data units and units of the policy in `accepted`."""
    preacknowledged_count: int
    """Packets pre-acknowledged so far: the length of the common sequence as it is known here."""
    preacknowledged_packets: list[int]
    """By source: its packets below this are pre-acknowledged."""

    pending: bool
    """An acknowledgment is pending: a peer may wait for it."""
    pending_in_sequence: bool
    """It must be sent in a sequenced unit."""
    unreported: int
    """Data units accepted since the last acknowledgment was sent."""

    def __init__(
        self, me: int, config: GroupConfig, transmission: Transmission, policy: DeliveryPolicy, backoff: Backoff
    ) -> None:
        first = config.first_seqs()
        self.me, self._my_bit = me, 1 << me
        self.transmission, self.policy, self.backoff = transmission, policy, backoff
        self.expected, self.accepted_packets = list(first), list(first)
        self.accepted, self.preacknowledged = UnanimousLog(config.nodes, first), UnanimousLog(config.nodes, first)
        self.unpreacknowledged, self.preacknowledged_count, self.preacknowledged_packets = 0, 0, list(first)
        self.pending = self.pending_in_sequence = False
        self.unreported = 0

    # --- acceptance ---

    def receive(self, unit: Sequenced | UnorderedReady, heading: Heading, out: list[Output]) -> str:
        """ACC, for a unit of this epoch. Returns the evidence of a loss, and then has not accepted it; else empty."""
        source, seq, expected = heading.source, heading.seq, self.expected
        if seq != expected[source] or any(map(gt, heading.expects, expected)):
            return detect_loss(unit, heading, expected, out)
        if self._is_impossible(unit, heading):
            out.append(Discard(unit, "impossible"))
            return ""
        delivered_by = self.policy.deliveries.delivered_by
        accepted = self.accepted
        if type(unit) is UnorderedReady and (
            heading.delivered < delivered_by[source]
            or any(map(gt, accepted.acknowledged_below[source], heading.expects))
        ):
            return ""  # a late duplicate: it has no number, but its source has acknowledged more since
        if heading.wants & self._my_bit:
            self.pending = True
        delivered_by[source] = heading.delivered
        accepted.acknowledged_below[source] = heading.expects
        if not isinstance(unit, UnorderedReady):
            expected[source] = seq + 1
            self.accept(unit, source, seq, out)
        if accepted.waiting_for == source:
            for taken in accepted.take_acknowledged():
                self._preacknowledge(taken, out)
        return ""

    def _is_impossible(self, unit: Sequenced | UnorderedReady, heading: Heading) -> bool:
        """Whether it claims to be mine and I never sent it, or is a unit that the policy rules out."""
        if isinstance(unit, PolicyUnit):
            known_below = self.preacknowledged_count + self.unpreacknowledged
            if not self.policy.is_possible(unit, known_below):
                return True
        return (
            heading.source == self.me and heading.seq >= self.transmission.next_seq and type(unit) is not UnorderedReady
        )

    def accept(self, unit: Sequenced, source: int, seq: int, out: list[Output]) -> None:
        """Appends a unit to the accepted ones."""
        self.accepted.entries.append((source, seq, unit))
        if type(unit) is OrderedData:
            self.unpreacknowledged += 1
            self.unreported += 1
            self.pending = self.pending_in_sequence = True
            packet = unit.packet
            if packet.seq >= self.accepted_packets[source]:  # what a recovery discarded is reported once
                self.accepted_packets[source] = packet.seq + 1
                out.append(Reached(ACCEPTED, packet))
        elif isinstance(unit, PolicyUnit):
            self.unpreacknowledged += 1
            self.pending = True
            self.policy.accepted(unit)

    def acknowledgment(self) -> tuple[int, ...]:
        """What is accepted now, to be sent: nothing is pending any more."""
        self.pending, self.unreported = False, 0
        return tuple(self.expected)

    # --- pre-acknowledgment and acknowledgment ---

    def _preacknowledge(self, unit: Sequenced, out: list[Output]) -> None:
        """PACK and ACK: the common sequence is known here by one unit more."""
        heading = unit.heading
        source = heading.source
        owned = None
        if type(unit) is OrderedData:
            self.unpreacknowledged -= 1
            self.pending = True  # others wait for acknowledgments of the units by which I know it
            if source == self.me:
                self.transmission.confirm(heading.seq)
            self.backoff.progress = True
            packet, position = unit.packet, self.preacknowledged_count
            out.append(Reached(PREACKNOWLEDGED, packet))
            self.preacknowledged_count = position + 1
            self.preacknowledged_packets[source] = packet.seq + 1
            self.policy.enter(packet, position)
            self.preacknowledged.entries.append((source, heading.seq, packet))
        elif type(unit) is not OrderedReady:
            assert isinstance(unit, PolicyUnit)
            owned = unit
            self.unpreacknowledged -= 1
            self.backoff.progress = True
        log = self.preacknowledged
        log.acknowledged_below[source] = heading.expects
        if log.entries and log.waiting_for == source:
            self._acknowledge(log.take_acknowledged(), out)
        if owned is not None:
            self.policy.reached(owned, out)

    def _acknowledge(self, packets: list[Packet], out: list[Output]) -> None:
        if packets:
            self.backoff.progress = True
            self.policy.acknowledge(packets, out)

    # --- recovery ---

    def contradicts(self, cut: list[int]) -> bool:
        """Whether a node lacks what it has acknowledged: all that is pre-acknowledged must lie below the cut."""
        preacknowledged_below = list(self.expected)
        for source, seq, _ in reversed(self.accepted.entries):
            preacknowledged_below[source] = seq
        return any(below < known for below, known in zip(cut, preacknowledged_below, strict=True))

    def roll_back(self, cut: list[int], out: list[Output]) -> None:
        """Pre-acknowledges what lies below the cut, which all have accepted, and discards the rest."""
        kept = [entry for entry in self.accepted.entries if entry[1] < cut[entry[0]]]
        self.accepted.refill(kept, [tuple(cut)] * len(cut))
        for unit in self.accepted.take_acknowledged():
            self._preacknowledge(unit, out)
        self.unpreacknowledged, self.expected = 0, cut

    def begin_epoch(self, out: list[Output]) -> int:
        """All nodes have rolled back, so all have pre-acknowledged what was kept: it is acknowledged.

        Returns the number of packets that were carried by vectors into the new epoch.
        """
        kept = [packet for _, _, packet in self.preacknowledged.entries]
        self.preacknowledged.refill((), self.accepted.acknowledged_below)
        self._acknowledge(kept, out)
        carried = len(self.accepted.entries)
        self.pending = self.pending_in_sequence = carried > 0
        return carried
