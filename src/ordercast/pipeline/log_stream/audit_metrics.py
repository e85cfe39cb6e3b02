"""What an audit of logs has found so far, for Prometheus."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6

from ordercast.pipeline.log_stream.audit_logs import LogAudit

_KINDS = ("order", "view", "group", "damage")


def exposition(audit: LogAudit) -> str:
    """In Prometheus' text format."""
    group = _quoted(audit.group)
    lines = [
        "# HELP ordercast_audit_disagreements Disagreements of members that were found, by kind.",
        "# TYPE ordercast_audit_disagreements gauge",
    ]
    for kind in _KINDS:
        count = sum(each.kind == kind for each in audit.found)
        lines.append(f'ordercast_audit_disagreements{{group={group},kind="{kind}"}} {count}')
    lines += [
        "# HELP ordercast_audit_agreed_position Up to here at least two members have the same order.",
        "# TYPE ordercast_audit_agreed_position gauge",
        f"ordercast_audit_agreed_position{{group={group}}} {audit.agreed}",
        "# HELP ordercast_audit_position Messages below it were read in the log of a member.",
        "# TYPE ordercast_audit_position gauge",
    ]
    members = list(audit.members.items())
    lines += [
        f"ordercast_audit_position{{group={group},member={_quoted(name)}}} {each.position}" for name, each in members
    ]
    lines += [
        "# HELP ordercast_audit_readable Whether the log of a member can be read.",
        "# TYPE ordercast_audit_readable gauge",
    ]
    lines += [
        f"ordercast_audit_readable{{group={group},member={_quoted(name)}}} {int(each.why_away is None)}"
        for name, each in members
    ]
    lines += [
        "# HELP ordercast_audit_left_behind_messages Messages at the end of a log that the group went on without.",
        "# TYPE ordercast_audit_left_behind_messages gauge",
    ]
    lines += [
        f"ordercast_audit_left_behind_messages{{group={group},member={_quoted(name)}}} {each.left_behind}"
        for name, each in members
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@contextmanager
def served_metrics(address: tuple[str, int], audit: LogAudit) -> Iterator[int]:
    """Serves them at `/metrics`; the port. Raises `OSError`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = exposition(audit).encode() if self.path.partition("?")[0] == "/metrics" else b"there is /metrics\n"
            found = self.path.partition("?")[0] == "/metrics"
            self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the standard library's name)
            """Requests are not logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = AF_INET6 if ":" in address[0] else AF_INET

    server = Server(address, Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
