"""Follows one log frame by frame, verifying everything: for an audit of a running group."""

from collections.abc import Iterator

import msgspec

from ordercast.log.disk import Disk
from ordercast.log.format import Kind, View
from ordercast.log.manifest import read_manifest
from ordercast.log.published_end import read_published_end
from ordercast.log.reader import durable_limit
from ordercast.log.segments import Segment, counting_names, read_segment, segment_names
from ordercast.model.errors import LogDamaged, LogError
from ordercast.pipeline.log_stream.member_log import FramePoint, OrderPlace
from ordercast.pipeline.log_stream.reading import frames_of


class LoggedView(msgspec.Struct, frozen=True):
    """A view, at the position of its first message."""

    position: int
    view: View


class Gap(msgspec.Struct, frozen=True):
    """Messages are not in this log: its member was given a snapshot instead."""


class LogTail:
    """The places and views of a log, from its oldest message on, as they become durable."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._point: FramePoint | None = None
        """Where the next frame begins."""
        self._segment: Segment | None = None
        self.group = ""
        self.position = 0

    def news(self) -> Iterator[OrderPlace | LoggedView | Gap]:
        """All that has come since the last call; after a `LogError` or an `OSError` a new object begins anew."""
        self._require_not_written_anew()
        try:
            yield from self._news()
        except LogDamaged:
            self._require_not_written_anew()  # since then
            raise

    def _require_not_written_anew(self) -> None:
        """A member that came back drops what the group went on without: its segment then has another salt."""
        if self._segment is not None:
            now = read_segment(self._disk, self._segment.name)
            if now.header.salt != self._segment.header.salt:
                raise LogError(f"its end was written anew, from position {now.first} on")

    def _news(self) -> Iterator[OrderPlace | LoggedView | Gap]:
        published = read_published_end(self._disk)
        manifest = read_manifest(self._disk)
        names = counting_names(segment_names(self._disk.names()), manifest.start)
        if not names:
            raise LogError("there is no log: the folder has no segment")
        if self._segment is None or self._point is None:
            self._enter(read_segment(self._disk, names[0]))
            assert self._segment is not None
            assert self._point is not None
            yield OrderPlace(self._segment.first, self._segment.header.hash)
            yield LoggedView(self._segment.first, self._segment.header.context.view)
        for after in [name for name in names if name > self._segment.name]:
            yield from self._frames(self._disk.size(self._segment.name))
            segment = read_segment(self._disk, after)
            if segment.header.after_gap and segment.first > self.position:
                yield Gap()
                yield OrderPlace(segment.first, segment.header.hash)
            self._enter(segment)
        limit = durable_limit(self._disk, self._segment, published)
        if limit < self._point.offset:
            raise LogError(f"its end was written anew: position {self.position} is not in it any more")
        yield from self._frames(limit)

    def _enter(self, segment: Segment) -> None:
        header = segment.header
        self._segment, self.group, self.position = segment, header.context.group, segment.first
        self._point = FramePoint(segment.first, header.hash, segment.first, header.size, header.context.view)

    def _frames(self, limit: int) -> Iterator[OrderPlace | LoggedView]:
        assert self._segment is not None
        assert self._point is not None
        for frame, view, (position, hash_) in frames_of(self._disk, self._segment, self._point, limit):
            if frame.header.kind == Kind.VIEW:
                yield LoggedView(position, view)
            yield from (OrderPlace(*place) for place in frame.places())
            offset = self._point.offset + frame.header.size
            self._point = FramePoint(position, hash_, self._segment.first, offset, view)
            self.position = position
