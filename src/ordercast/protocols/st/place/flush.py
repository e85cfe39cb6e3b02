"""How a view of ST ends whose recovery places packets.

A member reports what it expects of each source, and in which generation. Members may know different generations of a
source. What the later ones have moved counts as not received by those that do not know them: the packets have other
places now, and nobody has pre-acknowledged them in the earlier generation, since those that asked for another one
never accept them there. The cut is what all that reported have then.

Whatever was delivered anywhere was pre-acknowledged, so all members have accepted it, in the same generation: it is
below the cut. The order of each member's log below the cut is that of the channel.
"""

from collections.abc import Mapping, Sequence

from ordercast.model.machine import Deliver, Level, Output, Reached, Submit
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush, is_below, lowest
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.place.machine import StPlace

PREACKNOWLEDGED, ACKNOWLEDGED = Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class StPlaceFlush(Flush):
    """Ends an epoch of ST."""

    def __init__(self, machine: StPlace) -> None:
        self.machine = machine

    def report(self) -> EpochReport:
        """What is expected of each source, and in which generation."""
        generations = self.machine.generations
        return EpochReport(
            tuple(self.machine.transmission.expected),
            base=generations.known,
            units=tuple(
                [
                    number
                    for source, starts in enumerate(generations.starts_of)
                    for generation, first in starts
                    for number in (source, generation, first)
                ]
            ),
        )

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        """Nothing else, and an entry for each source."""
        only = EpochReport(report.expected, base=report.base, units=report.units)
        return report == only and len(report.base) == nodes and len(report.units) % 3 == 0

    @staticmethod
    def agree(reports: Mapping[int, EpochReport]) -> bool:
        """Somebody knows the start of each generation that somebody else does not know."""
        return all(
            len(_starts_after(reports, source, least)) == most - least
            for source, (least, most) in enumerate(_known(reports))
        )

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        """What all have, and no generation has moved that some do not know."""
        del nodes
        ends = list(lowest([report.expected for report in reports.values()]))
        for source, (least, _) in enumerate(_known(reports)):
            ends[source] = min([ends[source], *_starts_after(reports, source, least).values()])
        return Cut(tuple(ends))

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        """What is pre-acknowledged, then what the log holds below the cut, in its order."""
        assert not supplied
        logs, me = self.machine.logs, self.machine.me
        early = logs.config.delivers_stable
        out: list[Output] = []
        for packet in logs.preacknowledged.logs[RECEIVED]:
            out.append(Reached(ACKNOWLEDGED, packet))
            if not early:
                out.append(Deliver(packet))
        for packet in logs.accepted.logs[RECEIVED]:
            if packet.seq < cut.ends[packet.source]:
                out += (Reached(PREACKNOWLEDGED, packet), Reached(ACKNOWLEDGED, packet), Deliver(packet))
        out += [Reached(ACKNOWLEDGED, packet) for packet in logs.preacknowledged.logs[OWN]]
        for packet in logs.accepted.logs[OWN]:
            if not packet.destinations >> me & 1 and packet.seq < cut.ends[me]:
                out += (Reached(PREACKNOWLEDGED, packet), Reached(ACKNOWLEDGED, packet))
        return out

    def start(self, next_message: int) -> None:
        """The number of the first message."""
        self.machine.transmission.next_message = next_message

    def place(self) -> int:
        """The member's own place."""
        return self.machine.me

    def own_packets(self) -> dict[int, Packet]:
        """Those that are not known to be with all, and those that are not acknowledged."""
        logs = self.machine.logs
        packets = [*logs.accepted.logs[OWN], *logs.preacknowledged.logs[OWN], *logs.preacknowledged.logs[RECEIVED]]
        return {packet.seq: packet for packet in packets if packet.source == self.machine.me}

    def is_to_all(self, seq: int) -> bool:
        """Known of those that are not with all: the others are in every cut."""
        return seq in self.machine.logs.to_all

    def waiting(self) -> Sequence[Submit]:
        """What waits for the window."""
        return self.machine.transmission.waiting

    def message_count(self) -> int:
        """The number of the next message."""
        return self.machine.transmission.next_message

    def problem(self, cut: Cut) -> str | None:
        """The member has all below the cut, and has pre-acknowledged nothing behind it."""
        machine = self.machine
        if cut != Cut(cut.ends):
            return "it is no cut of this order"
        if not is_below(cut.ends, machine.transmission.expected):
            return "something below the cut is missing"
        own = [packet.seq for packet in machine.logs.preacknowledged.logs[OWN]]
        if not is_below(machine.stable_below, cut.ends) or max(own, default=-1) >= cut.ends[machine.me]:
            return "what is stable is above the cut"
        return None


def _known(reports: Mapping[int, EpochReport]) -> list[tuple[int, int]]:
    """By source: the earliest and the latest generation that is known."""
    return [(min(known), max(known)) for known in zip(*(report.base for report in reports.values()), strict=True)]


def _starts_after(reports: Mapping[int, EpochReport], source: int, least: int) -> dict[int, int]:
    """The first packets of all generations of a source after one."""
    starts: dict[int, int] = {}
    for report in reports.values():
        told = zip(report.units[::3], report.units[1::3], report.units[2::3], strict=True)
        starts |= {
            generation: first
            for whose, generation, first in told
            if whose == source and least < generation <= report.base[source]
        }
    return starts
