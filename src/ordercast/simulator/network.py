"""From a unit that a machine sends to those that receive it: channel, faults, buffers, and the time that they take."""

from collections.abc import Iterable, Sequence

from ordercast.model.machine import Echo, Receive, Send
from ordercast.model.runs import Channel, RunConfig
from ordercast.model.units import DataUnit, Unit
from ordercast.simulator.channels import channel_model
from ordercast.simulator.counters import Counters
from ordercast.simulator.event_queue import EventQueue
from ordercast.simulator.fault_recorder import FaultRecorder
from ordercast.simulator.fault_rules import DUPLICATED, OVERRUN, QUEUE_FULL, Flight, fault_effect, rules_for
from ordercast.simulator.pending_events import Arrival, AtLine, Departure, LoopBack, Lost
from ordercast.trace.recorder import EventRecorder

Transit = AtLine | Arrival | Receive
"""What is scheduled when a unit has passed the medium."""


def _unit_of(what: Transit) -> Unit:
    inner = what.what if isinstance(what, AtLine) else what
    return inner.event.unit if isinstance(inner, Arrival) else inner.unit


class SimulatedNetwork:
    """The network between the nodes of a run. It schedules what arrives."""

    def __init__(
        self,
        config: RunConfig,
        echo: Echo,
        events: EventQueue,
        counters: Counters,
        *,
        recorder: EventRecorder | None,
        fault_recorder: FaultRecorder | None,
    ) -> None:
        """`echo`: how nodes receive their own units."""
        nodes, network = config.group.nodes, config.network
        self._network, self._echo, self._events, self._counters = network, echo, events, counters
        self._recorder, self._fault_recorder = recorder, fault_recorder
        self._channel = channel_model(network, nodes, config.seed)
        self._rules = rules_for(config.faults, config.seed, nodes)
        self.buffered = max(network.send_time, network.receive_time, network.receive_buffer) > 0
        """Whether units wait at a node before they are handed to it."""
        everybody = range(nodes)
        self._receivers = [
            [node for node in everybody if node != sender or echo is Echo.CHANNEL] for sender in everybody
        ]
        self._busy_until = [0] * nodes
        self._queued = [0] * nodes
        self._line_busy_until = [0] * nodes
        self._transmissions = 0

    # --- receiving ---

    def handed(self, node: int) -> None:
        """A unit that waited is handed to a node."""
        self._queued[node] -= 1

    def is_drained(self, node: int) -> bool:
        """Whether no unit waits to be handed to a node."""
        return not self._queued[node]

    def pause(self, node: int, until: int) -> None:
        """A node handles and sends nothing until then."""
        self._busy_until[node] = max(self._busy_until[node], until)

    def arrive(self, time: int, node: int, what: AtLine | Arrival, transmission: int) -> None:
        """A unit reaches the line to a node, or its receive buffer."""
        if isinstance(what, AtLine):
            self._pass_line(time, node, what, transmission)
        else:
            self._queue(time, node, what.event, transmission)

    def _queue(self, time: int, node: int, event: Receive, transmission: int) -> None:
        """A receiver handles one unit at a time, and loses units that its buffer has no room for."""
        network = self._network
        if network.receive_buffer and self._queued[node] >= network.receive_buffer:
            self._lose(time, node, event.unit, transmission, OVERRUN)
            return
        self._queued[node] += 1
        self._events.schedule(self._busy(time, node, network.receive_time), node, event, transmission)

    def _pass_line(self, time: int, node: int, waits: AtLine, transmission: int) -> None:
        """A unit takes the line to a node, after those that wait for it; if these are too many it is lost."""
        network, busy_until = self._network, max(time, self._line_busy_until[node])
        if network.is_full(busy_until - time, line=True):
            self._lose(time, node, _unit_of(waits), transmission, QUEUE_FULL)
            return
        self._line_busy_until[node] = busy_until + network.line_time(waits.size)
        self._events.schedule(self._line_busy_until[node], node, waits.what, transmission)

    def _lose(self, time: int, node: int, unit: Unit, transmission: int, cause: str) -> None:
        self._count_loss(node, unit)
        if self._fault_recorder is not None:
            self._fault_recorder.affected(transmission, node, cause)
        if self._recorder is not None:
            self._recorder.lose(time, node, unit, transmission, cause)

    def _busy(self, time: int, node: int, lasting: int) -> int:
        """The time at which a node finishes one more task; it does one task at a time."""
        self._busy_until[node] = max(time, self._busy_until[node]) + lasting
        return self._busy_until[node]

    # --- sending ---

    def send(self, time: int, node: int, output: Send) -> None:
        """A machine sends a unit, which may take time."""
        if self._network.send_time and output.to != node:
            self._events.schedule(self._busy(time, node, self._network.send_time), node, Departure(output))
        else:
            self.depart(time, node, output)

    def depart(self, time: int, node: int, output: Send) -> None:
        """A unit leaves its node."""
        unit = output.unit
        self._transmissions += 1
        number = self._transmissions
        event = Receive(unit)
        if self._recorder is not None:
            self._recorder.transmit(time, node, unit, number, again=output.again)
        if output.to == node:  # it is queued like any unit, but does not use the channel
            self._queued[node] += self.buffered
            self._events.schedule(self._busy(time, node, self._network.receive_time), node, LoopBack(event), number)
            return
        size, control = unit.size(), not isinstance(unit, DataUnit)
        self._count(unit, size, again=output.again)
        flight = Flight(number, time, node, control=control, copy=output.again)
        if self._fault_recorder is not None:
            self._fault_recorder.transmitted(flight)
        is_full = self._network.queue_bytes > 0 and self._network.is_full(self._channel.waits(time, node))
        arrivals = [] if is_full else self._channel.arrivals(time, node, size)
        if self._echo is Echo.SAFE and output.to is None:  # not through the buffer, which could lose it
            self._queued[node] += self.buffered
            self._events.schedule(time, node, LoopBack(event), number)
        receivers = self._receivers[node] if output.to is None else (output.to,)
        effects: Sequence[str | None] = ()
        if self._rules:  # each rule sees every unit
            effects = [fault_effect(self._rules, flight, receiver) for receiver in receivers]
        if is_full:  # no node receives the unit
            for receiver in receivers:
                self._lose(time, receiver, unit, number, QUEUE_FULL)
            return
        arrives = Arrival(event) if self.buffered else event
        what = AtLine(arrives, size) if self._network.line_bits_per_second else arrives
        if any(effects):
            self._schedule_with_effects(flight, arrivals, what, zip(receivers, effects, strict=True))
        else:
            self._events.schedule_at(receivers, arrivals, what, number)

    def _count(self, unit: Unit, size: int, *, again: bool) -> None:
        counters = self._counters
        counters.bytes += size
        if not isinstance(unit, DataUnit):
            counters.control += 1
            counters.control_bytes += size
            counters.requests += unit.asks_for() is not None
        elif again:
            counters.retransmitted += 1
        else:
            counters.transmitted += 1

    def _schedule_with_effects(
        self, flight: Flight, arrivals: list[int], what: Transit, effects: Iterable[tuple[int, str | None]]
    ) -> None:
        """Faults affect the unit at some of its receivers."""
        for receiver, effect in effects:
            if effect is None:
                self._events.schedule(arrivals[receiver], receiver, what, flight.number)
            else:
                self._apply_fault(flight, receiver, arrivals[receiver], what, effect)

    def _apply_fault(self, flight: Flight, receiver: int, arrival: int, what: Transit, decided: str) -> None:
        if self._fault_recorder is not None:
            self._fault_recorder.affected(flight.number, receiver, decided)
        if decided == DUPLICATED:
            self._counters.duplicated += 1
            self._events.schedule(arrival, receiver, what, flight.number)
            # On one channel the second follows at once: a unit between them would break the single order.
            later = 0 if self._network.channel is Channel.ONE else self._network.jitter
            self._events.schedule(arrival + later, receiver, what, flight.number)
            return
        unit = _unit_of(what)
        self._count_loss(receiver, unit)
        if self._recorder is not None:
            self._events.schedule(arrival, receiver, Lost(unit, decided), flight.number)

    def _count_loss(self, node: int, unit: Unit) -> None:
        self._counters.lost += 1
        if isinstance(unit, DataUnit) and unit.packet.destinations >> node & 1:
            self._counters.lost_data += 1
