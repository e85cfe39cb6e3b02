"""What the commands about live groups have in common."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import typer

from ordercast.live.transport.addresses import LOOPBACK, address_of
from ordercast.model.config import require
from ordercast.model.errors import ConfigError

NETWORK = "The network"
MEMBERS = typer.Option(
    "--members", help="All members: names, such as A,B,C, on this machine; or NAME=ADDRESS, such as A=10.0.0.1:7000,…"
)
KEY = typer.Option(
    help="A file with the group's keys (see `ordercast key`); if not said, those in ORDERCAST_KEY.",
    rich_help_panel=NETWORK,
)
INSECURE = typer.Option("--insecure", help="Members on other machines, without a key.", rich_help_panel=NETWORK)
MULTICAST = typer.Option(
    help="An address such as 239.7.7.7:7000 to send to all at once; if not said, one by one.", rich_help_panel=NETWORK
)
MTU = typer.Option(
    help="Bytes that fit into a packet of the network; if not said, 1352, and any on one machine.",
    rich_help_panel=NETWORK,
)
UVLOOP = typer.Option(help="Run on uvloop, if it is installed.", rich_help_panel=NETWORK)


def members_from(text: str) -> dict[str, str]:
    """Reads A,B,C or A=10.0.0.1:7000,B=10.0.0.2:7000."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, given, address = (word.strip() for word in part.partition("="))
        if not name or (given and not address):
            raise ConfigError(f"--members: {part!r} names no member; write A,B,C or A=10.0.0.1:7000,B=10.0.0.2:7000")
        if name in found:
            raise ConfigError(f"--members: {name} is named twice")
        found[name] = address
    return found


def address_or_port(text: str) -> tuple[str, int]:
    """Reads 9100, which is a port of this machine only, or 10.0.0.1:9100."""
    if text.isdecimal():
        require(int(text) < 1 << 16, f"{text} is no port: there are 0, which is any, to 65535")
        return LOOPBACK, int(text)
    address = address_of(text)
    return address.host, address.port


def run(work: Coroutine[Any, Any, int], *, uvloop: bool) -> int:
    """Runs to the end in the fastest loop that there is."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if uvloop:
        with suppress(ImportError):
            from uvloop import new_event_loop as factory  # noqa: PLC0415
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
