"""Writing a log, in one thread: frames, syncs, the next segment, snapshots, and dropping what is not needed.

`writer` calls this from its thread. After an error of the disk nothing is written any more (rule 8): what the system
still shows of the last writes may not be on the disk, and a second sync would not say so.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ordercast.log.disk import Disk, File, Part, write_all
from ordercast.log.format import (
    NO_HASH,
    NO_SEGMENT,
    Context,
    FrameBuilder,
    Packet,
    SegmentHeader,
    View,
    encode_segment_header,
)
from ordercast.log.manifest import KEPT_NOTE, Manifest, write_manifest
from ordercast.log.published_end import PublishedEnd, Publisher
from ordercast.log.recovery import Recovered, Tail, recover
from ordercast.log.retention import Retention, Usage, segments_to_drop
from ordercast.log.segments import (
    TAIL,
    Segment,
    counting_names,
    segment_name,
    segment_names,
    snapshot_name,
    snapshot_positions,
)
from ordercast.log.snapshots import Place, write_snapshot
from ordercast.log.whole_files import read_whole, write_durably
from ordercast.model.errors import LogDamaged, LogError, reason_of

MAX_SEGMENT = 64 << 20


def _random_salt() -> int:
    return int.from_bytes(os.urandom(4), "little")


class Options(msgspec.Struct, frozen=True):
    """How a log is written."""

    retention: Retention = Retention()
    max_segment: int = MAX_SEGMENT
    """Bytes after which the next segment is begun."""
    salt: Callable[[], int] = _random_salt
    clock: Callable[[], int] = time.time_ns


class LogFiles:
    """The open log: what is known of its end, and its last segment."""

    def __init__(self, disk: Disk, group: str, options: Options = Options(), begin: Place | None = None) -> None:  # noqa: B008 (frozen)
        """Recovers the log, or begins one, at position 0 or at `begin`.

        Raises `LogDamaged`, and `LogError` if it is the log of another group, or the disk fails.
        """
        self._disk, self._options = disk, options
        self.failed: str | None = None
        """Why nothing is written any more."""
        self.tail: Tail | None = None
        """What was dropped from the end of the log when it was opened."""
        try:
            found = recover(disk)
            self._start(found, begin or Place(0, NO_HASH, Context(group)))
        except OSError as error:
            raise LogError(f"cannot open the log: {reason_of(error)}") from error
        if self.context.group != group:
            raise LogError(f"this is a log of the group {self.context.group!r}, not of {group!r}; give another folder")

    def _start(self, found: Recovered | None, begin: Place) -> None:
        place, self._manifest = begin, Manifest(begin.position)
        self.segments: list[Segment] = []
        if found is not None:
            place = Place(found.next, found.hash, found.context)
            self._manifest, self.tail = found.manifest, found.tail
            self.segments = list(found.segments)
        self.context = place.context
        self._file: File
        if found is None:
            write_manifest(self._disk, self._manifest)
            self._begin_segment(place, after_gap=begin.position > 0)
        else:
            if found.empty:  # its name may be shown, and not be on the disk, after a sync of the folder that failed
                self._write_header(self.segments[-1].header)
            self._file = self._disk.open(self.segments[-1].name)
            self._builder = FrameBuilder(self.segments[-1].header.salt, found.next, found.hash)
            self._offset = self._durable_offset = found.offset
        self.durable = self._builder.next
        """Messages below this position are on the disk."""
        self.durable_hash = self._builder.hash
        self._snapshot_sizes = self._found_snapshot()
        self._sweep(opening=True)
        self._publisher = Publisher(self._disk)
        self._publish()
        if KEPT_NOTE in self._disk.names():
            self._restore_note()

    def _restore_note(self) -> None:
        """The end of the log was being dropped: the newest note may have been in it."""
        self.note(read_whole(self._disk, KEPT_NOTE))
        self.sync()
        self._disk.remove(KEPT_NOTE)

    def _found_snapshot(self) -> dict[int, int]:
        """The position and the size of the snapshot that counts; raises `LogDamaged` if it is missing."""
        position = self._manifest.snapshot
        if position is None:
            return {}
        name = snapshot_name(position)
        if name not in self._disk.names():
            raise LogDamaged(f"snapshot {name} is missing")
        return {position: self._disk.size(name)}

    @property
    def next(self) -> int:
        """The position of the next message."""
        return self._builder.next

    @property
    def hash(self) -> bytes:
        """The running hash there."""
        return self._builder.hash

    @property
    def place(self) -> Place:
        """The end of what was written."""
        return Place(self.next, self.hash, self.context)

    # What is written

    def packets(self, packets: Sequence[Packet]) -> None:
        """Writes a frame with these packets; raises `LogError`."""
        now = self._options.clock()
        self._write(
            lambda: self._builder.packets(
                packets, view=self.context.view.number, durable=self._durable_offset, time=now
            )
        )

    def view(self, view: View) -> None:
        """A view begins; raises `LogError`."""
        now = self._options.clock()
        self._write(lambda: self._builder.view(view, durable=self._durable_offset, time=now))
        self.context = msgspec.structs.replace(self.context, view=view)

    def note(self, note: bytes) -> None:
        """Notes something for the owner of the log; raises `LogError`."""
        now, view = self._options.clock(), self.context.view.number
        self._write(lambda: self._builder.note(note, view=view, durable=self._durable_offset, time=now))
        self.context = msgspec.structs.replace(self.context, note=note)

    def sync(self) -> None:
        """Returns when all that was written is on the disk; raises `LogError` (rules 8 and 9)."""
        self._attempt(self._file.sync)
        self._durable_offset, self.durable, self.durable_hash = self._offset, self.next, self.hash
        self._attempt(self._publish)

    def _write(self, frame: Callable[[], tuple[list[Part], int]]) -> None:
        if self._offset >= self._options.max_segment and self.next > self.segments[-1].first:
            self.sync()
            self._attempt(lambda: self._begin_segment(self.place, after_gap=False))
            self._attempt(self._drop)
            self._attempt(self._publish)
        parts, size = frame()
        self._attempt(lambda: self._write_parts(parts, size))
        self._offset += size

    def _write_parts(self, parts: list[Part], size: int) -> None:
        written = self._file.write(self._offset, parts)
        if written < size:  # the rest, or the error that explains it
            write_all(self._file, self._offset + written, memoryview(b"".join(parts))[written:])

    def _attempt(self, call: Callable[[], None]) -> None:
        """Rule 8: the first error is final."""
        self._require_working()
        try:
            call()
        except OSError as error:
            raise self.fail(error) from error

    def fail(self, error: OSError) -> LogError:
        """Nothing is written any more: the error that says so."""
        self.failed = f"the disk of the log failed: {reason_of(error)}; nothing more is written to it"
        return LogError(self.failed)

    def _require_working(self) -> None:
        if self.failed is not None:
            raise LogError(self.failed)

    def _publish(self) -> None:
        self._publisher.publish(PublishedEnd(self.segments[-1].first, self._durable_offset, self.durable))

    # Segments

    def _begin_segment(self, place: Place, *, after_gap: bool) -> None:
        """Everything before is on the disk."""
        previous, previous_size = NO_SEGMENT, 0
        if self.segments:
            self._file.close()
            self.segments[-1] = msgspec.structs.replace(self.segments[-1], size=self._offset)
            if not after_gap:
                previous, previous_size = self.segments[-1].first, self._offset
        header = SegmentHeader(
            *(place.position, place.hash, self._options.salt(), place.context, previous, previous_size),
            time=self._options.clock(),
            after_gap=after_gap,
        )
        size = self._write_header(header)
        name = segment_name(header.first)
        self.segments.append(Segment(name, size, header))
        self._file = self._disk.open(name)
        self._builder = FrameBuilder(header.salt, header.first, header.hash)
        self._offset = self._durable_offset = size
        self.context = place.context

    def _write_header(self, header: SegmentHeader) -> int:
        return write_durably(self._disk, segment_name(header.first), [encode_segment_header(header)])

    # Snapshots and what they make unnecessary

    def save_snapshot(self, place: Place, state: bytes | Iterable[bytes]) -> int:
        """Its size, when it is on the disk. It counts after `adopt_snapshot`; raises `OSError`.

        This may be called from another thread, which hands an error to `fail`.
        """
        return write_snapshot(self._disk, place, state, self._options.clock())

    def adopt_snapshot(self, position: int, size: int) -> None:
        """A saved snapshot counts from now on, and replaces the one before; raises `LogError`."""
        if self._manifest.snapshot is None or position >= self._manifest.snapshot:
            self._snapshot_sizes[position] = size
            self._attempt(lambda: self._drop(position))

    def restart_at(self, place: Place, state: bytes | Iterable[bytes]) -> None:
        """Goes on behind what is missing here, at a snapshot that came from elsewhere; raises `LogError`."""
        if place.position <= self.next:
            raise LogError(f"the log is at position {self.next}: it cannot go on at {place.position}")
        self.sync()
        sizes: list[int] = []
        self._attempt(lambda: sizes.append(self.save_snapshot(place, state)))
        self._attempt(lambda: self._begin_segment(place, after_gap=True))
        self.durable, self.durable_hash = place.position, place.hash
        self._snapshot_sizes[place.position] = sizes[0]
        self._attempt(lambda: self._drop(place.position, below=place.position))
        self._attempt(self._publish)

    def drop_below(self, position: int) -> None:
        """Drops segments all of whose messages are below this position, if a snapshot has them; raises `LogError`."""
        self._attempt(lambda: self._drop(below=position))

    def _drop(self, snapshot: int | None = None, *, below: int = 0) -> None:
        """Drops what retention says, once the manifest says so on the disk."""
        if snapshot is None:
            snapshot = self._manifest.snapshot
        retention = self._options.retention
        count = segments_to_drop(self._sized(), snapshot, retention, self._options.clock(), below)
        start = max(self._manifest.start, self.segments[count].first) if count else self._manifest.start
        manifest = Manifest(start, snapshot)
        if manifest != self._manifest:
            write_manifest(self._disk, manifest)
            self._manifest = manifest
            self._sweep()

    def _sweep(self, *, opening: bool = False) -> None:
        """Removes files that do not count, once the manifest that says so is on the disk.

        `opening`: it may only be shown. Newer snapshots that no manifest names were left by a crash then; later, such
        a one has just been saved by another thread, and is about to be adopted.
        """
        names = self._disk.names()
        segments = segment_names(names)
        gone = set(segments) - set(counting_names(segments, self._manifest.start))
        kept = self._manifest.snapshot
        unused = {name + TAIL for name in gone} & set(names)
        older = [each for each in snapshot_positions(names) if each < (kept or 0) or (opening and each != kept)]
        unused |= {snapshot_name(each) for each in older}
        if not gone | unused:
            return
        if opening:
            write_manifest(self._disk, self._manifest)
        for name in sorted(gone | unused):
            self._disk.remove(name)
        self.segments = [each for each in self.segments if each.name not in gone]
        self._snapshot_sizes = {each: size for each, size in self._snapshot_sizes.items() if each == kept}

    @property
    def snapshot(self) -> int | None:
        """The position of the snapshot that counts."""
        return self._manifest.snapshot

    def usage(self) -> Usage:
        """What is on the disk."""
        sealed = sum(each.size for each in self.segments[:-1])
        return Usage(
            *(len(self.segments), sealed + self._offset, sum(self._snapshot_sizes.values())),
            *(self.segments[0].first, self.next, self._manifest.snapshot),
        )

    def snapshot_due(self) -> bool:
        """A snapshot now would allow to drop a segment that retention wants to be dropped."""
        retention, now = self._options.retention, self._options.clock()
        wanted = segments_to_drop(self._sized(), self.next, retention, now, 0)
        return wanted > segments_to_drop(self._sized(), self._manifest.snapshot, retention, now, 0)

    def _sized(self) -> list[Segment]:
        """All segments, the last one with its size now."""
        return [*self.segments[:-1], msgspec.structs.replace(self.segments[-1], size=self._offset)]

    def close(self) -> None:
        """Writes no more. What was written and not synced is not promised."""
        try:
            self._publisher.close(sync=self.failed is None)
        except OSError as error:
            self.failed = reason_of(error)
        self._file.close()
