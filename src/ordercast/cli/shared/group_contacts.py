"""Where those ask that want to know about a running group without being members."""

import asyncio
from pathlib import Path
from typing import Literal

import typer

from ordercast.cli.shared.live_options import contacts_from
from ordercast.live.join import keys_for
from ordercast.live.local_groups import contacts_of, local_groups
from ordercast.live.resolution import look_up
from ordercast.live.transport.addresses import Address, place_of, require_group_name
from ordercast.model.config import require
from ordercast.model.errors import JoinError
from ordercast.wire.keys import GroupKeys, keys_from_file

CONTACTS = typer.Option(
    "--join", help="Where to ask: `local`, this machine; or addresses of some members: HOST:PORT,HOST:PORT,…"
)
TIMEOUT = typer.Option(help="Seconds to wait for the first answer.")
MAX_SECONDS = 3600.0


def require_askable(group: str, timeout: float) -> None:
    """Raises `ConfigError` for a name or a time that cannot be."""
    require_group_name(group)
    require(0 < timeout <= MAX_SECONDS, f"--timeout must be 0 to {MAX_SECONDS:g} seconds, not {timeout:g}")


def whom_to_ask(
    group: str, contacts: str, key: Path | None, *, insecure: bool
) -> tuple[list[Address], GroupKeys | None]:
    """The addresses, and the keys of the group."""
    if key is not None:
        keys_from_file(key)  # one that cannot be read is told before a group is looked for
    asked = contact_addresses(group, contacts_from(contacts))
    return asked, keys_for(asked, key, insecure=insecure)


def contact_addresses(group: str, contacts: list[str] | Literal["local"]) -> list[Address]:
    """Raises `JoinError` if no member runs on this machine, and no address is given."""
    if not isinstance(contacts, str):
        named = {text: place_of(text) for text in contacts}
        known = asyncio.run(look_up(named))
        if not known:
            raise JoinError(f"no address is known for {', '.join(named)}")
        return list(known.values())
    found = contacts_of(group)
    if not found:
        others = local_groups()
        running = f"groups that have some: {', '.join(others)}" if others else "no other group has any, either"
        raise JoinError(
            f"the group {group} has no member on this machine that this user started ({running}); "
            "give addresses of members: --join HOST:PORT,HOST:PORT"
        )
    return found
