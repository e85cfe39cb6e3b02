"""The HTTP face of a gateway: a batch is posted as MessagePack, and answered when it is durable.

    POST /batches   [source, number, [row, …]]  →  {"position": 7, "again": false}
    GET /           what this member is

Whoever posts must say so by the type of the content, which a page in a browser cannot do without being asked first.
"""

import asyncio
import hmac
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from ssl import SSLContext
from typing import Any

import msgspec

from ordercast.gateway.batches import Batch
from ordercast.gateway.gateway import Gateway
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError

CONTENT = "application/msgpack"
_MAX_HEAD = 16 << 10
_PATIENCE = 60.0  # seconds for a request to arrive
_SPARE = 1 << 16
_MAX_DIGITS = 20  # of a length; Python refuses to read a number of thousands
_decode = msgspec.msgpack.Decoder(tuple[str, int, tuple[bytes, ...]]).decode


class _Refused(Exception):  # noqa: N818 (it names what happened)
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class GatewayServer:
    """Answers requests about one gateway, one for each connection."""

    def __init__(self, gateway: Gateway, group: Group, token: str | None = None) -> None:
        """`token`: what whoever posts must show; None: nothing."""
        self._gateway, self._group, self._token = gateway, group, token

    async def serve(self, host: str, port: int, tls: SSLContext | None = None) -> asyncio.Server:
        """Listens; raises `OSError`."""
        return await asyncio.start_server(self._connected, host, port, limit=_MAX_HEAD, ssl=tls)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                method, path, body = await self._read(reader)
            status, answer = await self._answer(method, path, body)
        except _Refused as refused:
            status, answer = refused.status, {"error": refused.why}
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            return
        with suppress(OSError):
            data = msgspec.json.encode(answer)
            writer.write(
                f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
                f"Content-Length: {len(data)}\r\n\r\n".encode()
                + data
            )
            await writer.drain()
        writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
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
        return words[0], words[1], await reader.readexactly(int(text))

    def _require_token(self, fields: Mapping[str, str]) -> None:
        shown = fields.get("authorization", "")
        if self._token is not None and not hmac.compare_digest(shown.encode(), f"Bearer {self._token}".encode()):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "show the token: Authorization: Bearer TOKEN")

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[HTTPStatus, Any]:
        if method == "GET" and path == "/":
            group = self._group
            return HTTPStatus.OK, {"group": group.name, "member": group.me, "members": group.members}
        if method != "POST" or path != "/batches":
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
