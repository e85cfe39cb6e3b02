"""Serves the page of some traces to the browsers of this machine.

The address has a random token, without which nothing is answered; requests that name another host are refused, so that
a page from elsewhere cannot ask through a name of its own. Only GET is answered, and nothing is written.
"""

import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from ordercast.model.errors import ConfigError, OrdercastError, reason_of
from ordercast.viewer.answers import ANSWERS
from ordercast.viewer.page import page
from ordercast.viewer.traces import TraceGoneError, Traces

LOOPBACK = "127.0.0.1"


class ViewerServer(ThreadingHTTPServer):
    """The server of some traces. `serve_forever` until interrupted; as a context manager it is closed at the end."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        traces: Traces,
        *,
        port: int = 0,
        runs: Sequence[str] = (),
        witnesses: Sequence[Mapping[str, Any]] = (),
        follow: bool = False,
    ) -> None:
        """`port`: 0 is any that is free. `runs`: one or two, shown first. Raises `ConfigError` if the port is taken.

        `follow`: the page asks each second for what was written meanwhile.
        """
        self.traces, self.token = traces, secrets.token_urlsafe(24)
        self._runs, self._witnesses, self._follow = list(runs), list(witnesses), follow
        self.gone: TraceGoneError | None = None
        """Why nothing is served any more: the trace that was followed is gone."""
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else "not a port"
            raise ConfigError(f"cannot serve at {LOOPBACK}:{port}: {reason}; choose another --port") from error

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def hosts(self) -> set[str]:
        """What a browser of this machine calls us."""
        return {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error; anything else is printed, and the page is told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def end(self, gone: TraceGoneError) -> None:
        """Ends `serve_forever`, from the thread of a request."""
        self.gone = gone
        Thread(target=self.shutdown, daemon=True).start()

    def document(self) -> bytes:
        """The page."""
        first, beside, *_ = [*self._runs, None, None]
        listed = self.traces.described(first, beside)
        data = {**listed, "mode": "server", "first": first, "beside": beside, "witnesses": self._witnesses}
        data["follow"] = self._follow
        return page(data, served=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ordercast", ""
    timeout: ClassVar[float] = 60
    server: ViewerServer

    def do_GET(self) -> None:
        """Answers the page and its questions."""
        address = urlsplit(self.path)
        _, token, *rest = [*address.path.split("/"), ""]
        known = secrets.compare_digest(token.encode(), self.server.token.encode())
        if self.headers.get("Host") not in self.server.hosts() or not known:
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", b"open the address that ordercast view printed\n")
            return
        name = rest[0] if rest else ""
        if not name:
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.server.document())
        elif name in ANSWERS:
            self._ask(name, dict(parse_qsl(address.query)))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"there is no such page\n")

    def _ask(self, name: str, query: Mapping[str, str]) -> None:
        try:
            found = ANSWERS[name](self.server.traces, query)
        except TraceGoneError as error:
            self._answer(HTTPStatus.GONE, "application/json", json.dumps({"error": str(error)}).encode())
            self.server.end(error)
            return
        except OrdercastError as error:
            body = json.dumps({"error": str(error)}).encode()
            self._answer(HTTPStatus.BAD_REQUEST, "application/json", body)
            return
        if isinstance(found, bytes):
            self._answer(HTTPStatus.OK, "application/octet-stream", found)
        else:
            self._answer(HTTPStatus.OK, "application/json", json.dumps(found, separators=(",", ":")).encode())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for header, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Requests are not logged: the token is in them."""
        del format, args
