"""A member's sockets: what is read in one turn, when everything was read, and what the system reports."""

import asyncio
import socket

import pytest

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.sockets import open_socket


@pytest.mark.parametrize("segment", [0, 1400])
@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        (1, ["1 read", "drained"]),
        (31, ["31 read", "drained"]),
        (32, ["32 read", "drained"]),
        (33, ["32 read", "paused", "1 read", "drained"]),
        (70, ["32 read", "paused", "32 read", "paused", "6 read", "drained"]),
    ],
)
def test_it_is_drained_only_when_nothing_is_left(segment: int, waiting: int, expected: list[str]) -> None:
    async def test() -> None:
        own = open_socket(Address("127.0.0.1", 0))
        happened: list[str] = []
        count = 0

        def receive(_: object) -> None:
            nonlocal count
            count += 1

        def ended(how: str) -> None:
            nonlocal count
            happened.extend((f"{count} read", how))
            count = 0

        endpoint = Endpoint(own, [], segment=segment)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(waiting):
                sender.sendto(b"%d" % (10 ** (number % 7)), own.getsockname())  # of several sizes: none are merged
            endpoint.start(receive, lambda: ended("drained"), lambda: ended("paused"))
            while "drained" not in happened:
                await asyncio.sleep(0.001)
        endpoint.close()
        assert happened == expected

    asyncio.run(asyncio.wait_for(test(), 10))


def test_what_is_read_says_whether_anything_is_left() -> None:
    async def test() -> None:
        own = open_socket(Address("127.0.0.1", 0))
        endpoint = Endpoint(own, [])
        assert endpoint.read()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(33):
                sender.sendto(b"x", own.getsockname())
        assert not endpoint.read()
        assert endpoint.datagrams_in == 32
        assert endpoint.read()
        assert endpoint.datagrams_in == 33
        own.close()

    asyncio.run(asyncio.wait_for(test(), 10))


class Refusing:
    """A socket that reports an unreachable port, once, and sends nothing."""

    def __init__(self) -> None:
        self.errors: list[OSError] = [ConnectionRefusedError(111, "Connection refused")]

    def fileno(self) -> int:
        return 3

    def recv_into(self, _: memoryview) -> int:
        raise self.errors.pop() if self.errors else BlockingIOError

    def sendto(self, *_: object) -> int:
        raise PermissionError(1, "Operation not permitted")


def test_what_the_system_does_not_send_and_what_it_reports_are_counted_apart() -> None:
    endpoint = Endpoint(Refusing(), [])  # type: ignore[arg-type]
    assert endpoint.read()
    endpoint.send(b"x", Address("127.0.0.1", 7000))
    assert endpoint.not_received == {"Connection refused": 1}
    assert endpoint.not_sent == {"Operation not permitted": 1}
