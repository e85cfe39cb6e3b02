"""The counters of a member for monitors: Prometheus metrics over HTTP, at /metrics.

`prometheus_client` writes the text, and is imported when metrics are served. Its own HTTP server would need a thread;
this one serves its single page in the event loop.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from ordercast.live.stats import Stats
from ordercast.live.transport.addresses import LOOPBACK, Address
from ordercast.model.errors import ConfigError

_MAX_REQUEST = 1 << 13
_REQUEST_TIMEOUT = 5.0  # seconds


async def serve_metrics(stats: Callable[[], Stats | None], port: int, host: str = LOOPBACK) -> asyncio.Server:
    """Serves /metrics until the returned server is closed.

        server = await ordercast.serve_metrics(group.stats, 9100)

    `stats` is called for each request; None: there is no group yet. Raises `ConfigError` if the address is in use, or
    if `prometheus_client` is not installed.
    """
    await asyncio.to_thread(_load)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(request, stats))
                await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, host, port, limit=_MAX_REQUEST)
    except OSError as error:
        raise ConfigError(f"cannot serve metrics at {Address(host, port)}: {error.strerror}") from error


def as_text(stats: Stats) -> tuple[bytes, str]:
    """All metrics in Prometheus' text format, and its content type."""
    from ordercast.live.prometheus import CONTENT_TYPE, exposition  # noqa: PLC0415 (2 MiB that few need)

    return exposition(stats), CONTENT_TYPE


def _load() -> None:
    try:
        import_module("ordercast.live.prometheus")
    except ImportError:
        raise ConfigError("metrics need the package prometheus-client: pip install 'ordercast[live]'") from None


def _response(request: bytes, stats: Callable[[], Stats | None]) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    kind = "text/plain; charset=utf-8"
    if method not in {b"GET", b"HEAD"}:
        status, content = "405 Method Not Allowed", b"only GET\n"
    elif path != b"/metrics":
        status, content = "404 Not Found", b"metrics are at /metrics\n"
    elif (counted := stats()) is None:
        status, content = "503 Service Unavailable", b"the group is not open yet\n"
    else:
        status = "200 OK"
        content, kind = as_text(counted)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if method == b"HEAD" else content)
