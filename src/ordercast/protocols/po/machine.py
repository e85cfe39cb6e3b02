"""PO: broadcast to all nodes in FIFO order, over channels that lose units, with go-back-n retransmission.

From: Takizawa and Nakamura's partially ordering broadcast protocol, with which the papers on SPO compare themselves
(EN section 5.2, JP section 4.2 and Table 1). They print none of its rules, only its cost: everything goes to all nodes,
packets of each source have a log of their own, and after a loss whatever that source sent later is discarded and sent
again. PO is therefore an SPO machine (`spo.machine`, with its papers and departures) with two differences:

 1. A message goes to all nodes, the sender included; other destinations are refused.
 2. The repair policy is go-back-n instead of selective repeat. A receiver keeps nothing that comes ahead of a gap. It
    requests each first missing number once, and again while that does not come. The source then retransmits
    everything from that number on. So `retransmitted` counts what N_PO of Table 1 counts: the lost packet and all
    packets behind it.

Two rules keep retransmissions from multiplying. Only a unit ahead of a gap whose first number was never requested
causes a request at once: retransmitted packets come in order, and while they do nothing more is lost. And a source that
has just gone back to before a number does not do so again for a short time, whichever node asks: one retransmission
serves all nodes that lost something of it.
"""

from collections.abc import Sequence
from typing import ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Discard, Echo, Input, LogSizes, Output, Submit
from ordercast.model.runs import Channel
from ordercast.model.state import DeclaredState
from ordercast.protocols.shared.destinations import check_broadcast
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.repair import Repair
from ordercast.protocols.spo.units import Data, Missing, Ranges


class GoBackN(Repair):
    """PO's repair policy: packets ahead of a gap are discarded, and everything from the gap on is sent again."""

    def receive_ahead(self, unit: Data, number: int, out: list[Output]) -> None:
        """Discards the packet: it will be sent again."""
        del number
        out.append(Discard(unit, "gap"))
        self.request_if_new(unit.source, out)

    def detect_gap(self, source: int, out: list[Output]) -> None:
        """Starts repeating; the first request is up to `request_if_new`.

        A gap is also seen after an accepted copy while the copies behind it are still on their way.
        """
        del source
        self.start_repeating(out)

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


class Po(DeclaredState):
    """The protocol at one node: an SPO machine whose repair policy is go-back-n."""

    echo: ClassVar[Echo] = Spo.echo
    needs: ClassVar[Channel] = Spo.needs
    has_views: ClassVar[bool] = Spo.has_views

    spo: Spo

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.spo = Spo(me, config, repair=GoBackN)

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        spo = self.spo
        if type(event) is Submit and not spo.aborted:
            check_broadcast(event.destinations, spo.nodes)
        return spo.handle(event)

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        return self.spo.waits_for()

    def log_sizes(self) -> LogSizes:
        """The number of packets in each log."""
        return self.spo.log_sizes()

    # --- vectors that never decrease, which the explorer checks ---

    @property
    def expected(self) -> list[int]:
        """TREQ_j."""
        return self.spo.expected

    @property
    def expected_to_me(self) -> list[int]:
        """PREQ_j."""
        return self.spo.expected_to_me

    @property
    def seen(self) -> list[int]:
        """The next seq after the highest that is known to exist, by source."""
        return self.spo.seen

    @property
    def seen_to_me(self) -> list[int]:
        """The number to me that goes with it."""
        return self.spo.seen_to_me
