"""Sessions of a whole group in virtual time, over a network that loses, delays, doubles and reorders what they say."""

import heapq
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from ordercast.live.session.events import (
    Aborted,
    AtRest,
    Begin,
    Close,
    Closed,
    ControlReceived,
    GiveUp,
    Left,
    Opened,
    Refused,
    SendControl,
    SessionConfig,
    TrafficReceived,
)
from ordercast.live.session.events import Input as SessionInput
from ordercast.live.session.handshake import Identity
from ordercast.live.session.machine import Session
from ordercast.live.session.parameter_comparison import encode_parameters
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.control import IN_SESSION, Control, Heartbeat
from tests.live.toy_protocol import Toy, Unit

TERMS = {"protocol": "toy", "window": 32}


class Weather(NamedTuple):
    """What the network does to a datagram."""

    loss: float = 0.0
    doubled: float = 0.0
    slowest: int = 5 * MILLISECOND
    """The delay is uniform up to this; now and then it is fifty times as long."""
    very_late: float = 0.0


class Process:
    """One life of a member: its session, and the toy protocol when it is open."""

    def __init__(self, network: "Network", member: int, terms: str) -> None:
        self.network, self.member = network, member
        self.incarnation = network.chance.getrandbits(64) | 1
        mine = Identity(incarnation=self.incarnation, first_seq=network.chance.randrange(1000))
        self.session = Session(member, network.names, mine, terms, config=network.config)
        self.timers: dict[str, int] = {}
        self.toy: Toy | None = None
        self.to_send = 0
        self.alive = True
        self.paused_until = 0
        self.opened: Opened | None = None
        self.ends: list[Refused | Aborted | Closed] = []
        self.left_at: int | None = None
        self.closed_at: int | None = None
        self.toy_at_close: Toy | None = None

    def put(self, event: SessionInput) -> None:
        """One input into the session; its outputs are carried out in their order."""
        if not self.alive:
            return
        assert self.left_at is None or not self.session.handle(event)
        for output in self.session.handle(event):
            self._carry_out(output)

    def _carry_out(self, output: Any) -> None:
        network = self.network
        match output:
            case SendControl(message, to):
                targets = [to] if to is not None else [m for m in range(len(network.names)) if m != self.member]
                tag = self.session.session if isinstance(message, IN_SESSION) else 0
                for target in targets:
                    network.transmit(self.member, target, tag, message)
            case SetTimer(name, after):
                assert after > 0
                self.timers[name] = network.running = network.running + 1
                network.at(network.now + after, self._fire, name, network.running)
            case CancelTimer(name):
                self.timers.pop(name, None)
            case Opened():
                assert self.opened is None
                assert not self.ends
                self.opened = output
                self.toy = Toy(self.member, len(network.names))
                network.at(network.now + 1, self._toy_timer)
                self._beat()
                network.on_open(self)
            case Refused() | Aborted() | Closed():
                assert not self.ends, "a session ends once"
                self.ends.append(output)
                self.closed_at = network.now
                self.toy, self.toy_at_close = None, self.toy  # the host stops the protocol now
            case Left():
                self.left_at = network.now

    def _fire(self, name: str, number: int) -> None:
        if self._deferred(self._fire, name, number, late=1):
            return
        if self.alive and self.timers.get(name) == number:
            del self.timers[name]
            self.put(TimerFired(name))

    def _deferred(self, action: Callable[..., None], *arguments: Any, late: int = 0) -> bool:
        """While it sleeps nothing happens; then all that has come is read before timers run."""
        if self.network.now < self.paused_until:
            self.network.at(self.paused_until + late, action, *arguments)
            return True
        return False

    def receive(self, source: int, tag: int, message: Control | Unit) -> None:
        """A datagram came. The tag of the session is checked as a host does it."""
        if self._deferred(self.receive, source, tag, message) or not self.alive:
            return
        in_session = not isinstance(message, Control)
        if (in_session or isinstance(message, IN_SESSION)) and tag != self.session.session:
            return
        if in_session:
            self.put(TrafficReceived(source))
            if self.toy is not None:
                self._send(self.toy.receive(source, message))  # type: ignore[arg-type]
                self._tell_rest()
        else:
            self.put(ControlReceived(source, message))  # type: ignore[arg-type]

    def _beat(self) -> None:
        """The heartbeats of the failure detector, which is no part of a session, while the protocol runs."""
        if self.toy is None or not self.alive:
            return
        if not self._deferred(self._beat, late=1):
            self._carry_out(SendControl(Heartbeat(self.session.closing.stage)))
            self.network.at(self.network.now + self.network.config.heartbeat, self._beat)

    # --- the toy ---

    def _toy_timer(self) -> None:
        if self.toy is None or not self.alive or self._deferred(self._toy_timer, late=1):
            return
        if self.to_send and self.network.chance.random() < 0.5:
            self.to_send -= 1
            self._send(self.toy.send())
        self._send(self.toy.repeat())
        self._tell_rest()
        self.network.at(self.network.now + 20 * MILLISECOND, self._toy_timer)

    def _send(self, units: list[tuple[int, Unit]]) -> None:
        for target, unit in units:
            self.network.transmit(self.member, target, self.session.session, unit)

    def _tell_rest(self) -> None:
        if self.toy is not None:
            self.put(AtRest(self.toy.is_at_rest() and not self.to_send))

    def close(self, within: int = 0) -> None:
        """The application has nothing more to send than what it has handed over."""
        if not self._deferred(self.close, within, late=1):
            self.put(Close(within))

    def kill(self) -> None:
        """The process dies; what it said is still under way."""
        self.alive, self.toy = False, None

    def pause(self, lasting: int) -> None:
        """It sleeps: SIGSTOP, or a machine that has other things to do."""
        self.paused_until = self.network.now + lasting


class Network:
    """All members, and the clock."""

    def __init__(
        self,
        seed: int,
        nodes: int,
        weather: Weather = Weather(),  # noqa: B008
        *,
        config: SessionConfig = SessionConfig(),  # noqa: B008
    ) -> None:
        self.chance, self.weather, self.config = Random(seed), weather, config
        self.names = tuple("ABCDEFGHIJ"[:nodes])
        self.now = self.running = self.datagrams = 0
        self.heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self.processes: dict[int, Process] = {}
        self.lives: list[Process] = []
        self.on_open: Callable[[Process], None] = lambda _: None
        self.cut: Callable[[int, int, object], bool] = lambda _source, _target, _message: False
        """Datagrams that are lost whatever the weather."""

    def at(self, when: int, action: Callable[..., object], *arguments: Any) -> None:
        """Something is to happen."""
        self.running += 1
        heapq.heappush(self.heap, (when, self.running, action, arguments))

    def start(self, member: int, **parameters: object) -> Process:
        """A new life of a member, with terms that differ if parameters are named."""
        if member in self.processes:
            self.processes[member].kill()
        process = Process(self, member, encode_parameters("toys", self.names, {**TERMS, **parameters}))
        self.processes[member] = process
        self.lives.append(process)
        process.put(Begin())
        return process

    def start_all(self, within: int = 0) -> None:
        """All members, each when it likes."""
        for member in range(len(self.names)):
            self.at(self.chance.randrange(within + 1), self.start, member)

    def transmit(self, source: int, target: int, tag: int, message: Control | Unit) -> None:
        """A datagram to one member."""
        self.datagrams += 1
        for _ in range(2 if self.chance.random() < self.weather.doubled else 1):
            if self.chance.random() < self.weather.loss or self.cut(source, target, message):
                continue
            delay = self.chance.randrange(self.weather.slowest)
            if self.chance.random() < self.weather.very_late:
                delay *= 50
            self.at(self.now + 1 + delay, self.arrive, source, target, tag, message)

    def arrive(self, source: int, target: int, tag: int, message: Control | Unit) -> None:
        if target in self.processes:
            self.processes[target].receive(source, tag, message)

    def run(self, until: int = 300 * SECOND) -> None:
        """Until nothing happens any more, or for so long."""
        while self.heap and self.heap[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(self.heap)
            action(*arguments)
            if self.running > 3_000_000:
                raise AssertionError("it goes on and on")

    def give_up(self, member: int, why: str) -> None:
        """The application of one member gives up."""
        self.processes[member].put(GiveUp(why))

    def living(self) -> list[Process]:
        """The last life of each member."""
        return [self.processes[member] for member in sorted(self.processes)]
