"""A gateway that stands for a group: what it takes is in its order at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec

from ordercast.gateway import Batch, Batches
from ordercast.gateway.deduplication import encode_batch


class Order:
    """Stands for a group: what gateways sent, and what a member takes of it."""

    def __init__(self, *failures: int) -> None:
        """`failures`: statuses that are answered first, to those who are told nothing but that something failed."""
        self.batches = Batches()
        self.taken: list[Batch] = []
        self.failures = list(failures)
        self.asked = 0

    def answer(self, body: bytes) -> tuple[int, Any]:
        self.asked += 1
        if self.failures and self.failures[0] == 200:  # somebody else answers at this address
            self.failures.pop(0)
            return 200, {"status": "up"}
        source, number, rows = msgspec.msgpack.decode(body, type=tuple[str, int, tuple[bytes, ...]])
        found = self.batches.take(encode_batch(Batch(source, number, rows)), self.asked)
        if isinstance(found, Batch):
            self.taken.append(found)
        if self.failures:
            return self.failures.pop(0), {"error": "it may have been sent"}
        last = self.batches.last(source)
        assert last is not None
        return 200, {"position": last[1], "again": found is None, "last": last[0]}


@contextmanager
def gateway(order: Order) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, answer = order.answer(self.rfile.read(int(self.headers["Content-Length"])))
            data = msgspec.json.encode(answer)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the standard library's name)
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
