"""The durable logs of the nodes of a run: the files that live members write, on disks that lose, tear and fail.

A disk is a model (`faulty_disk`); what is written to it and how it is recovered is `ordercast.log`. A log holds the
names of messages instead of their contents, of which a simulation has none.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

from ordercast.log import format as log_format
from ordercast.log.agreement import place_at
from ordercast.log.files import LogFiles, Options
from ordercast.log.reader import frames_of
from ordercast.log.truncation import drop_above
from ordercast.model.config import MICROSECOND
from ordercast.model.errors import LogError
from ordercast.model.faults import Leave
from ordercast.model.runs import RunConfig
from ordercast.model.units import Packet
from ordercast.protocols.restart.node_log import DropLog, Recovered, Synced, WriteNote, WritePacket
from ordercast.simulator.completion import Completion
from ordercast.simulator.event_queue import EventQueue
from ordercast.simulator.faulty_disk import FaultyDisk
from ordercast.simulator.pending_events import DiskSynced
from ordercast.simulator.randomness import exponential, stream
from ordercast.trace.recorder import EventRecorder

LEAST_SYNC, MEAN_SYNC = 100 * MICROSECOND, 400 * MICROSECOND
"""A sync takes the first, and at random longer: the mean of that is the second."""
_MAX_SEGMENT = 4096
_GROUP = "simulated"
_NAME = Struct("<qq")
_SHORT_WRITES = 0.02


class _NodeLog:
    """The log of one node, or of one after the other that are one process."""

    def __init__(self, disk: FaultyDisk) -> None:
        self.disk = disk
        self.files: LogFiles | None = None  # None: the process does not run, or its disk has failed
        self.writes = 0
        self.unsynced: list[Packet] = []
        self.is_syncing = False

    @property
    def is_open(self) -> bool:
        """The process runs, and its disk has not failed."""
        return self.files is not None


class NodeLogs:
    """All of them."""

    def __init__(
        self, config: RunConfig, events: EventQueue, recorder: EventRecorder | None, completion: Completion
    ) -> None:
        self._completion = completion
        self._schedule, self._recorder = events.schedule, recorder
        nodes = config.group.nodes
        self._syncs = [stream(config.seed, f"sync/{node}") for node in range(nodes)]
        self._salts = stream(config.seed, "salts")
        self._logs = [_NodeLog(FaultyDisk(stream(config.seed, f"disk/{node}"))) for node in range(nodes)]
        self._packets: dict[tuple[int, int], Packet] = {}  # all that were ever logged, by source and first message

    def handlers(self) -> dict[type, Callable[[int, int, Any], None]]:
        """By output: what is done with it."""
        return {WritePacket: self._write_packet, WriteNote: self._write_note, DropLog: self._drop}

    # --- faults ---

    def lose(self, node: int, *, power: bool) -> None:
        """The process ends; what its disk has of what was not synced is drawn."""
        log = self._logs[node]
        log.files = None
        log.disk.restart(power=power)

    def fail(self, node: int) -> None:
        """From now on the disk fails."""
        self._logs[node].disk.allow(-1, 1.0)

    def recover(self, time: int, old: int, node: int) -> Recovered:
        """The process of a node was started again as another one: what is in its log."""
        log = self._logs[node] = _NodeLog(self._logs[old].disk)
        found: list[Packet] = []
        files = self._files(time, log)
        for logged in frames_of(log.disk):
            for packet in logged.frame.packets():
                _require_names(packet)
                found.append(self._packets[packet.source, packet.first])
        if self._recorder is not None:
            self._recorder.restart(time, node, old, sum(len(packet.lengths) for packet in found))
        self._record(time, node, found)
        return Recovered(tuple(found), files.context.note)

    def synced(self, time: int, node: int) -> Synced:
        """A sync has returned."""
        log = self._logs[node]
        log.is_syncing = False
        if log.files is None:
            return Synced(0)
        try:
            log.files.sync()
        except LogError:
            self._has_failed(time, node)
            return Synced(0)
        packets, log.unsynced = log.unsynced, []
        self._record(time, node, packets)
        return Synced(log.writes)

    # --- outputs of machines ---

    def _write_packet(self, time: int, node: int, output: WritePacket) -> None:
        packet = output.packet
        self._packets.setdefault((packet.source, packet.first), packet)
        numbers = range(packet.first, packet.first + len(packet.lengths))
        names = b"".join(_NAME.pack(packet.source, number) for number in numbers)
        logged = log_format.Packet(
            packet.source, packet.first, [_NAME.size] * len(packet.lengths), names, packet.priority
        )
        self._logs[node].unsynced.append(packet)
        self._write(time, node, lambda files: files.packets([logged]))

    def _write_note(self, time: int, node: int, output: WriteNote) -> None:
        self._write(time, node, lambda files: files.note(output.note))

    def _drop(self, time: int, node: int, output: DropLog) -> None:
        log = self._logs[node]
        if log.files is None:
            return
        self.synced(time, node)  # as by closing the log
        if not log.is_open:
            return
        place = place_at(log.disk, output.position) or (0, log_format.NO_HASH)
        drop_above(log.disk, *place)
        if self._recorder is not None:
            self._recorder.drop(time, node, output.position)
        self._files(time, log)

    def _write(self, time: int, node: int, write: Callable[[LogFiles], None]) -> None:
        log = self._logs[node]
        log.writes += 1
        try:
            if log.files is None and log.writes == 1:
                self._files(time, log)
            if log.files is None:
                return
            write(log.files)
        except LogError:
            self._has_failed(time, node)
            return
        if not log.is_syncing:
            log.is_syncing = True
            takes = LEAST_SYNC + exponential(self._syncs[node], MEAN_SYNC)
            self._schedule(time + takes, node, DiskSynced())

    def _files(self, time: int, log: _NodeLog) -> LogFiles:
        log.disk.short_writes = _SHORT_WRITES
        options = Options(max_segment=_MAX_SEGMENT, salt=lambda: self._salts.getrandbits(32), clock=lambda: time)
        log.files = LogFiles(log.disk, _GROUP, options)
        return log.files

    def _has_failed(self, time: int, node: int) -> None:
        """The first error is final; the node leaves."""
        self._logs[node].files = None
        self._completion.left(node)
        self._schedule(time, node, Leave(node=node, at=time))

    def _record(self, time: int, node: int, packets: list[Packet]) -> None:
        if self._recorder is not None:
            for packet in packets:
                numbers = range(packet.first, packet.first + len(packet.lengths))
                self._recorder.durable(time, node, packet.source, numbers)


def _require_names(packet: log_format.Packet) -> None:
    """What is read is what was written, whatever the checksums say."""
    for at in range(len(packet.lengths)):
        found = _NAME.unpack_from(packet.payload, at * _NAME.size)
        assert found == (packet.source, packet.first + at), "a message in a log is another one than was written"
