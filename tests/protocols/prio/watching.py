"""A machine of PriO that raises where it could make use of its freedom."""

from ordercast.model.machine import Input, Output
from ordercast.protocols.prito.prio import Prio


class WatchesItsFreedom(Prio):
    """No packet may be acknowledged, by the paper's own test, while one before it in the sequence is not.

    Only such a packet could be delivered before its equals, and only then would PriO have anything to gain.
    """

    def handle(self, event: Input) -> list[Output]:
        """As ever, and then looks."""
        out = super().handle(event)
        self.look()
        return out

    def look(self) -> None:
        """Everything that waits for its acknowledgment, one by one rather than from the first on."""
        for source, seq, packet in self.reception.preacknowledged.entries:
            lowest = min(column[source] for column in self.reception.preacknowledged.acknowledged_below)  # minPAL_j
            assert seq >= lowest, f"{packet} could go before its equals"
