"""`ordercast store`: a replicated dictionary in processes, by lines and over HTTP."""

import asyncio
import http.client
import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli.shared.store_http import StoreServer, listening_at
from ordercast.replicated import Dict
from tests.cli.conftest import Command
from tests.cli.nodes import Nodes, new_group
from tests.live.groups import run
from tests.replicated.groups import cluster


def stores(*options: str, own: dict[str, list[str]] | None = None) -> Nodes:
    nodes = Nodes(names=())
    for name in "ABC":
        given = [*options, *(own or {}).get(name, ())]
        nodes.start("store", nodes.group, "--name", name, "--members", "A,B,C", *given, called=name)
    return nodes


def ask(port: int, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def port_of(nodes: Nodes, name: str) -> int:
    found = re.search(rb"http://127\.0\.0\.1:(\d+)/keys", nodes.error(name))
    assert found is not None
    return int(found[1])


def test_lines_change_the_store_of_all_and_one_that_is_killed_gets_it_again() -> None:
    with stores() as nodes:
        nodes.opened()
        nodes.say("B", b"watch c\nget colour\n")
        assert nodes.hear("B", 1) == [b"no such key\n"]  # so it watches before anything changes
        nodes.say("A", b"put colour green\nput size 5 or 6\nget colour\nget nothing\n")
        assert nodes.hear("A", 4) == [b"ok\n", b"ok\n", b"green\n", b"no such key\n"]
        assert nodes.hear("B", 1) == [b"colour = green\n"]
        nodes.say("B", b"del size\ndel size\nitems\nmembers\nfly\n")
        assert nodes.hear("B", 4) == [b"ok\n", b"no such key\n", b"colour = green\n", b"A, B, C\n"]
        assert b"not understood: 'fly'; there are: get KEY" in nodes.error("B")
        nodes.kill("C")
        nodes.start("store", nodes.group, "--name", "C", "--members", "A,B,C", called="C")
        nodes.say("C", b"get colour\n")
        assert nodes.hear("C", 1) == [b"green\n"]
        for name in "CBA":
            process = nodes.processes[name]
            process.communicate(timeout=30)
            assert process.returncode == 0


def test_the_http_face() -> None:
    with stores(own={"A": ["--http", "0"], "B": ["--http", "0"]}) as nodes:
        nodes.opened()
        a, b = port_of(nodes, "A"), port_of(nodes, "B")
        assert ask(a, "PUT", "/keys/a%20b", "[1, 2]") == (200, {"key": "a b", "value": [1, 2]})
        assert ask(b, "GET", "/keys/a%20b") == (200, {"key": "a b", "value": [1, 2]})
        assert ask(b, "GET", "/keys/a%20b?local") == (200, {"key": "a b", "value": [1, 2]})
        assert ask(b, "PUT", "/keys/n?expected=null", "1")[0] == 200
        assert ask(b, "PUT", "/keys/n?expected=2", "3") == (409, {"error": "'n' has another value than expected"})
        assert ask(a, "GET", "/keys?prefix=n") == (200, {"n": 1})
        assert ask(a, "DELETE", "/keys/n") == (200, {"key": "n", "value": 1})
        assert ask(a, "DELETE", "/keys/n")[0] == 404
        assert ask(a, "PUT", "/keys/n?expected=1", "2") == (409, {"error": "there is no key 'n'"})
        assert ask(a, "GET", "/members") == (200, {"me": "A", "members": ["A", "B", "C"], "view": 0})
        for method, path, body, status in (
            ("PUT", "/keys/x", "nonsense", 400),
            ("PUT", "/keys/x", "null", 400),
            ("PUT", "/keys/x?ttl=never", "1", 400),
            ("POST", "/keys/x", "1", 405),
            ("GET", "/keys/", None, 404),
            ("GET", "/", None, 404),
        ):
            assert ask(a, method, path, body)[0] == status, path
        assert ask(a, "GET", "/keys", Host="evil.example:80")[0] == 403
        connection = http.client.HTTPConnection("127.0.0.1", b, timeout=20)
        connection.request("GET", "/watch?prefix=w")
        changes = connection.getresponse()
        ask(a, "PUT", "/keys/w?ttl=0.2", '"v"')
        assert json.loads(changes.readline()) == {"key": "w", "value": "v", "deleted": False, "expired": False}
        assert json.loads(changes.readline())["expired"]
        connection.close()
        for name in "AB":
            nodes.processes[name].send_signal(signal.SIGTERM)
            nodes.processes[name].communicate(timeout=30)
            assert nodes.processes[name].returncode == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("", "give --members A,B,C to open a store, or --join local"),
        ("--members A,B --join local", "give --members A,B,C to open a store, or --join local"),
        ("--join local", "--join needs the name of this member: give --name"),
        ("--members A,B --log x", "--log is that of one member: give --name"),
        ("--members A,B --name A --force", "--force is about a log: give --log"),
        ("--members A,B --name A --verify", "--verify is about a log: give --log"),
        ("--members A,B --http 99999", "--http: ports are 1 to 65535, and 0 is any free one, not 99999"),
    ],
)
def test_what_cannot_be_done_is_told(ordercast: Command, options: str, problem: str) -> None:
    done = ordercast(f"store {new_group()} {options}")
    assert done.status == 2
    assert problem in done.sentence


def raw(port: int, head: str, body: bytes = b"") -> tuple[int, bytes]:
    """What no library would send."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head.encode("latin-1").replace(b"\n", b"\r\n") + b"\r\n\r\n" + body)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return int(answer.split(b" ")[1]), answer


def test_a_port_that_is_taken_is_told_before_anybody_is_asked_to_take_it_in(ordercast: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ordercast(f"store {new_group()} --name D --join local --http {port}")
    assert done.status == 2
    assert f"--http: cannot listen at port {port}: Address already in use" in done.sentence


def test_hostile_requests_get_an_answer_and_the_store_goes_on() -> None:
    async def test() -> None:
        async with cluster(Dict[Any], "AB") as group:
            server = await StoreServer(group["A"], group.members["A"], durable=False).serve(listening_at(0))
            port = server.sockets[0].getsockname()[1]
            for head, body, status in (
                ("GET /keys/%ff HTTP/1.1\nHost: localhost", b"", 400),
                ("GET /keys?prefix=%ff HTTP/1.1\nHost: localhost", b"", 400),
                ("GET /keys/\xff HTTP/1.1\nHost: localhost", b"", 400),
                ("GET http://[::1 HTTP/1.1\nHost: localhost", b"", 404),
                ("GET /keys", b"", 400),
                ("GET /keys HTTP/1.1", b"", 403),
                ("GET /keys HTTP/1.1\nHost: localhost\nX: " + 20_000 * "x", b"", 431),
                ("PUT /keys/x HTTP/1.1\nHost: localhost\nContent-Length: " + 5000 * "9", b"", 413),
                ("PUT /keys/x HTTP/1.1\nHost: localhost\nContent-Length: -1", b"", 400),
                ("PUT /keys/x HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked", b"1\r\n5\r\n0\r\n\r\n", 411),
                ("PUT /keys/x HTTP/1.1\nHost: localhost\nContent-Length: 40", b"1" * 40, 400),
                ("PUT /keys/x HTTP/1.1\nHost: localhost\nContent-Length: 2000", b"[" * 1000 + b"]" * 1000, 400),
                ("PUT /keys/x?expected=%5b HTTP/1.1\nHost: localhost\nContent-Length: 1", b"1", 400),
                ("POST /keys HTTP/1.1\nHost: localhost", b"", 405),
                ("DELETE /members HTTP/1.1\nHost: localhost", b"", 405),
                ("PUT /watch HTTP/1.1\nHost: localhost", b"", 405),
                ("HEAD /keys/x HTTP/1.1\nHost: localhost", b"", 405),
            ):
                assert (await asyncio.to_thread(raw, port, head, body))[0] == status, head[:80]
            large = b'"' + b"v" * 1_000_000 + b'"'
            head = "PUT /keys/\xc3\xa9%20%00 HTTP/1.1\nHost: localhost\nExpect: 100-continue\nContent-Length: 1000002"
            status, answer = await asyncio.to_thread(raw, port, head, large)
            assert (status, answer.count(b"HTTP/1.1")) == (100, 2)
            assert list(group["A"].items()) == ["é \0"]
            async with asyncio.timeout(5):
                assert len(await group["B"].get("é \0", fresh=True) or "") == 1_000_000
            server.close()

    run(test)


@pytest.mark.soak
def test_with_logs_all_may_be_killed(tmp_path: Path) -> None:
    own = {name: ["--log", str(tmp_path / name)] for name in "ABC"}
    with stores(own=own) as nodes:
        nodes.opened()
        nodes.say("A", b"put colour green\n")
        assert nodes.hear("A", 1) == [b"ok\n"]
        for name in "ABC":
            nodes.kill(name)
        for name in "ABC":
            nodes.start("store", nodes.group, "--name", name, "--members", "A,B,C", *own[name], called=name)
        nodes.say("B", b"get colour\n")
        assert nodes.hear("B", 1) == [b"green\n"]


@pytest.mark.soak
def test_without_the_disks_of_a_majority_only_force_goes_on(tmp_path: Path) -> None:
    settings = tmp_path / "group.toml"
    settings.write_text('order = "total"\nfailure_timeout = 1.0\n')
    own = {name: ["--log", str(tmp_path / name)] for name in "ABC"}
    with stores("--settings", str(settings), own=own) as nodes:
        nodes.opened()
        nodes.say("A", b"put colour green\n")
        assert nodes.hear("A", 1) == [b"ok\n"]
        nodes.say("B", b"get colour\n")
        assert nodes.hear("B", 1) == [b"green\n"]
        for name in "ABC":
            nodes.kill(name)
        for name in "AC":
            (tmp_path / name).rename(tmp_path / f"lost-{name}")
        alone = ["store", nodes.group, "--name", "B", "--members", "A,B,C", "--settings", str(settings), *own["B"]]
        nodes.start(*alone, "--timeout", "2", called="B")
        status, _, said = nodes.outcome("B")
        assert status == 1
        assert "start with --force" in said
        nodes.start(*alone, "--force", "--verify", called="B")
        nodes.say("B", b"get colour\nput colour red\n")
        assert nodes.hear("B", 2) == [b"green\n", b"ok\n"]
