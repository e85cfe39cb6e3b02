"""Large writes that pass the system's page cache by.

Through the cache, memory is found for each page (on a virtual machine perhaps by its host), filled, written out, and
read by nobody: most of what a log costs at full speed. Here a large piece is gathered in memory that is used again and
again, and the disk takes it from there. Only whole pages can be written so: what the piece has before and behind them
goes through the cache, as small writes do. The file has the same bytes, and they are on the disk when a sync has
returned, as before.

On Linux, and where the file system can do it; elsewhere all writes go through the cache.
"""

import errno
import mmap
import os
from collections.abc import Sequence
from contextlib import ExitStack

MIN_SIZE = 128 << 10
"""Bytes of a write that is large."""
MAX_SIZE = 8 << 20
"""Bytes that are gathered at most: still larger writes go through the cache."""
_PAGE = max(mmap.PAGESIZE, 4096)
_MAX_PARTS = 1024  # of one call, by Linux
_DIRECT = getattr(os, "O_DIRECT", 0)


class NotDirectError(Exception):
    """The file cannot be written so; nothing is wrong with it."""


class DirectWriter:
    """Writes large pieces of one file; for one thread."""

    def __init__(self, cached: int) -> None:
        """`cached`: a descriptor of the file, which goes through the cache; raises `NotDirectError`."""
        if not _DIRECT or not hasattr(os, "memfd_create"):
            raise NotDirectError
        self._cached = cached
        with ExitStack() as stack:
            try:
                self._direct = os.open(f"/proc/self/fd/{cached}", os.O_WRONLY | _DIRECT)  # the same, whatever its name
                stack.callback(os.close, self._direct)
                # memory that is a file, too: the system copies into it without the lock of Python, for which the
                # thread that appends would wait
                self._gathered = os.memfd_create("ordercast log")
                stack.callback(os.close, self._gathered)
                os.ftruncate(self._gathered, MAX_SIZE + _PAGE)
                self._memory = memoryview(mmap.mmap(self._gathered, MAX_SIZE + _PAGE))
            except OSError as error:
                raise NotDirectError from error
            stack.callback(self._memory.release)  # and with it the map, to which nothing else refers
            self.close = stack.pop_all().close
            """Closes what was opened here."""

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
        end = begin
        try:
            for at in range(0, len(parts), _MAX_PARTS):
                some = parts[at : at + _MAX_PARTS]
                written = os.pwritev(self._gathered, some, end)
                end += written
                if written < sum(map(len, some)):  # what comes behind it must not take its place
                    break
        except OSError as error:  # there is no memory
            raise NotDirectError from error
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
