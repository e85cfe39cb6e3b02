"""Large writes that pass the system's page cache by.

Through the cache, memory is found for each page (on a virtual machine perhaps by its host), filled, written out, and
read by nobody: most of what a log costs at full speed. Here a large piece is gathered in memory that is used again and
again, in huge pages where there are any, and the disk takes it from there. Only whole pages can be written so: what the
piece has before and behind them goes through the cache, as small writes do. The file has the same bytes, and they are
on the disk when a sync has returned, as before.

On Linux, and where the file system can do it; elsewhere all writes go through the cache.
"""

import errno
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress

MIN_SIZE = 128 << 10
"""Bytes of a write that is large."""
MAX_SIZE = 8 << 20
"""Bytes that are gathered at most: still larger writes go through the cache."""
_PAGE = max(mmap.PAGESIZE, 4096)
_SMALL = 4096  # bytes of a part: smaller ones are joined first, since Python takes longer for each
_DIRECT = getattr(os, "O_DIRECT", 0)


class NotDirectError(Exception):
    """The file cannot be written so; nothing is wrong with it."""


def memory() -> memoryview:
    """Room for a large piece; raises `NotDirectError`."""
    try:
        found = mmap.mmap(-1, MAX_SIZE + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        found.madvise(mmap.MADV_DONTFORK)  # a child does not share what the disk is about to take
    except (OSError, AttributeError) as error:
        raise NotDirectError from error
    with suppress(OSError, AttributeError):  # not all systems have them
        found.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(found)


class DirectWriter:
    """Writes large pieces of one file; for one thread."""

    def __init__(self, cached: int, memories: list[memoryview]) -> None:
        """`cached`: a descriptor of the file, which goes through the cache; raises `NotDirectError`.

        `memories`: that others have used, to be used again; this one's is put there when it is closed.
        """
        if not _DIRECT:
            raise NotDirectError
        self._cached, self._memories = cached, memories
        try:
            self._memory = memories.pop()
        except IndexError:
            self._memory = memory()
        try:
            self._direct = os.open(f"/proc/self/fd/{cached}", os.O_WRONLY | _DIRECT)  # the same, whatever its name
        except OSError as error:
            memories.append(self._memory)
            raise NotDirectError from error

    def close(self) -> None:
        """Closes what was opened here."""
        self._memories.append(self._memory)
        os.close(self._direct)

    def write(self, start: int, parts: Sequence[bytes | memoryview]) -> int:
        """Writes at most `MAX_SIZE` bytes at this offset: how many were written.

        Raises `NotDirectError`, and `OSError` if the disk fails.
        """
        done = begin = start % _PAGE
        end = self._gather(begin, parts)
        first, last = -(-begin // _PAGE) * _PAGE, end // _PAGE * _PAGE
        for file, stop in ((self._cached, min(first, end)), (self._direct, last), (self._cached, end)):
            if done < stop:
                done += self._write(file, start - begin + done, self._memory[done:stop])
                if done < stop:
                    break
        return done - begin

    def _gather(self, begin: int, parts: Sequence[bytes | memoryview]) -> int:
        """Where what was gathered ends."""
        size = sum(map(len, parts))
        if size < _SMALL * len(parts):
            parts = [b"".join(parts)]
        end = begin
        for part in parts:
            self._memory[end : end + len(part)] = part
            end += len(part)
        return end

    def _write(self, file: int, start: int, data: memoryview) -> int:
        try:
            return os.pwrite(file, data, start)
        except OSError as error:
            if (
                file == self._direct and error.errno == errno.EINVAL
            ):  # so do file systems that cannot do it, or not here
                raise NotDirectError from error
            raise
