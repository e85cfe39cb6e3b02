"""Ports that are free just now, also of the tests that run beside this one; and addresses of this machine."""

import secrets
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from ordercast.live.transport.addresses import members_of

HERE = "127.0.0.1"
_MEMBERS = "ABCDEFGH"


def free_group(prefix: str, members: Iterable[str] = _MEMBERS) -> str:
    """A name of a group that no other test has, and whose members' ports, which follow from the names, are free.

    It is drawn: numbers of processes repeat in containers, and those may share a network.
    """
    while True:
        group = f"{prefix}-{secrets.token_hex(4)}"
        with ExitStack() as sockets:
            try:
                for address in members_of(group, list(members)).values():
                    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                        sockets.enter_context(socket.socket(socket.AF_INET, kind)).bind((address.host, address.port))
            except OSError:
                continue
        return group


def free_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    """A port of this machine, as the system chooses."""
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind((HERE, 0))
        return int(found.getsockname()[1])


def link_local() -> str | None:
    """An address of a link of this machine, with its zone."""
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return None
    for number, *_, name in map(str.split, lines):
        if number.startswith("fe80"):
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(number)) + f"%{name}"
    return None
