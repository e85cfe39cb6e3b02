"""`ordercast members`: asks a running group who its members are."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.shared.group_contacts import CONTACTS, TIMEOUT, require_askable, whom_to_ask
from ordercast.cli.shared.live_options import INSECURE, KEY_ONCE, telling_options
from ordercast.cli.shared.top_view import PRESENCES
from ordercast.live.group_members import FoundGroup, FoundMember, find_members
from ordercast.model.errors import JoinError


def members_command(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    contacts: Annotated[str, CONTACTS] = "local",
    key: Annotated[Path | None, KEY_ONCE] = None,
    insecure: Annotated[bool, INSECURE] = False,
    timeout: Annotated[float, TIMEOUT] = 3.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Ask a running group who its members are.

    Nothing changes in the group: one that asks does not become a member.
    Exit status 0: a member answered; 1: none did; 2: an argument is wrong.
    """
    require_askable(group, timeout)
    try:
        with telling_options():
            asked, keys = whom_to_ask(group, contacts, key, insecure=insecure)
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
