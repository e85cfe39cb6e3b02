"""A state that an application saved, cut into chunks for the network."""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from inspect import iscoroutine

from ordercast.live.state_transfer.connection import CHUNK
from ordercast.wire.stream_seal import Buffer

_LONGEST_TURN = 0.001  # seconds for which small parts are gathered

Parts = Iterator[object] | AsyncIterator[object]


class Snapshot:
    """A state at one place of the order. One that is an iterator can be read once only."""

    def __init__(self, saved: object) -> None:
        """Raises `TypeError` if it is not what `save` may return."""
        if isinstance(saved, bytes | bytearray | memoryview):
            self._parts: object = (bytes(saved),)
        elif isinstance(saved, Iterable | AsyncIterator) and not isinstance(saved, str):
            self._parts = saved
        else:
            if iscoroutine(saved):
                saved.close()
            raise TypeError(f"save() must return bytes or an iterator over bytes, at once, not {type(saved).__name__}")
        self._is_read = False

    @property
    def is_shared(self) -> bool:
        """Whether it can be read several times: it is bytes, or a collection of them."""
        return not isinstance(self._parts, Iterator | AsyncIterator)

    @property
    def is_spent(self) -> bool:
        """Whether it has been read, and cannot be read again."""
        return self._is_read and not self.is_shared

    def chunks(self) -> "Chunks":
        """Reads it, from the beginning."""
        self._is_read = True
        parts = self._parts
        assert isinstance(parts, Iterable | AsyncIterator)
        return Chunks(parts if isinstance(parts, AsyncIterator) else iter(parts))


class Chunks:
    """Takes the parts of a state one after another, and cuts them anew: a large one in pieces, small ones together."""

    def __init__(self, parts: Parts, clock: Callable[[], float] = time.perf_counter) -> None:
        self._parts, self._clock = parts, clock
        self._rest = memoryview(b"")  # of the last part
        self._ended = False

    @property
    def may_wait(self) -> bool:
        """Whether the next chunk may have to be waited for."""
        return isinstance(self._parts, AsyncIterator) and len(self._rest) < CHUNK

    async def next(self) -> Buffer:
        """The next chunk; empty: there is no more. Takes no part before all of the last one is used."""
        if self._rest:
            return self._cut()
        gathered: list[memoryview] = []
        size, until = 0, self._clock() + _LONGEST_TURN
        while size < CHUNK and (not size or self._clock() < until):
            part = await self._part()
            if part is None:
                break
            if size + len(part) > CHUNK:
                self._rest = part
                break
            if part:
                gathered.append(part)
                size += len(part)
        if not gathered:
            return self._cut()
        return gathered[0] if len(gathered) == 1 else b"".join(gathered)

    def _cut(self) -> memoryview:
        chunk, self._rest = self._rest[:CHUNK], self._rest[CHUNK:]
        return chunk

    async def _part(self) -> memoryview | None:
        if self._ended:
            return None
        try:
            part = await anext(self._parts) if isinstance(self._parts, AsyncIterator) else next(self._parts)
        except (StopIteration, StopAsyncIteration):
            self._ended = True
            return None
        if not isinstance(part, bytes | bytearray | memoryview):
            raise TypeError(f"the parts of a state must be bytes, not {type(part).__name__}")
        return memoryview(
            part if isinstance(part, bytes) else bytes(part)
        )  # a buffer may be used for the next part, too

    async def close(self) -> None:
        """Takes no more parts."""
        self._ended = True
        close = getattr(self._parts, "aclose", None) or getattr(self._parts, "close", None)
        if close is not None:
            found = close()
            if found is not None:
                await found
