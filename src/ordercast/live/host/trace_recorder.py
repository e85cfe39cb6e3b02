"""Records a live member: a trace like a simulation's, of one node, under a run name that all members share.

Rows are written by a thread into files that are complete as soon as they have a name, which they get after a second at
most: a process that is killed loses its last second only. A full disk ends the recording and not the group; `failed`
then tells why. Times are wall-clock times, one for all that follows from one input; a clock that is set meanwhile does
not change them, since an audit compares those of members on one machine.

The event loop never waits for the disk. If `MANY_PENDING` batches of rows wait to be written, the recorder is `behind`:
its member sends and accepts no data until half of them are written, which slows its peers, too. Other rows still come;
if `MAX_PENDING` batches wait, the recording ends with an error, as for a full disk: no rows are left out in the middle.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from ordercast.live.host.parameters import Parameters
from ordercast.live.host.recording import MemberRecorder, NewRecorder, RunRow
from ordercast.model.config import Rules
from ordercast.model.errors import TraceError
from ordercast.model.machine import Level, Resumed, ViewInstalled
from ordercast.model.nodes import name_of
from ordercast.model.services import PRIORITISED
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.units import Supply
from ordercast.protocols.registry import machine_class
from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.trace.packet_recorder import PacketBatch, PacketRecorder
from ordercast.trace.recorder import MAX_SIZE, MembershipChange
from ordercast.trace.schema import EventKind

_log = logging.getLogger("ordercast.live")


def _offset() -> int:
    """Of the clock over the monotonic time, in nanoseconds; all processes of a machine have the same.

    Of several readings the one that took least: one in which the process is interrupted is wrong by as much, and
    records would say that something was received before it was sent.
    """
    readings = []
    for _ in range(20):
        before, now, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, now - (before + after) // 2))
    return min(readings)[1]


_STARTED = _offset()
_FLUSH = 1.0
"""Seconds that are lost if the process is killed."""
MANY_PENDING, MAX_PENDING = 24, 48
"""Batches of rows that may wait to be written before the member sends and accepts no data, and before it gives up.

A batch has about 16,000 rows, which take 4 MB at most.
"""


def now() -> int:
    """The time of rows: nanoseconds since 1970, by the clock as it was set when this process began."""
    return _STARTED + time.monotonic_ns()


class TraceRecorder(MemberRecorder):
    """Writes the rows of one member in one session."""

    def __init__(
        self,
        trace: IncrementalTraceWriter,
        row_of: Callable[[Sequence[str]], RunRow],
        names: Sequence[str],
        me: int,
        *,
        deliveries_only: bool,
        by_priority: bool = False,
    ) -> None:
        """`row_of`: makes the row of the run when it begins, given the names of all nodes that are known."""
        self._trace, self._row_of, self._me = trace, row_of, me
        self._recorder = PacketRecorder(me, self._hand_on, deliveries_only=deliveries_only, by_priority=by_priority)
        self._now = now()
        self._nodes: tuple[int, ...] | None = None  # of the places of the current view; None: they are the same
        self._names = list(names)  # of all nodes that there ever were, as far as they are known
        self._undelivered: dict[tuple[int, int], int] = {}  # by source and first message: levels of accepted packets
        self._unit = 0  # counts what we sent and received; each member counts for itself
        self._aborted = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ordercast-record")
        self._pending: deque[Future[None]] = deque()  # what the thread was given and is not known to be done
        self._batches = 0  # that wait to be written
        self._not_recorded = 0  # rows after a failure
        self._state_at = (0, 0)  # step and time
        self.on_caught_up = _nothing
        self._loop = asyncio.get_running_loop()
        row = row_of(tuple(names))
        self._write(lambda: trace.begin(row))
        self._flushing = self._loop.call_later(_FLUSH, self._flush)
        self._publishing: asyncio.Handle | None = None  # at once

    def turn(self) -> None:
        """An input is about to be handled: what follows has this moment's time."""
        self._now = now()

    def send(self, packet: Packet) -> None:
        """A packet of ours got its number."""
        self._recorder.send(self._now, packet)

    def deliver(self, packet: Packet) -> None:
        """A packet was handed to the application."""
        self._undelivered.pop((packet.source, packet.first), None)
        self._recorder.deliver(self._now, self._me, packet)

    def level(self, level: Level, packet: Packet, *, by_view: bool = False) -> None:
        """A packet has reached a level, told once, also if a view sends it again.

        `by_view`: because it is in the cut that ends a view.
        """
        key = (packet.source, packet.first)
        known = self._undelivered.get(key)
        if known is not None and level <= known:
            return
        if level is Level.ACCEPTED or known is not None:
            self._undelivered[key] = level
        self._recorder.level(self._now, self._me, level, packet, by_view=by_view)

    def transmit(self, unit: Unit, *, again: bool) -> None:
        """A unit was sent."""
        self._unit += 1
        self._recorder.transmit(self._now, self._me, unit, self._unit, again=again)

    def arrive(self, unit: Unit) -> None:
        """A unit arrived."""
        self._unit += 1
        self._now = now()
        self._recorder.arrive(self._now, self._me, unit, self._unit)

    def discard(self, unit: Unit, why: str) -> None:
        """A unit was discarded."""
        if isinstance(unit, Supply):  # its packet has places of the view that it was asked for in
            self._recorder.discard_other(self._now, self._me, why)
        else:
            self._recorder.discard(self._now, self._me, unit, why)

    def view(self, view: ViewInstalled, members: Mapping[int, str]) -> None:
        """A view was installed."""
        nodes = tuple(members)
        self._recorder.view(self._now, self._me, view)
        if nodes[-1] >= len(self._names):
            self._know(members)
        before = self._nodes
        self._nodes = self._recorder.nodes = nodes
        self._undelivered = {
            (nodes.index(node), first): level
            for (place, first), level in self._undelivered.items()
            if (node := place if before is None else before[place]) in nodes
        }

    def _know(self, members: Mapping[int, str]) -> None:
        """Others have joined: the row names them, since they may leave no record of their own."""
        self._names += [name_of(node) for node in range(len(self._names), max(members) + 1)]
        for node, name in members.items():
            self._names[node] = name
        row = self._row_of(tuple(self._names))
        self._write(lambda: self._trace.describe(row))

    def exclude(self, number: int, why: str) -> None:
        """The member was told that the view of this number is without it."""
        self._recorder.exclude(self._now, self._me, number, why)

    def leave(self, *, drained: bool) -> None:
        """The member has left by itself; `drained`: all of its messages are known to be delivered."""
        self._recorder.leave(self._now, self._me, drained=drained)

    def expect_state(self) -> None:
        """The member joined with the view that was recorded last, and is about to load the state of it."""
        self._state_at = (self._recorder.reserve(), self._now)

    def state(self, number: int, donor: int, size: int) -> None:
        """The member joined, and has loaded the state of the view of this number."""
        step, then = self._state_at
        change = MembershipChange(EventKind.STATE, source=donor, seq=number, size=min(size, MAX_SIZE))
        self._recorder.state_at(step, then, change)

    def block(self, lacks: int) -> None:
        """Too few members can be reached to agree on the next view; `lacks`: nodes that are not."""
        self._recorder.block(self._now, self._me, lacks)

    def unblock(self) -> None:
        """Enough members can be reached again."""
        self._recorder.unblock(self._now, self._me)

    def renumber(self, packet: Packet, number: int) -> None:
        """A packet of ours is sent again, in the view of this number.

        That is written at once: if this process is killed now, nobody else can tell that those that joined may have it.
        """
        self._recorder.renumber(self._now, self._me, packet, number)
        if self._publishing is None:
            self._publishing = self._loop.call_soon(self._publish)

    def stopped(self, why: str) -> None:
        """A recovery began."""
        self._recorder.note(self._now, self._me, EventKind.STOP, why)

    def resumed(self, found: Resumed) -> None:
        """The recovery ended."""
        self._recorder.resume(self._now, self._me, found)

    def timeout(self, name: str) -> None:
        """A timer fired."""
        self._now = now()
        self._recorder.note(self._now, self._me, EventKind.TIMEOUT, name)

    def abort(self, why: str) -> None:
        """The group was aborted; recorded once, whether by the protocol or by the session."""
        if not self._aborted:
            self._aborted = True
            self._recorder.note(self._now, self._me, EventKind.ABORT, why)

    def end(self, counters: RunRow) -> None:
        """Nothing more happens; `counters` are columns of the run's row."""
        self._flushing.cancel()
        if self._publishing is not None:
            self._publishing.cancel()
        self._publish()
        row = {
            **self._row_of(tuple(self._names)),
            "aborted": self._aborted,
            "complete": not self._aborted,
            **counters,
        }
        self._write(lambda: self._trace.describe(row))
        self._thread.shutdown(wait=False)
        self.on_caught_up = _nothing
        if self._not_recorded:
            _log.error("the recording ended early: %d events were not recorded", self._not_recorded)

    async def written(self) -> None:
        """Returns when everything is on the disk, after `end`."""
        while self._pending:
            await asyncio.wrap_future(self._pending.popleft())

    def _publish(self) -> None:
        self._publishing = None
        self._recorder.flush()
        self._write(self._trace.publish)

    def _flush(self) -> None:
        self._publish()
        self._flushing = self._loop.call_later(_FLUSH, self._flush)

    def _hand_on(self, packed: PacketBatch) -> None:
        """To the thread that writes."""
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()
        if self.failed is None and self._batches >= MAX_PENDING:
            self._give_up()
        if self.failed is not None:
            self._not_recorded += packed.rows
            return
        self._batches += 1
        self.behind = self.behind or self._batches >= MANY_PENDING
        self._write(lambda: self._trace.append_packets(packed)).add_done_callback(self._is_written)

    def _is_written(self, _: "Future[None]") -> None:
        """Called by the thread."""
        with suppress(RuntimeError):  # the event loop may be closed
            self._loop.call_soon_threadsafe(self._batch_written)

    def _batch_written(self) -> None:
        self._batches -= 1
        if self.behind and (self._batches <= MANY_PENDING // 2 or self.failed is not None):
            self.behind = False
            self.on_caught_up()

    def _give_up(self) -> None:
        """Ends the recording: what was written is kept, what waits is dropped."""
        self._fail(
            f"cannot write the recording {self._trace.folder}: the disk is too slow, and {self._batches} batches of "
            "events wait to be written; what was written before is kept"
        )
        self._pending.append(self._thread.submit(self._keep_written))
        self.behind = False
        self._loop.call_soon(self.on_caught_up)

    def _keep_written(self) -> None:
        with suppress(TraceError):
            self._trace.publish()

    def _write(self, act: Callable[[], None]) -> "Future[None]":
        self._pending.append(self._thread.submit(self._attempt, act))
        return self._pending[-1]

    def _attempt(self, act: Callable[[], None]) -> None:
        """Nothing is written after a failure: a trace has no gaps."""
        if self.failed is not None:
            return
        try:
            act()
        except TraceError as error:
            self._fail(str(error))
        except Exception as error:  # whatever it is, it must not end the group
            self._fail(f"recording failed: {type(error).__name__}: {error}")

    def _fail(self, why: str) -> None:
        self.failed = why
        _log.error("%s", why)


def _nothing() -> None:
    pass


def row_of(names: Sequence[str], me: int, agreed: Parameters, *, one_clock: bool) -> dict[str, object]:
    """The row of a run when it begins; members may join.

    `one_clock`: all members are on one machine, and share its clock.
    """
    settings = agreed.as_dict()
    group = {**msgspec.to_builtins(agreed.config), "views": True}
    del settings["config"]
    config = {"group": group, "live": {**settings, "members": list(names), "one_clock": one_clock}}
    return {
        "protocol": agreed.protocol,
        "nodes": len(names),
        "node": me,
        "channel": machine_class(agreed.protocol, Rules.SOUND).needs.value,
        "config": msgspec.json.encode(config).decode(),
        "complete": False,
    }


def trace_recorders(
    folder: Path, group: str, agreed: Parameters, *, one_clock: bool, deliveries_only: bool
) -> NewRecorder:
    """Makes recorders that write to a folder, which may hold other sessions and other members, too."""

    def record(session: int, node: int, names: Sequence[str]) -> MemberRecorder:
        trace = IncrementalTraceWriter(folder, f"{session:016x}-{node}", f"{group}-{session:016x}")
        return TraceRecorder(
            *(trace, lambda known: row_of(known, node, agreed, one_clock=one_clock), names, node),
            deliveries_only=deliveries_only,
            by_priority=agreed.protocol in PRIORITISED,
        )

    return record
