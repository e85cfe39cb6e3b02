"""The connection over which a state is transferred: a TCP stream of frames, sealed with keys of this connection alone.

    joiner:  hello (key, view, nonce)                request (tag of the view, incarnation)            loaded
    donor:                            hello (nonce)                  wait…  part, part, …, end

Where members have durable logs, the joiner's locator follows its request, and a heading comes before the first part.

The keys are derived from the group's key, both hellos and the tag of the view: nothing that was recorded opens, and a
request that opens was made by a member of the group for this connection. Whatever arrives that is not understood ends
the connection, and nothing else.
"""

import asyncio
import secrets
import socket
import struct
from enum import IntEnum
from typing import NamedTuple

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.sockets import socket_address
from ordercast.wire.keys import GroupKeys
from ordercast.wire.stream_seal import Buffer, StreamSeal, stream_seals

CHUNK = 256 << 10
"""Bytes of a state that are sent in one frame, at most."""
_MAGIC = b"ocs1"
_HELLO = struct.Struct("!4sBQ16s")  # of the joiner: magic, id of the key, number of the view, nonce
_ANSWER = struct.Struct("!4s16s")  # of the donor: magic, nonce
_HEADER = struct.Struct("!BI")  # kind, length of the sealed body
_REQUEST = struct.Struct("!8sQ")  # tag of the view, incarnation; the name follows
_MAX_NAME = 256  # bytes
_NONCE = 16
_DIRECTIONS = (b"joiner", b"donor")
BUFFER = 1 << 20
"""Bytes that the system may hold for each side: what is under way when the other side does not read."""


class Frame(IntEnum):
    """The kinds of frames."""

    REQUEST = 1
    WAIT = 2
    """The donor lives, but its application has not come to the place of the view, or has the next part not ready."""
    PART = 3
    END = 4
    """Length, and a digest if frames are not authenticated."""
    REFUSED = 5
    """The donor has no such state any more; the body is a sentence."""
    FAILED = 6
    """The donor's application could not save its state; the body is a sentence."""
    LOADED = 7
    LOCATOR = 8
    """The joiner has a log: the places that it knows."""
    SUFFIX = 9
    """What follows is the end of the donor's log; the body is a heading."""
    STATE = 10
    """What follows is a state, of a place of the donor's log; the body is a heading."""


_LEAST_LOG_PATIENCE = 1.0


def patience_for(failure_timeout: float, *, with_logs: bool) -> float:
    """Seconds without a byte after which the other side counts as lost.

    Who gives or takes the end of a log waits for a disk, and may be slower than one that only answers: if it was given
    up sooner than a member is suspected, one that joins would leave and join again, as long as the disk is slow.
    """
    return max(failure_timeout, _LEAST_LOG_PATIENCE) if with_logs else failure_timeout / 2


class ConnectionLostError(Exception):
    """The other side is gone, silent, or does not follow the protocol."""


class Request(NamedTuple):
    """Who asks, and for which state."""

    view: int
    tag: bytes
    name: str
    incarnation: int


class Connection:
    """One side of an open connection. Used by one task."""

    def __init__(self, connected: socket.socket, sends: StreamSeal, receives: StreamSeal, *, patience: float) -> None:
        """`patience`: seconds without any byte that is waited for, after which the other side counts as lost."""
        self._socket, self._sends, self._receives, self._patience = connected, sends, receives, patience
        self._buffer = memoryview(bytearray(CHUNK + receives.overhead))
        self._loop = asyncio.get_running_loop()

    @property
    def authenticates(self) -> bool:
        """Whether frames that were changed on the way are noticed."""
        return self._receives.authenticates

    async def send(self, kind: Frame, body: Buffer = b"") -> None:
        """Waits while the other side does not read."""
        header = _HEADER.pack(kind, len(body) + self._sends.overhead)
        frame = b"".join((header, self._sends.seal(header, body)))
        try:
            await self._loop.sock_sendall(self._socket, frame)
        except OSError as error:
            raise ConnectionLostError(error.strerror or str(error)) from None

    async def receive(self, *, at_any_time: bool = False) -> tuple[Frame, bytes]:
        """The next frame; `at_any_time`: the other side may have nothing to say for long."""
        header = bytes(await self._read(_HEADER.size, None if at_any_time else self._patience))
        kind, length = _HEADER.unpack(header)
        if length > len(self._buffer) or kind not in Frame._value2member_map_:
            raise ConnectionLostError("it sent something else than a state")
        body = self._receives.open(header, await self._read(length, self._patience))
        if body is None:
            raise ConnectionLostError("what it sent was changed on the way")
        return Frame(kind), body

    async def _read(self, size: int, patience: float | None) -> memoryview:
        return await _read_into(self._loop, self._socket, self._buffer[:size], patience)

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()


async def connect(
    address: Address, group: str, keys: GroupKeys | None, request: Request, patience: float
) -> Connection:
    """The joiner's side: connects to a donor, and asks for a state."""
    loop = asyncio.get_running_loop()
    opened = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)  # noqa: FBT003 (the standard library's way)
        _tune(opened)
        async with asyncio.timeout(patience):
            await loop.sock_connect(opened, socket_address(address))
        hello = _HELLO.pack(_MAGIC, keys.current if keys else 0, request.view, secrets.token_bytes(_NONCE))
        await loop.sock_sendall(opened, hello)
        answer = await _read_answer(loop, opened, patience)
        seals = stream_seals(group, keys, keys.current if keys else 0, hello + answer + request.tag, _DIRECTIONS)
        assert seals is not None, "it is our own key"
        connection = Connection(opened, *seals, patience=patience)
        body = _REQUEST.pack(request.tag, request.incarnation) + request.name.encode()
        await connection.send(Frame.REQUEST, body)
    except TimeoutError:
        opened.close()
        raise ConnectionLostError("it does not answer") from None
    except OSError as error:
        opened.close()
        raise ConnectionLostError(error.strerror or str(error)) from None
    except BaseException:
        opened.close()
        raise
    return connection


async def _read_answer(loop: asyncio.AbstractEventLoop, opened: socket.socket, patience: float) -> bytes:
    answer = bytes(await _read_into(loop, opened, memoryview(bytearray(_ANSWER.size)), patience))
    if not answer.startswith(_MAGIC):
        raise ConnectionLostError("another program answers at its address")
    return answer


async def read_hello(connected: socket.socket, patience: float) -> tuple[bytes, int]:
    """The donor's side: the hello of one that connected, and the number of the view that it asks for."""
    loop = asyncio.get_running_loop()
    hello = bytes(await _read_into(loop, connected, memoryview(bytearray(_HELLO.size)), patience))
    magic, _, view, _ = _HELLO.unpack(hello)
    if magic != _MAGIC:
        raise ConnectionLostError("it does not ask for a state")
    return hello, view


async def answer_hello(
    connected: socket.socket, hello: bytes, tag: bytes, group: str, keys: GroupKeys | None, patience: float
) -> tuple[Connection, Request]:
    """The donor's side: a connection to one that asks for the state of the view with this tag."""
    loop = asyncio.get_running_loop()
    _, key_id, view, _ = _HELLO.unpack(hello)
    answer = _ANSWER.pack(_MAGIC, secrets.token_bytes(_NONCE))
    seals = stream_seals(group, keys, key_id, hello + answer + tag, _DIRECTIONS)
    if seals is None:
        raise ConnectionLostError("it uses another key")
    try:
        await loop.sock_sendall(connected, answer)
    except OSError as error:
        raise ConnectionLostError(error.strerror or str(error)) from None
    connection = Connection(connected, *reversed(seals), patience=patience)
    kind, body = await connection.receive()
    if kind is not Frame.REQUEST or not _REQUEST.size < len(body) <= _REQUEST.size + _MAX_NAME:
        raise ConnectionLostError("it does not ask for a state")
    asked, incarnation = _REQUEST.unpack_from(body)
    return connection, Request(view, asked, body[_REQUEST.size :].decode(errors="replace"), incarnation)


def listen(address: Address, backlog: int) -> socket.socket:
    """A socket to which joiners connect, at the port number of a member's datagrams; raises `OSError`."""
    found = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setblocking(False)  # noqa: FBT003 (the standard library's way)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _tune(found)  # what is accepted inherits it
        found.bind(socket_address(address))
        found.listen(backlog)
    except BaseException:
        found.close()
        raise
    return found


def _tune(found: socket.socket) -> None:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        found.setsockopt(socket.SOL_SOCKET, option, BUFFER)


async def _read_into(
    loop: asyncio.AbstractEventLoop, source: socket.socket, buffer: memoryview, patience: float | None
) -> memoryview:
    """Fills the buffer; raises `ConnectionLostError` if nothing comes for so many seconds."""
    filled = 0
    while filled < len(buffer):
        try:
            size = await _received(loop, source, buffer[filled:], patience)
        except TimeoutError:
            raise ConnectionLostError(f"nothing arrived for {patience:g} s") from None
        except OSError as error:
            raise ConnectionLostError(error.strerror or str(error)) from None
        if not size:
            raise ConnectionLostError("it closed the connection")
        filled += size
    return buffer


async def _received(
    loop: asyncio.AbstractEventLoop, source: socket.socket, buffer: memoryview, patience: float | None
) -> int:
    try:
        return source.recv_into(buffer)  # there is mostly something: a timeout costs more than this
    except BlockingIOError:
        async with asyncio.timeout(patience):
            return await loop.sock_recv_into(source, buffer)
