"""Files that are read and written as a whole: all of one is on the disk, or nothing (rule 1)."""

import zlib
from collections.abc import Iterable

from ordercast.log.disk import Disk, Part, write_all

_CHECKSUM_SIZE = 4


def read_whole(disk: Disk, name: str) -> bytes:
    """All of a file; raises `OSError`."""
    file = disk.open(name)
    try:
        return file.read(0, disk.size(name))
    finally:
        file.close()


def write_durably(disk: Disk, name: str, parts: Iterable[Part]) -> int:
    """Returns the size of a file when it is on the disk, under its name; raises `OSError`."""
    size = write_unnamed(disk, name, parts)
    disk.rename(unnamed(name), name)
    disk.sync()
    return size


def write_unnamed(disk: Disk, name: str, parts: Iterable[Part]) -> int:
    """The same, but the file has not got its name yet."""
    size, file = 0, disk.create(unnamed(name))
    try:
        for part in parts:
            write_all(file, size, part)
            size += len(part)
        file.sync()
    finally:
        file.close()
    return size


def unnamed(name: str) -> str:
    """The name of a file that counts for nothing yet."""
    return f".{name}"


def with_checksum(data: bytes) -> bytes:
    """What is behind them tells whether the bytes are changed."""
    return data + zlib.crc32(data).to_bytes(_CHECKSUM_SIZE, "little")


def without_checksum(data: bytes, size: int) -> bytes | None:
    """The bytes, so many; None if they are changed."""
    found = data[:size]
    return found if data == with_checksum(found) and len(found) == size else None
