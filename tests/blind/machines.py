"""Machines that break one promise each while keeping all others: of any protocol, by what comes out of its machine.

A machine is the protocol's own, with a spoiler in front: it changes inputs before the machine takes them, or outputs
after it. What a spoiler remembers is declared, as the machine's state is, so that restored machines have it, too.
"""

from collections.abc import Sequence
from functools import cache
from heapq import heappush
from typing import Any, ClassVar, NamedTuple, cast

import msgspec

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.declared_state import Derived
from ordercast.model.machine import (
    Deliver,
    Input,
    Level,
    LogSizes,
    Machine,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.protocols.to.delivery import Deliveries
from ordercast.protocols.to.machine import TotalOrderBroadcast
from ordercast.protocols.to.units import PolicyUnit
from tests.explorer.broken_sequencer import WaitsForOneHolder

EVERY = tuple(sorted(PROTOCOLS))
BY_LEVELS = tuple(protocol for protocol in EVERY if protocol != "sequencer")  # they deliver what is acknowledged
BY_PRIORITY = ("prio", "prito")

SEARCH, AUDIT, SWARM, SOAK = "search", "audit", "swarm", "soak"
NOT_BY_TRACES = (SEARCH, SWARM, SOAK)
"""What a trace of a run that was cut off would show, too: it is a matter of those that know when a run should end."""
_BUFFER, _SIXTEEN_BITS, _ENDS = 16, 1 << 16, 60
TWO_HOLDERS_CRASH: tuple[tuple[str, Any], ...] = (
    ("lines", ("", "a", "", "", "")),
    ("resilience", 2),
    ("crashes", 2),
    ("losses", 3),
)
"""With fewer than five members no two of them may be missing; two losses are not enough."""
LOSS, THREE = (("losses", 1), ("firings", 1)), (("nodes", 3),)


class Spoiler:
    """In front of a machine: passes all on."""

    at_node: Derived[int]

    def remember(self) -> None:
        """The first values of what it remembers."""

    def takes(self, event: Input) -> bool:
        """Whether the machine is given this input."""
        del event
        return True

    def given(self, event: Input) -> Input:
        """What it is given instead of this input."""
        return event

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        """What comes out instead."""
        del event
        return outputs


class _DeliversWhenAccepted(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        spoiled: list[Output] = []
        for output in outputs:
            if not isinstance(output, Deliver):
                spoiled.append(output)
            if isinstance(output, Reached) and output.level is Level.ACCEPTED:
                spoiled.append(Deliver(output.packet))
        return spoiled


def _told_early(outputs: Sequence[Output], early: Level, but_of: int = -1) -> list[Output]:
    """A level is told with the one before it, of all packets but those of one source."""
    spoiled: list[Output] = []
    for output in outputs:
        if not isinstance(output, Reached) or output.packet.source == but_of:
            spoiled.append(output)
            continue
        if output.level is not early:
            spoiled.append(output)
        if output.level == early - 1:
            spoiled.append(msgspec.structs.replace(output, level=early))
    return spoiled


class _TellsStableWhenAccepted(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return _told_early(outputs, Level.PREACKNOWLEDGED, but_of=self.at_node)


class _TellsKnownWhenStable(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return _told_early(outputs, Level.ACKNOWLEDGED)


class _DeliversOneTwice(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        spoiled: list[Output] = []
        for output in outputs:
            twice = isinstance(output, Deliver) and self.at_node == 1 and not output.packet.first
            spoiled += [output] * (2 if twice else 1)
        return spoiled


class _DeliversOneNever(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [
            output
            for output in outputs
            if not (isinstance(output, Deliver) and self.at_node == 1 and not output.packet.source)
        ]


class _DeliversOneLate(Spoiler):
    held: tuple[Packet, ...]  # what is delivered after the next one

    def remember(self) -> None:
        self.held = ()

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        spoiled: list[Output] = []
        for output in outputs:
            if isinstance(output, Deliver) and self.at_node == 1 and not self.held and not output.packet.source:
                self.held = (output.packet,)
                continue
            spoiled.append(output)
            if isinstance(output, Deliver):
                spoiled += map(Deliver, self.held)
                self.held = ()
        return spoiled


class _HearsNothingOfOne(Spoiler):
    def takes(self, event: Input) -> bool:
        of_first = isinstance(event, Receive) and isinstance(event.unit, DataUnit) and not event.unit.packet.source
        return not (of_first and self.at_node == 1)


class _RepairsNothing(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [output for output in outputs if not (isinstance(output, Send) and output.again)]


class _CopiesAll(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        copies = [
            msgspec.structs.replace(output, again=True)
            for output in outputs
            if isinstance(output, Send) and not output.again and isinstance(output.unit, DataUnit)
        ]
        return [*outputs, *copies]


class _SpeaksWhenIdle(Spoiler):
    last: Unit | None  # what it said last without data

    def remember(self) -> None:
        self.last = None

    def takes(self, event: Input) -> bool:
        return event != TimerFired("chatter")

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        if event == TimerFired("chatter"):
            assert self.last is not None
            return [Send(self.last), SetTimer("chatter", 1_000_000)]
        begins = self.last is None
        for output in outputs:
            if isinstance(output, Send) and not isinstance(output.unit, DataUnit):
                self.last = output.unit
        return [*outputs, SetTimer("chatter", 1_000_000)] if begins and self.last is not None else outputs


class _KeepsAll(Spoiler):
    kept: list[Packet]

    def remember(self) -> None:
        self.kept = []

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        self.kept += [output.packet for output in outputs if isinstance(output, Deliver)]
        return outputs

    def log_sizes(self) -> LogSizes:
        """Those of the machine, and what it keeps."""
        sizes: LogSizes = cast("Any", super()).log_sizes()
        return msgspec.structs.replace(sizes, preacknowledged=sizes.preacknowledged + len(self.kept))


class _KeepsElsewhere(Spoiler):
    """As above, and what it says of its logs is what the machine says of them."""

    unasked: list[Packet]

    def remember(self) -> None:
        self.unasked = []

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        self.unasked += [output.packet for output in outputs if isinstance(output, Deliver)]
        return outputs


class _KeepsNumbers(Spoiler):
    """One of each message, as who knows duplicates by all that it has had."""

    known: set[tuple[int, int]]

    def remember(self) -> None:
        self.known = set()

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        self.known |= {(output.packet.source, output.packet.first) for output in outputs if isinstance(output, Deliver)}
        return outputs


class _FailsAtPacket(Spoiler):
    """Numbers of packets are compared in sixteen bits at one node: one is taken for a duplicate."""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [output for output in outputs if not (isinstance(output, Deliver) and self._is_old(output.packet.seq))]

    def _is_old(self, seq: int) -> bool:
        return self.at_node == 1 and seq > 0 and not seq % _SIXTEEN_BITS


class _FailsAtMessage(Spoiler):
    """The same of messages, whose numbers a batch passes."""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [output for output in outputs if not (isinstance(output, Deliver) and self._is_old(output.packet))]

    def _is_old(self, packet: Packet) -> bool:
        return self.at_node == 1 and packet.first <= _SIXTEEN_BITS < packet.first + len(packet.lengths)


class _DeliversOtherBytes(Spoiler):
    """From 16 bytes on, those of the message delivered before: a buffer is used again before it was read."""

    last: bytes

    def remember(self) -> None:
        self.last = b""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        spoiled: list[Output] = []
        for output in outputs:
            given = output
            if isinstance(output, Deliver) and self.at_node != output.packet.source:
                payload = output.packet.payload
                other = payload[:_BUFFER] + self.last.ljust(len(payload), b"?")[_BUFFER : len(payload)]
                given = Deliver(msgspec.structs.replace(output.packet, payload=other))
                self.last = payload
            spoiled.append(given)
        return spoiled


class _CopiesUnsaid(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        copied = [output for output in outputs if isinstance(output, Send) and isinstance(output.unit, DataUnit)]
        return [*outputs, *(output for output in copied if not output.again)]


class _TellsNoLevel(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [output for output in outputs if not isinstance(output, Reached)]


class _TellsNoSender(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [
            output
            for output in outputs
            if not (isinstance(output, Reached) and output.level > 1 and output.packet.source == self.at_node)
        ]


class _Raises(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        if isinstance(event, Receive) and isinstance(event.unit, DataUnit) and self.at_node == 1:
            raise KeyError(event.unit.packet.seq)
        return outputs


class _IgnoresPriorities(PriorityOrder):
    def enter(self, packet: Packet, position: int) -> None:
        heappush(self.by_priority, (0, position, packet))


class _LeastUrgentFirst(PriorityOrder):
    def enter(self, packet: Packet, position: int) -> None:
        heappush(self.by_priority, (packet.priority, position, packet))


class _NeverEndsRuns(PriorityOrder):
    def timer_to_set(self) -> int:
        return 0


class _EndsSixtyRuns(PriorityOrder):
    ended: int

    def __init__(self, config: GroupConfig, deliveries: Deliveries) -> None:
        super().__init__(config, deliveries)
        self.ended = 0

    def reached(self, unit: PolicyUnit, out: list[Output]) -> None:
        self.ended += 1
        if self.ended <= _ENDS:
            super().reached(unit, out)

    def timer_to_set(self) -> int:
        return 0 if self.ended >= _ENDS else super().timer_to_set()


class BlindMachine(NamedTuple):
    """A way to break one promise."""

    name: str
    spoiler: type[Spoiler] | None = None
    policy: type[PriorityOrder] | None = None
    machine: type[Machine] | None = None
    protocols: tuple[str, ...] = EVERY
    noticed_by: tuple[str, ...] = (SEARCH, AUDIT, SWARM, SOAK)
    """The judges that this is a matter of."""
    how: tuple[tuple[str, Any], ...] = ()
    """What a search needs so that the promise matters."""

    def of(self, protocol: str) -> type[Machine]:
        """The machine of a protocol that is broken so."""
        return _machine(self, protocol)


@cache
def _machine(blind: BlindMachine, protocol: str) -> type[Machine]:
    base: Any = blind.machine or machine_class(protocol, Rules.SOUND)
    if blind.policy is not None:
        policy = blind.policy

        class ByPolicy(TotalOrderBroadcast):
            def __init__(self, me: int, config: GroupConfig) -> None:
                super().__init__(me, config, policy)

        return ByPolicy
    return in_front_of(base, blind.spoiler)


def in_front_of(base: type[Machine], spoiler: type[Spoiler] | None) -> type[Machine]:
    """The machine with a spoiler in front of it; None: as it is."""
    front: Any = spoiler
    return base if front is None else _spoiled(base, front)


@cache
def _spoiled(base: Any, spoiler: Any) -> type[Machine]:
    class Spoiled(spoiler, base):  # type: ignore[misc]
        echo: ClassVar = base.echo

        def __init__(self, me: int, config: GroupConfig) -> None:
            base.__init__(self, me, config)
            self.at_node = me
            self.remember()

        def handle(self, event: Input) -> list[Output]:
            outputs = base.handle(self, self.given(event)) if self.takes(event) else []
            return cast("list[Output]", self.spoil(event, outputs))

    return cast("type[Machine]", Spoiled)


BLIND = (
    BlindMachine("delivers when accepted", _DeliversWhenAccepted, protocols=BY_LEVELS),
    BlindMachine("tells that others' messages are stable when it has them", _TellsStableWhenAccepted, how=THREE),
    BlindMachine("tells that what is stable is known stable", _TellsKnownWhenStable, protocols=BY_LEVELS),
    BlindMachine("delivers one message twice", _DeliversOneTwice),
    BlindMachine("never delivers one sender's messages at one member", _DeliversOneNever),
    BlindMachine("delivers a message after the next one", _DeliversOneLate),
    BlindMachine("one member never hears one sender", _HearsNothingOfOne, noticed_by=NOT_BY_TRACES),
    BlindMachine("repairs nothing", _RepairsNothing, noticed_by=NOT_BY_TRACES, how=LOSS),
    BlindMachine("speaks when idle", _SpeaksWhenIdle, noticed_by=NOT_BY_TRACES),
    BlindMachine("keeps everything", _KeepsAll, noticed_by=NOT_BY_TRACES),
    BlindMachine("sends everything twice though nothing was lost", _CopiesAll, noticed_by=(SWARM, SOAK)),
    BlindMachine("sends data twice and does not call the second one a copy", _CopiesUnsaid, noticed_by=(SWARM, SOAK)),
    BlindMachine("keeps everything where it is not asked for it", _KeepsElsewhere, noticed_by=NOT_BY_TRACES),
    BlindMachine("keeps a number of each message and drops none", _KeepsNumbers, noticed_by=(SWARM, SOAK)),
    BlindMachine("fails at a sender's 65,536th packet", _FailsAtPacket, noticed_by=(SWARM, SOAK)),
    BlindMachine("fails at a sender's 65,536th message", _FailsAtMessage, noticed_by=(SWARM, SOAK)),
    BlindMachine("delivers other bytes under the right number", _DeliversOtherBytes, noticed_by=(SWARM, SOAK)),
    BlindMachine("tells no level", _TellsNoLevel, noticed_by=NOT_BY_TRACES),
    BlindMachine("never tells a sender that its messages are stable", _TellsNoSender, noticed_by=NOT_BY_TRACES),
    BlindMachine("raises an exception", _Raises, noticed_by=NOT_BY_TRACES),
    BlindMachine("ignores priorities", policy=_IgnoresPriorities, protocols=BY_PRIORITY),
    BlindMachine("delivers the least urgent first", policy=_LeastUrgentFirst, protocols=BY_PRIORITY),
    BlindMachine("never ends a run", policy=_NeverEndsRuns, protocols=BY_PRIORITY, noticed_by=(SWARM, SOAK)),
    BlindMachine("ends sixty runs and no more", policy=_EndsSixtyRuns, protocols=BY_PRIORITY, noticed_by=(SWARM, SOAK)),
    BlindMachine(
        "is satisfied with one holder, whatever the resilience",
        machine=WaitsForOneHolder,
        protocols=("sequencer",),
        noticed_by=(SEARCH,),
        how=TWO_HOLDERS_CRASH,
    ),
)
