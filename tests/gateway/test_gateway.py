"""Gateways in a real group with logs: batches that are handed over again, at either, and after a restart."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast import Group, Message
from ordercast.gateway import Batch, Batches, Committed, Gateway, batches_in, recover
from ordercast.gateway.http import CONTENT, GatewayServer
from ordercast.log import Log
from ordercast.model.errors import LocalProtocolError, LogError
from tests.gateway.test_deduplication import payload
from tests.live.durable.logged import kill, open_logged
from tests.live.groups import join, new_name, run

NAMES = ("A", "B")


class Application:
    """A member that is a gateway, and the batches that it has taken."""

    def __init__(self, group: Group, batches: Batches | None = None) -> None:
        self.gateway = Gateway(group, batches or Batches())
        self.taken: list[Batch | bytes] = []
        self.task = asyncio.ensure_future(self._read(group))

    async def _read(self, group: Group) -> None:
        async for some in group.batches():
            self.taken += filter(None, map(self._take, some))

    def _take(self, message: Message) -> Batch | bytes | None:
        return self.gateway.take(message)


async def close(groups: list[Group], applications: list[Application]) -> None:
    await asyncio.gather(*(group.close() for group in groups))
    await asyncio.gather(*(each.task for each in applications))


async def race(folder: Path) -> None:
    """Each batch is handed to both gateways, by whoever does not know what became of it."""
    chance = random.Random(1)
    groups = await open_logged(new_name(), folder, *NAMES)
    applications = [Application(group) for group in groups]
    again = 0
    for number in range(30):
        batch = Batch("query", number, (b"%d" % number,))
        asked = [chance.choice(applications).gateway.commit(batch) for _ in range(chance.randint(1, 4))]
        answers = await asyncio.gather(*asked)
        again += sum(answer.again for answer in answers)
        assert len({answer.position for answer in answers}) == 1
    assert again == 0
    assert (await applications[0].gateway.commit(Batch("query", 29, (b"other",)))).again
    await groups[0].send(b"no batch")
    await close(groups, applications)
    [first, second] = [each.taken for each in applications]
    assert first == second
    assert [each.number for each in first[:-1] if isinstance(each, Batch)] == list(range(30))
    assert first[-1] == b"no batch"
    assert applications[0].gateway._batches.repeated == applications[1].gateway._batches.repeated > 0
    assert list(batches_in(folder / "A")) == list(batches_in(folder / "B")) == first[:-1]


def test_two_gateways_that_race_hand_over_each_batch_once(tmp_path: Path) -> None:
    run(race, tmp_path)


async def restart(folder: Path) -> None:
    name = new_name()
    groups = await open_logged(name, folder, *NAMES)
    applications = [Application(group) for group in groups]
    await applications[1].gateway.commit(Batch("query", 0, (b"zero",)))
    await applications[1].gateway.commit(Batch("query", 1, (b"one",)))
    await kill(groups[1])
    back = await join(name, name="B", members=NAMES, timeout=20, log=folder / "B")
    batches = Batches()
    recover(batches, folder / "B", back.starts_at)
    applications[1] = Application(back, batches)
    assert await applications[1].gateway.commit(Batch("query", 1, (b"one",))) == Committed(1, again=True, last=1)
    # position 2 is of what told that batch 1 is durable
    assert await applications[1].gateway.commit(Batch("query", 2, (b"two",))) == Committed(3, again=False, last=2)
    await close([groups[0], back], applications)
    assert [each.rows for each in batches_in(folder / "A")] == [(b"zero",), (b"one",), (b"two",)]


def test_a_gateway_that_is_started_again_knows_what_was_there(tmp_path: Path) -> None:
    run(restart, tmp_path)


def posted(port: int, body: bytes, token: str | None = None, path: str = "/batches", **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request("POST", path, body, {"Content-Type": CONTENT, **shown, **headers})
    answer = connection.getresponse()
    found = answer.status, msgspec.json.decode(answer.read())
    connection.close()
    return found


async def over_http(folder: Path) -> None:
    groups = await open_logged(new_name(), folder, *NAMES, max_message_size=100_000)
    applications = [Application(group) for group in groups]
    server = await GatewayServer(applications[0].gateway, groups[0], "sesame").serve("127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def ask(content: object, *more: Any, **headers: Any) -> tuple[int, Any]:
        body = content if isinstance(content, bytes) else msgspec.msgpack.encode(content)
        return await asyncio.to_thread(posted, port, body, *(more or ("sesame",)), **headers)

    batch = ["query", 0, [b"row", b"other"]]
    assert await ask(batch) == (200, {"position": 0, "again": False, "last": 0})
    assert await ask(batch) == (200, {"position": 0, "again": True, "last": 0})
    assert (await ask(batch, "wrong"))[0] == 401
    assert (await ask(b"?"))[0] == 400
    assert (await ask(["query", 1, ["text"]]))[0] == 400
    assert (await ask(["", 1, [b"row"]]))[0] == 422
    assert (await ask(batch, **{"Content-Type": "text/plain"}))[0] == 415
    assert (await ask(batch, "sesame", "/else"))[0] == 404
    status, answer = await ask(["query", 1, [bytes(60_000), bytes(60_000)]])
    assert status == 422
    assert "has 2 rows and 120" in answer["error"]
    assert "make smaller batches (maxOffsetsPerTrigger" in answer["error"]
    assert (await ask(["query", 1, [bytes(200_000)]]))[0] == 413
    server.close()
    await close(groups, applications)


def test_a_batch_is_posted_and_answered(tmp_path: Path) -> None:
    run(over_http, tmp_path)


def test_a_log_without_its_beginning_does_not_tell_what_was_there(tmp_path: Path) -> None:
    with Log(tmp_path / "log", "orders") as log:
        log.append(0, 0, [len(payload("q", 0))], payload("q", 0))
    batches = Batches()
    recover(batches, tmp_path / "log", 1)
    assert batches.last("q") == (0, 0)
    for position, folder in ((0, tmp_path / "log"), (5, tmp_path / "none")):
        recover(Batches(), folder, position)  # nothing is to be remembered
    (tmp_path / "log" / "00000000000000000000").rename(tmp_path / "log" / "00000000000000000007")
    with pytest.raises(LogError):
        recover(Batches(), tmp_path / "log", 9)


async def too_large(folder: Path) -> None:
    groups = await open_logged(new_name(), folder, *NAMES, max_message_size=1000)
    applications = [Application(group) for group in groups]
    with pytest.raises(LocalProtocolError, match="a message of this group has at most 1000"):
        await applications[0].gateway.commit(Batch("query", 0, (bytes(2000),)))
    await close(groups, applications)


def test_a_batch_that_is_too_large_is_refused(tmp_path: Path) -> None:
    run(too_large, tmp_path)


class Slow:
    """A group whose disks are slow: a stand-in, in which everything sent is ordered at once."""

    max_message_size = 1000
    name, me, members = "g", "A", ("A",)

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.disks = asyncio.Event()

    async def send(self, payload: bytes) -> "Slow":
        self.sent.append(payload)
        return self

    async def durable(self) -> None:
        await self.disks.wait()


def test_a_batch_that_another_gateway_ordered_is_not_committed_before_it_is_durable() -> None:
    async def test() -> None:
        group, batches = Slow(), Batches()
        gateway = Gateway(group, batches)  # type: ignore[arg-type]
        assert batches.take(payload("q", 0), 7) is not None
        asked = [asyncio.ensure_future(gateway.commit(Batch("q", 0, (b"row",)))) for _ in range(2)]
        await asyncio.sleep(0.01)
        assert [each.done() for each in asked] == [False, False]
        assert [batches.take(each, 8) for each in group.sent] == [None], "it is dropped everywhere"
        group.disks.set()
        assert await asyncio.gather(*asked) == [Committed(7, again=True, last=0)] * 2
        assert gateway.sent == 0

    run(test)


def test_nothing_fails_behind_an_answer() -> None:
    """Whoever asked keeps the connection open for a while; what fails there is told to nobody but the loop."""

    async def test() -> None:
        failed: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        group, batches = Slow(), Batches()
        group.disks.set()
        batches.take(payload("q", 0), 7)
        face = GatewayServer(Gateway(group, batches), group)  # type: ignore[arg-type]
        server = await face.serve("127.0.0.1", 0)
        reader, writer = await asked(server, request(0))
        assert b'{"position":7,"again":true,"last":0}' in await reader.read()
        writer.close()
        server.close()
        await until(lambda: face.connections == 0)
        await asyncio.sleep(0)
        assert failed == []

    run(test)


def test_a_length_of_thousands_of_digits_is_answered() -> None:
    async def test() -> None:
        gateway = Gateway(Slow(), Batches())  # type: ignore[arg-type]
        server = await GatewayServer(gateway, Slow()).serve("127.0.0.1", 0)  # type: ignore[arg-type]
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"POST /batches HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")
        assert b" 413 " in await reader.readline()
        writer.close()
        server.close()

    run(test)


async def asked(server: asyncio.Server, *sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which this was said."""
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.writelines(sent)
    return reader, writer


async def first_line(reader: asyncio.StreamReader) -> bytes:
    """Nothing of a connection that was not answered."""
    with suppress(ConnectionResetError):
        return await reader.readline()
    return b""


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def request(number: int, size: int = 3) -> bytes:
    body = msgspec.msgpack.encode(["q", number, [bytes(size)]])
    return (
        b"POST /batches HTTP/1.1\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        % (
            CONTENT.encode(),
            len(body),
        )
        + body
    )


def test_connections_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("ordercast.gateway.http.MAX_CONNECTIONS", 2)

    async def test() -> None:
        face = GatewayServer(Gateway(Slow(), Batches()), Slow())  # type: ignore[arg-type]
        server = await face.serve("127.0.0.1", 0)
        silent = [await asked(server) for _ in range(2)]
        await until(lambda: face.connections == 2)
        reader, writer = await asked(server, b"GET / HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        assert b" 503 " in answer.splitlines()[0]
        assert b"2 connections are open: try again" in answer
        writer.close()
        await until(lambda: face.connections == 2)
        many = [await asked(server, b"GET / HTTP/1.1\r\n\r\n") for _ in range(10)]
        assert {await first_line(reader) for reader, _ in many} == {b"", b"HTTP/1.1 503 Service Unavailable\r\n"}
        for _, each in many:
            each.close()
        await until(lambda: face.connections == 2)
        silent[0][1].close()
        await until(lambda: face.connections == 1)
        reader, writer = await asked(server, b"GET / HTTP/1.1\r\n\r\n")
        assert b'"connections":2,"waiting":0,"refused":11}' in await reader.read()
        for each in (writer, silent[1][1]):
            each.close()
        server.close()
        await until(lambda: face.connections == 0)

    run(test)
    assert caplog.messages == ["a request was refused, 1 so far: 2 connections are open"]


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.gateway.http._HEAD_PATIENCE", 0.05)

    async def test() -> None:
        face = GatewayServer(Gateway(Slow(), Batches()), Slow())  # type: ignore[arg-type]
        server = await face.serve("127.0.0.1", 0)
        reader, writer = await asked(server, b"POST /batches")
        assert await reader.read() == b""
        assert face.connections == 0
        writer.close()
        server.close()

    run(test)


def test_batches_that_wait_are_bounded_and_who_is_gone_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group has no majority, so nothing is answered."""
    monkeypatch.setattr("ordercast.gateway.http._SPARE", 0)

    async def test() -> None:
        group = Slow()
        gateway = Gateway(group, Batches())  # type: ignore[arg-type]
        face = GatewayServer(gateway, group)  # type: ignore[arg-type]
        server = await face.serve("127.0.0.1", 0)
        waiting = [await asked(server, request(number, 900)) for number in range(4)]
        await until(lambda: len(group.sent) == 4)
        reader, writer = await asked(server, request(4, 900))
        answer = await reader.read()
        assert b" 503 " in answer.splitlines()[0]
        assert b"wait for the group, and 4000 may" in answer
        writer.close()
        waiting[0][1].close()
        await until(lambda: face.waiting < 3000)
        reader, writer = await asked(server, request(4, 900))
        await until(lambda: len(group.sent) == 5)
        writer.write(b"more than it had to")
        group.disks.set()
        for number, sent in enumerate(group.sent):
            gateway.take(Message.make("A", sent, position=number))
        assert b'{"position":4,"again":false,"last":4}' in await reader.read()
        for _, each in (*waiting, (reader, writer)):
            each.close()
        server.close()
        await until(lambda: face.connections == face.waiting == 0)

    run(test)
