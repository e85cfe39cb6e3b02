"""How a view of the sequencer's order ends.

A member reports how many numbers it has received. The cut is the *most* that any has: whoever lacks something below it
fetches that from one that has it, before it accepts the next view. With resilience r at least n - r members must have
reported; then one of them holds whatever anybody delivered. Without resilience, members that are gone may have been
given more.

What a member fetches is not received in the epoch: it is handed to `finish`, and nobody is told of it there. Otherwise
the sequencer might count the member as a holder, and deliver what the view that is decided in the end is without.
"""

from collections.abc import Mapping, Sequence

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Level, Output, Reached, Submit
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush, Ranges, is_below
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.shared.gaps import missing_ranges


class SequencerFlush(Flush):
    """Ends an epoch of the sequencer's order."""

    def __init__(self, machine: Sequencer) -> None:
        assert machine.config.views, "without `views` the machine agrees on the next view by itself"
        self.machine = machine

    def report(self) -> EpochReport:
        """What was received."""
        receiver = self.machine.reception
        return EpochReport(tuple(receiver.ordered_below), numbered_below=receiver.received_below)

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        """The most that any has."""
        del nodes
        longest = max(reports.values(), key=lambda report: report.numbered_below)
        return Cut(longest.expected, numbered_below=longest.numbered_below)

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        """What was received."""
        del nodes
        return report == EpochReport(report.expected, numbered_below=report.numbered_below)

    @staticmethod
    def reports_needed(config: GroupConfig) -> int:
        """All but r, if r members besides the sequencer hold whatever is delivered."""
        resilience = min(config.sequencer.resilience, config.nodes - 1)
        return config.nodes - resilience if resilience else 1

    def lacks(self, cut: Cut) -> Ranges:
        """The numbers below the cut that were not received."""
        receiver = self.machine.reception
        return missing_ranges(receiver.received_below, cut.numbered_below, receiver.ahead)

    def supply(self, ranges: Ranges) -> tuple[tuple[int, Packet], ...]:
        """What is here of these numbers."""
        found = []
        for start, stop in ranges:
            for number in range(start, stop):
                packet = self.machine.reception.packet(number)
                if packet is not None:
                    found.append((number, packet))
        return tuple(found)

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        """Delivers all numbers below the cut, in their order."""
        receiver = self.machine.reception
        out: list[Output] = []
        for number in range(receiver.stable_below, cut.numbered_below):
            packet = receiver.packet(number) or supplied[number]
            if number >= receiver.received_below:
                out.append(Reached(Level.ACCEPTED, packet))
            out += (Reached(Level.PREACKNOWLEDGED, packet), Reached(Level.ACKNOWLEDGED, packet))
            if number >= receiver.delivered_below:
                out.append(Deliver(packet))
        return out

    def start(self, next_message: int) -> None:
        """The number of the first message."""
        self.machine.window.next_message = next_message

    def place(self) -> int:
        """The member's own place."""
        return self.machine.me

    def own_packets(self) -> dict[int, Packet]:
        """Those that have not come back in their place, and those that have and are not known to be with all.

        A sequencer has its own at once: if the others go on without it, they may never have had them.
        """
        received, me = self.machine.reception.history.values(), self.machine.me
        own = [packet for packet in received if packet.source == me]
        return {packet.seq: packet for packet in (*own, *self.machine.window.outstanding)}

    def waiting(self) -> Sequence[Submit]:
        """What waits for the window."""
        return self.machine.window.waiting

    def message_count(self) -> int:
        """The number of the next message."""
        return self.machine.window.next_message

    def problem(self, cut: Cut) -> str | None:
        """Nothing that was received is taken back."""
        receiver, ends = self.machine.reception, cut.ends
        if cut != Cut(ends, numbered_below=cut.numbered_below):
            return "it is no cut of this order"
        if cut.numbered_below < receiver.received_below or not is_below(receiver.ordered_below, ends):
            return "what was received is above the cut"
        is_all = cut.numbered_below == receiver.received_below
        if ends[self.machine.me] > self.machine.window.next_seq or (is_all and ends != tuple(receiver.ordered_below)):
            return "it has numbers for what was not sent"
        return None
