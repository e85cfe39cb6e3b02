"""Small files beside traces: configuration to read, results to write. Nothing here needs Arrow."""

import os
import tomllib
from pathlib import Path
from socket import gethostname
from typing import Any

from ordercast.model.errors import ConfigError

UNFINISHED = ".unfinished"


def unfinished(path: Path) -> Path:
    """The temporary name of a file until it is complete, different for each process that writes it."""
    return path.with_name(f"_{path.name}.{gethostname()}.{os.getpid()}{UNFINISHED}")


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a small file completely or not at all: on failure, such as a full disk, the previous file stays.

    A device or a pipe, such as /dev/stdout, is written to, and so is the file that a link leads to: the link stays.
    """
    if path.exists() and not path.is_file():  # before links are followed: that of a pipe leads to no path
        path.write_bytes(content)
        return
    path = path.resolve()
    hidden = unfinished(path)
    try:
        hidden.write_bytes(content)
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def read_toml(path: Path, what: str = "") -> dict[str, Any]:
    """Reads a TOML file; `what` it is, for errors. Raises `ConfigError` if it cannot be read."""
    name = f"{what} {path}".strip()
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror or error}; check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8 text: {error}; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: invalid TOML: {error}") from error
