"""Two small orders for searches, with all that membership asks of one: one stream for all, and a stream for each.

`OneStream` stands for ST, TO and PriTO: everything goes to all through one channel, whose order the network gives;
what all are known to have is delivered. `Streams` stands for SPO and PO: each source numbers its packets, to any
members; with the settled number, three levels, and delivery at the third. Both say their status when they are asked:
numbers only rise, so that whatever an older status allows, the present one allows, too.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Deliver,
    Echo,
    Input,
    LogSizes,
    Numbered,
    Output,
    Receive,
    Send,
    Submit,
)
from ordercast.model.nodes import members
from ordercast.model.runs import Channel
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush, highest, is_below, lowest
from ordercast.protocols.membership.order import Order


class ChannelData(DataUnit, frozen=True, gc=False, tag=200):
    position: int
    """In the channel; the network gives it, so that a unit that is sent has none."""

    @property
    def source(self) -> int:
        return self.packet.source


class Said(Unit, frozen=True, gc=False, tag=201):
    """The status of one member."""

    source: int
    expected: tuple[int, ...]
    preacknowledged: tuple[int, ...] = ()
    settled: int = 0


class StreamData(DataUnit, frozen=True, gc=False, tag=202):
    @property
    def source(self) -> int:
        return self.packet.source


class SmallMachine(DeclaredState):
    """What both have."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.ANY
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    next_message: int
    own: list[Packet]
    to_all: set[int]
    """The seqs of those that were submitted to all."""
    delivered: int

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.config = me, config
        self.next_message = self.delivered = 0
        self.own, self.to_all = [], set()

    def handle(self, event: Input) -> list[Output]:
        out: list[Output] = []
        if isinstance(event, Submit):
            if event.to_all:
                self.to_all.add(len(self.own))
            self.submit(event, out)
        elif isinstance(event, Receive):
            unit: Any = event.unit
            if isinstance(unit, Said):
                self.hear(unit, out)
            else:
                self.take(unit, out)
        return out

    def submit(self, event: Submit, out: list[Output]) -> None:
        raise NotImplementedError

    def take(self, unit: Any, out: list[Output]) -> None:
        raise NotImplementedError

    def hear(self, unit: Said, out: list[Output]) -> None:
        raise NotImplementedError

    def status(self) -> Said:
        raise NotImplementedError

    def unsettled(self) -> int:
        """Own packets that some destination may lack."""
        raise NotImplementedError

    def waits_for(self) -> tuple[str, ...]:
        return ()

    def log_sizes(self) -> LogSizes:
        return LogSizes(0, self.unsettled(), 0, 0, 0)


class SmallFlush(Flush):
    def __init__(self, machine: Any) -> None:
        self.machine = machine

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        del nodes
        return report == EpochReport(report.expected)

    def start(self, next_message: int) -> None:
        self.machine.next_message = next_message

    def place(self) -> int:
        return int(self.machine.me)

    def own_packets(self) -> dict[int, Packet]:
        return {packet.seq: packet for packet in self.machine.own}

    def is_to_all(self, seq: int) -> bool:
        return seq in self.machine.to_all

    def waiting(self) -> list[Submit]:
        return []

    def message_count(self) -> int:
        return int(self.machine.next_message)


# --- one stream ---


class OneStream(SmallMachine):
    log: list[Packet]
    """What was taken from the channel."""
    known: list[int]
    """By place: how much of the channel it has taken."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.log, self.known = [], [0] * config.nodes

    def submit(self, event: Submit, out: list[Output]) -> None:
        first = self.next_message + event.skips
        packet = Packet(self.me, event.destinations, len(self.own), (), first, event.lengths, event.payload)
        self.next_message = first + 1
        self.own.append(packet)
        out += [Numbered(packet), Send(ChannelData(packet, -1))]

    def take(self, unit: ChannelData, out: list[Output]) -> None:
        if unit.position == len(self.log):
            self.log.append(unit.packet)
            self.known[self.me] = len(self.log)
            self.deliver(out)

    def hear(self, unit: Said, out: list[Output]) -> None:
        self.known[unit.source] = max(self.known[unit.source], unit.expected[0])
        self.deliver(out)

    def deliver(self, out: list[Output]) -> None:
        while self.delivered < min(self.known):
            out.append(Deliver(self.log[self.delivered]))
            self.delivered += 1

    def status(self) -> Said:
        return Said(self.me, (len(self.log),))

    def unsettled(self) -> int:
        stable = self.log[: min(self.known)]
        return len(self.own) - sum(packet.source == self.me for packet in stable)


class OneStreamFlush(SmallFlush):
    def report(self) -> EpochReport:
        log = self.machine.log
        return EpochReport(
            tuple(sum(packet.source == place for packet in log) for place in range(self.machine.config.nodes))
        )

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        del nodes
        return Cut(lowest([report.expected for report in reports.values()]))

    def problem(self, cut: Cut) -> str | None:
        delivered = self.machine.log[: self.machine.delivered]
        if cut != Cut(cut.ends) or not is_below(cut.ends, self.report().expected):
            return "something is missing"
        return "what was delivered stays" if any(each.seq >= cut.ends[each.source] for each in delivered) else None

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        del supplied
        rest = self.machine.log[self.machine.delivered :]
        return [Deliver(packet) for packet in rest if packet.seq < cut.ends[packet.source]]


# --- a stream for each ---


class Streams(SmallMachine):
    expected: list[int]
    """By source: all its packets below that are for me are here."""
    expected_to_me: list[int]
    logs: list[tuple[Packet, ...]]
    """By source: what was accepted."""
    preacknowledged: list[int]
    """By source: packets of its log."""
    given: list[int]
    """By source: packets of its log that were delivered."""
    settled: list[int]
    others: list[tuple[int, ...]]
    """By place: what it expects of each source."""
    others_preacknowledged: list[tuple[int, ...]]

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        nodes = config.nodes
        self.expected, self.expected_to_me, self.settled = [0] * nodes, [0] * nodes, [0] * nodes
        self.logs, self.preacknowledged, self.given = [()] * nodes, [0] * nodes, [0] * nodes
        self.others, self.others_preacknowledged = [(0,) * nodes] * nodes, [(0,) * nodes] * nodes

    def submit(self, event: Submit, out: list[Output]) -> None:
        counts = tuple(
            sum(packet.destinations >> place & 1 for packet in self.own) for place in range(self.config.nodes)
        )
        first = self.next_message + event.skips
        packet = Packet(self.me, event.destinations, len(self.own), counts, first, event.lengths, event.payload)
        self.next_message = first + 1
        self.own.append(packet)
        self.expected[self.me] = len(self.own)
        if event.destinations >> self.me & 1:
            self.expected_to_me[self.me] += 1
            self.logs[self.me] += (packet,)
        out += [Numbered(packet), Send(StreamData(packet))]
        self.rise(out)

    def take(self, unit: StreamData, out: list[Output]) -> None:
        packet, source = unit.packet, unit.packet.source
        if packet.seq < self.expected[source] or packet.seq_to[self.me] != self.expected_to_me[source]:
            return
        self.expected[source] = packet.seq + 1
        if packet.destinations >> self.me & 1:
            self.expected_to_me[source] += 1
            self.logs[source] += (packet,)
        self.rise(out)

    def hear(self, unit: Said, out: list[Output]) -> None:
        self.others[unit.source] = highest([self.others[unit.source], unit.expected])
        self.others_preacknowledged[unit.source] = highest(
            [self.others_preacknowledged[unit.source], unit.preacknowledged]
        )
        self.settled[unit.source] = max(self.settled[unit.source], unit.settled)
        self.rise(out)

    def has(self, place: int, source: int) -> int:
        return self.expected[source] if place == self.me else self.others[place][source]

    def has_preacknowledged(self, place: int, source: int) -> int:
        return self.below()[source] if place == self.me else self.others_preacknowledged[place][source]

    def below(self) -> tuple[int, ...]:
        """By source: what was pre-acknowledged."""
        return tuple(
            log[count - 1].seq + 1 if count else 0 for log, count in zip(self.logs, self.preacknowledged, strict=True)
        )

    def rise(self, out: list[Output]) -> None:
        self.settled[self.me] = self.own_settled()
        for source, log in enumerate(self.logs):
            while (count := self.preacknowledged[source]) < len(log) and self.is_stable(log[count]):
                self.preacknowledged[source] += 1
            while self.given[source] < self.preacknowledged[source]:
                packet = log[self.given[source]]
                if any(self.has_preacknowledged(to, source) <= packet.seq for to in members(packet.destinations)):
                    break
                out.append(Deliver(packet))
                self.given[source] += 1

    def is_stable(self, packet: Packet) -> bool:
        source = packet.source
        return self.settled[source] >= packet.seq and all(
            self.has(to, source) > packet.seq for to in members(packet.destinations)
        )

    def own_settled(self) -> int:
        for packet in self.own:
            if any(self.has(to, self.me) <= packet.seq for to in members(packet.destinations)):
                return packet.seq
        return len(self.own)

    def status(self) -> Said:
        return Said(self.me, tuple(self.expected), self.below(), self.own_settled())

    def unsettled(self) -> int:
        return len(self.own) - self.own_settled()


class StreamsFlush(SmallFlush):
    def report(self) -> EpochReport:
        machine: Streams = self.machine
        stable = highest([machine.below(), tuple(machine.settled)])
        return EpochReport(tuple(machine.expected), stable)

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        del nodes
        least = lowest([report.expected for report in reports.values()])
        return Cut(highest([least, *(report.stable for report in reports.values())]))

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        return len(report.stable) == nodes and report == EpochReport(report.expected, report.stable)

    def problem(self, cut: Cut) -> str | None:
        if cut != Cut(cut.ends):
            return "it is no cut of this order"
        for source, log in enumerate(self.machine.logs):
            given = self.machine.given[source]
            if given and log[given - 1].seq >= cut.ends[source]:
                return "what was delivered stays"
        return None

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        del supplied
        machine: Streams = self.machine
        found: list[Output] = []
        for source, log in enumerate(machine.logs):
            found += [Deliver(packet) for packet in log[machine.given[source] :] if packet.seq < cut.ends[source]]
        return found


ONE_STREAM = Order(OneStream, OneStreamFlush, to_all=True)
STREAMS = Order(Streams, StreamsFlush, to_all=False)
