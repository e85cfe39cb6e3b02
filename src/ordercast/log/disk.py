"""What a log asks of a disk, and the disk of the operating system.

The log takes its disk as an argument: tests give it a model of one that loses, tears and refuses.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ordercast.log.direct import MAX_SIZE, MIN_SIZE, DirectWriter, NotDirectError
from ordercast.model.errors import LogError, reason_of

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps two processes from writing the same log
    fcntl = None  # type: ignore[assignment]

Part = bytes | memoryview
_MAX_PARTS = 1024  # of one call, by Linux


class File(Protocol):
    """An open file. All calls raise `OSError`."""

    def read(self, start: int, size: int) -> bytes:
        """Bytes from this offset on; fewer at the end of the file."""
        ...

    def write(self, start: int, parts: Sequence[bytes | memoryview]) -> int:
        """Writes at this offset; the number of bytes that were written, which may be fewer than all."""
        ...

    def cut(self, size: int) -> None:
        """Drops what is above this size."""
        ...

    def sync(self) -> None:
        """Returns when all that was written is on the disk."""
        ...

    def close(self) -> None:
        """Closes it."""
        ...


class Disk(Protocol):
    """The folder of a log. All calls raise `OSError`."""

    def names(self) -> list[str]:
        """The names of all files."""
        ...

    def size(self, name: str) -> int:
        """The size of a file in bytes."""
        ...

    def create(self, name: str) -> File:
        """A new, empty file, instead of one that there was under this name."""
        ...

    def open(self, name: str) -> File:
        """A file that is there."""
        ...

    def rename(self, old: str, new: str) -> None:
        """A file gets another name, and replaces one that has it."""
        ...

    def remove(self, name: str) -> None:
        """Removes a file."""
        ...

    def sync(self) -> None:
        """Returns when the names of all files are on the disk."""
        ...


class FolderDisk:
    """A folder of a real file system, which is made if it is not there."""

    def __init__(self, folder: Path, *, write: bool) -> None:
        """`write`: it is locked against other processes that write; raises `LogError` if one does, or it is not there.

        Without, nothing is made and nothing is changed.
        """
        self.folder = folder
        self._lock = -1
        self._memories: list[memoryview] = []  # of direct writes, in files that are closed
        try:
            if write:
                made = not folder.exists()
                folder.mkdir(parents=True, exist_ok=True)
                if made:
                    _sync_folder(folder.parent)
                self._lock = _locked(folder / "lock")
            elif not folder.is_dir():
                raise LogError(f"there is no log in {folder}: it is {'no folder' if folder.exists() else 'not there'}")
        except OSError as error:
            raise LogError(f"cannot use {folder} for a log: {reason_of(error)}; give another folder") from error

    def __repr__(self) -> str:
        return f"<FolderDisk {self.folder}>"

    def names(self) -> list[str]:
        """The names of all files."""
        return [path.name for path in self.folder.iterdir()]

    def size(self, name: str) -> int:
        """The size of a file in bytes."""
        return (self.folder / name).stat().st_size

    def create(self, name: str) -> "FolderFile":
        """A new, empty file."""
        descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)
        return FolderFile(descriptor, self._memories)

    def open(self, name: str) -> "FolderFile":
        """A file that is there."""
        descriptor = os.open(self.folder / name, (os.O_RDWR if self._lock >= 0 else os.O_RDONLY) | _BINARY)
        return FolderFile(descriptor, self._memories)

    def rename(self, old: str, new: str) -> None:
        """A file gets another name."""
        (self.folder / old).replace(self.folder / new)

    def remove(self, name: str) -> None:
        """Removes a file."""
        (self.folder / name).unlink()

    def sync(self) -> None:
        """Returns when the names of all files are on the disk."""
        _sync_folder(self.folder)

    def close(self) -> None:
        """Others may write."""
        self._memories.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


_BINARY = getattr(os, "O_BINARY", 0)


def _locked(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LogError(
                f"the log in {path.parent} is being written by another process; stop it, or give another folder"
            ) from None
    return descriptor


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderFile:
    """A file of a real file system."""

    def __init__(self, descriptor: int, memories: list[memoryview]) -> None:
        """`memories`: of direct writes, for this file and those after it."""
        self._descriptor, self._memories = descriptor, memories
        self._direct: DirectWriter | None = None  # once there was something large to be written
        self._may_be_direct = True

    def read(self, start: int, size: int) -> bytes:
        """Bytes from this offset on."""
        found = []
        while size > 0:
            some = os.pread(self._descriptor, min(size, _MAX_READ), start)
            if not some:
                break
            found.append(some)
            start += len(some)
            size -= len(some)
        return found[0] if len(found) == 1 else b"".join(found)

    def write(self, start: int, parts: Sequence[Part]) -> int:
        """Writes at this offset."""
        if self._may_be_direct and MIN_SIZE <= sum(map(len, parts)) <= MAX_SIZE:
            try:
                if self._direct is None:
                    self._direct = DirectWriter(self._descriptor, self._memories)
                return self._direct.write(start, parts)
            except NotDirectError:
                self._may_be_direct = False
        if len(parts) > _MAX_PARTS:
            parts = [b"".join(parts)]
        return os.pwritev(self._descriptor, parts, start)

    def cut(self, size: int) -> None:
        """Drops what is above this size."""
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)  # `fdatasync` need not write a size that became smaller

    def sync(self) -> None:
        """Returns when all that was written is on the disk."""
        _fdatasync(self._descriptor)

    def close(self) -> None:
        """Closes it."""
        direct, descriptor = self._direct, self._descriptor
        self._direct, self._descriptor = None, -1  # once closed, a descriptor may be that of another file
        with suppress(OSError):
            if direct is not None:
                direct.close()
            os.close(descriptor)


def no_log(disk: Disk) -> LogError:
    """The error if there is no segment in its folder."""
    where = f" in {disk.folder}" if isinstance(disk, FolderDisk) else ""
    return LogError(f"there is no log{where}: the folder has no segment")


_MAX_READ = 1 << 30  # one call reads at most 2 GiB
_fdatasync = getattr(os, "fdatasync", os.fsync)


def write_all(file: File, start: int, part: bytes | memoryview) -> None:
    """Goes on after short writes; raises `OSError`."""
    rest = memoryview(part)
    while rest:
        written = file.write(start, [rest])
        if not written:
            raise OSError(28, "nothing more can be written")
        rest, start = rest[written:], start + written
