"""Loss detection of ST: when does a node know that it lacks a packet.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel", section 4.1,
which has two conditions:

 1. a **gap**: a unit shows that its source has sent more packets to me than I have received;
 2. a **loss inferred from peers**: another node acknowledges a packet of some source that I have not received. Whether
    it was to me is not known, so its source is asked (`ask_about_inferred_loss`, after a waiting time; an option).

A detected loss stops the epoch, and all nodes agree on one order: see `recovery`.
"""

from ordercast.model.machine import Discard, Output
from ordercast.protocols.spo.units import Data
from ordercast.protocols.st.state import EpochState


class LossDetection(EpochState):
    """The conditions of section 4.1 at one node."""

    def shows_gap(self, source: int, seq: int, number: int) -> bool:
        """Condition (1): a unit of this source, with these numbers, has packets to me before it that are missing."""
        return seq >= self.expected[source] and number > self.expected_to_me[source]

    def detect_loss(self, unit: Data, out: list[Output]) -> bool:
        """For data that are not the next of their source: True if they show a gap, False if they are duplicates.

        A packet to me that shows a gap keeps the place in the log at which it came.
        """
        packet = unit.packet
        if not self.shows_gap(packet.source, packet.seq, packet.seq_to[self.me]):
            out.append(Discard(unit, "duplicate"))
            return False
        if packet.destinations & self.my_bit:
            if self.buffers_in_use() >= self.config.quota * self.nodes:
                out.append(Discard(unit, "full"))
                return False
            self.log.append(packet)
            self.last_shows_gap = True
        return True

    def loss_inferred_from_peers(self) -> bool:
        """Condition (2): others have accepted a packet of some source that I have not, whether it is to me or not."""
        peers = self.accepted.acknowledged_below
        return any(
            below[source] > expected
            for source, expected in enumerate(self.expected)
            for node, below in enumerate(peers)
            if node != source
        )
