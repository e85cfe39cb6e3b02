"""A disk that notes in which order it is asked for what, and which files are open."""

from collections.abc import Sequence

from ordercast.log.disk import Disk, File, Part


class WatchedFile:
    """A file of it."""

    def __init__(self, file: File, name: str, disk: "WatchedDisk") -> None:
        self._file, self._name, self._disk = file, name, disk
        disk.open_files.append(name)

    def read(self, start: int, size: int) -> bytes:
        return self._file.read(start, size)

    def write(self, start: int, parts: Sequence[Part]) -> int:
        self._disk.calls.append(f"write {self._name}")
        return self._file.write(start, parts)

    def cut(self, size: int) -> None:
        self._file.cut(size)

    def sync(self) -> None:
        self._disk.calls.append(f"sync {self._name}")
        self._file.sync()

    def close(self) -> None:
        self._disk.open_files.remove(self._name)
        self._file.close()


class WatchedDisk:
    """Another disk, watched."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.calls: list[str] = []
        """All that changes something."""
        self.open_files: list[str] = []

    def names(self) -> list[str]:
        return self._disk.names()

    def size(self, name: str) -> int:
        return self._disk.size(name)

    def create(self, name: str) -> WatchedFile:
        self.calls.append(f"create {name}")
        return WatchedFile(self._disk.create(name), name, self)

    def open(self, name: str) -> WatchedFile:
        return WatchedFile(self._disk.open(name), name, self)

    def rename(self, old: str, new: str) -> None:
        self.calls.append(f"rename {new}" if old == f".{new}" else f"rename {old} {new}")
        self._disk.rename(old, new)

    def remove(self, name: str) -> None:
        self.calls.append(f"remove {name}")
        self._disk.remove(name)

    def sync(self) -> None:
        self.calls.append("sync")
        self._disk.sync()

    def changes_of_names(self) -> list[str]:
        """Removed and renamed files, and syncs of the folder."""
        return [call for call in self.calls if call == "sync" or call.startswith(("remove", "rename"))]
