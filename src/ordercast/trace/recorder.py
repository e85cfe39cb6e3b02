"""Turns what happens in a run into rows of its trace, passed on in batches so that memory stays bounded."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ordercast.model.machine import Level, Resumed, ViewInstalled
from ordercast.model.nodes import members, names_of
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.trace.schema import EventKind, EventRow

Sink = Callable[[Sequence[EventRow]], None]
"""Takes a batch of rows, and owns it from then on."""

BATCH = 50_000

_LEVEL_EVENT = ("", EventKind.ACCEPT.value, EventKind.PREACK.value, EventKind.ACK.value)  # by level


def view_detail(view: ViewInstalled) -> str:
    """The detail of a view's row."""
    return f"{view.number}: {names_of(view.members)}; {view.why}"


class EventRecorder(ABC):
    """Which events a trace has of what happens at the nodes of a run. How they are kept until written is left open."""

    def __init__(self, *, deliveries_only: bool) -> None:
        self._deliveries_only = deliveries_only

    @abstractmethod
    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""

    def deliver(self, time: int, node: int, packet: Packet) -> None:
        """Each message of a packet was handed to the application."""
        self._messages(time, node, "deliver", packet, None, None)

    def level(self, time: int, node: int, level: Level, packet: Packet) -> None:
        """A packet reached a level at a node."""
        if not self._deliveries_only:
            self._messages(time, node, _LEVEL_EVENT[level], packet, None, None)

    def transmit(self, time: int, node: int, unit: Unit, number: int, *, again: bool) -> None:
        """A unit was put on the channel."""
        if self._deliveries_only:
            return
        if isinstance(unit, DataUnit):
            if again:
                self._messages(time, node, "retransmit", unit.packet, None, None)
            self._messages(time, node, "transmit", unit.packet, "copy" if again else "data", number)
            return
        asked = unit.asks_for()
        if asked:
            self._other(time, node, "request", asked, None)
        self._other(time, node, "transmit", "request" if asked else unit.label(), number)

    def arrive(self, time: int, node: int, unit: Unit, number: int) -> None:
        """A unit reached a node."""
        if self._deliveries_only:
            return
        if isinstance(unit, DataUnit):
            self._messages(time, node, "receive", unit.packet, None, number)
        else:
            self._other(time, node, "hear", None, number)

    def lose(self, time: int, node: int, unit: Unit, number: int, cause: str) -> None:
        """A unit should have reached a node but did not."""
        if self._deliveries_only:
            return
        if isinstance(unit, DataUnit):
            self._messages(time, node, "lose", unit.packet, cause, number)
        else:
            self._other(time, node, "lose", cause, number)

    def discard(self, time: int, node: int, unit: Unit, why: str) -> None:
        """A node discarded a unit."""
        if self._deliveries_only:
            return
        if isinstance(unit, DataUnit):
            self._messages(time, node, "discard", unit.packet, why, None)
        else:
            self._other(time, node, "discard", why, None)

    @abstractmethod
    def view(self, time: int, node: int, view: ViewInstalled) -> None:
        """A view was installed; its members are the row's destinations."""

    def resume(self, time: int, node: int, found: Resumed) -> None:
        """The order is agreed on, and a node resumes."""
        self.note(time, node, EventKind.RESUME, f"{found.asked} asked, {found.inserted} inserted")

    def note(self, time: int, node: int, event: EventKind, detail: str | None) -> None:
        """Some other event. Aborts and crashes are recorded even if only deliveries are."""
        if not self._deliveries_only or event in {EventKind.ABORT, EventKind.CRASH}:
            self._other(time, node, event.value, detail, None)

    @abstractmethod
    def flush(self) -> None:
        """Passes on what was not passed on yet."""

    @abstractmethod
    def _messages(
        self, time: int, node: int, event: str, packet: Packet, detail: str | None, number: int | None
    ) -> None:
        """An event of each message of a packet."""

    @abstractmethod
    def _other(self, time: int, node: int, event: str, detail: str | None, number: int | None) -> None:
        """An event that is not of a message."""


class Recorder(EventRecorder):
    """Records the nodes of one run, row by row."""

    def __init__(self, nodes: int, sink: Sink, *, deliveries_only: bool) -> None:
        super().__init__(deliveries_only=deliveries_only)
        self._sink = sink
        self._steps = [0] * nodes
        self._rows: list[EventRow] = []

    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""
        node, step = packet.source, self._steps[packet.source]
        destinations, priority = members(packet.destinations), packet.priority or None
        for place, size in enumerate(packet.lengths):
            self._rows.append(
                (node, step, time, "send", node, packet.first + place, destinations, priority, size, None, None)
            )
            step += 1
        self._steps[node] = step
        self._flush_if_full()

    def view(self, time: int, node: int, view: ViewInstalled) -> None:
        """A view was installed; its members are the row's destinations."""
        to, detail = members(view.members), view_detail(view)
        self._rows.append(
            (node, self._steps[node], time, EventKind.VIEW.value, None, None, to, None, None, detail, None)
        )
        self._steps[node] += 1
        self._flush_if_full()

    def flush(self) -> None:
        """Passes the remaining rows to the sink."""
        if self._rows:
            self._sink(self._rows)
            self._rows = []

    def _messages(
        self, time: int, node: int, event: str, packet: Packet, detail: str | None, number: int | None
    ) -> None:
        source, first, step = packet.source, packet.first, self._steps[node]
        for place in range(len(packet.lengths)):
            self._rows.append((node, step, time, event, source, first + place, None, None, None, detail, number))
            step += 1
        self._steps[node] = step
        self._flush_if_full()

    def _other(self, time: int, node: int, event: str, detail: str | None, number: int | None) -> None:
        self._rows.append((node, self._steps[node], time, event, None, None, None, None, None, detail, number))
        self._steps[node] += 1
        self._flush_if_full()

    def _flush_if_full(self) -> None:
        if len(self._rows) >= BATCH:
            self.flush()
