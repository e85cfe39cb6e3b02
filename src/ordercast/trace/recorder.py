"""Turns what happens in a run into rows of its trace, passed on in batches so that memory stays bounded."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ordercast.model.machine import Level, Resumed, ViewInstalled
from ordercast.model.nodes import members, names_of
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.trace.schema import EventKind, EventRow
from ordercast.trace.view_rows import BY_VIEW, DRAINED, UNCONFIRMED, view_detail

Sink = Callable[[Sequence[EventRow]], None]
"""Takes a batch of rows, and owns it from then on."""

BATCH = 50_000
MAX_SIZE = (1 << 31) - 1
"""Of a size in a trace; larger ones are recorded as this."""

_LEVEL_EVENT = ("", EventKind.ACCEPT.value, EventKind.PREACK.value, EventKind.ACK.value)  # by level


class MembershipChange(NamedTuple):
    """The columns of a row about the membership of a node."""

    event: EventKind
    source: int | None = None
    seq: int | None = None
    destinations: tuple[int, ...] | None = None
    size: int | None = None
    detail: str | None = None


class EventRecorder(ABC):
    """Which events a trace has of what happens at the nodes of a run. How they are kept until written is left open."""

    def __init__(self, *, deliveries_only: bool, by_priority: bool = False) -> None:
        """`by_priority`: the service has priorities, so that 0 is one of them, and not that there is none."""
        self._deliveries_only, self._by_priority = deliveries_only, by_priority

    @abstractmethod
    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""

    def _priority(self, packet: Packet) -> int | None:
        return packet.priority if self._by_priority else packet.priority or None

    def deliver(self, time: int, node: int, packet: Packet) -> None:
        """Each message of a packet was handed to the application."""
        self._messages(time, node, "deliver", packet, None, None)

    def level(self, time: int, node: int, level: Level, packet: Packet, *, by_view: bool = False) -> None:
        """A packet reached a level at a node; `by_view`: because it is in the cut that ends a view."""
        if not self._deliveries_only:
            self._messages(time, node, _LEVEL_EVENT[level], packet, BY_VIEW if by_view else None, None)

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
            self.discard_other(time, node, why)

    def discard_other(self, time: int, node: int, why: str) -> None:
        """A node discarded what names no packet, or one of another view, whose places mean nothing here."""
        if not self._deliveries_only:
            self._other(time, node, "discard", why, None)

    def view(self, time: int, node: int, view: ViewInstalled) -> None:
        """A view was installed; its members are the row's destinations. A node that is not among them is excluded."""
        if view.heard is None:
            detail = f"{view.number}: {names_of(view.members)}; {view.why}"
            self._membership(
                time, node, MembershipChange(EventKind.VIEW, destinations=members(view.members), detail=detail)
            )
        elif view.members >> node & 1:
            places, detail = view.places or members(view.members), view_detail(members(view.heard), view.why)
            self._membership(
                time, node, MembershipChange(EventKind.VIEW, seq=view.number, destinations=places, detail=detail)
            )
        else:
            self.exclude(time, node, view.number, view.why)

    def exclude(self, time: int, node: int, number: int, why: str) -> None:
        """A node was told that the view of this number is without it."""
        self._membership(time, node, MembershipChange(EventKind.EXCLUDE, seq=number, detail=why))

    def leave(self, time: int, node: int, *, drained: bool) -> None:
        """A node has left the group by itself; `drained`: all of its messages are known to be delivered."""
        self._membership(time, node, MembershipChange(EventKind.LEAVE, detail=DRAINED if drained else UNCONFIRMED))

    def state(self, time: int, node: int, number: int, donor: int, size: int) -> None:
        """A node that joined has loaded the state of the view of this number."""
        self._membership(
            time, node, MembershipChange(EventKind.STATE, source=donor, seq=number, size=min(size, MAX_SIZE))
        )

    def durable(self, time: int, node: int, source: int, seqs: Sequence[int]) -> None:
        """Messages are on the disk of a node, at the next positions of its log."""
        for seq in seqs:
            self._membership(time, node, MembershipChange(EventKind.DURABLE, source=source, seq=seq))

    def restart(self, time: int, node: int, old: int, found: int) -> None:
        """A process was started again, as another node, with so many messages in its log."""
        self._membership(time, node, MembershipChange(EventKind.RESTART, source=old, seq=found))

    def drop(self, time: int, node: int, position: int) -> None:
        """A node dropped its log from this position on."""
        self._membership(time, node, MembershipChange(EventKind.DROP, seq=position))

    def block(self, time: int, node: int, lacks: int) -> None:
        """Too few members can be reached to agree on the next view; `lacks`: nodes that are not."""
        self.note(time, node, EventKind.BLOCK, names_of(lacks))

    def unblock(self, time: int, node: int) -> None:
        """Enough members can be reached again."""
        self.note(time, node, EventKind.UNBLOCK, None)

    def renumber(self, time: int, node: int, packet: Packet, number: int) -> None:
        """A node sends a packet of its own again, to the members of a later view that it is for; those that joined too.

        Recorded even if only deliveries are: an audit must know that those that joined may deliver it.
        """
        to = members(packet.destinations)
        for seq in range(packet.first, packet.first + len(packet.lengths)):
            change = MembershipChange(
                EventKind.RENUMBER, source=packet.source, seq=seq, destinations=to, detail=str(number)
            )
            self._membership(time, node, change)

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
    def _membership(self, time: int, node: int, change: MembershipChange) -> None:
        """An event of the group's membership: recorded even if only deliveries are."""

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

    def __init__(self, nodes: int, sink: Sink, *, deliveries_only: bool, by_priority: bool = False) -> None:
        super().__init__(deliveries_only=deliveries_only, by_priority=by_priority)
        self._sink = sink
        self._steps = [0] * nodes
        self._rows: list[EventRow] = []

    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""
        node, step = packet.source, self._steps[packet.source]
        destinations, priority = members(packet.destinations), self._priority(packet)
        for place, size in enumerate(packet.lengths):
            self._rows.append(
                (node, step, time, "send", node, packet.first + place, destinations, priority, size, None, None)
            )
            step += 1
        self._steps[node] = step
        self._flush_if_full()

    def flush(self) -> None:
        """Passes the remaining rows to the sink."""
        if self._rows:
            self._sink(self._rows)
            self._rows = []

    def _membership(self, time: int, node: int, change: MembershipChange) -> None:
        self._rows.append(
            (
                *(node, self._steps[node], time, change.event.value, change.source, change.seq),
                *(change.destinations, None, change.size, change.detail, None),
            )
        )
        self._steps[node] += 1
        self._flush_if_full()

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
