"""How a view of TO, PriTO or PriO ends. Their own epochs, between two recoveries, are called rounds here.

A member reports its round, the units that it expects of each source, and, while it does not know that all have begun
the round, the cut with which that begins (`base`). The cut of the view is what all that reported have in the highest
round among them. One that is still in the round before has stopped, and has everything below `base`, with which it
counts.

What is delivered is a function of the common sequence of units, of which every member knows a beginning. Whatever
anybody has pre-acknowledged lies below the cut (the prefix lemma in `reception`). All that go on have the same sequence
below the cut, and take the same steps with it: one in the round before keeps what is below `base`; the round begins,
which delivers all that was kept, since somebody that is gone may have begun it; what the round adds below the cut is
pre-acknowledged, unit by unit; and what is left is acknowledged, so that nothing waits over a view.
"""

from collections.abc import Mapping, Sequence

from ordercast.model.machine import Deliver, Output, Reached, Submit
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush, is_below, lowest
from ordercast.protocols.to.machine import TotalOrderBroadcast
from ordercast.protocols.to.recovery import Mode, cut_of
from ordercast.protocols.to.units import OrderedData


class ToFlush(Flush):
    """Ends an epoch of TO, PriTO or PriO."""

    def __init__(self, machine: TotalOrderBroadcast) -> None:
        self.machine = machine

    def report(self) -> EpochReport:
        """The round and its beginning, and what is expected, in packets and in units."""
        reception, agreement = self.machine.reception, self.machine.recovery
        base = tuple(cut_of(agreement.collected())) if agreement.mode is Mode.INSTALLED else ()
        packets = list(reception.preacknowledged_packets)
        for source, _, unit in reception.accepted.entries:
            if isinstance(unit, OrderedData):
                packets[source] = unit.packet.seq + 1
        return EpochReport(tuple(packets), round=agreement.epoch, base=base, units=tuple(reception.expected))

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        """With the round and the units, and perhaps what the round begins with."""
        return len(report.units) == nodes and report.stable == () and report.numbered_below == 0

    @staticmethod
    def agree(reports: Mapping[int, EpochReport]) -> bool:
        """If some are in the round before, all others begin the last one with the same units, which these have."""
        last = max(report.round for report in reports.values())
        begun = [report for report in reports.values() if report.round == last]
        behind = [report for report in reports.values() if report.round != last]
        base = begun[0].base
        if not behind:
            return True
        return (
            bool(base)
            and all(report.round == last - 1 for report in behind)
            and all(is_below(base, report.units) for report in reports.values())
            and all(report.base == base for report in begun)
            and all(
                below - first <= packets
                for below, first, packets in zip(begun[0].units, base, begun[0].expected, strict=True)
            )
        )

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        """What all have, in the highest round."""
        del nodes
        last = max(report.round for report in reports.values())
        of_last = [report for report in reports.values() if report.round == last]
        if len(of_last) == len(reports):
            ends, units = lowest([report.expected for report in of_last]), lowest([report.units for report in of_last])
            return Cut(ends, round=last, units=units)
        known = of_last[0]  # all of the last round have the same base, and besides only what vectors carried
        carried = [below - first for below, first in zip(known.units, known.base, strict=True)]
        ends = tuple([packet - more for packet, more in zip(known.expected, carried, strict=True)])
        return Cut(ends, round=last, base=known.base, units=known.base)

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        """Begins the round if need be, takes what it adds below the cut, and acknowledges everything."""
        assert not supplied
        reception, agreement = self.machine.reception, self.machine.recovery
        out: list[Output] = []
        behind = agreement.epoch < cut.round
        if behind:
            reception.roll_back(list(cut.base), out)
        if behind or agreement.mode is Mode.INSTALLED:
            reception.begin_epoch(out)
        reception.roll_back(list(cut.units), out)
        reception.begin_epoch(out)
        return [output for output in out if isinstance(output, Reached | Deliver)]

    def start(self, next_message: int) -> None:
        """The number of the first message."""
        self.machine.transmission.next_message = next_message

    def place(self) -> int:
        """The member's own place."""
        return self.machine.me

    def own_packets(self) -> dict[int, Packet]:
        """Those that are not pre-acknowledged; what is lies below every cut."""
        transmission = self.machine.transmission
        packets = [*(packet for _, packet in transmission.sent), *transmission.resend]
        return {packet.seq: packet for packet in packets}

    def waiting(self) -> Sequence[Submit]:
        """What waits for the window."""
        return self.machine.transmission.waiting

    def message_count(self) -> int:
        """The number of the next message."""
        return self.machine.transmission.next_message

    def problem(self, cut: Cut) -> str | None:
        """The member has all below the cut, and has pre-acknowledged nothing behind it."""
        reception, agreement = self.machine.reception, self.machine.recovery
        behind = agreement.epoch != cut.round
        if behind and (agreement.epoch != cut.round - 1 or agreement.mode is not Mode.COLLECTING):
            return "it is no cut of this round or the next one"
        if cut.numbered_below or (behind and cut.units != cut.base):
            return "it is no cut of this order"
        if not is_below(cut.units, reception.expected):
            return "something below the cut is missing"
        if reception.contradicts(list(cut.units)):
            return "what is stable is above the cut"
        return None if self._ends_own_packets(cut) else "its packets and its units are not the same"

    def _ends_own_packets(self, cut: Cut) -> bool:
        """Whether own packets below the cut are those in own units below it."""
        transmission, me = self.machine.transmission, self.machine.me
        end, units = cut.ends[me], cut.units[me]
        return all(packet.seq >= end for packet in transmission.resend) and all(
            (packet.seq < end) == (unit < units) for unit, packet in transmission.sent
        )
