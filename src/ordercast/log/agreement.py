"""Where two logs of one order agree: by positions and running hashes, without a look at their messages.

A member that comes back sends a *locator*: places of its log, dense at the end and ever sparser before it. Whoever has
the order finds the first of them that is a place of its own log, too. Up to there both logs are the same; the one that
came back needs only what follows.
"""

from collections.abc import Iterable

from ordercast.log.disk import Disk
from ordercast.log.manifest import read_manifest
from ordercast.log.published_end import read_published_end
from ordercast.log.reader import durable_limit
from ordercast.log.segments import Segment, counting_names, read_segment, scan_of, segment_names

LogPlace = tuple[int, bytes]
"""The position of a next message, and the running hash there."""
_DENSE = 5


def locator(disk: Disk) -> list[LogPlace]:
    """Places of a log that are on the disk, the last one first.

    Of the last segment the ends of the last packets, then of every second, fourth, eighth; before it, the beginnings of
    segments.
    """
    segments = _segments(disk)
    places = _places(disk, segments[-1], last=True)
    chosen, at, step = [], len(places) - 1, 1
    while at >= 0:
        chosen.append(places[at])
        if len(chosen) >= _DENSE:
            step *= 2
        at -= step
    starts = [(segment.first, segment.header.hash) for segment in reversed(segments)]
    return [*chosen, *(place for place in starts if place not in chosen)]


def common_place(disk: Disk, places: Iterable[LogPlace]) -> LogPlace | None:
    """The first of these places that is one of this log; None if none is."""
    segments = _segments(disk)
    known: dict[str, set[LogPlace]] = {}
    for place in places:
        below = [segment for segment in segments if segment.first <= place[0]]
        if not below:
            continue
        segment = below[-1]
        if segment.name not in known:
            known[segment.name] = set(_places(disk, segment, last=segment is segments[-1]))
        if place in known[segment.name]:
            return place
    return None


def _segments(disk: Disk) -> list[Segment]:
    names = counting_names(segment_names(disk.names()), read_manifest(disk).start)
    return [read_segment(disk, name) for name in names]


def _places(disk: Disk, segment: Segment, *, last: bool) -> list[LogPlace]:
    """The beginning of a segment, and the end of each packet in it that is on the disk."""
    limit = durable_limit(disk, segment, read_published_end(disk)) if last else disk.size(segment.name)
    scan = scan_of(disk, segment, limit)
    found = [(segment.first, segment.header.hash)]
    for _, frame in scan.frames():
        found += frame.places()
    return found


def place_at(disk: Disk, position: int) -> LogPlace | None:
    """The place with this position, if it is the end of a packet that is on the disk."""
    segments = [segment for segment in _segments(disk) if segment.first <= position]
    if not segments:
        return None
    last = segments[-1].name == segment_names(disk.names())[-1]
    return next((place for place in _places(disk, segments[-1], last=last) if place[0] == position), None)
