"""Batches in the order of a group, and which of them were there before: the same answer at all members.

A batch is one message. Its source numbers its batches, and repeats the last one if it does not know whether it arrived:
so of each source only the number of its last batch has to be remembered. What is remembered depends on the order alone,
no clock and no member has a part in it. It belongs into the application's state, or is found again in the log.
"""

import msgspec

from ordercast.model.config import require
from ordercast.model.errors import ConfigError

MAGIC = b"OCBT\x01"
"""The first bytes of a message that is a batch: no UTF-8 text begins so unless somebody wants it to."""
REMEMBERED = 4096
"""Sources; the one whose last batch is the oldest is forgotten."""
MAX_NAME = 200


class Batch(msgspec.Struct, frozen=True):
    """Rows that a source has sent together."""

    source: str
    """Who numbers the batches: of a stream of Spark, the id of its query, which its checkpoint keeps."""
    number: int
    """Larger than that of the batch before, from the same source."""
    rows: tuple[bytes, ...]
    position: int = -1
    """Its place in the order."""
    sender: str = ""
    """The gateway that sent it."""


class _Content(msgspec.Struct, frozen=True, array_like=True):
    source: str
    number: int
    rows: tuple[bytes, ...]


_encode = msgspec.msgpack.encode
_decode_content = msgspec.msgpack.Decoder(_Content).decode


def encode_batch(batch: Batch) -> bytes:
    """The payload of its message."""
    require(
        0 < len(batch.source) <= MAX_NAME,
        f"the name of a source has 1 to {MAX_NAME} characters, not {len(batch.source)}",
    )
    require(0 <= batch.number < 1 << 63, f"the number of a batch is 0 or more, not {batch.number}")
    return MAGIC + _encode(_Content(batch.source, batch.number, batch.rows))


def decode_batch(payload: bytes, position: int = -1, sender: str = "") -> Batch | None:
    """What a message holds; None if it is no batch."""
    if not payload.startswith(MAGIC):
        return None
    try:
        content = _decode_content(payload[len(MAGIC) :])
    except msgspec.DecodeError:
        return None
    if not 0 < len(content.source) <= MAX_NAME or content.number < 0:
        return None
    return Batch(content.source, content.number, content.rows, position, sender)


class _Last(msgspec.Struct, array_like=True):
    number: int
    position: int


class Batches:
    """What a member remembers of the batches that it was delivered."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}
        self.repeated = 0
        """Batches that were there before, since this process began."""

    def __repr__(self) -> str:
        return f"<Batches of {len(self._last)} sources>"

    def take(self, payload: bytes, position: int, sender: str = "") -> Batch | bytes | None:
        """What the application is to handle: a batch that is new, or the payload of a message that is no batch.

        None: a batch that was there before. Every member calls it with every message, in their order.
        """
        batch = decode_batch(payload, position, sender)
        if batch is None:
            return payload
        last = self._last.get(batch.source)
        if last is not None and batch.number <= last.number:
            self.repeated += 1
            return None
        self._last[batch.source] = _Last(batch.number, position)
        if len(self._last) > REMEMBERED:
            del self._last[min(self._last, key=lambda source: self._last[source].position)]
        return batch

    def last(self, source: str) -> tuple[int, int] | None:
        """The number and the position of the last batch of a source; None if it sent none."""
        found = self._last.get(source)
        return (found.number, found.position) if found is not None else None

    def save(self) -> bytes:
        """What to keep, in the application's state: equal at all members at the same position."""
        return _encode(dict(sorted(self._last.items())))

    def load(self, saved: bytes) -> None:
        """Goes on with what another member has saved, or this one before; raises `ConfigError` if it cannot."""
        try:
            self._last = msgspec.msgpack.decode(saved, type=dict[str, _Last])
        except msgspec.DecodeError as error:
            raise ConfigError(f"these bytes are not what Batches.save returned: {error}") from None
