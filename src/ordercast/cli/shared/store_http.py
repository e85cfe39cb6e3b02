"""The HTTP face of `ordercast store`: JSON over HTTP/1.1, on this machine only, one request for each connection."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, unquote

import msgspec

from ordercast.model.errors import LocalProtocolError, OrdercastError
from ordercast.replicated import Dict, Member

_T = TypeVar("_T")
_MAX_HEAD = 16 << 10
_MAX_BODY = 16 << 20
_PATIENCE = 30.0  # seconds for a request to arrive
_ANSWERED = 30.0  # seconds for the group to answer
_MAX_DEPTH = 100  # values in values
_log = logging.getLogger("ordercast.store")
_ASCII = "".join(map(chr, range(128)))
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


def listening_at(port: int) -> socket.socket:
    """A socket at a port of this machine, 0 is any free one; nobody is answered yet. Raises `OSError`."""
    return socket.create_server(("127.0.0.1", port))


class StoreServer:
    """Answers requests about one store.

    `GET`, `PUT` and `DELETE /keys/KEY`; `GET /keys?prefix=`; `GET /watch?prefix=`, a line of JSON for each change; and
    `GET /members`. Reads are linearizable, unless `?local` is given. `PUT` takes `?ttl=SECONDS` and `?expected=JSON`.
    """

    def __init__(self, store: Dict[Any], group: Member, *, durable: bool) -> None:
        """`durable`: changes are answered when they are on the disks of a majority."""
        self._store, self._group, self._durable = store, group, durable

    async def serve(self, listening: socket.socket) -> asyncio.Server:
        """Answers who connects to this socket."""
        return await asyncio.start_server(self._connected, sock=listening, limit=_MAX_HEAD)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._read(reader, writer)
            if request.path == "/watch" and request.method == "GET":
                await self._watch(request.query.get("prefix", ""), writer)
                return
            async with asyncio.timeout(_ANSWERED):
                status, answer = await self._answer(request)
        except _Refused as refused:
            status, answer = refused.status, {"error": refused.why}
        except LocalProtocolError as error:
            status, answer = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except OrdercastError as error:
            status, answer = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
        except TimeoutError:
            why = f"no answer within {_ANSWERED:g} s: a request that changes something may still be applied"
            status, answer = HTTPStatus.GATEWAY_TIMEOUT, {"error": why}
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()
            return
        except Exception:
            _log.exception("a request could not be answered")
            status, answer = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "see the log of this process"}
        try:
            body = msgspec.json.encode(answer) + b"\n"
            writer.write(_head(status, f"Content-Length: {len(body)}\r\n") + body)
            await writer.drain()
        except ConnectionError:
            return  # it does not want the answer any more
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Request:
        max_body = min(_MAX_BODY, self._group.group.max_message_size - _MAX_HEAD)  # key and value are one message
        try:
            async with asyncio.timeout(_PATIENCE):
                return await _read(reader, writer, max_body)
        except TimeoutError:
            raise _Refused(HTTPStatus.REQUEST_TIMEOUT, f"no request within {_PATIENCE:g} s") from None

    async def _answer(self, request: _Request) -> tuple[HTTPStatus, Any]:
        store = self._store
        fresh = "local" not in request.query
        if request.path in {"/keys", "/members", "/watch"} and request.method != "GET":
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} is only for GET, not {request.method}")
        if request.path == "/members":
            return HTTPStatus.OK, {
                "me": self._group.me,
                "members": self._group.members,
                "view": self._group.view.number,
            }
        if request.path == "/keys":
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
                value = await self._done(store.pop(key))
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
            if not await self._done(self._store.compare_and_set(key, expected, value, ttl)):
                missing = self._store.get(key) is None
                why = f"there is no key {key!r}" if missing else f"{key!r} has another value than expected"
                raise _Refused(HTTPStatus.CONFLICT, why)
        else:
            await self._done(self._store.put(key, value, ttl))
        return HTTPStatus.OK, {"key": key, "value": value}

    async def _done(self, call: Awaitable[_T]) -> _T:
        """The result of a command, when it is as safe as it is to be."""
        result = await call
        if self._durable:
            await self._group.durable()
        return result

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


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_body: int) -> _Request:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.LimitOverrunError:
        raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a head has at most {_MAX_HEAD} bytes") from None
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    if fields.get("host", "").rpartition(":")[0] not in _LOCAL_NAMES and fields.get("host") not in _LOCAL_NAMES:
        raise _Refused(HTTPStatus.FORBIDDEN, "the host must be localhost")  # a page of another site asks in a browser
    if "transfer-encoding" in fields:
        raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a body needs a Content-Length, and comes in one piece")
    size = fields.get("content-length", "0")
    if not (size.isascii() and size.isdecimal()):
        raise _Refused(HTTPStatus.BAD_REQUEST, f"Content-Length must be a number of bytes, not {size[:40]!r}")
    if len(size) > len(str(max_body)) or int(size) > max_body:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {max_body} bytes")
    path, query = _target(words[1])
    if fields.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return _Request(words[0], path, query, await reader.readexactly(int(size)))


def _target(text: str) -> tuple[str, dict[str, str]]:
    """Path and query; both are UTF-8, with or without per cent signs: another key would be taken for this one."""
    path, _, query = text.partition("?")
    try:
        found = parse_qs(_as_ascii(query), keep_blank_values=True, errors="strict")
        return unquote(_as_ascii(path), errors="strict"), {name: values[0] for name, values in found.items()}
    except ValueError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "keys and parameters must be UTF-8") from None


def _as_ascii(text: str) -> str:
    """With per cent signs for all bytes that are not ASCII."""
    return quote(text, safe=_ASCII, encoding="latin-1")


def _json(text: bytes, what: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise _Refused(HTTPStatus.BAD_REQUEST, f'{what} must be JSON, such as 5 or "five"') from None
    _check(value, what, _MAX_DEPTH)
    return value


def _check(value: Any, what: str, depth: int) -> None:
    """What cannot be stored is refused before it is sent."""
    if not depth:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"{what} has more than {_MAX_DEPTH} values in values")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"{what} has a whole number of more than 64 bits")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check(each, what, depth - 1)


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
