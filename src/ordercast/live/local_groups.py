"""Which groups have members on this machine: a member on loopback notes its address in a folder of its user.

So a process can join a group, or ask for its members, knowing only the group's name. A note is a file, and its member
holds a lock on it while it runs: a file without a lock was left behind by a process that was killed, counts for
nothing, and is removed by whoever finds it. Nothing depends on these notes but finding: if they cannot be written, the
member runs without one.
"""

import contextlib
import fcntl
import logging
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from ordercast.live.transport.addresses import Address, address_of
from ordercast.model.errors import ConfigError, reason_of

_log = logging.getLogger("ordercast.join")
_FOLDER = "ordercast"
_MAX_NOTE = 1 << 16  # bytes
_WRITTEN_WITHIN = 60.0  # seconds


class _Note(msgspec.Struct, frozen=True):
    """What a file contains."""

    group: str
    name: str
    address: str


class Registration:
    """A note of one member; it holds for as long as the process lives, or until it is removed."""

    def __init__(self, path: Path | None = None, held: int | None = None) -> None:
        """`held`: the open file with the lock. Without them: nothing could be written, and nothing is removed."""
        self._path, self._held = path, held

    def remove(self) -> None:
        """The member has ended. May be called again."""
        held, self._held = self._held, None
        if held is not None and self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(held)


def register(group: str, name: str, address: Address) -> Registration:
    """Notes where a member of a group is. Whatever fails is logged: the member runs without a note."""
    fields = {"group": group, "member": name}
    try:
        folder = own_folder()
        _remove_abandoned(folder, group)
        path = folder / f"{_hash(group)}-{_hash(name)}-{secrets.token_hex(8)}"
        return Registration(path, _write(path, _Note(group, name, str(address))))
    except (OSError, ConfigError) as error:
        _log.warning(
            "%s will not be found on this machine by the name of the group %s alone: %s",
            *(name, group, reason_of(error)),
            extra=fields,
        )
        return Registration()


def contacts_of(group: str) -> list[Address]:
    """Addresses of members of a group that run on this machine, as far as they are noted; each once."""
    found = [address_of(note.address) for _, note in _notes(_hash(group)) if note.group == group]
    return list(dict.fromkeys(found))


def local_groups() -> list[str]:
    """The names of all groups that have members on this machine, sorted."""
    return sorted({note.group for _, note in _notes("")})


def _folders() -> list[Path]:
    """Where notes may be, the first choice first. Not all processes of a user have the same environment."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    runtime = [Path(given) / _FOLDER] if given.startswith("/") else []
    return [*runtime, Path(tempfile.gettempdir()) / f"{_FOLDER}-{os.geteuid()}"]


def own_folder() -> Path:
    """The first folder that is this user's alone, made if it is not there."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        if _is_own(folder):
            return folder
    raise ConfigError(f"no folder belongs to this user alone: {', '.join(map(str, _folders()))}")


def _is_own(folder: Path) -> bool:
    """Others must not be able to write there: they could send whoever looks for a group to one of their own."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _hash(name: str) -> str:
    """For a file's name: names of groups and members may contain slashes, and may be long."""
    return blake2b(name.encode(), digest_size=12).hexdigest()


def _write(path: Path, note: _Note) -> int:
    """Writes a file that is complete and locked when it appears; returns it open."""
    hidden = path.with_name(f".{path.name}")
    held = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(held, "wb", closefd=False) as file:
            file.write(msgspec.json.encode(note))
        hidden.rename(path)
    except BaseException:
        os.close(held)
        with contextlib.suppress(OSError):
            hidden.unlink(missing_ok=True)
        raise
    return held


def _notes(prefix: str) -> Iterator[tuple[Path, _Note]]:
    """Notes of members that run, whose files' names begin so; those of others are removed."""
    for folder in filter(_is_own, _folders()):
        for path in sorted(folder.glob(f"{prefix}*-*-*")):
            if _is_abandoned(path):
                continue
            try:
                with path.open("rb") as file:
                    note = msgspec.json.decode(file.read(_MAX_NOTE), type=_Note)
                address_of(note.address)
            except (OSError, msgspec.MsgspecError, ConfigError):
                continue  # it has just ended, or somebody has written into our folder
            yield path, note


def _remove_abandoned(folder: Path, group: str) -> None:
    """Also those that were killed while they wrote; what is younger may not be locked yet."""
    for path in folder.glob(f"{_hash(group)}-*"):
        _is_abandoned(path)
    for path in folder.glob(f".{_hash(group)}-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _WRITTEN_WITHIN:
                _is_abandoned(path)


def _is_abandoned(path: Path) -> bool:
    """Whether nobody holds its lock; then it is removed. No name is used twice, so that it is nobody else's by now."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except OSError:  # it is locked, or the file system has no locks, or it has gone
        return False
    return True
