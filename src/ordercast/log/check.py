"""Verifying a log: every byte of every segment and of the snapshot, without changing anything."""

from itertools import pairwise
from pathlib import Path

import msgspec

from ordercast.log.disk import Disk, FolderDisk, no_log
from ordercast.log.manifest import read_manifest
from ordercast.log.published_end import PublishedEnd, read_published_end
from ordercast.log.reader import durable_limit, end_problem
from ordercast.log.recovery import place_of, require_not_promised
from ordercast.log.segments import (
    DAMAGED,
    TAIL,
    Scan,
    Segment,
    counting_names,
    read_segment,
    scan_of,
    segment_name,
    segment_names,
    snapshot_name,
)
from ordercast.log.snapshots import read_snapshot
from ordercast.model.errors import LogDamaged, LogError, reason_of


class SegmentReport(msgspec.Struct, frozen=True):
    """What is known of a segment."""

    name: str
    first: int
    next: int
    """The position after its last message that is good."""
    bytes: int
    time: int
    """When it was begun: nanoseconds since 1970."""
    view: int
    """The number of the view at its end."""
    frames: int = 0
    """0 if its frames were not read."""


class LogReport(msgspec.Struct, frozen=True):
    """What is known of a log."""

    group: str
    first: int
    """The position of the oldest message."""
    durable: int
    """Messages below this position are known to be on the disk."""
    next: int
    """The position after the last message that is there; those from `durable` on may not have been promised."""
    hash: str
    """The running hash at `next`, in hexadecimal digits."""
    view: int
    members: tuple[str, ...]
    segments: tuple[SegmentReport, ...]
    snapshot: int | None
    snapshot_bytes: int
    tail_bytes: int
    """At the end. Without damage they were never promised, and are dropped when the log is opened for writing."""
    set_aside: tuple[str, ...]
    """Files that do not count: ends that were dropped and looked as if a bit had changed, and damaged segments."""
    damage: tuple[str, ...]
    """A sentence for each place where something is missing or changed; empty: all is whole."""
    verified: bool
    """All frames were verified; else those of the last segment, and the headers of all."""


_ATTEMPTS = 5  # to read a log whose old segments are dropped meanwhile


def check(folder: Path | str, *, verify: bool = True) -> LogReport:
    """Looks at a log, which may be written meanwhile; raises `LogError` if there is none.

    `verify`: all of it; else the last segment and all headers, which takes less than a second.
    """
    for left in reversed(range(_ATTEMPTS)):
        try:
            return check_disk(FolderDisk(Path(folder), write=False), verify=verify)
        except OSError as error:
            if left and isinstance(error, FileNotFoundError) and Path(folder).is_dir():
                continue  # a segment was dropped by its writer when it was about to be read
            raise LogError(f"cannot read the log in {folder}: {reason_of(error)}") from error
    raise AssertionError("the last attempt returns or raises")


def check_disk(disk: Disk, *, verify: bool = True) -> LogReport:
    """The same of a log on any disk; raises `OSError`, too."""
    return _Check(disk, verify=verify).report()


class _Check:
    def __init__(self, disk: Disk, *, verify: bool) -> None:
        self._disk, self._verify = disk, verify
        self._damage: list[str] = []
        self._reports: list[SegmentReport] = []

    def report(self) -> LogReport:
        disk = self._disk
        published = read_published_end(disk)  # before all others: who writes goes on
        start, snapshot = self._manifest()
        names = disk.names()
        segments = self._segments(counting_names(segment_names(names), start))
        if not segments and not self._damage:
            raise no_log(disk)
        for segment, after in pairwise(segments):
            self._sealed(segment, after)
        scan = self._scan(segments[-1], published, last=True) if segments else None
        snapshot_bytes = self._snapshot(snapshot)
        if published is not None and segments and published.segment > segments[-1].first:
            self._damage.append(f"segment {segment_name(published.segment)}, the last one, is missing")
        durable, tail = self._end(segments, scan, published)
        context = scan.context if scan is not None else None
        return LogReport(
            group=context.group if context else "",
            first=segments[0].first if segments else 0,
            durable=durable,
            next=scan.next if scan else 0,
            hash=scan.hash.hex() if scan else "",
            view=context.view.number if context else 0,
            members=context.view.members if context else (),
            segments=tuple(self._reports),
            snapshot=snapshot,
            snapshot_bytes=snapshot_bytes,
            tail_bytes=tail,
            set_aside=tuple(sorted(name for name in names if name.endswith((TAIL, DAMAGED)))),
            damage=tuple(self._damage),
            verified=self._verify,
        )

    def _manifest(self) -> tuple[int, int | None]:
        try:
            found = read_manifest(self._disk)
        except LogDamaged as error:
            self._damage.append(str(error))
            return 0, None
        return found.start, found.snapshot

    def _segments(self, names: list[str]) -> list[Segment]:
        found = []
        for name in names:
            try:
                found.append(read_segment(self._disk, name))
            except LogDamaged as error:
                self._damage.append(str(error))
        return found

    def _scan(self, segment: Segment, published: PublishedEnd | None, *, last: bool) -> Scan:
        scan, frames = scan_of(self._disk, segment), 0
        for _ in scan.frames():
            frames += 1
        self._reports.append(_segment_report(segment, scan, frames))
        if not last and scan.offset < segment.size:
            self._damage.append(place_of(segment, scan))
        elif last:
            try:
                require_not_promised(segment, scan, published)
            except LogDamaged as error:
                self._damage.append(str(error))
        return scan

    def _sealed(self, segment: Segment, after: Segment) -> None:
        if self._verify:
            scan = self._scan(segment, None, last=False)
        else:
            scan = _unread(segment, after)
            self._reports.append(_segment_report(segment, scan, 0))
        problem = end_problem(segment, scan, after)
        if problem is not None and scan.problem is None:
            self._damage.append(problem)

    def _snapshot(self, position: int | None) -> int:
        if position is None:
            return 0
        try:
            found = read_snapshot(self._disk)
            if found is not None and self._verify:
                for _ in found.parts():
                    pass
            return self._disk.size(snapshot_name(position))
        except LogDamaged as error:
            self._damage.append(str(error))
            return 0

    def _end(self, segments: list[Segment], scan: Scan | None, published: PublishedEnd | None) -> tuple[int, int]:
        """The position below which all is on the disk, and the bytes at the end that are no frames."""
        if scan is None:
            return 0, 0
        last = segments[-1]
        if published is not None and published.segment == last.first:
            return published.position, max(0, last.size - scan.offset)
        limit, position = durable_limit(self._disk, last, published), last.first
        marked = scan_of(self._disk, last, limit)
        for _, frame in marked.frames():
            position = frame.header.next
        return position, max(0, last.size - scan.offset)


def _segment_report(segment: Segment, scan: Scan, frames: int) -> SegmentReport:
    view, time = scan.context.view.number, segment.header.time
    return SegmentReport(segment.name, segment.first, scan.next, segment.size, time, view, frames)


def _unread(segment: Segment, after: Segment) -> Scan:
    """As if the frames of a segment had been read, and led to the next one."""
    scan = Scan(segment)
    scan.next, scan.hash, scan.context = after.first, after.header.hash, after.header.context
    return scan
