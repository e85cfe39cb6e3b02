"""PO: broadcast to all nodes in FIFO order, over channels that lose units, with go-back-n retransmission.

From: Takizawa and Nakamura's partially ordering broadcast protocol, with which the papers on SPO compare themselves
(EN section 5.2, JP section 4.2 and Table 1). They print none of its rules, only its cost: everything goes to all nodes,
packets of each source have a log of their own, and after a loss whatever that source sent later is discarded and sent
again. PO is therefore an SPO machine (`spo.machine`, with its papers and departures) with two differences:

 1. A message goes to all nodes, the sender included; other destinations are refused.
 2. The retransmission policy is go-back-n (`go_back_n`) instead of selective repeat. So `retransmitted` counts what
    N_PO of Table 1 counts: the lost packet and all packets behind it.
"""

from typing import ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Echo, Input, LogSizes, Output, Submit
from ordercast.model.runs import Channel
from ordercast.protocols.po.go_back_n import GoBackN
from ordercast.protocols.shared.destinations import check_broadcast
from ordercast.protocols.spo.machine import Spo


class Po(DeclaredState):
    """The protocol at one node: an SPO machine whose retransmission policy is go-back-n."""

    echo: ClassVar[Echo] = Spo.echo
    needs: ClassVar[Channel] = Spo.needs
    has_views: ClassVar[bool] = Spo.has_views

    spo: Spo

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.spo = Spo(me, config, retransmission=GoBackN)

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
