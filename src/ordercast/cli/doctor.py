"""`ordercast doctor`: whether this machine suits a live group; and `ordercast key`: a key for one."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.joined import MULTICAST, members_from
from ordercast.live.doctor import Check, Health, examine
from ordercast.live.transport.addresses import members_of, multicast_of
from ordercast.model.config import require
from ordercast.model.errors import ConfigError
from ordercast.wire.keys import new_key

_COLOURS = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "bold red"}


def doctor_command(
    group: Annotated[str, typer.Option(help="The group, if its members are named without addresses.")] = "group",
    member_list: Annotated[
        str | None, typer.Option("--members", help="Members to look at: A,B,C or NAME=ADDRESS,…")
    ] = None,
    multicast: Annotated[str | None, MULTICAST] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Looks at what a live group needs of this machine. Exit 0: it will work; 1: something that was asked for fails."""
    members = members_of(group, members_from(member_list)) if member_list else {}
    tried = multicast_of(multicast, next(iter(members.values()), None)) if multicast else None
    checks = list(examine(members, tried))
    if json:
        typer.echo(msgspec.json.encode(checks))
    else:
        Console().print(_table(checks))
    raise typer.Exit(1 if any(check.health is Health.FAIL for check in checks) else 0)


def _table(checks: list[Check]) -> Table:
    table = Table("", "what", "found", "what helps", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for check in checks:
        health = Text(check.health.value, _COLOURS[check.health])
        table.add_row(health, *map(Text, (check.name, check.found, check.fix)))  # [fd00::1] is no markup
    return table


def key_command(
    out: Annotated[Path | None, typer.Option(help="Write it to this new file, which only you may read.")] = None,
    key_id: Annotated[int, typer.Option("--id", help="Its number, 1 to 255, which tells it from others.")] = 1,
) -> None:
    """Makes a new key for a group: a line ID:HEX. All members, and the channel, are given the same by --key FILE."""
    require(1 <= key_id <= 255, f"--id: the id of a key is 1 to 255, not {key_id}")
    line = new_key(key_id) + "\n"
    if out is None:
        typer.echo(line, nl=False)
        return
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(line)
    except FileExistsError:
        raise ConfigError(
            f"{out} is there already; to change keys, put a new line above the old one, and later remove that"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write the key to {out}: {error.strerror}") from error
