"""A damaged log is made one that ends before the damage, so that a peer can send again what followed.

Nothing is thrown away: segments with damage, and those behind them, get names that count for nothing. What was on the
disk once is missing afterwards. So whoever opens the log must not be taken for one that remembers what it promised: its
newest note is replaced, before anything else is changed, and is found again whenever a crash interrupts this.
"""

from collections.abc import Callable
from itertools import chain, count

import msgspec

from ordercast.log.disk import Disk
from ordercast.log.manifest import KEPT_NOTE, Manifest, read_manifest, write_manifest
from ordercast.log.manifest import NAME as MANIFEST
from ordercast.log.published_end import NAME as PUBLISHED_END
from ordercast.log.segments import (
    DAMAGED,
    Scan,
    Segment,
    chain_problem,
    counting_names,
    read_segment,
    scanned,
    segment_names,
    snapshot_name,
    snapshot_positions,
)
from ordercast.log.snapshots import read_snapshot
from ordercast.log.truncation import write_beginning
from ordercast.log.whole_files import read_whole, unnamed, write_durably
from ordercast.model.errors import LogDamaged


class Repaired(msgspec.Struct, frozen=True):
    """What is left of a damaged log."""

    next: int
    """It ends before this position."""
    set_aside: tuple[str, ...]
    """Files that do not count any more."""


class _Whole(msgspec.Struct, frozen=True):
    """The part of a log before its first damage."""

    segments: tuple[Segment, ...]
    last: Scan | None = None
    """The end of what is good in the last of them; None: not even the first one is good."""


def set_damage_aside(disk: Disk, note_of: Callable[[bytes], bytes]) -> Repaired:
    """Ends a log before its first damage. `note_of`: what is noted instead of the newest note that is left.

    Every byte is verified. Raises `OSError`; whenever it is interrupted, it can be called again.
    """
    names = disk.names()
    try:
        manifest = read_manifest(disk)
    except LogDamaged:
        manifest = None
    found = _Whole(()) if manifest is None else _whole_part(disk, segment_names(names), manifest.start)
    kept = read_whole(disk, KEPT_NOTE) if KEPT_NOTE in names else None
    newest = kept if kept is not None else found.last.context.note if found.last is not None else b""
    write_durably(disk, KEPT_NOTE, [note_of(newest)])
    if PUBLISHED_END in names:
        disk.remove(PUBLISHED_END)
    aside = _snapshots_aside(disk, manifest, found)
    kept_names = {segment.name for segment in found.segments}
    for name in reversed([each for each in segment_names(names) if each not in kept_names]):
        aside += _set_aside(disk, name)
        disk.sync()  # from the last one on: no gap is left by a crash
    if found.last is None:
        aside += _set_aside(disk, MANIFEST)
    elif found.last.offset < found.segments[-1].size:
        last = found.segments[-1]
        write_beginning(disk, last, (found.last.next, found.last.hash), b"")
        disk.rename(last.name, _damaged(disk, last.name))
        disk.rename(unnamed(last.name), last.name)
        aside.append(last.name)
    disk.sync()
    return Repaired(found.last.next if found.last is not None else 0, tuple(sorted(aside)))


def _whole_part(disk: Disk, names: list[str], start: int) -> _Whole:
    segments: list[Segment] = []
    scan: Scan | None = None
    for name in counting_names(names, start):
        try:
            segment = read_segment(disk, name)
        except LogDamaged:
            break
        if not (segment.first <= start if scan is None else _follows(segments[-1], scan, segment)):
            break
        segments.append(segment)
        scan = scanned(disk, segment)
        if scan.offset < segment.size:
            break
    return _Whole(tuple(segments), scan)


def _follows(before: Segment, scan: Scan, segment: Segment) -> bool:
    if segment.header.after_gap:
        return True
    same = (scan.next, scan.hash) == (segment.first, segment.header.hash)
    return same and chain_problem(before, segment) is None


def _snapshots_aside(disk: Disk, manifest: Manifest | None, found: _Whole) -> list[str]:
    """Those that no part of the log leads to, and one that is damaged itself."""
    if manifest is not None and manifest.snapshot is None:
        return []
    if manifest is not None and found.last is not None and manifest.snapshot is not None:
        if manifest.snapshot <= found.last.next and _is_whole(disk):
            return []
        write_manifest(disk, Manifest(manifest.start))
        return _set_aside(disk, snapshot_name(manifest.snapshot))
    names = [snapshot_name(each) for each in snapshot_positions(disk.names())]
    return [each for name in names for each in _set_aside(disk, name)]


def _is_whole(disk: Disk) -> bool:
    try:
        snapshot = read_snapshot(disk)
        for _ in snapshot.parts() if snapshot is not None else ():
            pass
    except LogDamaged:
        return False
    return True


def _set_aside(disk: Disk, name: str) -> list[str]:
    if name not in disk.names():
        return []
    disk.rename(name, _damaged(disk, name))
    return [name]


def _damaged(disk: Disk, name: str) -> str:
    """A name that nothing has which was set aside before."""
    names = disk.names()
    numbered = (f"{name}.{number}{DAMAGED}" for number in count(2))
    return next(each for each in chain([name + DAMAGED], numbered) if each not in names)
