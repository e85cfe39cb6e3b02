"""Ports that are free just now, also of the tests that run beside this one; and addresses of this machine."""

import itertools
import os
import socket
from contextlib import ExitStack
from pathlib import Path

from ordercast.live.transport.addresses import members_of

HERE = "127.0.0.1"
_MEMBERS = "ABCDEFGH"
_GROUPS = itertools.count()


def free_group(prefix: str) -> str:
    """A name of a group that no other test has, and whose members' ports, which follow from the names, are free."""
    while True:
        group = f"{prefix} {os.getpid()} {next(_GROUPS)}"
        with ExitStack() as sockets:
            try:
                for address in members_of(group, list(_MEMBERS)).values():
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
