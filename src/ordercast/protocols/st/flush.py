"""How a view of ST ends. ST's own epochs, between two recoveries, are called rounds here.

A member reports its round and what it expects of each source, which does not move during a recovery. The cut is what
all that reported have in the highest round among them. A member that is still in the round before lacks nothing of it:
otherwise nobody could have finished it. It finishes that round first, and counts with what the next one begins with.

A packet that anybody delivered in a round was pre-acknowledged, so all members have accepted it (Lemma A in `normal`):
it is below the cut. What a finished round left is delivered by a member that has heard of all that they finished it: so
all that reported have, and deliver it. The log of each member below the cut is the order of the channel, as far as it
is a destination. A source releases a packet when all have accepted it, so it still has all from the cut on.
"""

from collections.abc import Mapping, Sequence

from ordercast.model.machine import Deliver, Level, Output, Reached, Submit
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush, is_below, lowest
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.place.flush import StPlaceFlush
from ordercast.protocols.st.place.machine import StPlace

PREACKNOWLEDGED, ACKNOWLEDGED = Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class StFlush(Flush):
    """Ends an epoch of ST."""

    def __init__(self, machine: St) -> None:
        self.machine = machine

    def report(self) -> EpochReport:
        """The round, what is expected, and what the next round begins with if this one can be finished."""
        normal = self.machine.normal
        return EpochReport(tuple(normal.expected), round=normal.epoch, base=self._next_round())

    def _next_round(self) -> tuple[int, ...]:
        """What the next round begins with, if nothing of this one is lacking here."""
        normal, recovery = self.machine.normal, self.machine.recovery
        if not recovery.done & normal.my_bit:
            return ()
        begins = [reply.next_seq for reply in recovery.replies if reply is not None]
        for source, seq in recovery.removed:
            begins[source] = min(begins[source], seq)
        return tuple(begins)

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        """With the round, and perhaps what the next one begins with."""
        del nodes
        return report == EpochReport(report.expected, round=report.round, base=report.base)

    @staticmethod
    def agree(reports: Mapping[int, EpochReport]) -> bool:
        """A round begins when nobody lacks anything of the one before."""
        last = max(report.round for report in reports.values())
        return all(report.round == last or (report.round == last - 1 and report.base) for report in reports.values())

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        """What all have, in the highest round."""
        del nodes
        last = max(report.round for report in reports.values())
        ends = lowest([report.expected if report.round == last else report.base for report in reports.values()])
        return Cut(ends, round=last)

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        """What finished rounds left, then what the log of this round holds below the cut, in its order."""
        assert not supplied
        normal, out = self.machine.normal, self._finish_round(cut)
        for _, packet in self.machine.finished.packets:
            out.append(Reached(ACKNOWLEDGED, packet))
            if self.machine.finished.is_due(packet, normal.me):
                out.append(Deliver(packet))
        for place in range(normal.acknowledged_count, len(normal.log)):
            packet = normal.log[place]
            if packet.seq < cut.ends[packet.source]:
                is_stable = place < normal.preacknowledged_count
                if not is_stable:
                    out.append(Reached(PREACKNOWLEDGED, packet))
                out.append(Reached(ACKNOWLEDGED, packet))
                if not (is_stable and normal.config.delivers_stable):
                    out.append(Deliver(packet))
        return [*out, *self._own_to_others(cut)]

    def _finish_round(self, cut: Cut) -> list[Output]:
        """Finishes the round before the one in which the epoch ends, if this member has not."""
        normal = self.machine.normal
        out: list[Output] = []
        if normal.epoch < cut.round:
            self.machine.recovery.finish(out)
            normal.begin_epoch()
        return [output for output in out if isinstance(output, Reached)]

    def _own_to_others(self, cut: Cut) -> list[Output]:
        """The levels that own packets to others only have not reached."""
        normal = self.machine.normal
        out: list[Output] = [Reached(ACKNOWLEDGED, packet) for packet in normal.preacknowledged.logs[OWN]]
        for packet in normal.accepted.logs[OWN]:
            if not packet.destinations & normal.my_bit and packet.seq < cut.ends[normal.me]:
                out += (Reached(PREACKNOWLEDGED, packet), Reached(ACKNOWLEDGED, packet))
        return out

    def start(self, next_message: int) -> None:
        """The number of the first message."""
        self.machine.normal.next_message = next_message

    def place(self) -> int:
        """The member's own place."""
        return self.machine.normal.me

    def own_packets(self) -> dict[int, Packet]:
        """Those that are not known to be with all, and those that are not acknowledged."""
        normal = self.machine.normal
        packets: list[Packet] = [packet for _, packet in self.machine.finished.packets]
        packets += [*normal.accepted.logs[OWN], *normal.to_resend]
        packets += [*normal.preacknowledged.logs[OWN], *normal.preacknowledged.logs[RECEIVED]]
        return {packet.seq: packet for packet in packets if packet.source == normal.me}

    def is_to_all(self, seq: int) -> bool:
        """Known of those that are not with all: the others are in every cut."""
        return seq in self.machine.normal.to_all

    def waiting(self) -> Sequence[Submit]:
        """What waits for the window."""
        return self.machine.normal.waiting

    def message_count(self) -> int:
        """The number of the next message."""
        return self.machine.normal.next_message

    def problem(self, cut: Cut) -> str | None:
        """The member has all below the cut, and has pre-acknowledged nothing behind it."""
        normal, report = self.machine.normal, self.report()
        if cut != Cut(cut.ends, round=cut.round) or not cut.round - 1 <= report.round <= cut.round:
            return "it is no cut of this round or the next one"
        if not is_below(cut.ends, report.expected if report.round == cut.round else report.base):
            return "something below the cut is missing"
        known = (*normal.log[: normal.preacknowledged_count], *normal.preacknowledged.logs[OWN])
        if any(packet.seq >= cut.ends[packet.source] for packet in known):
            return "what is stable is above the cut"
        return None


def flush_of(machine: St | StPlace) -> Flush:
    """What ends an epoch, as the recovery of its machine needs it."""
    return StPlaceFlush(machine) if isinstance(machine, StPlace) else StFlush(machine)
