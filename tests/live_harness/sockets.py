"""Sockets as live code uses them, and a module `socket` that makes them."""

import os
import socket as real
from collections import deque
from collections.abc import Sequence
from errno import EADDRINUSE, EAGAIN, EBADF, EINTR, EIO, EMSGSIZE, ENETUNREACH, ENOBUFS, EPERM
from sys import byteorder
from typing import TYPE_CHECKING, Any

from ordercast.live.transport.sockets import BUFFER, REPORTED_PER_BYTE

if TYPE_CHECKING:
    from tests.live_harness.network import Place
    from tests.live_harness.world import Process, World

_SEGMENT, _MERGE = 103, 104
_LARGEST, _MOST_MERGED = 65_507, 64
_FIRST_PORT = 40_000
_EMPTY = os.strerror(EAGAIN)
_REFUSALS = [EAGAIN, ENOBUFS, EPERM, ENETUNREACH]


class VirtualSocket:
    """A datagram socket of one process; what the system refuses is drawn by the plan's weather."""

    family = real.AF_INET

    def __init__(self, process: "Process") -> None:
        self._process, self._network = process, process.world.network
        self._chance = process.world.chance(f"system {len(self._network.sockets)}")
        self._number = self._network.add(self)
        self._place: Place = ("0.0.0.0", 0)  # noqa: S104
        self._queue: deque[tuple[bytes, Place]] = deque()
        self._waiting = 0
        self._errors: deque[int] = deque(maxlen=4)
        self._merges = self._closed = False
        process.on_kill.append(self.close)

    # --- from the network ---

    def is_readable(self) -> bool:
        """Whether something waits to be read."""
        return bool(self._queue or self._errors)

    def arrive(self, source: "Place", data: bytes) -> None:
        """A datagram; what finds no room is lost."""
        if self._waiting + len(data) <= self._network.weather.buffer:
            self._queue.append((data, source))
            self._waiting += len(data)
            self._process.wake(self._process.world.now)

    def fail(self, error: int) -> None:
        """The next call of the process fails so."""
        self._errors.append(error)
        self._process.wake(self._process.world.now)

    # --- calls of the process ---

    def fileno(self) -> int:
        return -1 if self._closed else self._number

    def setblocking(self, flag: object) -> None:
        """It never blocks."""

    def setsockopt(self, level: int, option: int, value: int) -> None:
        if level == real.IPPROTO_UDP and option == _MERGE:
            self._merges = bool(value) and not self._network.weather.no_segments

    def getsockopt(self, level: int, option: int) -> int:
        del level, option
        return min(BUFFER, self._network.weather.buffer) * REPORTED_PER_BYTE

    def bind(self, place: "Place") -> None:
        bound = self._network.bound
        host, port = place[:2]
        if not port:
            port = next(each for each in range(_FIRST_PORT, 1 << 16) if (host, each) not in bound)
        if (host, port) in bound:
            raise OSError(EADDRINUSE, os.strerror(EADDRINUSE))
        self._place = host, port
        bound[self._place] = self

    def getsockname(self) -> "Place":
        return self._place

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._network.bound.get(self._place) is self:
                del self._network.bound[self._place]
            self._queue.clear()

    def sendto(self, data: Any, place: "Place") -> int:
        """Sends a datagram; now and then the system refuses, or sends less than it was given."""
        whole = bytes(data)
        self._may_refuse()
        if len(whole) > _LARGEST:
            raise OSError(EMSGSIZE, os.strerror(EMSGSIZE))
        weather = self._network.weather
        if weather.short_sends and self._chance.random() < weather.short_sends:
            whole = whole[: self._chance.randrange(1, len(whole) + 1)]
        self._network.transmit(self._place, place[:2], whole)
        return len(whole)

    def sendmsg(self, parts: Sequence[Any], ancillary: Sequence[Any], flags: int, place: "Place") -> int:
        """Sends the parts as datagrams of one size (GSO)."""
        del flags
        [(level, option, value)] = ancillary
        assert (level, option) == (real.IPPROTO_UDP, _SEGMENT)
        whole, size = b"".join(parts), int.from_bytes(value, byteorder)
        if self._network.weather.no_segments:
            raise OSError(EIO, os.strerror(EIO))
        if len(whole) > _LARGEST or len(whole) > _MOST_MERGED * size:
            raise OSError(EMSGSIZE, os.strerror(EMSGSIZE))
        self._may_refuse()
        for start in range(0, len(whole), size):
            self._network.transmit(self._place, place[:2], whole[start : start + size])
        return len(whole)

    def recv(self, size: int, flags: int) -> bytes:
        """Only looks: live code asks whether something is left."""
        assert flags == real.MSG_PEEK
        self._must_have_something()
        return self._queue[0][0][:size]

    def recv_into(self, buffer: memoryview) -> int:
        self._must_have_something()
        data, _ = self._take()
        size = min(len(data), len(buffer))
        buffer[:size] = data[:size]
        return size

    def recvmsg_into(
        self, buffers: Sequence[memoryview], size: int
    ) -> tuple[int, list[tuple[int, int, bytes]], int, "Place"]:
        """Several segments of one sender at once, if they are merged (GRO)."""
        del size
        self._must_have_something()
        data, source = self._take()
        parts, segment, whole = [data], len(data), len(data)
        while self._merges and self._queue and len(parts) < _MOST_MERGED and len(parts[-1]) == segment:
            following, other = self._queue[0]
            if other != source or not 0 < len(following) <= segment or whole + len(following) > len(buffers[0]):
                break
            whole += len(following)
            parts.append(self._take()[0])
        merged = b"".join(parts)
        whole = len(merged)
        buffers[0][:whole] = merged
        told = [(real.IPPROTO_UDP, _MERGE, segment.to_bytes(4, byteorder))] if len(parts) > 1 else []
        return whole, told, 0, source

    def _take(self) -> "tuple[bytes, Place]":
        data, source = self._queue.popleft()
        self._waiting -= len(data)
        weather = self._network.weather
        if weather.short_reads and self._chance.random() < weather.short_reads:
            data = data[: self._chance.randrange(len(data) + 1)]
        return data, source

    def _must_have_something(self) -> None:
        if self._closed:
            raise OSError(EBADF, os.strerror(EBADF))
        if self._errors:
            error = self._errors.popleft()
            raise OSError(error, os.strerror(error))
        weather = self._network.weather
        if weather.interrupted and self._chance.random() < weather.interrupted:
            raise InterruptedError(EINTR, os.strerror(EINTR))
        if not self._queue:
            raise BlockingIOError(EAGAIN, _EMPTY)

    def _may_refuse(self) -> None:
        if self._closed or not self._process.alive:
            raise OSError(EBADF, os.strerror(EBADF))
        weather = self._network.weather
        if weather.refused and self._chance.random() < weather.refused:
            error = self._chance.choice(_REFUSALS)
            raise OSError(error, os.strerror(error))
        if self._errors:
            error = self._errors.popleft()
            raise OSError(error, os.strerror(error))

    def __enter__(self) -> "VirtualSocket":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SocketModule:
    """What live code imports as `socket`: constants and functions are the real ones, sockets virtual."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def socket(self, family: int = real.AF_INET, kind: int = real.SOCK_DGRAM) -> VirtualSocket:
        del family
        assert self._world.current is not None, "only a process opens a socket"
        assert kind == real.SOCK_DGRAM, "only datagrams"
        return VirtualSocket(self._world.current)

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)
