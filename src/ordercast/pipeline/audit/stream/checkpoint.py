"""Reads and writes the files of a checkpoint, each of which is replaced as a whole, in a folder or behind a URL."""

from typing import TypeVar

import msgspec

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.storage import Location, write_whole

_State = TypeVar("_State", bound=msgspec.Struct)


def read_state(file: Location, kind: type[_State]) -> _State | None:
    """What a file holds; None if there is no such file."""
    try:
        return msgspec.msgpack.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise TraceError(f"cannot read {file}: {error}; remove the checkpoint that it is in to start again") from error


def write_state(file: Location, state: msgspec.Struct) -> None:
    """Replaces a file."""
    try:
        write_whole(file, msgspec.msgpack.encode(state))
    except OSError as error:
        raise TraceError(f"cannot write {file}: {reason_of(error)}; use --checkpoint for another place") from error
