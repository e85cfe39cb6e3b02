"""Opening a log for writing: what of it counts, by numbered rules.

A crash of the machine leaves of what was not synced any part: cut, zeros, pages of later frames without those of
earlier ones. None of it was promised to anybody, and it is dropped. What was promised and is not there is damage, which
is told and never repaired here. The rules, each with its place:

    1  a segment or a snapshot is written under a name with a dot, synced, renamed, and the folder is synced, before
       anything relies on it (`files`); opening removes names with a dot
    2  segments follow each other: each names the one before it, and its size (`segments.chain_problem`)
    3  a frame is good if its checksums, its position and its hash are right (`segments.Scan`)
    4  reading stops at the first frame that is not good
    5  if a later frame says, or the published end does, that the disk had what is not good, it is damage; else it is
       the tail of what was never promised (`require_not_promised`)
    6  the tail is cut off, and writing goes on there (`_cut`)
    7  what no mark says was on the disk is written again, and synced, before it counts (`_write_again`)
    8  after an error nothing more is written (`files`)
    9  a position is told to be durable when the sync after its frame has returned (`files`)
    10 only the last segment is verified, and the headers of all; `check` verifies all
"""

import msgspec

from ordercast.log.disk import Disk, File, write_all
from ordercast.log.format import Context, later_headers
from ordercast.log.manifest import Manifest, read_manifest
from ordercast.log.published_end import PublishedEnd, read_published_end
from ordercast.log.segments import TAIL, Scan, Segment, read_segments, scanned, segment_name
from ordercast.log.whole_files import write_durably
from ordercast.model.errors import LogDamaged


class Tail(msgspec.Struct, frozen=True):
    """What was at the end of a log and did not count: it had never been promised to anybody."""

    segment: str
    offset: int
    size: int
    """Bytes that were cut off."""
    why: str
    """What was wrong with it."""
    kept: bool
    """It was set aside as a file: it was no frame that was merely cut."""


class Recovered(msgspec.Struct, frozen=True):
    """The end of a log, from which writing goes on."""

    manifest: Manifest
    segments: tuple[Segment, ...]
    """The last one has the size that is left of it."""
    offset: int
    """The end of the last segment."""
    next: int
    """The position of the next message."""
    hash: bytes
    context: Context
    tail: Tail | None
    empty: bool
    """The last segment has no frame."""


def recover(disk: Disk) -> Recovered | None:
    """What counts of a log, after the rules above; None: there is no log yet.

    Raises `LogDamaged` if something is missing that was promised, and `OSError`.
    """
    _remove_unfinished(disk)
    manifest = read_manifest(disk)
    segments = read_segments(disk, manifest.start)
    published = read_published_end(disk)
    if not segments:
        if published is not None or manifest.snapshot is not None:
            raise LogDamaged("all segments are missing")
        return None
    last = segments[-1]
    if published is not None and published.segment > last.first:
        raise LogDamaged(f"segment {segment_name(published.segment)}, the last one, is missing")
    file = disk.open(last.name)
    try:
        return _recover_last(disk, file, manifest, segments, published)
    finally:
        file.close()


def _remove_unfinished(disk: Disk) -> None:
    for name in disk.names():
        if name.startswith("."):
            disk.remove(name)


def _recover_last(
    disk: Disk, file: File, manifest: Manifest, segments: list[Segment], published: PublishedEnd | None
) -> Recovered:
    last = segments[-1]
    scan = scanned(disk, last)
    empty = scan.offset == last.header.size
    require_not_promised(last, scan, published)
    tail = _cut(disk, file, last, scan)
    if not empty:
        _write_again(file, scan)
    kept = msgspec.structs.replace(last, size=scan.offset)
    return Recovered(
        *(manifest, (*segments[:-1], kept), scan.offset, scan.next, scan.hash, scan.context),
        tail=tail,
        empty=empty,
    )


def place_of(segment: Segment, scan: Scan) -> str:
    """Where reading ended, and why."""
    why = scan.problem or "the rest is missing"
    return f"segment {segment.name}, offset {scan.offset}, position {scan.next}: {why}"


def require_not_promised(segment: Segment, scan: Scan, published: PublishedEnd | None) -> None:
    """Rule 5: raises `LogDamaged` if what is not good was once on the disk."""
    where = place_of(segment, scan)
    if published is not None and published.segment == segment.first and published.offset > scan.offset:
        raise LogDamaged(f"{where}, though the log was on the disk up to position {published.position}")
    for offset, header in later_headers(scan.data, scan.offset, segment.header.salt):
        if header.durable > scan.offset:
            raise LogDamaged(f"{where}, though the frame at offset {offset} says that it was on the disk")


def _cut(disk: Disk, file: File, segment: Segment, scan: Scan) -> Tail | None:
    """Rule 6. Something that is neither cut nor zeros may be a synced frame with a changed bit: it is set aside."""
    rest = scan.data[scan.offset :]
    if not rest:
        return None
    kept = any(rest) and "checksum" in str(scan.problem)
    if kept:
        write_durably(disk, segment.name + TAIL, [rest])
    file.cut(scan.offset)
    return Tail(segment.name, scan.offset, len(rest), str(scan.problem), kept=kept)


def _write_again(file: File, scan: Scan) -> None:
    """Rule 7: after a sync that failed, the system shows pages that are not on the disk."""
    write_all(file, scan.durable, scan.data[scan.durable : scan.offset])
    file.sync()
