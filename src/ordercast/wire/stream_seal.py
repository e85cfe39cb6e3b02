"""Seals for connections: frames in one direction, plain on a trusted network, else encrypted and authenticated.

Each frame has a header, which is never encrypted, and a body. With a key, frames are authenticated with their number in
the stream, so that none can be changed, left out, repeated or put elsewhere. The plain seal checks nothing: whoever
uses it sends a digest at the end.
"""

from collections.abc import Sequence
from typing import Protocol

from ordercast.wire.keys import GroupKeys

Buffer = bytes | bytearray | memoryview


class StreamSeal(Protocol):
    """One direction of a connection; frames are sealed, and opened, in their order."""

    overhead: int
    """Bytes by which a sealed body is longer."""
    authenticates: bool
    """Whether a changed frame does not open."""

    def seal(self, header: bytes, body: Buffer) -> Buffer:
        """The body of the next frame, as it is sent."""
        ...

    def open(self, header: bytes, body: Buffer) -> bytes | None:
        """The body of the next frame; None if it is forged."""
        ...


class PlainStreamSeal:
    """Frames as they are."""

    overhead = 0
    authenticates = False

    def seal(self, header: bytes, body: Buffer) -> Buffer:
        """The same."""
        del header
        return body

    def open(self, header: bytes, body: Buffer) -> bytes:
        """The same."""
        del header
        return bytes(body)


def stream_seals(
    group: str, keys: GroupKeys | None, key_id: int, context: bytes, directions: Sequence[bytes]
) -> tuple[StreamSeal, ...] | None:
    """A seal for each direction of one connection; None if there is no such key.

    `key_id`: 0 for a plain connection. `context`: never the same for two connections: both sides choose a part of it.
    """
    if keys is None:
        return tuple(PlainStreamSeal() for _ in directions) if key_id == 0 else None
    secret = keys.by_id().get(key_id)
    if secret is None:
        return None
    from ordercast.wire.authentication import AuthenticatedStreamSeal  # noqa: PLC0415 (only groups with a key need the package)

    return tuple(AuthenticatedStreamSeal(group, secret, context, direction) for direction in directions)
