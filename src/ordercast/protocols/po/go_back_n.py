"""Go-back-n: PO's retransmission policy. A receiver keeps nothing ahead of a gap; a source sends all from the gap on.

From: the cost that the papers on SPO state for PO (EN section 5.2, JP section 4.2 and Table 1): after a loss whatever
that source sent later is discarded and sent again. A receiver requests each first missing number once, and again while
that does not come.

Two rules keep retransmissions from multiplying. Only a unit ahead of a gap whose first number was never requested
causes a request at once: retransmitted packets come in order, and while they do nothing more is lost. And a source that
has just gone back to before a number does not do so again for a short time, whichever node asks: one retransmission
serves all nodes that lost something of it.
"""

from collections.abc import Sequence

from ordercast.model.machine import Discard, Output
from ordercast.protocols.spo.retransmission import Retransmission
from ordercast.protocols.spo.units import Data, Missing, Ranges


class GoBackN(Retransmission):
    """Packets ahead of a gap are discarded, and everything from the gap on is sent again."""

    def receive_ahead(self, unit: Data, number: int, out: list[Output]) -> None:
        """Discards the packet: it will be sent again."""
        del number
        out.append(Discard(unit, "gap"))
        self.request_if_new(unit.source, out)

    def request_gap(self, source: int, out: list[Output]) -> None:
        """Nothing: the first request is up to `request_if_new`.

        A gap is also seen after an accepted copy while the copies behind it are still on their way.
        """

    def received_status(self, source: int, out: list[Output]) -> None:
        """A status may show a gap, too."""
        self.request_if_new(source, out)

    def request_if_new(self, source: int, out: list[Output]) -> None:
        """If a unit came ahead of a gap, the gap's first packet is lost: units of one source keep their order."""
        if self.requested_below[source] <= self.node.expected_to_me[source] < self.node.seen_to_me[source]:
            self.request_unless_cooling_down(out)

    def missing(self, since: Sequence[int]) -> Missing:
        """By source, everything from the first missing number on; nothing if that is below `since`."""
        node = self.node
        return tuple(
            (source, ((first, high),))
            for source, (first, high) in enumerate(zip(node.expected_to_me, node.seen_to_me, strict=True))
            if since[source] <= first < high and node.buffered[source] < node.config.quota
        )

    def mark_requested(self, missing: Missing) -> None:
        """Each first missing number is requested once."""
        for source, ((first, _),) in missing:
            self.requested_below[source] = first + 1

    def answer_request(self, node: int, ranges: Ranges, out: list[Output]) -> None:
        """Goes back to the first requested number, unless the node has acknowledged it since."""
        unacknowledged = self.node.sent.by_destination[node]
        for first, _ in ranges[:1]:
            if not unacknowledged or unacknowledged[0].seq != first or first in self.just_retransmitted:
                return
            for packet in unacknowledged:
                self.note_retransmission(packet, out)
                self.node.retransmit(packet, out)
