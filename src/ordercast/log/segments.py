"""The files of a log by name: segments, snapshots, tails that were set aside; their headers and frames, read.

A segment has the position of its first message as its name, in twenty digits. A file whose name begins with a dot is
not finished, and counts for nothing.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from ordercast.log.disk import Disk
from ordercast.log.format import Frame, Kind, SegmentHeader, decode_segment_header, read_frame
from ordercast.model.errors import LogDamaged, LogError

SNAPSHOT = ".snapshot"
TAIL, DAMAGED = ".tail", ".damaged"
"""Of files that were set aside."""
MAX_HEADER = 1 << 20
"""Bytes that are read for a header, which has the names of all members."""
_SEGMENT_NAME = re.compile(r"\d{20}")
_SNAPSHOT_NAME = re.compile(r"(\d{20})\.snapshot")


def segment_name(first: int) -> str:
    """The name of the segment that begins at this position."""
    return f"{first:020}"


def segment_names(names: list[str]) -> list[str]:
    """Those of segments, in the order of their positions."""
    return sorted(name for name in names if _SEGMENT_NAME.fullmatch(name))


def counting_names(names: list[str], start: int) -> list[str]:
    """Those of all segments but the ones that end at or below a position, which are left over."""
    below = [name for name in names if int(name) <= start]
    return names[max(0, len(below) - 1) :]


def snapshot_positions(names: list[str]) -> list[int]:
    """The positions of finished snapshots, the oldest first."""
    return sorted(int(found[1]) for name in names if (found := _SNAPSHOT_NAME.fullmatch(name)))


def snapshot_name(position: int) -> str:
    """The name of the snapshot of the state before the message with this position."""
    return segment_name(position) + SNAPSHOT


class Segment(msgspec.Struct, frozen=True):
    """A segment whose header is right."""

    name: str
    size: int
    header: SegmentHeader

    @property
    def first(self) -> int:
        """The position of its first message."""
        return self.header.first


def read_segment(disk: Disk, name: str) -> Segment:
    """Reads the header; raises `LogDamaged` if it is wrong."""
    size = disk.size(name)
    file = disk.open(name)
    try:
        header = decode_segment_header(file.read(0, min(size, MAX_HEADER)))
    except LogError as error:
        raise type(error)(f"segment {name}: {error}") from None
    finally:
        file.close()
    if segment_name(header.first) != name:
        raise LogDamaged(f"segment {name} begins with position {header.first}: it was renamed")
    return Segment(name, size, header)


def read_segments(disk: Disk, start: int) -> list[Segment]:
    """All that count, with their headers; raises `LogDamaged` if one is wrong, or is missing in between (rule 2).

    `start`: the log begins here. Segments below it are left over.
    """
    names = counting_names(segment_names(disk.names()), start)
    found = [read_segment(disk, name) for name in names]
    if found and found[0].first > start:
        raise LogDamaged(f"the segment with position {start}, where the log begins, is missing")
    for before, after in pairwise(found):
        problem = chain_problem(before, after)
        if problem is not None:
            raise LogDamaged(problem)
    return found


def chain_problem(before: Segment, after: Segment) -> str | None:
    """What is wrong between two segments that follow each other; None: nothing."""
    if after.header.after_gap:
        return None
    if after.header.previous != before.first:
        return f"segment {segment_name(after.header.previous)}, which comes before segment {after.name}, is missing"
    if after.header.previous_size != before.size:
        return f"segment {before.name} has {before.size} bytes instead of {after.header.previous_size}"
    return None


_NOTHING = memoryview(b"")


class Scan:
    """Reads frames one after the other, as long as they are good: checksums, position and hash (rules 3 and 4)."""

    def __init__(self, segment: Segment, data: memoryview = _NOTHING) -> None:
        """`data`: the whole segment, or nothing yet."""
        self._salt = segment.header.salt
        self._data, self._base = data, 0
        self.offset = segment.header.size
        """The end of the last good frame."""
        self.next = segment.first
        self.hash = segment.header.hash
        self.context = segment.header.context
        self.durable = segment.header.size
        """Below this offset the segment was on the disk when the last good frame was written."""
        self.problem: str | None = None
        """What is wrong at `offset`; None: it is the end of the data."""

    @property
    def data(self) -> memoryview:
        """What is read."""
        return self._data

    def go_on(self, data: memoryview) -> None:
        """`data`: what the segment has from `offset` on."""
        self._data, self._base = data, self.offset

    def frames(self) -> Iterator[tuple[int, Frame]]:
        """Each good frame with its offset; afterwards all fields tell where and why it ended."""
        while self.offset - self._base < len(self._data):
            frame = read_frame(self._data, self.offset - self._base, self._salt)
            problem = frame if isinstance(frame, str) else self._wrong_place(frame)
            if isinstance(frame, str) or problem is not None:
                self.problem = problem
                return
            self._pass(frame)
            yield self.offset - frame.header.size, frame

    def _wrong_place(self, frame: Frame) -> str | None:
        if frame.header.first != self.next:
            return f"a frame begins with position {frame.header.first} instead of {self.next}"
        if frame.header.hash != self.hash:
            return "the running hash of a frame is not that of what is before it"
        return None

    def _pass(self, frame: Frame) -> None:
        header = frame.header
        self.offset += header.size
        self.durable = max(self.durable, header.durable)
        self.next = header.next
        for _, self.hash in frame.places():
            pass
        if header.kind == _VIEW:
            self.context = msgspec.structs.replace(self.context, view=frame.view())
        elif header.kind == _NOTE:
            self.context = msgspec.structs.replace(self.context, note=frame.note())


_VIEW, _NOTE = Kind.VIEW, Kind.NOTE


def scan_of(disk: Disk, segment: Segment, limit: int | None = None) -> Scan:
    """About to read a segment, all of it or what is below an offset; raises `OSError`."""
    file = disk.open(segment.name)
    try:
        return Scan(segment, memoryview(file.read(0, segment.size if limit is None else limit)))
    finally:
        file.close()


def scanned(disk: Disk, segment: Segment, limit: int | None = None) -> Scan:
    """The same, at the end of what is good."""
    scan = scan_of(disk, segment, limit)
    for _ in scan.frames():
        pass
    return scan
