"""Dropping the end of a log: what its member had, and the group never agreed on.

The log is closed meanwhile. Whenever a crash interrupts this, what is left is a log that ends later: no file is
changed, segments are removed from the last one on, and the one in which the new end lies is replaced as a whole.
"""

import os

from ordercast.log.agreement import LogPlace
from ordercast.log.disk import Disk
from ordercast.log.format import FrameBuilder, Kind, SegmentHeader, encode_segment_header
from ordercast.log.manifest import KEPT_NOTE, Manifest, read_manifest, write_manifest
from ordercast.log.published_end import NAME as PUBLISHED_END
from ordercast.log.segments import Segment, read_segments, scan_of, scanned, snapshot_name
from ordercast.log.whole_files import unnamed, write_durably, write_unnamed
from ordercast.model.errors import LogError


def drop_above(disk: Disk, position: int, hash_: bytes) -> None:
    """Drops all messages from this position on; raises `LogError` if the hash there is another one, and `OSError`.

    It must be a place of the log: the end of a packet.
    """
    manifest = read_manifest(disk)
    segments = read_segments(disk, manifest.start)
    kept = [segment for segment in segments if segment.first < position] or segments[:1]
    if not kept or kept[0].first > position:
        raise LogError(f"position {position} is not in the log: it cannot be cut there")
    note = scanned(disk, segments[-1]).context.note
    write_beginning(disk, kept[-1], (position, hash_), note)
    if note:  # it is in one of the segments that are removed: a crash must not lose it
        write_durably(disk, KEPT_NOTE, [note])
    if manifest.snapshot is not None and manifest.snapshot > position:
        write_manifest(disk, Manifest(manifest.start))
        disk.remove(snapshot_name(manifest.snapshot))
    if PUBLISHED_END in disk.names():
        disk.remove(PUBLISHED_END)
    disk.sync()
    for segment in reversed(segments[len(kept) :]):
        disk.remove(segment.name)
        disk.sync()  # one after the other: no gap is left by a crash
    disk.rename(unnamed(kept[-1].name), kept[-1].name)
    disk.sync()
    if note:
        disk.remove(KEPT_NOTE)


def write_beginning(disk: Disk, segment: Segment, place: LogPlace, note: bytes) -> None:
    """Writes the beginning of a segment, up to a place, under another name, and syncs it.

    `note`: the newest one, which has no position, and is kept.
    """
    (position, hash_), old = place, segment.header
    scan = scan_of(disk, segment)
    header = SegmentHeader(
        *(old.first, old.hash, int.from_bytes(os.urandom(4), "little"), old.context, old.previous, old.previous_size),
        time=old.time,
        after_gap=old.after_gap,
    )
    parts: list[bytes | memoryview] = [encode_segment_header(header)]
    builder, durable = FrameBuilder(header.salt, header.first, header.hash), len(parts[0])
    for _, frame in scan.frames():
        time, view = frame.header.time, frame.header.view
        if frame.header.first > position or (frame.header.first == position and frame.header.kind == Kind.PACKETS):
            break
        if frame.header.kind == Kind.VIEW:
            parts += builder.view(frame.view(), durable=durable, time=time)[0]
        elif frame.header.kind == Kind.PACKETS:  # a note that is not the newest one counts for nothing
            packets, end = [], frame.header.first
            for packet in frame.packets():
                if end < position:
                    packets.append(packet)
                end += len(packet.lengths)
            parts += builder.packets(packets, view=view, durable=durable, time=time)[0]
    if (builder.next, builder.hash) != (position, hash_):
        raise LogError(f"position {position} is no place of the log with this hash: it cannot be cut there")
    if note:
        parts += builder.note(note, view=0, durable=durable, time=old.time)[0]
    write_unnamed(disk, segment.name, parts)
