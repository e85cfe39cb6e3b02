"""Ports that are free just now, also of the tests that run beside this one."""

import socket

HERE = "127.0.0.1"


def free_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    """A port of this machine, as the system chooses."""
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind((HERE, 0))
        return int(found.getsockname()[1])
