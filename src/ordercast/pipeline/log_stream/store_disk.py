"""A copy of a log in an object store, or wherever `pyarrow.fs` reads, as a disk that can be read."""

from collections.abc import Sequence
from typing import Any, NoReturn

from pyarrow import fs

from ordercast.model.errors import ConfigError


def _refuse(*_: object) -> NoReturn:
    raise OSError(30, "a log in an object store can only be read")


class StoreDisk:
    """A folder of an object store, such as `s3://bucket/orders/A`."""

    def __init__(self, address: str) -> None:
        """Raises `ConfigError` if there is no such store."""
        try:
            self._store, self._folder = fs.FileSystem.from_uri(address)
        except Exception as error:
            raise ConfigError(f"{address!r} is no place of a log: {error}") from error
        self.address = address

    def __repr__(self) -> str:
        return f"<StoreDisk {self.address}>"

    def names(self) -> list[str]:
        """The names of all files."""
        return [each.base_name for each in self._store.get_file_info(fs.FileSelector(self._folder))]

    def size(self, name: str) -> int:
        """The size of a file."""
        found = self._store.get_file_info(f"{self._folder}/{name}")
        if found.type != fs.FileType.File:
            raise FileNotFoundError(2, f"there is no {name} in {self.address}")
        return int(found.size)

    def open(self, name: str) -> "_StoredFile":
        """A file that is there."""
        return _StoredFile(self._store.open_input_file(f"{self._folder}/{name}"))

    def close(self) -> None:
        """Nothing is open."""

    create = rename = remove = sync = _refuse


class _StoredFile:
    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, start: int, size: int) -> bytes:
        return bytes(self._file.read_at(max(0, min(size, self._file.size() - start)), start))

    def write(self, start: int, parts: Sequence[bytes | memoryview]) -> int:
        _refuse(start, parts)

    def close(self) -> None:
        self._file.close()

    cut = sync = _refuse
