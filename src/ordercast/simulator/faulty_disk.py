"""A model of a disk that tears, loses, reorders, fails and is full; and of the system in front of it.

What is written is shown at once and reaches the disk when it is synced, or earlier, sector by sector in any order: a
power failure leaves of each sector that was not synced any version since the last sync, of each size any, and of the
changes of names any selection, each whole. A sync that fails leaves part of what it should have written *clean*: it is
shown, it is not on the disk, and no later sync will write it. A killed process loses nothing of what is shown.
"""

import errno
from collections.abc import Callable, Sequence
from random import Random

from ordercast.log.disk import Part

SECTOR = 32
"""Bytes that are written as one; small, so that a frame has several."""


class Crashed(BaseException):
    """The process is dead from here on: no `except Exception` is to go on."""


class Inode:
    """The contents of a file: as shown, and as on the disk."""

    def __init__(self) -> None:
        self.shown = bytearray()
        self.on_disk = bytearray()
        self._sectors: dict[int, list[bytes]] = {}
        """What each sector has been since it was last synced, the newest last."""
        self._sizes: list[int] = []

    def write(self, start: int, data: bytes) -> None:
        """Shown at once."""
        end = start + len(data)
        if end > len(self.shown):
            self.shown.extend(bytes(end - len(self.shown)))
        if end > len(self.on_disk):
            self._sizes.append(len(self.shown))  # with the sector its place in the file is written
        self.shown[start:end] = data
        for sector in range(start // SECTOR, (end + SECTOR - 1) // SECTOR):
            self._sectors.setdefault(sector, []).append(bytes(self.shown[sector * SECTOR : (sector + 1) * SECTOR]))

    def cut(self, size: int) -> None:
        """Drops what is above this size."""
        del self.shown[size:]
        self._sizes.append(size)
        for sector in [each for each in self._sectors if each * SECTOR >= size]:
            del self._sectors[sector]

    def sync(self) -> None:
        """All of it is on the disk."""
        for sector, versions in self._sectors.items():
            self._put(sector, versions[-1])
        if self._sizes:
            self._resize(self._sizes[-1])
        self._forget()

    def sync_partly(self, random: Random) -> None:
        """What a sync that fails does: some of it is on the disk, and none of it will be written later."""
        self.persist_some(random)
        self._forget()

    def lose_power(self, random: Random) -> None:
        """What is on the disk is left."""
        self.persist_some(random)
        self._forget()
        self.shown = bytearray(self.on_disk)

    def persist_some(self, random: Random) -> None:
        """Some of what was not synced is on the disk, in any version."""
        share = random.choice([0.5, 0.9])  # if most are written, what is missing is a hole within a frame
        for sector, versions in self._sectors.items():
            if random.random() < share:
                self._put(sector, random.choice(versions))
        if self._sizes:
            chosen = random.randrange(-1, len(self._sizes))
            if chosen >= 0:
                self._resize(self._sizes[chosen])

    def _forget(self) -> None:
        self._sectors.clear()
        self._sizes.clear()

    def _put(self, sector: int, data: bytes) -> None:
        start = sector * SECTOR
        if start < len(self.on_disk) or self._sizes:  # above its size a file has nothing
            self._resize(max(len(self.on_disk), start + len(data)))
            self.on_disk[start : start + len(data)] = data

    def _resize(self, size: int) -> None:
        del self.on_disk[size:]
        self.on_disk.extend(bytes(size - len(self.on_disk)))


class FaultyDisk:
    """A folder on it. `allow` sets how many calls succeed, and what then happens."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.files: dict[str, Inode] = {}
        """As programs see them."""
        self._on_disk: dict[str, Inode] = {}
        self._changes: list[dict[str, Inode | None]] = []
        self.calls_left = -1
        """Calls until the process dies; negative: it lives."""
        self.error_rate = 0.0
        """How many of the calls that write or sync fail."""
        self.short_writes = 0.0
        """How many of the calls that write do not write all, which is no error."""

    # Faults

    def allow(self, calls: int, error_rate: float) -> None:
        """The process dies after so many calls."""
        self.calls_left, self.error_rate = calls, error_rate

    def restart(self, *, power: bool) -> None:
        """After a kill, or after a power failure."""
        self.calls_left, self.error_rate = -1, 0.0
        if power:
            for change in self._changes:
                if self.random.random() < 0.5:
                    _apply(self._on_disk, change)
            self._changes.clear()
            self.files = dict(self._on_disk)
            for inode in self.files.values():
                inode.lose_power(self.random)

    def flip(self, name: str, bit: int) -> None:
        """A bit changes, on the disk and in what is shown of it."""
        inode = self.files[name]
        inode.shown[bit // 8] ^= 1 << bit % 8
        inode.on_disk[bit // 8] ^= 1 << bit % 8

    def call(
        self, *, partly: Callable[[], object] = lambda: None, may_fail: bool = True, may_be_last: bool = True
    ) -> None:
        """One call: it may be the last one, or fail; `partly`: what it then has done, perhaps.

        `may_be_last`: a process that dies has perhaps done that, too; one that dies in a sync makes nothing clean.
        """
        if self.calls_left == 0:
            if self.random.random() < 0.5 and may_be_last:
                partly()
            raise Crashed
        self.calls_left -= self.calls_left > 0
        if may_fail and self.error_rate and self.random.random() < self.error_rate:
            partly()
            raise OSError(self.random.choice([errno.EIO, errno.ENOSPC]), "this disk fails")

    # What a log calls

    def names(self) -> list[str]:
        """The names of all files."""
        self.call(may_fail=False)
        return list(self.files)

    def size(self, name: str) -> int:
        """The size of a file in bytes."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return len(self.files[name].shown)

    def create(self, name: str) -> "FaultyFile":
        """A new, empty file."""
        self.call()
        inode = Inode()
        self._change({name: inode})
        return FaultyFile(self, inode)

    def open(self, name: str) -> "FaultyFile":
        """A file that is there."""
        self.call(may_fail=False)
        if name not in self.files:
            raise FileNotFoundError(name)
        return FaultyFile(self, self.files[name])

    def rename(self, old: str, new: str) -> None:
        """A file gets another name."""
        change = {old: None, new: self.files[old]}
        self.call(partly=lambda: self._change(change))
        self._change(change)

    def remove(self, name: str) -> None:
        """Removes a file."""
        self.call(partly=lambda: self._change({name: None}))
        self._change({name: None})

    def sync(self) -> None:
        """The names of all files are on the disk."""
        self.call(partly=self._sync_partly, may_be_last=False)
        for change in self._changes:
            _apply(self._on_disk, change)
        self._changes.clear()

    def _change(self, change: dict[str, Inode | None]) -> None:
        _apply(self.files, change)
        self._changes.append(change)

    def _sync_partly(self) -> None:
        for change in self._changes:
            if self.random.random() < 0.5:
                _apply(self._on_disk, change)
        self._changes.clear()


def _apply(names: dict[str, Inode], change: dict[str, Inode | None]) -> None:
    for name, inode in change.items():
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


class FaultyFile:
    """A file on it."""

    def __init__(self, disk: FaultyDisk, inode: Inode) -> None:
        self._disk, self._inode = disk, inode

    def read(self, start: int, size: int) -> bytes:
        """What is shown."""
        return bytes(self._inode.shown[start : start + size])

    def write(self, start: int, parts: Sequence[Part]) -> int:
        """All of it, or a part."""
        data, random = b"".join(parts), self._disk.random
        some = random.randrange(len(data) + 1)
        self._disk.call(partly=lambda: self._inode.write(start, data[:some]))
        if some and random.random() < self._disk.short_writes:
            data = data[:some]
        self._inode.write(start, data)
        return len(data)

    def cut(self, size: int) -> None:
        """Drops what is above this size."""
        self._disk.call(partly=lambda: self._inode.cut(size))
        self._inode.cut(size)

    def sync(self) -> None:
        """All of it is on the disk, or the call fails."""
        self._disk.call(partly=lambda: self._inode.sync_partly(self._disk.random), may_be_last=False)
        self._inode.sync()

    def close(self) -> None:
        """Nothing is written by this."""
