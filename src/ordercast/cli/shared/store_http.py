"""The HTTP face of `ordercast store`: JSON over HTTP/1.1, on this machine only, one request for each connection."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from ordercast.model.errors import OrdercastError
from ordercast.replicated import Dict, Members

_MAX_HEAD = 16 << 10
_MAX_BODY = 16 << 20
_PATIENCE = 30.0  # seconds for a request to arrive
_LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]"}


class _Refused(Exception):  # noqa: N818 (it names what happened)
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class _Request(msgspec.Struct):
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes


class StoreServer:
    """Answers requests about one store.

    `GET`, `PUT` and `DELETE /keys/KEY`; `GET /keys?prefix=`; `GET /watch?prefix=`, a line of JSON for each change; and
    `GET /members`. Reads are linearizable, unless `?local` is given. `PUT` takes `?ttl=SECONDS` and `?expected=JSON`.
    """

    def __init__(self, store: Dict[Any], group: Members) -> None:
        self._store, self._group = store, group

    async def serve(self, port: int) -> asyncio.Server:
        """Listens at a port of this machine; 0 is any free one."""
        return await asyncio.start_server(self._connected, "127.0.0.1", port, limit=_MAX_HEAD)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                request = await _read(reader)
            if request.path == "/watch":
                await self._watch(request.query.get("prefix", ""), writer)
                return
            status, answer = await self._answer(request)
        except _Refused as refused:
            status, answer = refused.status, {"error": refused.why}
        except OrdercastError as error:
            status, answer = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            return
        try:
            body = msgspec.json.encode(answer) + b"\n"
            writer.write(_head(status, f"Content-Length: {len(body)}\r\n") + body)
            await writer.drain()
        except ConnectionError:
            return  # it does not want the answer any more
        finally:
            writer.close()

    async def _answer(self, request: _Request) -> tuple[HTTPStatus, Any]:
        store = self._store
        fresh = "local" not in request.query
        if request.path == "/members" and request.method == "GET":
            return HTTPStatus.OK, {
                "me": self._group.me,
                "members": self._group.members,
                "view": self._group.view.number,
            }
        if request.path == "/keys" and request.method == "GET":
            prefix = request.query.get("prefix", "")
            return HTTPStatus.OK, await store.items(prefix, fresh=True) if fresh else store.items(prefix)
        if not request.path.startswith("/keys/") or len(request.path) == len("/keys/"):
            raise _Refused(HTTPStatus.NOT_FOUND, "there are /keys, /keys/KEY, /watch and /members")
        key = request.path.removeprefix("/keys/")
        match request.method:
            case "GET":
                value = await store.get(key, fresh=True) if fresh else store.get(key)
            case "PUT":
                return await self._put(key, request)
            case "DELETE":
                value = await store.pop(key)
            case other:
                raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{other} is none of GET, PUT, DELETE")
        if value is None:
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is no key {key!r}")
        return HTTPStatus.OK, {"key": key, "value": value}

    async def _put(self, key: str, request: _Request) -> tuple[HTTPStatus, Any]:
        value = _json(request.body, "the body")
        if value is None:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the body must be a JSON value that is not null")
        ttl = _seconds(request.query["ttl"]) if "ttl" in request.query else None
        if "expected" in request.query:
            expected = _json(request.query["expected"].encode(), "expected")
            if not await self._store.compare_and_set(key, expected, value, ttl):
                raise _Refused(HTTPStatus.CONFLICT, f"{key!r} has another value than expected")
        else:
            await self._store.put(key, value, ttl)
        return HTTPStatus.OK, {"key": key, "value": value}

    async def _watch(self, prefix: str, writer: asyncio.StreamWriter) -> None:
        """Until the reader goes, or the group ends."""
        changes = self._store.watch(prefix)
        try:
            writer.write(_head(HTTPStatus.OK, ""))
            async for change in changes:
                writer.write(msgspec.json.encode(change) + b"\n")
                await writer.drain()
        except (OrdercastError, ConnectionError):
            return  # the end of the answer tells
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> _Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    if fields.get("host", "").rpartition(":")[0] not in _LOCAL_NAMES and fields.get("host") not in _LOCAL_NAMES:
        raise _Refused(HTTPStatus.FORBIDDEN, "the host must be localhost")  # a page of another site asks in a browser
    size = fields.get("content-length", "0")
    if not size.isdecimal() or int(size) > _MAX_BODY:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {_MAX_BODY} bytes, and a length")
    target = urlsplit(words[1])
    query = {name: values[0] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
    return _Request(words[0], unquote(target.path), query, await reader.readexactly(int(size)))


def _json(text: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise _Refused(HTTPStatus.BAD_REQUEST, f'{what} must be JSON, such as 5 or "five"') from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"ttl must be a number of seconds above 0, not {text!r}")
    return seconds


def _head(status: HTTPStatus, more: str) -> bytes:
    lines = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{lines}{more}\r\n".encode()
