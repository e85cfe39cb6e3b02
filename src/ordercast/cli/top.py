"""`ordercast top`: a running group in the terminal, refreshed until interrupted."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.live import Live

from ordercast.cli.shared.group_contacts import CONTACTS, MAX_SECONDS, TIMEOUT, require_askable, whom_to_ask
from ordercast.cli.shared.live_options import INSECURE, KEY_ONCE, telling_options
from ordercast.cli.shared.top_view import LEVELS, Look, rates_of, screen
from ordercast.live.group_members import inspect_members
from ordercast.live.transport.addresses import Address, address_of
from ordercast.model.config import require
from ordercast.model.errors import JoinError
from ordercast.wire.keys import GroupKeys


def top_command(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    contacts: Annotated[str, CONTACTS] = "local",
    key: Annotated[Path | None, KEY_ONCE] = None,
    insecure: Annotated[bool, INSECURE] = False,
    every: Annotated[float, typer.Option(help="Seconds between two refreshes.")] = 1.0,
    timeout: Annotated[float, TIMEOUT] = 3.0,
    once: Annotated[
        bool, typer.Option("--once", help="Measure for one interval (--every), print it, and exit.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each refresh instead.")] = False,
) -> None:
    """Watch a running group: members, rates, latencies, losses, who waits for whom.

    Nothing changes in the group: one that asks does not become a member.
    Exit status 0: interrupted, or --once; 1: no member answers; 2: an argument is wrong.
    """
    require_askable(group, timeout)
    require(0.1 <= every <= MAX_SECONDS, f"--every must be 0.1 to {MAX_SECONDS:g} seconds, not {every:g}")
    try:
        with telling_options():
            asked, keys = whom_to_ask(group, contacts, key, insecure=insecure)
        watch = _Watch(group, asked, keys, timeout)
        with suppress(KeyboardInterrupt):
            asyncio.run(_watched(watch, every, once=once, json=json))
    except JoinError as error:
        typer.echo(f"ordercast: {error}", err=True)
        raise typer.Exit(1) from None


class _Watch:
    """Looks at a group again and again, and finds it when those that were asked first are gone."""

    def __init__(self, group: str, asked: Sequence[Address], keys: GroupKeys | None, timeout: float) -> None:
        self._group, self._asked, self._keys, self._timeout = group, list(asked), keys, timeout

    async def look(self) -> Look:
        """Raises `JoinError` if nobody answers."""
        look = Look(*await inspect_members(self._group, self._asked, self._keys, self._timeout))
        found = [address_of(member.address) for member in look.found.members]
        self._asked = list(dict.fromkeys([*found, *self._asked]))[:64]
        return look


async def _watched(watch: _Watch, every: float, *, once: bool, json: bool) -> None:
    before: Look | None = None
    console = Console()
    with nullcontext() if once or json else Live(console=console, auto_refresh=False) as live:
        while True:
            now = await watch.look()
            if json:
                typer.echo(msgspec.json.encode(_document(now, before)).decode())
            elif live is not None:
                live.update(screen(now, before), refresh=True)
            elif before is not None:
                console.print(screen(now, before))
            if once and before is not None:
                return
            before = now
            await asyncio.sleep(every)


def _document(now: Look, before: Look | None) -> dict[str, object]:
    members = []
    for member in now.found.members:
        known = now.members.get(member.place)
        entry: dict[str, object] = {"place": member.place, "name": member.name, "presence": member.presence}
        if known is not None:
            earlier = before.members.get(member.place) if before and before.found.view == now.found.view else None
            rates = rates_of(known, earlier)
            figures = {name: value for name, value in msgspec.structs.asdict(known).items() if name not in _UNSAID}
            levels = dict(zip(LEVELS, map(msgspec.structs.asdict, known.latencies), strict=False))
            entry |= {**figures, "latencies": levels, "rates": rates}
        members.append(entry)
    found = now.found
    head = {"group": found.group, "order": found.order, "view": found.view, "blocked": found.blocked}
    return {**head, "members": members}


_UNSAID = {"incarnation", "nonce", "view", "place", "latencies"}
