"""A copy of a log in an object store, or on another storage with a URL, as a disk that can be read.

A store's listing is that of now, and an object is put whole: so a segment is there or it is not.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from ordercast.model.errors import ConfigError
from ordercast.trace.storage import RemotePath, location


def _refuse(*_: object) -> NoReturn:
    raise OSError(30, "a log in an object store can only be read")


class StoreDisk:
    """A folder of an object store, such as `s3://bucket/orders/A`; its errors are `OSError`."""

    def __init__(self, address: str) -> None:
        """Raises `ConfigError` if there is no such store."""
        folder = location(address)
        if not isinstance(folder, RemotePath):
            raise ConfigError(f"{address!r} is no URL of a storage")
        self._folder = folder
        self.address = address

    def __repr__(self) -> str:
        return f"<StoreDisk {self.address}>"

    def names(self) -> list[str]:
        """The names of all files."""
        return [inside.name for inside, _ in self._folder.files(recursive=False)]

    def size(self, name: str) -> int:
        """The size of a file."""
        return (self._folder / name).size()

    def open(self, name: str) -> "_StoredFile":
        """A file that is there."""
        return _StoredFile((self._folder / name).open())

    def close(self) -> None:
        """Nothing is open."""

    create = rename = remove = sync = _refuse


class _StoredFile:
    def __init__(self, file: Any) -> None:
        self._file, self._size = file, int(file.size())

    def read(self, start: int, size: int) -> bytes:
        return bytes(self._file.read_at(max(0, min(size, self._size - start)), start))

    def write(self, start: int, parts: Sequence[bytes | memoryview]) -> int:
        _refuse(start, parts)

    def close(self) -> None:
        self._file.close()

    cut = sync = _refuse
