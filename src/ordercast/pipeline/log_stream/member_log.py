"""The log of one member, as whoever plans a query looks at it: how far it is, and the running hash at a position.

Only headers of frames are read, and of those that the last look has not passed. What was seen is kept to be faster: it
is never relied on, since a process that plans may be a new one at any time.
"""

from collections.abc import Iterator

import msgspec

from ordercast.log.disk import Disk
from ordercast.log.format import (
    FRAME_SIZE,
    RECORD_SIZE,
    Frame,
    FrameHeader,
    Kind,
    View,
    decode_frame_header,
    decode_segment_header,
)
from ordercast.log.manifest import read_manifest
from ordercast.log.published_end import read_published_end
from ordercast.log.reader import durable_limit
from ordercast.log.segments import Segment, counting_names, read_segment, segment_name, segment_names
from ordercast.model.errors import LogDamaged, LogError
from ordercast.pipeline.log_stream.places import LogPlace

_BLOCK = 64 << 10
_SPARSE = 1 << 20  # bytes between points that are kept
_KEPT_SEGMENTS = 4


class OrderPlace(msgspec.Struct, frozen=True):
    """A place between two packets: the same in the logs of all members."""

    position: int
    """That of the next message."""
    hash: bytes
    """The running hash there."""


class FramePoint(msgspec.Struct, frozen=True):
    """Where a frame of one log begins."""

    position: int
    hash: bytes
    segment: int
    """The first position of its segment."""
    offset: int
    view: View


class Standing(msgspec.Struct, frozen=True):
    """How far a log is."""

    group: str
    first: int
    """The position of the oldest message."""
    durable: int
    """Messages below this position are on the disk."""
    view: View
    """The last one in it."""


class MemberLog:
    """Used by one thread."""

    def __init__(self, place: LogPlace, disk: Disk) -> None:
        self.place, self.disk = place, disk
        self._starts: list[int] = []
        self._segments: dict[int, Segment] = {}
        self._points: dict[int, list[FramePoint]] = {}
        self._tail: FramePoint | None = None
        self._end = (0, 0, 0)
        """The first position of the last segment, the offset below which it is on the disk, and the position there."""

    def forget(self) -> None:
        """What was seen does not count any more: a member that came back may have written its end anew."""
        self._segments.clear()
        self._points.clear()
        self._tail = None

    def look(self) -> Standing:
        """How far it is now; raises `LogError` and `OSError`."""
        published = read_published_end(self.disk)  # before the names: the segment that it knows of is among them
        manifest = read_manifest(self.disk)
        self._starts = [int(name) for name in counting_names(segment_names(self.disk.names()), manifest.start)]
        if not self._starts:
            raise LogError("there is no log: the folder has no segment")
        last = self._starts[-1]
        if published is not None and published.segment == last:
            self._end = (last, published.offset, published.position)
        elif published is not None and published.segment > last:
            raise LogDamaged(f"segment {segment_name(published.segment)}, the last one, is missing")
        else:
            segment = read_segment(self.disk, segment_name(last))
            self._end = (last, durable_limit(self.disk, segment, published), last)
            self._end = (*self._end[:2], self._reached(last).position)
        header = self._segment(last).header
        return Standing(header.context.group, self._starts[0], self._end[2], self._reached(last).view)

    def _reached(self, last: int) -> FramePoint:
        """The end of the log, with its view: only headers that came since the last look are read."""
        segment, limit = self._segment(last), self._end[1]
        known = self._tail
        if known is None or known.segment != last or known.offset > limit:
            known = self._kept(segment)[-1]
        if known.offset < limit:
            *_, known = self._walk(segment, known)
        self._tail = known
        return known

    def place_below(self, target: int, above: int) -> OrderPlace:
        """The last end of a packet at or below `target`, or the end of the packet that has all from `above` to there.

        So a packet that is larger than what is asked for is taken whole. Raises `LogError` if the log lacks it.
        """
        places = self._places_around(target)
        below = [each for each in places if above < each.position <= target]
        return below[-1] if below else next(each for each in places if each.position >= target)

    def hash_at(self, position: int) -> bytes | None:
        """The running hash there; None if it is not the end of a packet; raises `LogError` if the log lacks it."""
        return next((each.hash for each in self._places_around(position) if each.position == position), None)

    def point_before(self, position: int) -> FramePoint | None:
        """A frame that begins at or before a position, the nearest that was seen; None: whoever reads looks for it."""
        segment = self._segment_of(position)
        known = self._points.get(segment) if segment is not None else None
        below = [each for each in known or () if each.position <= position]
        return below[-1] if below else None

    def segment_starts(self) -> list[int]:
        """The first positions of all segments."""
        return self._starts

    def _segment_of(self, position: int) -> int | None:
        below = [each for each in self._starts if each <= position]
        return below[-1] if below else None

    def _segment(self, first: int) -> Segment:
        if first not in self._segments:
            name = segment_name(first)
            file = self.disk.open(name)
            try:
                header = decode_segment_header(file.read(0, _BLOCK))
            finally:
                file.close()
            self._segments[first] = Segment(name, 0, header)
        return self._segments[first]

    def _kept(self, segment: Segment) -> list[FramePoint]:
        """Points that are known, the beginning of the segment first."""
        if segment.first not in self._points:
            for old in sorted(self._points)[: -_KEPT_SEGMENTS + 1]:
                del self._points[old]
            header = segment.header
            begin = FramePoint(segment.first, header.hash, segment.first, header.size, header.context.view)
            self._points[segment.first] = [begin]
        return self._points[segment.first]

    def _places_around(self, position: int) -> list[OrderPlace]:
        """Ends of packets of the frame that has the message before this position, and the beginning of that frame."""
        segment_first = self._segment_of(max(0, position - 1))
        if segment_first is None or position > self._end[2]:
            raise LogError(f"position {position} is not in this log")
        segment = self._segment(segment_first)
        known = [each for each in self._kept(segment) if each.position < position or each.position == segment.first]
        frame = None
        for point in self._walk(segment, known[-1]):
            if point.position >= position and point.position > segment.first:
                break
            frame = point
        if frame is None or position == segment.first:
            return [OrderPlace(segment.first, segment.header.hash)]
        found = [OrderPlace(frame.position, frame.hash), *self._ends_in(segment, frame)]
        if found[-1].position < position:
            raise LogError(f"position {position} is in a gap of this log, which its member bridged by a snapshot")
        return found

    def _ends_in(self, segment: Segment, point: FramePoint) -> Iterator[OrderPlace]:
        file = self.disk.open(segment.name)
        try:
            header = self._header(file.read(point.offset, FRAME_SIZE), segment, point.offset)
            records = file.read(point.offset + FRAME_SIZE, header.packets * RECORD_SIZE)
        finally:
            file.close()
        frame = Frame(header, memoryview(records), memoryview(b""))
        return (OrderPlace(*each) for each in frame.places())

    def _walk(self, segment: Segment, start: FramePoint) -> Iterator[FramePoint]:
        """Where each frame with packets begins, from a point on, and the end if the last frame is passed."""
        limit = self._end[1] if segment.first == self._end[0] else self.disk.size(segment.name)
        kept, view, offset, point = self._kept(segment), start.view, start.offset, start
        block, base = memoryview(b""), offset
        file = self.disk.open(segment.name)
        try:
            while offset < limit:
                if offset + FRAME_SIZE > base + len(block):
                    block, base = memoryview(file.read(offset, min(_BLOCK, limit - offset))), offset
                header = self._header(block[offset - base : offset - base + FRAME_SIZE], segment, offset)
                point = FramePoint(header.first, header.hash, segment.first, offset, view)
                if offset > kept[-1].offset + _SPARSE:
                    kept.append(point)
                if header.kind == Kind.PACKETS:
                    yield point
                elif header.kind == Kind.VIEW:
                    body = memoryview(file.read(offset + FRAME_SIZE, header.body_size))
                    view = Frame(header, body, body).view()
                offset += header.size
                if offset >= limit and header.kind == Kind.PACKETS:
                    last = list(self._ends_in(segment, point))[-1]
                    point = FramePoint(last.position, last.hash, segment.first, offset, view)
        finally:
            file.close()
        yield msgspec.structs.replace(point, offset=offset, view=view)

    def _header(self, data: bytes | memoryview, segment: Segment, offset: int) -> FrameHeader:
        found = decode_frame_header(memoryview(data), 0, segment.header.salt)
        if found is None:
            raise LogDamaged(f"segment {segment.name}, offset {offset}: the header of a frame is wrong")
        return found
