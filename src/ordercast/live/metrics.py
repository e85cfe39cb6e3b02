"""What a member counts, for monitors: Prometheus' text format over HTTP.

Written by hand: the format is lines of text, the server has one page, and a library for both would bring threads and a
registry of its own into every member.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from ordercast.live.stats import Stats
from ordercast.live.transport.addresses import LOOPBACK, Address
from ordercast.model.errors import ConfigError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LONGEST_REQUEST = 1 << 13
_PATIENCE = 5.0  # seconds for a request to come

# Each field of `Stats` that is a number: its metric, and what to tell of it.
_COUNTERS = {
    "sent": "Messages of this member that the protocol has taken.",
    "units": "Units that the protocol put on the network.",
    "retransmissions": "Copies of data that somebody lacked.",
    "requests": "Units that asked for copies.",
    "recoveries": "Times that the group agreed on its order anew.",
    "datagrams_in": "Datagrams that came.",
    "datagrams_out": "Datagrams that were sent.",
    "bytes_in": "Bytes that came.",
    "bytes_out": "Bytes that were sent.",
    "overrun": "Units dropped since the application does not listen.",
}
_LABELLED = {
    "delivered": ("sender", "Messages delivered here."),
    "discarded": ("reason", "Units that the protocol had no use for."),
    "dropped": ("reason", "Datagrams or records that were not for us or not understood."),
    "not_sent": ("reason", "Datagrams that the system did not take."),
}
_GAUGES = {
    "waiting_bytes": "Bytes sent by the application and not yet taken by the protocol.",
    "inbox_bytes": "Bytes delivered and not yet read by the application.",
    "view": "Changes of membership.",
}


def as_text(stats: Stats) -> str:
    """All of it, in Prometheus' text format."""
    return "\n".join(_lines(stats)) + "\n"


def _lines(stats: Stats) -> Iterator[str]:
    common = {"group": stats.group, "member": stats.me, "protocol": stats.protocol}
    for name, told in _COUNTERS.items():
        yield from _metric(f"ordercast_{name}_total", "counter", told, [(common, getattr(stats, name))])
    for name, (label, told) in _LABELLED.items():
        counts: dict[str, int] = getattr(stats, name)
        samples = [({**common, label: key}, value) for key, value in counts.items()]
        yield from _metric(f"ordercast_{name}_total", "counter", told, samples)
    for name, told in _GAUGES.items():
        yield from _metric(f"ordercast_{name}", "gauge", told, [(common, getattr(stats, name))])
    yield from _metric("ordercast_uptime_seconds", "gauge", "Since the group was opened.", [(common, stats.uptime)])
    measured = [] if stats.round_trip is None else [(common, stats.round_trip)]
    yield from _metric("ordercast_round_trip_seconds", "gauge", "To a member and back, at the opening.", measured)
    yield from _metric("ordercast_members", "gauge", "Members that take part.", [(common, len(stats.members))])
    logs = msgspec.structs.asdict(stats.logs)
    samples = [({**common, "log": log}, size) for log, size in logs.items()]
    yield from _metric("ordercast_log_packets", "gauge", "Packets that the protocol holds.", samples)
    failed = int(stats.record_failed is not None)
    yield from _metric("ordercast_record_failed", "gauge", "1: the record ends before the group.", [(common, failed)])


def _metric(name: str, kind: str, told: str, samples: Sequence[tuple[dict[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{{{_written(labels)}}} {value}"


def _written(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def serve_metrics(stats: Callable[[], Stats | None], port: int, host: str = LOOPBACK) -> asyncio.Server:
    """Serves /metrics until it is closed; raises `ConfigError` if the address is taken. None: there is no group yet."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(request, stats))
                await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(answer, host, port, limit=_LONGEST_REQUEST)
    except OSError as error:
        raise ConfigError(f"metrics cannot be served at {Address(host, port)}: {error.strerror}") from error


def _response(request: bytes, stats: Callable[[], Stats | None]) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in {b"GET", b"HEAD"}:
        status, body = "405 Method Not Allowed", "only GET\n"
    elif path != b"/metrics":
        status, body = "404 Not Found", "it is at /metrics\n"
    elif (counted := stats()) is None:
        status, body = "503 Service Unavailable", "the group is not open yet\n"
    else:
        status, body = "200 OK", as_text(counted)
    content = body.encode()
    kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if method == b"HEAD" else content)
