"""What the commands about live groups have in common."""

import typer

from ordercast.live.addresses import LOOPBACK, address_of
from ordercast.model.errors import ConfigError

MEMBERS = typer.Option(
    "--members", help="All members: names, such as A,B,C, on this machine; or NAME=ADDRESS, such as A=10.0.0.1:7000,…"
)
KEY = typer.Option(help="A file with the group's keys (see `ordercast key`); if not said, those in ORDERCAST_KEY.")


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
    if text.isdecimal() and 0 <= int(text) < 1 << 16:
        return LOOPBACK, int(text)
    address = address_of(text)
    return address.host, address.port
