"""A log over HTTP, for readers on other machines: what there is as JSON, and the bytes of its files, by ranges.

`/log` verifies the last segment; `/log/files` reads no segment, so that whoever follows a log may ask for it often.

Nothing is decoded here: who reads verifies the checksums. Of the segment that is being written only what is on the disk
is served, so what a reader has got is never taken back.
"""

import hmac
import re
import ssl
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import Any

import msgspec

from ordercast.log.check import check
from ordercast.log.disk import FolderDisk
from ordercast.log.manifest import NAME as MANIFEST
from ordercast.log.manifest import read_manifest
from ordercast.log.published_end import NAME as END
from ordercast.log.published_end import read_published_end
from ordercast.log.reader import durable_limit
from ordercast.log.segments import counting_names, read_segment, segment_names, snapshot_name
from ordercast.model.errors import LogError

_BLOCK = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class LogServer(ThreadingHTTPServer):
    """Serves one folder. `serve_forever` runs it, `shutdown` ends it."""

    daemon_threads = True

    def __init__(
        self, folder: Path, address: tuple[str, int], token: str | None, tls: ssl.SSLContext | None = None
    ) -> None:
        """`token`: what readers must show; None: nothing."""
        self.address_family = AF_INET6 if ":" in address[0] else AF_INET
        self.disk, self.token = FolderDisk(folder, write=False), token
        self.folder = folder
        super().__init__(address, _Handler)
        if tls is not None:
            # Hands are shaken in the thread of a connection: one that says nothing keeps nobody else waiting.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who goes away, or does not speak TLS, is no error of this server."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "ordercast-log"
    server: LogServer
    timeout = 60

    def do_HEAD(self) -> None:
        """Headers only."""
        self.do_GET()

    def do_GET(self) -> None:
        """`/log`, `/log/files`, or `/log/NAME`."""
        if not self._is_allowed():
            self._refuse(HTTPStatus.UNAUTHORIZED, "show the token: Authorization: Bearer TOKEN")
            return
        path = self.path.partition("?")[0].rstrip("/")
        try:
            if path == "/log":
                self._answer(msgspec.json.encode(check(self.server.folder, verify=False)))
            elif path == "/log/files":
                self._answer(msgspec.json.encode([{"name": name, "bytes": size} for name, size in self._files()]))
            elif path.startswith("/log/"):
                self._send_file(path.removeprefix("/log/"))
            else:
                self._refuse(HTTPStatus.NOT_FOUND, "there is /log, /log/files, and /log/NAME for each of them")
        except (LogError, OSError) as error:
            self._refuse(HTTPStatus.NOT_FOUND, str(error))

    def _is_allowed(self) -> bool:
        token = self.server.token
        shown = self.headers.get("Authorization", "")
        return token is None or hmac.compare_digest(shown.encode(), f"Bearer {token}".encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        body = f"{why}\n".encode()
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _send_file(self, name: str) -> None:
        size = self._size(name)
        if size is None:
            self._refuse(HTTPStatus.NOT_FOUND, f"the log has no file {name!r}")
            return
        wanted = self._wanted(size)
        if wanted is None:
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start, stop, status = wanted
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(stop - start))
        if status is HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if self.command != "GET":
            return
        file = self.server.disk.open(name)
        try:
            while start < stop:
                part = file.read(start, min(_BLOCK, stop - start))
                self.wfile.write(part)
                start += len(part)
        finally:
            file.close()

    def _files(self) -> list[tuple[str, int]]:
        """All that may be read, with their sizes."""
        disk = self.server.disk
        start, names = read_manifest(disk).start, disk.names()
        found = [*counting_names(segment_names(names), start), *(each for each in (MANIFEST, END) if each in names)]
        return [(name, size) for name in found if (size := self._size(name)) is not None]

    def _size(self, name: str) -> int | None:
        """Bytes of a file that may be read; None if it is none of the log."""
        disk = self.server.disk
        manifest = read_manifest(disk)
        segments = counting_names(segment_names(disk.names()), manifest.start)
        if name in segments[:-1] or (name in {MANIFEST, END} and name in disk.names()):
            return disk.size(name)
        if manifest.snapshot is not None and name == snapshot_name(manifest.snapshot):
            return disk.size(name)
        if segments and name == segments[-1]:
            return durable_limit(disk, read_segment(disk, name), read_published_end(disk))
        return None

    def _wanted(self, size: int) -> tuple[int, int, HTTPStatus] | None:
        """What of a file is asked for; None if there is nothing of it."""
        asked = self.headers.get("Range")
        if asked is None:
            return 0, size, HTTPStatus.OK
        found = _RANGE.fullmatch(asked.strip())
        if found is None or found[1] == found[2] == "":
            return 0, size, HTTPStatus.OK  # what is not understood is ignored
        if not found[1]:
            return (max(0, size - int(found[2])), size, HTTPStatus.PARTIAL_CONTENT) if int(found[2]) else None
        start, stop = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        return (start, stop, HTTPStatus.PARTIAL_CONTENT) if start < stop else None

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the standard library's name)
        """Requests are not logged."""
