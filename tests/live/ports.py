"""Ports that are free just now, also of the tests that run beside this one; and addresses of this machine."""

import socket
from pathlib import Path

HERE = "127.0.0.1"


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
