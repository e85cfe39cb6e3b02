"""Snapshots of an application's state: a file of its own for each, at a position of the log.

It has the header of a segment, under another magic number, and then chunks, each with its size and its checksum; a
chunk of no bytes is the last one. A snapshot may be large: beside the segments it can be written while the log goes on,
found by its name, and removed alone.
"""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct

import msgspec

from ordercast.log.disk import Disk, FolderDisk
from ordercast.log.format import (
    SNAPSHOT_MAGIC,
    Context,
    SegmentHeader,
    decode_segment_header,
    encode_segment_header,
)
from ordercast.log.manifest import read_manifest
from ordercast.log.segments import MAX_HEADER, snapshot_name
from ordercast.log.whole_files import write_durably
from ordercast.model.errors import LogDamaged, LogError, reason_of

_CHUNK = Struct("<II")
MAX_CHUNK = 1 << 20


class Place(msgspec.Struct, frozen=True):
    """A place of the log, and what holds there."""

    position: int
    """That of the next message."""
    hash: bytes
    context: Context


class Snapshot:
    """A snapshot that was read: the state of the application before the message at `position`."""

    def __init__(self, disk: Disk, place: Place, offset: int) -> None:
        self._disk, self._offset = disk, offset
        self.place = place

    def __repr__(self) -> str:
        return f"<Snapshot at position {self.position}>"

    @property
    def position(self) -> int:
        """The position of the first message that is not in it."""
        return self.place.position

    @property
    def members(self) -> tuple[str, ...]:
        """The members of the view at that position."""
        return self.place.context.view.members

    def parts(self) -> Iterator[bytes]:
        """The state, in parts that need not be those it was saved in; raises `LogDamaged` if one is changed."""
        name = snapshot_name(self.position)
        file = self._disk.open(name)
        offset = self._offset
        try:
            while True:
                head = file.read(offset, _CHUNK.size)
                size, checksum = _CHUNK.unpack(head) if len(head) == _CHUNK.size else (0, 1)
                data = file.read(offset + _CHUNK.size, size)
                if len(data) != size or zlib.crc32(data, offset) != checksum:
                    raise LogDamaged(f"snapshot {name}, offset {offset}: the checksum of a chunk is wrong")
                if not size:
                    return
                yield data
                offset += _CHUNK.size + size
        finally:
            file.close()


def write_snapshot(disk: Disk, place: Place, state: bytes | Iterable[bytes], time: int) -> int:
    """Returns its size when it is on the disk (rule 1); raises `OSError`, and what `state` raises."""
    header = SegmentHeader(place.position, place.hash, 0, place.context, time=time)
    return write_durably(disk, snapshot_name(place.position), _parts(header, state))


def _parts(header: SegmentHeader, state: bytes | Iterable[bytes]) -> Iterator[bytes]:
    data = encode_segment_header(header, SNAPSHOT_MAGIC)
    yield data
    offset = len(data)
    for chunk in _chunks(state):
        yield _CHUNK.pack(len(chunk), zlib.crc32(chunk, offset))
        yield chunk
        offset += _CHUNK.size + len(chunk)


def _chunks(state: bytes | Iterable[bytes]) -> Iterator[bytes]:
    for part in [state] if isinstance(state, bytes) else state:
        for start in range(0, len(part), MAX_CHUNK):
            yield part[start : start + MAX_CHUNK]
    yield b""


def latest_snapshot(folder: Path | str) -> Snapshot | None:
    """The newest snapshot in the folder of a log; None if there is none. Raises `LogError`, `LogDamaged`."""
    try:
        return read_snapshot(FolderDisk(Path(folder), write=False))
    except OSError as error:
        raise LogError(f"cannot read the snapshot in {folder}: {reason_of(error)}") from error


def read_snapshot(disk: Disk) -> Snapshot | None:
    """The newest snapshot that counts; None if there is none. Raises `LogDamaged`, and `OSError`."""
    position = read_manifest(disk).snapshot
    if position is None:
        return None
    name = snapshot_name(position)
    if name not in disk.names():
        raise LogDamaged(f"snapshot {name} is missing")
    file = disk.open(name)
    try:
        header = decode_segment_header(file.read(0, MAX_HEADER), SNAPSHOT_MAGIC)
    except LogDamaged as error:
        raise LogDamaged(f"snapshot {name}: {error}") from None
    finally:
        file.close()
    return Snapshot(disk, Place(header.first, header.hash, header.context), header.size)
