"""Reading a log, with or without somebody who writes it: messages, from any position on, verified.

A reader passes nothing that is not known to be on the disk: it stops at the published end, and where a crash of the
machine has left that behind, at the last mark in a frame. So what it has seen is never taken back by a recovery.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ordercast.log.disk import Disk, FolderDisk, no_log
from ordercast.log.format import Frame, Kind, View
from ordercast.log.manifest import read_manifest
from ordercast.log.published_end import PublishedEnd, read_published_end
from ordercast.log.recovery import place_of
from ordercast.log.segments import (
    Scan,
    Segment,
    chain_problem,
    counting_names,
    read_segment,
    scanned,
    segment_name,
    segment_names,
)
from ordercast.model.config import require
from ordercast.model.errors import LogDamaged, LogError, reason_of

POLL_SECONDS = 0.05
"""How often a reader that follows looks at the published end."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message of a log."""

    position: int
    """Its place in the order, from 0."""
    sender: str
    """The name of the member that sent it."""
    payload: bytes
    priority: int = 0
    view: int = 0
    """The number of the view in which it was delivered."""


class LoggedFrame(msgspec.Struct, frozen=True):
    """A frame with packets, and the view that its sources are places of."""

    frame: Frame
    view: View

    def sender(self, source: int) -> str:
        """A name; a number in brackets if the view does not have this place."""
        members = self.view.members
        return members[source] if source < len(members) else f"[{source}]"


def read(
    folder: Path | str, start: int | None = None, *, stop: int | None = None, follow: bool = False
) -> Iterator[Message]:
    """The messages of a log, from position `start` on, or from the oldest; `stop`: up to below this position.

    `follow`: at the end it waits for more, without end; whoever iterates may leave at any time. Raises `LogError` if
    there is no log, or `start` was dropped, and `LogDamaged` at the place where something is missing or changed.
    """
    disk = FolderDisk(Path(folder), write=False)
    return messages_of(disk, start, stop, _wait if follow else None)


def messages_of(
    disk: Disk, start: int | None = None, stop: int | None = None, wait: Callable[[], None] | None = None
) -> Iterator[Message]:
    """The same of a log on any disk; `wait`: is called at the end, and then reading goes on."""
    for logged in frames_of(disk, start, wait):
        header = logged.frame.header
        view, position = header.view, header.first
        for source, priority, payload in logged.frame.messages():
            if stop is not None and position >= stop:
                return
            if start is None or position >= start:
                yield Message(position, logged.sender(source), payload, priority, view)
            position += 1


def _wait() -> None:
    time.sleep(POLL_SECONDS)


def frames_of(disk: Disk, start: int | None = None, wait: Callable[[], None] | None = None) -> Iterator[LoggedFrame]:
    """All frames with packets that have a message at `start` or above it."""
    require(start is None or start >= 0, f"a position is 0 or more, not {start}")
    reader = _Reader(disk, start)
    while True:
        try:
            yield from reader.some()
        except FileNotFoundError:
            continue  # dropped since the names were read: with those of now it goes on, or tells that it cannot
        except OSError as error:
            raise LogError(f"cannot read the log: {reason_of(error)}") from error
        if wait is None:
            return
        wait()


class _Reader:
    """Goes from segment to segment, and on from where it was when there is more."""

    def __init__(self, disk: Disk, start: int | None) -> None:
        self._disk = disk
        self.next = start
        """The position of the next message that is handed out; None: that of the oldest."""
        self._segment: Segment | None = None
        self._scan: Scan

    def some(self) -> Iterator[LoggedFrame]:
        """All that is there now and was not handed out before."""
        published = read_published_end(self._disk)  # before the names: the segment that it knows of is among them
        manifest = read_manifest(self._disk)
        names = counting_names(segment_names(self._disk.names()), manifest.start)
        if not names:
            if published is not None or manifest.snapshot is not None:
                raise LogDamaged("all segments are missing")
            raise no_log(self._disk)
        if published is not None and segment_name(published.segment) > names[-1]:
            raise LogDamaged(f"segment {segment_name(published.segment)}, the last one, is missing")
        if self._segment is None or self._segment.name not in names:  # never entered, or dropped since
            self._enter(read_segment(self._disk, self._first_of(names)))
        for name in names:
            if name > self._here.name:
                after = read_segment(self._disk, name)
                yield from self._frames(after.header.previous_size, after)
                self._enter(after)
        limit = durable_limit(self._disk, self._here, published)
        if limit > self._scan.offset:
            yield from self._frames(limit)

    @property
    def _here(self) -> Segment:
        assert self._segment is not None
        return self._segment

    def _first_of(self, names: list[str]) -> str:
        oldest = int(names[0])
        if self.next is not None and self.next < oldest:
            raise LogError(f"position {self.next} is not in the log any more: it begins at {oldest}")
        return counting_names(names, self.next or 0)[0]

    def _enter(self, segment: Segment) -> None:
        self._segment, self._scan = segment, Scan(segment)

    def _frames(self, limit: int, after: Segment | None = None) -> Iterator[LoggedFrame]:
        """Those of the segment below an offset, up to which it must be good; `after`: the segment that follows."""
        if after is not None and after.header.after_gap:
            limit = self._disk.size(self._here.name)
        scan, file = self._scan, self._disk.open(self._here.name)
        try:
            scan.go_on(memoryview(file.read(scan.offset, limit - scan.offset)))
        finally:
            file.close()
        for _, frame in scan.frames():
            if frame.header.kind == Kind.PACKETS and frame.header.next > (self.next or 0):
                self.next = frame.header.next
                yield LoggedFrame(frame, scan.context.view)
        if scan.offset < limit:
            raise LogDamaged(place_of(self._here, scan))
        read = msgspec.structs.replace(self._here, size=limit)
        problem = after and end_problem(read, scan, after)
        if problem:
            raise LogDamaged(problem)


def durable_limit(disk: Disk, segment: Segment, published: PublishedEnd | None) -> int:
    """Below this offset the last segment is known to be on the disk."""
    if published is not None and published.segment == segment.first:
        return published.offset
    return scanned(disk, segment, disk.size(segment.name)).durable


def end_problem(segment: Segment, scan: Scan, after: Segment) -> str | None:
    """What is wrong between the end of a segment that was read and the next one; None: nothing."""
    if after.header.after_gap:
        return None
    if (scan.next, scan.hash) != (after.first, after.header.hash):
        return f"segment {after.name} does not go on where segment {segment.name} ends, at position {scan.next}"
    return chain_problem(segment, after)
