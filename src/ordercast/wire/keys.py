"""Group keys: who has one can read what the group sends, and send as any member of it.

A key is a line ID:HEX, an id from 1 to 255 and 32 random bytes as 64 hexadecimal digits. The first line is the key to
encrypt with; all are used to decrypt, so that a group can rotate keys without stopping. No error and no repr contains
anything of a key.
"""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from ordercast.model.config import require
from ordercast.model.errors import ConfigError

KEY_SIZE = 32
KEY_VARIABLE = "ORDERCAST_KEY"
_LINE = re.compile(rf"(\d{{1,3}}):([0-9a-fA-F]{{{2 * KEY_SIZE}}})", re.ASCII)


class GroupKeys:
    """The keys of a group by their ids. Not a struct: whatever writes values as text must not find the secrets."""

    __slots__ = ("_secrets", "current")

    def __init__(self, secrets: Mapping[int, bytes]) -> None:
        require(secrets, "a group needs at least one key to encrypt")
        for key_id, secret in secrets.items():
            require(1 <= key_id <= 255, f"the id of a key must be 1 to 255, not {key_id}")
            require(len(secret) == KEY_SIZE, f"a key must have {KEY_SIZE} bytes, and key {key_id} has {len(secret)}")
        self._secrets = dict(secrets)
        self.current = next(iter(self._secrets))
        """The id of the key to encrypt with."""

    def __repr__(self) -> str:
        return f"GroupKeys(current={self.current}, known={list(self._secrets)})"

    def by_id(self) -> dict[int, bytes]:
        """The keys themselves, for encryption only: never written or logged."""
        return dict(self._secrets)


def new_key(key_id: int = 1) -> str:
    """A line with a new random key."""
    return f"{key_id}:{secrets.token_hex(KEY_SIZE)}"


def keys_from_text(text: str, where: str) -> GroupKeys:
    """The keys in lines of text. What follows a # is a comment; `where` names the source in errors."""
    found: dict[int, bytes] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None:
            raise ConfigError(
                f"line {number} of {where} is not a key; write ID:HEX, an id from 1 to 255 and {2 * KEY_SIZE} "
                "hexadecimal digits"
            )
        key_id = int(match[1])
        if key_id in found:
            raise ConfigError(f"line {number} of {where} repeats the id {key_id}; give each key an id of its own")
        found[key_id] = bytes.fromhex(match[2])
    if not found:
        raise ConfigError(f"no key in {where}; write a line ID:HEX (`ordercast key` makes one)")
    return GroupKeys(found)


def keys_from_file(path: Path) -> GroupKeys:
    """The keys in a file that only its owner may read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:  # an error of decoding would carry the bytes
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigError(f"{path} can be read by other users; run: chmod 600 {path}")
            return keys_from_text(file.read(), str(path))
    except OSError as error:
        raise ConfigError(
            f"cannot read the keys in {path}: {error.strerror or error}; check the path, or make a key: "
            "ordercast key --out FILE"
        ) from error


def keys_from_environment(environment: Mapping[str, str]) -> GroupKeys | None:
    """The keys in ORDERCAST_KEY, if it is set."""
    text = environment.get(KEY_VARIABLE)
    return None if text is None else keys_from_text(text, f"the variable {KEY_VARIABLE}")
