"""How a view of SPO or PO ends.

A member reports for each source what it expects (TREQ) and what is settled (`settlement`). The cut is the larger of
what is settled for any of those that reported and what all of them have. Both are beginnings of the source's numbers,
and each of those that reported has all of them that is to it. A packet that anybody delivered was pre-acknowledged by
all its destinations: it is settled for one of those that reported, or none of them is a destination. A packet to all
that is delivered when it is pre-acknowledged (`delivers_stable`) is accepted by all, with all that its source sent
before it: all that reported expect what follows it.
"""

from collections.abc import Mapping, Sequence

from ordercast.model.machine import Deliver, Level, Output, Reached, Submit
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush, highest, is_below, lowest
from ordercast.protocols.spo.machine import Spo


class SpoFlush(Flush):
    """Ends an epoch of SPO."""

    def __init__(self, machine: Spo) -> None:
        assert machine.views, "without `views` the machine does not know what is settled"
        self.machine = machine

    def report(self) -> EpochReport:
        """What is expected of each source, and what of it is settled."""
        return EpochReport(tuple(self.machine.expected), tuple(self.machine.settlement.settled_below))

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        """With what is settled."""
        return len(report.stable) == nodes and report == EpochReport(report.expected, report.stable)

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        """The larger of what is settled for any and what all have."""
        del nodes
        stable = highest([report.stable for report in reports.values()])
        return Cut(highest([stable, lowest([report.expected for report in reports.values()])]))

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        """For each source, in its order, what is accepted below the cut and not delivered."""
        assert not supplied
        machine = self.machine
        out: list[Output] = []
        for source, end in enumerate(cut.ends):
            for place, packet in enumerate(machine.preacknowledged.logs[source]):
                out.append(Reached(Level.ACKNOWLEDGED, packet))
                if place >= machine.delivered_early[source]:
                    out.append(Deliver(packet))
            for packet in (*machine.settlement.held[source], *machine.accepted.logs[source]):
                if packet.seq < end:
                    out.append(Reached(Level.PREACKNOWLEDGED, packet))
                    out += (Reached(Level.ACKNOWLEDGED, packet), Deliver(packet))
        return [*out, *self._own_to_others(cut)]

    def _own_to_others(self, cut: Cut) -> list[Output]:
        """The levels that own packets to others only have not reached."""
        machine, end = self.machine, cut.ends[self.machine.me]
        stable = machine.preacknowledged.logs[machine.nodes]
        out: list[Output] = [Reached(Level.ACKNOWLEDGED, packet) for packet in stable if packet.seq < end]
        for packet in machine.settlement.unsettled:
            if packet.seq < end and packet.seq in machine.sent.lacking and not packet.destinations & machine.my_bit:
                out += (Reached(Level.PREACKNOWLEDGED, packet), Reached(Level.ACKNOWLEDGED, packet))
        return out

    def start(self, next_message: int) -> None:
        """The number of the first message."""
        self.machine.next_message = next_message

    def place(self) -> int:
        """The member's own place."""
        return self.machine.me

    def own_packets(self) -> dict[int, Packet]:
        """Those that are not settled, and those that are not acknowledged."""
        machine = self.machine
        logs: list[Sequence[Packet]] = [
            machine.settlement.unsettled,
            machine.accepted.logs[machine.me],
            machine.settlement.held[machine.me],
            machine.preacknowledged.logs[machine.me],
            machine.preacknowledged.logs[machine.nodes],
        ]
        return {packet.seq: packet for log in logs for packet in log}

    def is_to_all(self, seq: int) -> bool:
        """Known of those that are not settled: the others are in every cut."""
        return seq in self.machine.settlement.to_all

    def waiting(self) -> Sequence[Submit]:
        """What waits for the window."""
        return self.machine.waiting

    def message_count(self) -> int:
        """The number of the next message."""
        return self.machine.next_message

    def problem(self, cut: Cut) -> str | None:
        """What is settled, and so what is stable, lies below the cut, and what came ahead of a gap does not."""
        machine = self.machine
        if cut != Cut(cut.ends):
            return "it is no cut of this order"
        if not is_below(machine.settlement.settled_below, cut.ends) or cut.ends[machine.me] > machine.next_seq:
            return "what is settled is above the cut, or what was not sent is below it"
        for source, end in enumerate(cut.ends):
            if any(packet.seq < end for packet in machine.retransmission.out_of_order[source].values()):
                return "something below the cut is missing"
        return None
