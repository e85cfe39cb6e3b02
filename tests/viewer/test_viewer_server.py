"""The server answers this machine, with the token, and nobody else; the page lets nothing of a trace run."""

import http.client
import json
import re
import socket
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from threading import Thread

import pytest

from ordercast.model.errors import ConfigError
from ordercast.viewer.page import embedded, page
from ordercast.viewer.server import ViewerServer
from ordercast.viewer.traces import Traces
from tests.viewer.traces import HOSTILE, one_loss, write


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewerServer]:
    with ViewerServer(Traces([write(tmp_path, one_loss())])) as found:
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def asked(server: ViewerServer, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def test_the_page_and_its_questions_are_answered(server: ViewerServer) -> None:
    status, body, headers = asked(server, f"/{server.token}/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<canvas" not in body, "the scripts make it"
    status, body, headers = asked(server, f"/{server.token}/run?run=r")
    assert (status, json.loads(body)["names"]) == (200, ["E1", "E2", "E3"])
    status, body, headers = asked(server, f"/{server.token}/tile?run=r&exponent=10&index=0")
    assert (status, headers["Content-Type"]) == (200, "application/octet-stream")
    status, body, _ = asked(server, f"/{server.token}/run?run=none")
    assert (status, json.loads(body)["error"]) == (400, "there is no run 'none'; the trace has: r")
    assert asked(server, f"/{server.token}/secret")[0] == 404


def test_without_the_token_or_by_another_name_nothing_is_answered(server: ViewerServer) -> None:
    good = f"/{server.token}/"
    for path in ("/", "//", "/x/", "/run?run=r", good[:-2] + "/", "/" + server.token.lower() + "/"):
        status, body, _ = asked(server, path)
        assert (status, body) == (403, b"open the address that ordercast view printed\n"), path
    assert asked(server, good, Host=f"attacker.example:{server.server_port}")[0] == 403
    assert asked(server, good, Host=f"localhost:{server.server_port}")[0] == 200
    assert asked(server, good, method="POST")[0] == 501


def test_tokens_are_new_each_time(server: ViewerServer) -> None:
    with ViewerServer(server.traces) as other:
        assert len(other.token) >= 32
        assert other.token != server.token


def test_it_listens_on_loopback_only(server: ViewerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_a_sentence(server: ViewerServer) -> None:
    with pytest.raises(ConfigError, match=r"cannot serve at 127.0.0.1:\d+: .*; choose another --port"):
        ViewerServer(server.traces, port=server.server_port)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ViewerServer(server.traces, port=port) as other:
        assert other.address.startswith(f"http://127.0.0.1:{port}/")


def test_text_of_a_trace_is_never_markup() -> None:
    text = embedded({"name": HOSTILE + "<!--"})
    assert "<" not in text
    assert ">" not in text
    assert json.loads(text) == {"name": HOSTILE + "<!--"}
    found = page({"name": HOSTILE}, served=False).decode()
    assert found.count("</script>") == 2
    assert "<img" not in found


def test_the_policy_lets_only_our_script_run_and_reaches_nobody() -> None:
    for served, reached in ((True, "'self'"), (False, "'none'")):
        found = page({}, served=served).decode()
        policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', found)[0]
        assert f"connect-src {reached};" in policy
        assert policy.startswith("default-src 'none';")
        script = re.findall(r"<script>(.*?)</script>", found, flags=re.DOTALL)[0]
        assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
        assert "unsafe" not in policy


def test_scripts_make_no_markup_from_text_and_name_no_host() -> None:
    for asset in (files("ordercast.viewer") / "static").iterdir():
        text = asset.read_text()
        for banned in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert banned not in text, asset.name
        assert set(re.findall(r"https?://([\w.]+)", text)) <= {"www.w3.org"}, "the name of SVG's language"
