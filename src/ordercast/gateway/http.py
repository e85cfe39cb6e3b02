"""The HTTP face of a gateway: a batch is posted as MessagePack, and answered when it is durable.

    POST /batches   [source, number, [row, …]]  →  {"position": 7, "again": false, "last": 3}
    GET /           what this member is

Whoever posts must say so by the type of the content, which a page in a browser cannot do without being asked first.

Connections, and the bytes of batches that wait, are bounded: above that a request is answered 503, and whoever posts
tries again. It is counted, and logged.
"""

import asyncio
import hmac
import logging
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, TypeVar

import msgspec

from ordercast.gateway.deduplication import Batch
from ordercast.gateway.gateway import Gateway
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError

CONTENT = "application/msgpack"
_MAX_HEAD = 16 << 10
MAX_CONNECTIONS = 64
MAX_WAITING = 4
"""Batches of the maximum size that may wait at the same time, or as many smaller ones as have their bytes."""
_HEAD_PATIENCE = 5.0  # seconds for whoever has not shown a token
_PATIENCE = 60.0  # seconds for a batch to arrive
_LINGER = 2.0  # seconds for whoever still sends what was refused
_SPARE = 1 << 16
_MAX_DIGITS = 20  # of a length; Python refuses to read a number of thousands
_SAYS_EVERY = 10.0  # seconds: between two lines that say the same
_log = logging.getLogger("ordercast.gateway")
_Answer = TypeVar("_Answer")
_decode = msgspec.msgpack.Decoder(tuple[str, int, tuple[bytes, ...]]).decode


class _Refused(Exception):  # noqa: N818 (it names what happened)
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class _Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    size: int
    """Bytes of the body, which follows."""


class GatewayServer:
    """Answers requests about one gateway, one for each connection."""

    def __init__(self, gateway: Gateway, group: Group, token: str | None = None) -> None:
        """`token`: what whoever posts must show; None: nothing."""
        self._gateway, self._group, self._token = gateway, group, token
        self.connections = 0
        """So many are open."""
        self.waiting = 0
        """Bytes of batches that have not been answered."""
        self.refused = 0
        """Connections and batches that were too many."""
        self._says_again = 0.0

    async def serve(self, host: str, port: int, tls: SSLContext | None = None) -> asyncio.Server:
        """Listens; raises `OSError`."""
        patience = _HEAD_PATIENCE if tls is not None else None
        return await asyncio.start_server(
            self._connected, host, port, limit=_MAX_HEAD, ssl=tls, ssl_handshake_timeout=patience
        )

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.connections > 2 * MAX_CONNECTIONS:  # so many are not even answered
                self._too_many(f"{MAX_CONNECTIONS} connections are open")
                return
            found = await self._handled(reader)
            if found is not None:
                await _write(writer, *found)
                await _rest_of(reader)
        finally:
            self.connections -= 1
            writer.close()

    async def _handled(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Any] | None:
        """The answer; None: whoever asked is gone, or has said nothing for too long."""
        try:
            self._require_few()
            async with asyncio.timeout(_HEAD_PATIENCE):
                request = await self._request(reader)
            self._require_room(request.size)
            self.waiting += request.size
            try:
                async with asyncio.timeout(_PATIENCE):
                    body = await reader.readexactly(request.size)
                return await _unless_gone(reader, self._answer(request, body))
            finally:
                self.waiting -= request.size
        except _Refused as refused:
            return refused.status, {"error": refused.why}
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None

    def _require_few(self) -> None:
        if self.connections > MAX_CONNECTIONS:
            raise self._too_many(f"{MAX_CONNECTIONS} connections are open")

    def _require_room(self, size: int) -> None:
        most = MAX_WAITING * (self._gateway.max_batch_size + _SPARE)
        if self.waiting + size > most:
            raise self._too_many(
                f"batches of {self.waiting} bytes wait for the group, and {most} may, this one with {size} included"
            )

    def _too_many(self, why: str) -> _Refused:
        self.refused += 1
        if time.monotonic() >= self._says_again:
            self._says_again = time.monotonic() + _SAYS_EVERY
            _log.warning("a request was refused, %d so far: %s", self.refused, why)
        return _Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}: try again")

    async def _request(self, reader: asyncio.StreamReader) -> _Request:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        words = head[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        self._require_token(fields)
        text = fields.get("content-length", "0")
        most = self._gateway.max_batch_size + _SPARE
        if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) > most:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a batch has at most {most} bytes, not {text[:20]}: make smaller batches (maxOffsetsPerTrigger)",
            )
        if words[0] == "POST" and fields.get("content-type") != CONTENT:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content must be {CONTENT}")
        return _Request(words[0], words[1], int(text))

    def _require_token(self, fields: Mapping[str, str]) -> None:
        shown = fields.get("authorization", "")
        if self._token is not None and not hmac.compare_digest(shown.encode(), f"Bearer {self._token}".encode()):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "show the token: Authorization: Bearer TOKEN")

    async def _answer(self, request: _Request, body: bytes) -> tuple[HTTPStatus, Any]:
        if request.method == "GET" and request.path == "/":
            group = self._group
            about = {"group": group.name, "member": group.me, "members": group.members}
            load = {"connections": self.connections, "waiting": self.waiting, "refused": self.refused}
            return HTTPStatus.OK, about | load
        if request.method != "POST" or request.path != "/batches":
            raise _Refused(HTTPStatus.NOT_FOUND, "there are GET / and POST /batches")
        try:
            source, number, rows = _decode(body)
            return HTTPStatus.OK, await self._gateway.commit(Batch(source, number, rows))
        except msgspec.DecodeError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"a batch is [source, number, [row, …]]: {error}") from None
        except (LocalProtocolError, ConfigError) as error:
            raise _Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        except GroupError as error:
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None


async def _unless_gone(reader: asyncio.StreamReader, answering: Coroutine[Any, Any, _Answer]) -> _Answer | None:
    """None if whoever asked ends the connection meanwhile: nobody reads the answer."""
    answer, gone = asyncio.ensure_future(answering), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() and gone.exception() is None and gone.result():
            await asyncio.wait((answer,))  # it says more than it had to
        return answer.result() if answer.done() else None
    finally:
        answer.cancel()
        gone.cancel()
        await asyncio.wait((answer, gone))  # what comes next reads, too, and two cannot at the same time


async def _rest_of(reader: asyncio.StreamReader) -> None:
    """What was refused unread is dropped: else the connection is reset, and the answer is lost with it."""
    with suppress(OSError):
        async with asyncio.timeout(_LINGER):
            while await reader.read(_MAX_HEAD):
                pass


async def _write(writer: asyncio.StreamWriter, status: HTTPStatus, answer: object) -> None:
    data = msgspec.json.encode(answer)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    with suppress(OSError):
        writer.write(head.encode() + data)
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
