"""The end that a log tells its readers: how far it is on the disk, in a small file beside the segments.

It is written after each sync, and is itself never synced while the log is open: after a crash of the machine it may be
behind, and it is never ahead. Readers pass nothing above it, and recovery knows from it what was once promised.
"""

from struct import Struct

import msgspec

from ordercast.log.disk import Disk, File, write_all
from ordercast.log.whole_files import read_whole, with_checksum, without_checksum

NAME = "end"
_END = Struct("<QQQ")


class PublishedEnd(msgspec.Struct, frozen=True, order=True):
    """A place in a log."""

    segment: int
    """The first position of the segment."""
    offset: int
    """Everything below this offset in the segment, and all segments before it, are on the disk."""
    position: int
    """The position of the next message."""


def encode(end: PublishedEnd) -> bytes:
    """Its bytes."""
    return with_checksum(_END.pack(end.segment, end.offset, end.position))


def read_published_end(disk: Disk) -> PublishedEnd | None:
    """What was published last; None if nothing was, or if it cannot be read: then less is known, and nothing wrong."""
    if NAME not in disk.names():
        return None
    data = without_checksum(read_whole(disk, NAME), _END.size)
    return None if data is None else PublishedEnd(*_END.unpack(data))


class Publisher:
    """Writes the published end."""

    def __init__(self, disk: Disk) -> None:
        self._file: File = disk.open(NAME) if NAME in disk.names() else disk.create(NAME)

    def publish(self, end: PublishedEnd) -> None:
        """Tells readers; raises `OSError`."""
        write_all(self._file, 0, encode(end))

    def close(self, *, sync: bool) -> None:
        """`sync`: whoever opens the log after a crash of the machine knows the end, too."""
        try:
            if sync:
                self._file.sync()
        finally:
            self._file.close()
