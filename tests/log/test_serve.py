"""`ordercast log serve`: the files of a log over HTTP."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ordercast.cli.log import Action, log_command
from ordercast.cli.shared.log_server import LogServer
from ordercast.log import Log, Options, check
from ordercast.model.errors import ConfigError
from tests.log.logs import GROUP, folder_log


@contextmanager
def served(folder: Path, token: str | None = None, tls: ssl.SSLContext | None = None) -> Iterator[HTTPConnection]:
    server = LogServer(folder, ("127.0.0.1", 0), token, tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    connection = HTTPConnection("127.0.0.1", server.server_port)
    try:
        yield connection
    finally:
        connection.close()
        server.shutdown()
        server.server_close()
        thread.join()


def get(connection: HTTPConnection, path: str, **headers: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_all_files_of_a_log_can_be_copied(tmp_path: Path) -> None:
    folder, copy = folder_log(tmp_path / "log", 60), tmp_path / "copy"
    copy.mkdir()
    with served(folder) as connection:
        status, body = get(connection, "/log")
        listed = msgspec.json.decode(body)
        assert (status, listed["group"], len(listed["segments"]) > 2) == (200, GROUP, True)
        for name in [each["name"] for each in listed["segments"]] + ["manifest"]:
            (copy / name).write_bytes(get(connection, f"/log/{name}")[1])
    ours, theirs = check(folder), check(copy)
    assert (theirs.damage, theirs.next, theirs.hash) == ((), ours.next, ours.hash)


def test_ranges_are_those_of_http(tmp_path: Path) -> None:
    folder = folder_log(tmp_path / "log", 10)
    name = "0" * 20
    whole = (folder / name).read_bytes()
    with served(folder) as connection:
        for asked, expected in (
            ("bytes=0-9", (206, whole[:10])),
            ("bytes=10-", (206, whole[10:])),
            ("bytes=-7", (206, whole[-7:])),
            (f"bytes=5-{len(whole) + 99}", (206, whole[5:])),
            (f"bytes={len(whole)}-", (416, b"")),
            ("lines=1-2", (200, whole)),
        ):
            assert get(connection, f"/log/{name}", Range=asked) == expected
        connection.request("HEAD", f"/log/{name}")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, str(len(whole)), b"")


def test_nothing_else_is_served(tmp_path: Path) -> None:
    folder = folder_log(tmp_path / "log", 3)
    (tmp_path / "secret").write_text("secret")
    with served(folder) as connection:
        for path in ("/log/../secret", "/log/lock", "/log/%2e%2e/secret", "/", "/log/.00000000000000000000"):
            status, body = get(connection, path)
            assert (status, body == b"secret") == (404, False)


def test_what_is_not_on_the_disk_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "log"
    may_sync = threading.Event()
    may_sync.set()
    with Log(folder, GROUP, options=Options(max_segment=1 << 20)) as log:
        log.append(0, 0, [5], b"first")
        done = threading.Event()
        log.when_durable(done.set)
        assert done.wait(5)
        monkeypatch.setattr("ordercast.log.disk._fdatasync", lambda _: may_sync.wait(5))
        may_sync.clear()
        log.append(0, 1, [1000], bytes(1000))
        name = "0" * 20
        while (folder / name).stat().st_size < 1000:
            pass
        with served(folder) as connection:
            assert len(get(connection, f"/log/{name}")[1]) < 1000
            may_sync.set()


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    folder = folder_log(tmp_path / "log", 3)
    with served(folder, "sesame") as connection:
        assert get(connection, "/log")[0] == 401
        assert get(connection, "/log", Authorization="Bearer wrong")[0] == 401
        assert get(connection, "/log", Authorization="Bearer sesame")[0] == 200


def test_whoever_can_be_reached_by_others_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORDERCAST_LOG_TOKEN", raising=False)
    folder = folder_log(tmp_path / "log", 3)
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0 can be reached by others.*give --token-file"):
        log_command(Action.SERVE, folder, bind="0.0.0.0:0")
    with pytest.raises(ConfigError, match="cannot read the token"):
        log_command(Action.SERVE, folder, token_file=tmp_path / "none")


def self_signed(path: Path) -> Path:
    """A certificate of localhost, with its private key."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return path


def test_who_connects_and_says_nothing_keeps_nobody_waiting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = self_signed(tmp_path / "certificate")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    server = LogServer(folder_log(tmp_path / "log", 10), ("127.0.0.1", 0), None, tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with socket.create_connection(("127.0.0.1", server.server_port)) as silent:
            silent.settimeout(5)
            trusting = ssl.create_default_context(cafile=str(certificate))
            connection = HTTPSConnection("localhost", server.server_port, timeout=5, context=trusting)
            assert get(connection, "/log")[0] == 200
            connection.close()
            silent.sendall(b"GET /log HTTP/1.1\r\n\r\n")  # no TLS
            with suppress(ConnectionError):
                while silent.recv(1000):
                    pass
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert not capsys.readouterr().err
