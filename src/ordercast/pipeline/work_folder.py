"""The folder of a sweep or a soak: its manifest says what it is to hold, and it is locked while it is written."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from ordercast import __version__
from ordercast.model.errors import ConfigError, TraceError
from ordercast.trace.files import cannot_write
from ordercast.trace.small_files import UNFINISHED, write_atomically
from ordercast.trace.storage import Location, RemotePath


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder is to hold; subclasses add fields."""

    version: str = __version__
    """Of the ordercast that began it: another version may simulate other runs."""


Held = TypeVar("Held", bound=Manifest)


def read_manifest(path: Location, kind: type[Held], what: str, *, resume: bool) -> Held:
    """The manifest of a folder that holds `what`, a sweep or a soak.

    Raises `ConfigError` without `resume` or if another version began it, and `TraceError` if it cannot be read.
    """
    folder = path.parent
    if not resume:
        raise ConfigError(f"{folder} already holds a {what}; continue it with --resume, or choose another folder")
    try:
        held = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} is not the manifest of a {what}: {error}; choose another folder") from error
    if held.version != __version__:
        raise ConfigError(
            f"{folder} was begun by ordercast {held.version}, and this is {__version__}: their runs may differ; "
            "choose another folder"
        )
    return held


@contextmanager
def locked(path: Location, manifest: Manifest, what: str) -> Iterator[None]:
    """Writes the manifest, if it is not there, and locks it. `OSError` within is raised as `TraceError`."""
    folder = path.parent
    try:
        if isinstance(path, RemotePath):
            _put_manifest(path, manifest, what)
            yield
            return
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, msgspec.json.encode(manifest))
        with path.open("rb") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(
                    f"another {what} is writing to {folder}; wait for it, or choose another folder"
                ) from error
            yield
    except OSError as error:
        raise cannot_write(f"the {what} {folder}", error) from error


def _put_manifest(path: RemotePath, manifest: Manifest, what: str) -> None:
    """Writes the manifest where there are no locks: whoever was last decides what the folder is to hold.

    Two that write the same do not hurt each other: equal runs give equal bytes, and files appear whole.
    """
    if not path.exists():
        path.write_bytes(msgspec.json.encode(manifest))
    if path.read_bytes() != msgspec.json.encode(manifest):
        raise ConfigError(f"another {what} is writing to {path.parent}; choose another folder")


def remove_unfinished(folders: Sequence[Path]) -> None:
    """Removes files that a process that died left unfinished."""
    for folder in folders:
        for path in folder.glob(f"_*{UNFINISHED}"):
            path.unlink(missing_ok=True)
