"""`ordercast doctor`: checks whether this machine is ready for a live group."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.shared.live_options import MULTICAST, members_from
from ordercast.live.doctor import Check, Health, examine
from ordercast.live.transport.addresses import members_of, multicast_of
from ordercast.live.user_key import is_shared

_COLOURS = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "bold red"}


def doctor_command(
    group: Annotated[str, typer.Option(help="Name of the group, for members without addresses.")] = "group",
    member_list: Annotated[
        str | None, typer.Option("--members", help="Members to check: A,B,C or NAME=ADDRESS,…")
    ] = None,
    multicast: Annotated[str | None, MULTICAST] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check whether this machine is ready for a live group.

    Exit status 0: it is; 1: something that was asked for does not work.
    """
    members = (
        members_of(group, members_from(member_list), shared=is_shared(None, insecure=False)) if member_list else {}
    )
    tried = multicast_of(multicast, next(iter(members.values()), None)) if multicast else None
    checks = list(examine(members, tried))
    if json:
        typer.echo(msgspec.json.encode(checks))
    else:
        Console().print(_table(checks))
    raise typer.Exit(1 if any(check.health is Health.FAIL for check in checks) else 0)


def _table(checks: list[Check]) -> Table:
    table = Table("", "check", "found", "what to do", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for check in checks:
        health = Text(check.health.value, _COLOURS[check.health])
        table.add_row(health, *map(Text, (check.name, check.found, check.fix)))  # as text: [fd00::1] is no markup
    return table
