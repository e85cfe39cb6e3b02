"""What a log has behind a place, as bytes for another member, and back: views and packets, in their order."""

from collections.abc import AsyncIterator, Iterator
from struct import Struct

import msgspec

from ordercast.log.agreement import LogPlace
from ordercast.log.disk import Disk
from ordercast.log.format import Packet, View
from ordercast.log.reader import frames_of

_LENGTH = Struct("<I")
BLOCK = 256 << 10
"""Bytes that are gathered before they are handed on."""


class SuffixHeading(msgspec.Struct, frozen=True, array_like=True):
    """What comes: everything from a place that both have up to the end."""

    start: LogPlace
    end: int
    """The position behind the last message."""


class StateHeading(msgspec.Struct, frozen=True, array_like=True):
    """What comes: the application's state at this place."""

    position: int
    hash: bytes
    view: View


class _View(msgspec.Struct, frozen=True, array_like=True, tag=1):
    number: int
    members: tuple[str, ...]


class _Packet(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    source: int
    first: int
    lengths: tuple[int, ...]
    payload: bytes
    priority: int


_decoder = msgspec.msgpack.Decoder(_View | _Packet)
_encode = msgspec.msgpack.Encoder().encode


def suffix_of(disk: Disk, start: int, stop: int) -> Iterator[bytes]:
    """What a log has from a place up to another one, in blocks; raises `LogError`, `LogDamaged`."""
    block: list[bytes] = []
    size, view = 0, View()
    for logged in frames_of(disk, start):
        position = logged.frame.header.first
        if position >= stop:
            break
        items: list[_View | _Packet] = []
        if logged.view != view:
            view = logged.view
            items.append(_View(view.number, view.members))
        for packet in logged.frame.packets():
            if start <= position < stop:
                lengths, payload = tuple(packet.lengths), bytes(packet.payload)
                items.append(_Packet(packet.source, packet.first, lengths, payload, packet.priority))
            position += len(packet.lengths)
        for item in items:
            data = _encode(item)
            block += [_LENGTH.pack(len(data)), data]
            size += len(data)
        if size >= BLOCK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)


async def items_of(parts: AsyncIterator[bytes]) -> AsyncIterator[View | Packet]:
    """The same, from what arrives, however it is cut; raises `ValueError` if it is something else."""
    rest = b""
    async for part in parts:
        rest = rest + part if rest else part
        at = 0
        while len(rest) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(rest, at)
            end = at + _LENGTH.size + length
            if end > len(rest):
                break
            item = _decoder.decode(memoryview(rest)[at + _LENGTH.size : end])
            if isinstance(item, _View):
                yield View(item.number, item.members)
            else:
                yield Packet(item.source, item.first, item.lengths, item.payload, item.priority)
            at = end
        rest = rest[at:]
    if rest:
        raise ValueError("the end of a log was cut on the way")
