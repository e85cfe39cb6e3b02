"""`ordercast members`: asks a running group who its members are."""

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.shared.live_options import INSECURE, KEY_ONCE, contacts_from, telling_options
from ordercast.live.group_members import FoundGroup, FoundMember, Presence, find_members
from ordercast.live.join import keys_for
from ordercast.live.local_groups import contacts_of, local_groups
from ordercast.live.resolution import look_up
from ordercast.live.transport.addresses import Address, place_of, require_group_name
from ordercast.model.config import require
from ordercast.model.errors import JoinError
from ordercast.wire.keys import keys_from_file

_MAX_TIMEOUT = 3600.0
_PRESENCES = {
    Presence.PRESENT: ("present", "green"),
    Presence.BLOCKED: ("blocked: it does not reach a majority", "bold red"),
    Presence.BEHIND: ("behind: it is in an earlier view", "yellow"),
    Presence.SILENT: ("does not answer", "bold red"),
}


def members_command(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    contacts: Annotated[
        str,
        typer.Option(
            "--join", help="Where to ask: `local`, this machine; or addresses of some members: HOST:PORT,HOST:PORT,…"
        ),
    ] = "local",
    key: Annotated[Path | None, KEY_ONCE] = None,
    insecure: Annotated[bool, INSECURE] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the first answer.")] = 3.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Ask a running group who its members are.

    Nothing changes in the group: one that asks does not become a member.
    Exit status 0: a member answered; 1: none did; 2: an argument is wrong.
    """
    require_group_name(group)
    require(0 < timeout <= _MAX_TIMEOUT, f"--timeout must be 0 to {_MAX_TIMEOUT:g} seconds, not {timeout:g}")
    try:
        with telling_options():
            if key is not None:
                keys_from_file(key)  # one that cannot be read is told before a group is looked for
            asked = _addresses(group, contacts_from(contacts))
            keys = keys_for(asked, key, insecure=insecure)
            found = asyncio.run(find_members(group, asked, keys, timeout))
    except JoinError as error:
        typer.echo(f"ordercast: {error}", err=True)
        raise typer.Exit(1) from None
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        console = Console()
        console.print(Text(_headline(found)))
        console.print(_table(found.members))


def _addresses(group: str, contacts: list[str] | Literal["local"]) -> list[Address]:
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


def _headline(found: FoundGroup) -> str:
    count = len(found.members)
    members = "1 member" if count == 1 else f"{count} members"
    blocked = "; it is blocked: no majority of this view reaches each other" if found.blocked else ""
    order = f"order {found.order}, " if found.order else ""
    return f"group {found.group}: {order}view {found.view}, {members}{blocked}"


def _table(members: tuple[FoundMember, ...]) -> Table:
    table = Table("place", "name", "address", "incarnation", "", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for member in members:
        words, colour = _PRESENCES[member.presence]
        values = str(member.place), member.name or "unknown", member.address, member.incarnation or "unknown"
        table.add_row(*map(Text, values), Text(words, colour))  # as text: [fd00::1] is no markup
    return table
