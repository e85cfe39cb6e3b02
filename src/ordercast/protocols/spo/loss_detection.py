"""Loss detection of SPO and PO: when does a node know that it lacks a packet.

From: EN section 4.5 and JP section 3.5 (see `machine`), the two failure conditions:

 1. a **gap**: a unit shows that its source has sent more packets to me than I have received;
 2. a **loss inferred from peers**: another node acknowledges a packet of some source that I have not seen. That it was
    to me is not known, so the source is asked (`ask_about_inferred_loss`, after a waiting time; an option).

What is then requested, and what a source sends again, is in `retransmission`.
"""

from ordercast.model.machine import Output
from ordercast.protocols.spo.state import SpoState


class LossDetection(SpoState):
    """The failure conditions of one node."""

    def detect_loss(self, source: int, out: list[Output]) -> None:
        """Condition (1), after a unit by which expected_to_me < seen_to_me: requests what is missing until it comes.

        The comparison itself is made by the caller, since it is made for every unit received.
        """
        retransmission = self.retransmission
        retransmission.request_gap(source, out)
        if not retransmission.repeat_timer:
            retransmission.start_repeating(out)

    def losses_inferred_from_peer(self, node: int) -> int:
        """Condition (2): the sources of which a peer has accepted a packet that I have not seen, as a bit mask.

        A source's acknowledgment of its own packets does not count: it comes with the packet itself.
        """
        if node == self.me:
            return 0
        mask, below = 0, self.accepted.acknowledged_below[node]
        for source, seen in enumerate(self.seen):
            if below[source] > seen and source != node:
                mask |= 1 << source
        return mask & ~self.my_bit
