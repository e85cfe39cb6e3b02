"""`ordercast members`: asks a running group who its members are."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.shared.group_contacts import contact_addresses
from ordercast.cli.shared.live_options import INSECURE, KEY_ONCE, contacts_from, telling_options
from ordercast.cli.shared.top_view import PRESENCES
from ordercast.live.group_members import FoundGroup, FoundMember, find_members
from ordercast.live.join import keys_for
from ordercast.live.transport.addresses import require_group_name
from ordercast.model.config import require
from ordercast.model.errors import JoinError
from ordercast.wire.keys import keys_from_file

_MAX_TIMEOUT = 3600.0


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
            asked = contact_addresses(group, contacts_from(contacts))
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


def _headline(found: FoundGroup) -> str:
    count = len(found.members)
    members = "1 member" if count == 1 else f"{count} members"
    blocked = "; it is blocked: no majority of this view reaches each other" if found.blocked else ""
    order = f"order {found.order}, " if found.order else ""
    return f"group {found.group}: {order}view {found.view}, {members}{blocked}"


def _table(members: tuple[FoundMember, ...]) -> Table:
    table = Table("place", "name", "address", "incarnation", "", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for member in members:
        words, colour = PRESENCES[member.presence]
        values = str(member.place), member.name or "unknown", member.address, member.incarnation or "unknown"
        table.add_row(*map(Text, values), Text(words, colour))  # as text: [fd00::1] is no markup
    return table
