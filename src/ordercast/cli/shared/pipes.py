"""Standard input and output of a member, read and written by threads, so that a slow pipe never stops the member.

The writer of our input waits when the group cannot take more, and the group slows down when the reader of our output is
slow; meanwhile the member keeps answering the others, which would otherwise suspect it of having failed.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from queue import SimpleQueue
from threading import Semaphore, Thread

_CHUNK = 1 << 16
_AHEAD = 2  # chunks that are read ahead
_UNWRITTEN = 1 << 20  # bytes that may wait for a slow reader


async def lines_of(descriptor: int, longest: int) -> AsyncIterator[bytes]:
    """The lines of a pipe, a terminal or a file, without their ends; of one longer than `longest`, one byte more."""
    pending = bytearray()
    async for chunk in _chunks(descriptor):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            pending += part[: longest + 1 - len(pending)]
            yield bytes(pending)
            pending.clear()
        pending += rest[: longest + 1 - len(pending)]
    if pending:
        yield bytes(pending)


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    read: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = Semaphore(_AHEAD)

    def work() -> None:
        """With os.read: a thread that waits in a Python file object would keep the process from ending."""
        chunk: bytes | OSError = b" "
        while chunk and not isinstance(chunk, OSError):
            room.acquire()
            try:
                chunk = os.read(descriptor, _CHUNK)
            except OSError as error:
                chunk = error
            try:
                loop.call_soon_threadsafe(read.put_nowait, chunk)
            except RuntimeError:  # the loop is over
                return

    Thread(target=work, daemon=True, name="ordercast-input").start()
    while True:
        chunk = await read.get()
        room.release()
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        yield chunk


class Output:
    """Writes bytes in as few system calls as possible."""

    def __init__(self, descriptor: int, failed: Callable[[OSError], None]) -> None:
        """`failed` is called in the event loop if a write fails, because the reader has gone or the disk is full."""
        self._descriptor, self._failed = descriptor, failed
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []
        self._size = 0
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._work: SimpleQueue[bytes] = SimpleQueue()
        self.error: OSError | None = None
        Thread(target=self._write_all, daemon=True, name="ordercast-output").start()

    async def write(self, data: bytes) -> None:
        """Queues bytes; waits while too many are queued."""
        if self.error is not None:
            return
        self._waiting.append(data)
        self._size += len(data)
        self._hand_on()
        if self._size > _UNWRITTEN:
            await self.flushed()

    async def flushed(self) -> None:
        """Waits until everything is written, or a write has failed."""
        await self._idle.wait()

    def _hand_on(self) -> None:
        if not self._busy and self._waiting:
            self._busy = True
            self._idle.clear()
            data, self._waiting, self._size = b"".join(self._waiting), [], 0
            self._work.put(data)

    def _write_all(self) -> None:
        while True:
            rest = memoryview(self._work.get())
            error: OSError | None = None
            while rest and error is None:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except OSError as problem:
                    error = problem
            try:
                self._loop.call_soon_threadsafe(self._written, error)
            except RuntimeError:  # the loop is over
                return

    def _written(self, error: OSError | None) -> None:
        self._busy = False
        if error is not None:
            self.error = error
            self._waiting = []
            self._failed(error)
        self._hand_on()
        if not self._busy:
            self._idle.set()
