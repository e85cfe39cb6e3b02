"""What a member counts, and how it is told."""

import asyncio
import re
import socket

import pytest

from ordercast.live.metrics_server import as_text, serve_metrics
from ordercast.live.stats import Stats
from ordercast.live.transport.addresses import members_of
from ordercast.live.transport.fragmentation import HEADING, MAX_PARTIAL_PER_STRANGER
from ordercast.live.transport.sockets import socket_address
from ordercast.model.errors import ConfigError
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Status
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE
from tests.live.groups import group_of, hear, member_of, run


async def counted() -> tuple[Stats, Stats]:
    """How A and B stand after A has said ten things and B one."""
    async with group_of("A", "B", order="sequenced") as groups:
        for _ in range(10):
            await groups["A"].send(b"x" * 100)
        await groups["B"].send(b"y")
        await asyncio.gather(*(hear(group, 11) for group in groups.values()))
    return groups["A"].stats(), groups["B"].stats()


def test_a_member_counts_what_it_does() -> None:
    async def test() -> None:
        mine, others = await counted()
        assert (mine.me, mine.members, mine.protocol) == ("A", ("A", "B"), "sequencer")
        assert (mine.messages_sent, others.messages_sent) == (10, 1)
        assert mine.messages_delivered == others.messages_delivered == {"A": 10, "B": 1}
        assert mine.datagrams_sent > 0
        assert mine.bytes_sent > 1000, "each message has a hundred bytes"
        assert others.bytes_received > 1000
        assert (mine.pending_bytes, mine.unread_bytes, mine.recording_error) == (0, 0, None)
        assert 0 < mine.uptime < 30
        assert mine.round_trip is not None
        assert 0 < mine.round_trip < 1

    run(test)


def test_what_waits_is_told() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            for _ in range(100):
                groups["A"].send_nowait(b"x" * 100_000)
            assert groups["A"].stats().pending_bytes > 1_000_000
            while groups["B"].stats().unread_bytes < 1_000_000:
                await asyncio.sleep(0.01)
            await groups["A"].abort("enough")
            await groups["B"].abort("enough")

    run(test)


def test_what_was_lost_for_its_size_is_told() -> None:
    """Parts of a long datagram that stay alone, a message larger than any may be, a record that no datagram carries."""

    async def test() -> None:
        async with group_of("A", "B", mtu=1400, close=False) as groups:
            there = socket_address(members_of(groups["B"].name, ("A", "B"))["B"])
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for train in range(MAX_PARTIAL_PER_STRANGER + 2):
                    stranger.sendto(HEADING.pack(0xC6, train, 0, 2) + b"half", there)
            member_of(groups["B"]).inbox.reassembler.max_message_size = 50_000
            await groups["A"].send(bytes(60_000))
            await groups["A"].send(b"the next one")
            assert (await groups["B"].receive()).payload == b"the next one"
            huge = Packet(1, 0b11, 0, (0, 0), 0, (MAX_DATAGRAM_SIZE,), bytes(MAX_DATAGRAM_SIZE))
            member_of(groups["B"]).transport.send(Data(huge, Status(1, (0, 0), (0, 0))), 0)
            stats = groups["B"].stats()
            assert (stats.datagrams_rejected["incomplete"], stats.datagrams_rejected["oversized"]) == (2, 1)
            assert stats.send_errors["oversized"] == 1
            told = as_text(stats)[0].decode()
            for metric, reason, count in (
                ("datagrams_rejected", "incomplete", 2),
                ("datagrams_rejected", "oversized", 1),
            ):
                assert re.search(rf'ordercast_{metric}_total{{.*reason="{reason}"}} {count}\.0\n', told)
            assert re.search(r'ordercast_send_errors_total{.*reason="oversized"} 1\.0\n', told)
            assert not {"incomplete", "oversized"} & groups["A"].stats().datagrams_rejected.keys(), (
                "what is nothing is not told"
            )
            for group in groups.values():
                await group.abort("enough")

    run(test)


SAMPLE = re.compile(r'[a-z_]+\{([a-z]+="(\\.|[^"\\])*",?)+\} [0-9.e+-]+')


def test_the_text_is_what_prometheus_reads() -> None:
    async def test() -> None:
        stats, _ = await counted()
        lines = as_text(stats)[0].decode().splitlines()
        names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
        assert len(names) == len(set(names))
        for line in lines:
            assert line.startswith("# ") or SAMPLE.fullmatch(line), line
        group = stats.group
        assert f'ordercast_messages_sent_total{{group="{group}",member="A",protocol="sequencer"}} 10.0' in lines
        assert (
            f'ordercast_messages_delivered_total{{group="{group}",member="A",protocol="sequencer",sender="B"}} 1.0'
            in lines
        )
        assert f'ordercast_uptime_seconds{{group="{group}",member="A",protocol="sequencer"}} {stats.uptime}' in lines

    run(test)


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def test_metrics_are_served_over_http() -> None:
    async def test() -> None:
        stats, _ = await counted()
        server = await serve_metrics(lambda: stats, 0)
        port = server.sockets[0].getsockname()[1]
        head, _, body = (await ask(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"version=0.0.4" in head
        assert body == as_text(stats)[0]
        assert (await ask(port, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        assert (await ask(port, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405 ")
        assert (await ask(port, b"HEAD /metrics HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n")
        assert await ask(port, b"x" * 100_000) == b"", "a request without end is cut off"
        with pytest.raises(ConfigError, match=str(port)):
            await serve_metrics(lambda: stats, port)
        server.close()
        await server.wait_closed()

    run(test)
