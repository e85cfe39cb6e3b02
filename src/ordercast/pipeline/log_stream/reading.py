"""Reading a part: from one member's log, and on from another's at the same position if the first one is lost."""

import time
from collections.abc import Iterator, Mapping
from itertools import count

from ordercast.log.disk import Disk
from ordercast.log.format import FRAME_SIZE, Frame, FrameHeader, Kind, View, decode_frame_header, read_frame
from ordercast.log.manifest import read_manifest
from ordercast.log.segments import Segment, counting_names, read_segment, segment_name, segment_names
from ordercast.model.errors import LogDamaged, LogError, OrdercastError, reason_of
from ordercast.pipeline.log_stream.columns import Rows
from ordercast.pipeline.log_stream.member_log import FramePoint, OrderPlace
from ordercast.pipeline.log_stream.places import LogPlace, open_disk
from ordercast.pipeline.log_stream.planning import Part

_CHUNK = 4 << 20
_POLL = 0.5  # seconds


class OtherOrder(LogError):  # noqa: N818 (it names what happened)
    """A log has other messages below a position than those that were read from another one."""


def rows_of(part: Part) -> Iterator[Rows]:
    """All messages of a part, each once and in order, whatever happens to the members meanwhile.

    Raises `LogError` that names every member and what is wrong with it, if none has had what is missing for so long.
    """
    reached, lost, deadline = part.start, dict[str, str](), None
    for turn in count():
        for place, point in part.sources:
            # Where a frame begins was seen by whoever planned this: its log may have been written anew since.
            reader = _PartReader(part, place, None if turn else point, reached)
            try:
                yield from reader.rows()
            except OtherOrder:
                raise
            except (OrdercastError, OSError) as error:
                rest = reader.taken()
                if rest is not None:
                    yield rest
                lost[place.name] = reason_of(error)
                if reader.reached.position > reached.position:
                    deadline = None
                reached = reader.reached
            else:
                return
        if not turn:
            continue
        deadline = deadline or time.monotonic() + part.member_timeout
        if time.monotonic() > deadline:
            why = "; ".join(f"{name}: {each}" for name, each in lost.items())
            raise LogError(
                f"no log has the message at position {reached.position}: {why}; start one of these members, or correct "
                "the list of logs, and the query goes on where it was"
            )
        time.sleep(_POLL)


class _PartReader:
    """Reads one log, up to its first error."""

    def __init__(self, part: Part, place: LogPlace, point: FramePoint | None, start: OrderPlace) -> None:
        self._part, self._place, self._point = part, place, point
        self.reached = start
        """Everything below it was put into rows."""
        self._rows: Rows | None = None

    def taken(self) -> Rows | None:
        """What was read and not handed out yet."""
        rows, self._rows = self._rows, None
        return rows

    def rows(self) -> Iterator[Rows]:
        disk = open_disk(self._place, self._part.access)
        try:
            for frame, view in _frames_of_part(disk, self._part, self._point, self.reached.position):
                if self._is_other_view(frame, view):
                    yield from filter(None, [self.taken()])
                self._take(frame, view)
                if self._rows is not None and self._rows.is_full():
                    yield from filter(None, [self.taken()])
                if self.reached.position >= self._part.end.position:
                    break
            else:
                raise LogError(f"its log ends before position {self._part.end.position}")
            yield from filter(None, [self.taken()])
        finally:
            disk.close()

    def _is_other_view(self, frame: Frame, view: View) -> bool:
        return self._rows is not None and (self._rows.view_number, self._rows.view) != (frame.header.view, view)

    def _take(self, frame: Frame, view: View) -> None:
        start, stop = self.reached, self._part.end
        header = frame.header
        places = {header.first: header.hash, **dict(frame.places())}
        self._require(start, header, places)
        self._require(stop, header, places)
        last = places[header.next]
        if self._rows is None:
            self._rows = Rows(start.position, view, header.view)
        self._rows.add(frame, start.position, stop.position)
        self.reached = OrderPlace(header.next, last) if header.next <= stop.position else stop

    def _require(self, expected: OrderPlace, header: FrameHeader, places: Mapping[int, bytes]) -> None:
        """A place that has a hash is between two packets, in all logs."""
        within = header.first <= expected.position <= header.next
        if expected.hash and within and places.get(expected.position) != expected.hash:
            raise OtherOrder(
                f"{self._place.name} ({self._place.place}) has another order than the other members, below position "
                f"{expected.position}; take it out of the list of logs, or move its folder away so that it is given "
                "the log anew"
            )


def _frames_of_part(disk: Disk, part: Part, point: FramePoint | None, start: int) -> Iterator[tuple[Frame, View]]:
    """Frames with packets that have a message at `start` or above it, verified, with the view of each."""
    manifest = read_manifest(disk)
    names = counting_names(segment_names(disk.names()), manifest.start)
    if not names or start < int(names[0]):
        raise LogError(f"position {start} is not in its log{f', which begins at {int(names[0])}' if names else ''}")
    expected: tuple[int, bytes] | None = None
    for name in counting_names(names, start):
        if int(name) >= part.end.position:
            return
        segment = read_segment(disk, name)
        if segment.header.context.group != part.group:
            raise LogError(f"it is a log of the group {segment.header.context.group!r}, not of {part.group!r}")
        if expected is not None and expected != (segment.first, segment.header.hash):
            raise LogError(f"its log has a gap before position {segment.first}, which its member bridged by a snapshot")
        known = point if point is not None and segment_name(point.segment) == name else None
        for frame, view, after in frames_of(disk, segment, known):
            expected = after
            if frame.header.next > start and frame.header.kind == Kind.PACKETS:
                yield frame, view
            if frame.header.next >= part.end.position:
                return


def frames_of(
    disk: Disk, segment: Segment, known: FramePoint | None = None, limit: int | None = None
) -> Iterator[tuple[Frame, View, tuple[int, bytes]]]:
    """Each frame of a segment with the place after it, from `known` on, up to an offset or to what is there."""
    header = segment.header
    point = known or FramePoint(segment.first, header.hash, segment.first, header.size, header.context.view)
    offset, view, place = point.offset, point.view, (point.position, point.hash)
    file = disk.open(segment.name)
    try:
        data, base = memoryview(b""), offset
        while limit is None or offset < limit:
            needed = _size_of(data, offset - base, header.salt)
            if offset - base + needed > len(data):
                data, base = memoryview(file.read(offset, max(_CHUNK, needed))), offset
                needed = _size_of(data, 0, header.salt)
                if needed > len(data):
                    data = memoryview(file.read(offset, needed))
                if not data:
                    return
            frame = read_frame(data, offset - base, header.salt)
            if isinstance(frame, str) or (frame.header.first, frame.header.hash) != place:
                why = frame if isinstance(frame, str) else "a frame does not go on where the one before it ends"
                raise LogDamaged(f"segment {segment.name}, offset {offset}: {why}")
            for after in frame.places():
                place = after
            if frame.header.kind == Kind.VIEW:
                view = frame.view()
            yield frame, view, place
            offset += frame.header.size
    finally:
        file.close()


def _size_of(data: memoryview, at: int, salt: int) -> int:
    """Bytes of the frame that begins here; those of a header if that is not there."""
    header = decode_frame_header(data, at, salt)
    return FRAME_SIZE if header is None else header.size
