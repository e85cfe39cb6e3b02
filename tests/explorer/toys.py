"""Machines so small that one can count their states by hand, to see that the explorer leaves nothing out."""

from collections.abc import Callable
from typing import ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import Snapshot
from ordercast.model.machine import (
    CancelTimer,
    Deliver,
    Echo,
    Input,
    LogSizes,
    Numbered,
    Output,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Status


class Flood:
    """Sends once, and delivers whatever it hears: its own messages at once, or when their echo comes."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.MANY
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.config = me, config
        self.numbers = [0]  # next own number, and whatever else a toy remembers

    def handle(self, event: Input) -> list[Output]:
        if isinstance(event, Submit):
            return self.send(event)
        if isinstance(event, Receive) and isinstance(event.unit, Data):
            return self.hear(event.unit.packet)
        return self.fire(event.name) if isinstance(event, TimerFired) else []

    def send(self, event: Submit) -> list[Output]:
        seq = self.numbers[0]
        self.numbers[0] += 1
        packet = Packet(self.me, event.destinations, seq, (), seq, event.lengths, event.payload)
        own = self.hear(packet) if self.echo is Echo.NONE else []
        return [Numbered(packet), Send(Data(packet, Status(seq + 1, ())), to=self.receiver(packet)), *own]

    def receiver(self, packet: Packet) -> int | None:
        del packet  # it goes to everybody
        return None

    def hear(self, packet: Packet) -> list[Output]:
        return [Deliver(packet)] if packet.destinations >> self.me & 1 else []

    def fire(self, name: str) -> list[Output]:
        raise AssertionError(f"{name} was never set")

    def snapshot(self) -> Snapshot:
        return tuple(self.numbers)

    def restore(self, snapshot: Snapshot) -> None:
        self.numbers = [int(str(number)) for number in snapshot]

    def waits_for(self) -> tuple[str, ...]:
        return ()

    def log_sizes(self) -> LogSizes:
        return LogSizes(0, 0, 0, 0, 0)


class Still:
    """A machine of which only the state it is in matters."""

    def __init__(self, *state: object) -> None:
        self._state = state

    def snapshot(self) -> Snapshot:
        return self._state


class LoopedFlood(Flood):
    """Hears itself by a loop-back that loses nothing."""

    echo = Echo.SAFE


class HearsItselfFirst(LoopedFlood):
    """Speaks whenever one of its two timers fires, and relies on having heard that before it does anything else."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.numbers = [0, 0]  # next own number, and what was said and not heard

    def send(self, event: Submit) -> list[Output]:
        return [*super().send(event), SetTimer("one", 1), SetTimer("other", 1)]

    def fire(self, name: str) -> list[Output]:
        assert not self.numbers[1], f"{name} fires in the middle of a sentence"
        self.numbers[1] = 1
        return [Send(Data(Packet(self.me, 0, 9, (), 9, (1,), b"!"), Status(9, ())))]

    def hear(self, packet: Packet) -> list[Output]:
        if packet.source == self.me and packet.payload == b"!":
            self.numbers[1] = 0
        return super().hear(packet)


class ChannelFlood(Flood):
    """Hears itself from the channel: it may miss itself."""

    echo = Echo.CHANNEL


class Whisper(Flood):
    """Sends to the first of its destinations only."""

    def receiver(self, packet: Packet) -> int | None:
        return (packet.destinations & -packet.destinations).bit_length() - 1


class NoStutter(Flood):
    """Knows the last packet that it heard, and so notices one that comes twice in a row, but no other."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.numbers = [0, -1]

    def hear(self, packet: Packet) -> list[Output]:
        if packet.seq == self.numbers[1]:
            return []
        self.numbers[1] = packet.seq
        return super().hear(packet)


class Boaster(Flood):
    """Claims more than it did whenever it sends."""

    claims: ClassVar[tuple[Callable[[Packet], Output], ...]] = ()

    def send(self, event: Submit) -> list[Output]:
        did = super().send(event)
        packets = [output.packet for output in did if isinstance(output, Numbered)]
        return [*did, *[claim(packets[0]) for claim in self.claims]]


class Ticker(Flood):
    """Sets a timer when it sends, and again whenever it fires, three times in all."""

    ticks = 3

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.numbers = [0, 0]

    def send(self, event: Submit) -> list[Output]:
        return [*super().send(event), SetTimer("tick", 1)]

    def fire(self, name: str) -> list[Output]:
        self.numbers[1] += 1
        return [SetTimer(name, 1)] if self.numbers[1] < self.ticks else []


class EndlessTicker(Ticker):
    """Counts to three and starts again."""

    def fire(self, name: str) -> list[Output]:
        return super().fire(name) or [SetTimer("tock", 1), *self._start_again()]

    def _start_again(self) -> list[Output]:
        self.numbers[1] = 0
        return []


class PingPong(Ticker):
    """Serves a ball when its timer fires; whoever hears one sends it back."""

    balls = 1

    def handle(self, event: Input) -> list[Output]:
        if isinstance(event, Receive) and isinstance(event.unit, Data) and event.unit.packet.payload == b"ball":
            return [Send(event.unit)] * self.balls
        return super().handle(event)

    def fire(self, name: str) -> list[Output]:
        del name
        return [Send(Data(Packet(self.me, 0, 9, (), 9, (4,), b"ball"), Status(9, ())))]


class ServesAtOnce(PingPong):
    """Needs no timer: once it has sent there is always something under way."""

    def send(self, event: Submit) -> list[Output]:
        return [*Flood.send(self, event), *self.fire("")]


class Avalanche(PingPong):
    """Sends back two for each."""

    balls = 2


class Climber(Ticker):
    """Counts for ever."""

    ticks = 1 << 30


class Canceller(Ticker):
    """Thinks better of its timer."""

    def send(self, event: Submit) -> list[Output]:
        return [*super().send(event), CancelTimer("tick")]


class Counter(Flood):
    """Counts how often it was restored, and so is never again what it was."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.numbers = [0, 0]

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.numbers[1] += 1
