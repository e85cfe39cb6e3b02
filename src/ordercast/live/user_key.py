"""The key of this user: what encrypts groups on one machine that were given no key.

Any user of a machine can send to its loopback addresses. A key that only this user can read keeps all others out of the
user's groups, without anybody having to make one: it is made when it is needed first.
"""

import logging
import os
import secrets
import stat
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ordercast.live.local_groups import own_folder
from ordercast.model.errors import ConfigError, reason_of
from ordercast.wire.keys import KEY_VARIABLE, GroupKeys, keys_from_file, new_key

_log = logging.getLogger("ordercast.security")
_FOLDER, _FILE = "ordercast", "user.key"
_KEY_ID = 255
"""Unlike those that people choose: whoever has another key, or none, is told that it is another one."""


def is_shared(key: object, *, insecure: bool) -> bool:
    """Whether a group on this machine may have members of several users: it was given a key, or needs none."""
    return key is not None or insecure or KEY_VARIABLE in os.environ


def user_keys() -> GroupKeys | None:
    """The key of this user, made if there is none. None, and a warning: there is nowhere to keep it, or no encryption.

    Raises `ConfigError` if there is a file that is not a key, or that others can read.
    """
    if find_spec("cryptography") is None:
        _warn("the package cryptography is not installed (pip install 'ordercast[live]')")
        return None
    places = _places()
    for path in places:
        if _exists(path):
            return _read(path)
    for path in places:
        with suppress(OSError):
            _make(path)
        if _exists(path):
            return _read(path)
    _warn(f"no key can be written to {' or '.join(map(str, places))}")
    return None


def _warn(why: str) -> None:
    _log.warning("other users of this machine can take part in groups without a key: %s", why)


def _places() -> list[Path]:
    """Where the key may be: in the user's configuration, or where there is none in a folder of the user's alone."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    found = []
    with suppress(RuntimeError):  # there is no home
        found.append((Path(given) if given.startswith("/") else Path.home() / ".config") / _FOLDER / _FILE)
    with suppress(ConfigError):
        found.append(own_folder() / _FILE)
    return found


def _exists(path: Path) -> bool:
    """Whether this user has a file there; what another user left behind counts for nothing."""
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _read(path: Path) -> GroupKeys:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ConfigError(f"{path}, where the key of this user should be, is not a file: remove it")
    try:
        return keys_from_file(path)
    except ConfigError as error:
        raise ConfigError(
            f"{error} (it is the key of this user, for groups on this machine; without the file a new one is made)"
        ) from None


def _make(path: Path) -> None:
    """Complete when it appears, and never two: another process may make it at the same time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    made = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(made, "w") as file:
            file.write(f"# The key of this user, for groups on this machine.\n{new_key(_KEY_ID)}\n")
            file.flush()
            os.fsync(made)  # else a machine that fails now may find a file without a key
        with suppress(FileExistsError):
            path.hardlink_to(hidden)
    except OSError as error:
        _log.warning("cannot write %s: %s", path, reason_of(error))
        raise
    finally:
        hidden.unlink(missing_ok=True)
