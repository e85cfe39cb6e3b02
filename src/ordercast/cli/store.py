"""`ordercast store`: a replicated dictionary, with commands from standard input and an HTTP face."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ordercast.cli.shared.live_options import (
    FORCE,
    INSECURE,
    KEY_ONCE,
    MEMBERS,
    UVLOOP,
    VERIFY,
    contacts_from,
    log_from,
    members_from,
    run,
    telling_options,
)
from ordercast.cli.shared.store_process import StoreProcess
from ordercast.live.settings import Settings
from ordercast.model.config import require


def store_command(
    group: Annotated[str, typer.Argument(help="Name of the group; the same at all members.")],
    member_list: Annotated[str | None, MEMBERS] = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            "--join", help="Join a store that is running, instead of --members: `local`, or HOST:PORT,HOST:PORT,…"
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of this member. Default: the first whose address is free on this machine.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(help="Port of this machine to answer HTTP requests at; 0: any free one. See the documentation."),
    ] = None,
    bind: Annotated[
        str | None, typer.Option(help="With --join: address of this member, such as 10.0.0.4:7000.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Durable log of this member, in this folder: killed members, even all, go on when they are started "
            "again with the same arguments. `ok` then means: on the disks of a majority.",
        ),
    ] = None,
    force: Annotated[bool, FORCE] = False,
    verify: Annotated[bool, VERIFY] = False,
    settings: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with the group's settings, as at the other members. Default: the order sequenced, with as "
            "much resilience as makes commands survive whatever the group survives."
        ),
    ] = None,
    key: Annotated[Path | None, KEY_ONCE] = None,
    insecure: Annotated[bool, INSECURE] = False,
    timeout: Annotated[float, typer.Option(help="Seconds for all members to join.")] = 60.0,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Run a member of a replicated dictionary.

    It reads commands from standard input, one on each line: get KEY, put KEY VALUE, del KEY, items [PREFIX], watch
    [PREFIX], members. A member that is started again, or later, gets what the others have. At the end of its input it
    leaves, and the others go on; with --http it stays until it is interrupted.
    Exit status 0: it left; 1: the group did not open, was aborted, or the member was interrupted; 2: an argument is
    wrong.
    """
    require(
        (member_list is None) != (contacts is None),
        "give --members A,B,C to open a store, or --join local to join one that is running",
    )
    require(contacts is None or name is not None, "--join needs the name of this member: give --name")
    require(http is None or 0 <= http < 1 << 16, f"--http: ports are 1 to 65535, and 0 is any free one, not {http}")
    require(log is None or name is not None, "--log is that of one member: give --name")
    kept = log_from(log, force=force, verify=verify)
    options: dict[str, Any] = {"log": kept, "name": name, "key": key, "insecure": insecure, "timeout": timeout}
    if settings is not None:
        options["settings"] = Settings.from_toml(settings)
    if member_list is not None:
        options["members"] = members_from(member_list)
    else:
        options |= {"contacts": contacts_from(str(contacts)), "bind": bind}
    with telling_options():
        raise typer.Exit(run(StoreProcess(http, durable=log is not None).run(group, **options), uvloop=uvloop))
