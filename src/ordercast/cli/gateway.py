"""`ordercast gateway`: a member that hands batches from outside, such as those of a Spark stream, to its group."""

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
from ordercast.live.join import join
from ordercast.live.settings import Settings
from ordercast.model.config import require


def gateway_command(
    group: Annotated[str, typer.Argument(help="Name of the group; the same at all members.")],
    name: Annotated[str, typer.Option(help="Name of this member.")],
    log: Annotated[
        Path,
        typer.Option(
            help="Durable log of this member, in this folder. A batch is answered when it is on the disks of a "
            "majority, and what was handed over before is known from here when the gateway is started again."
        ),
    ],
    member_list: Annotated[str | None, MEMBERS] = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            "--join", help="Join a group that is running, instead of --members: `local`, or HOST:PORT,HOST:PORT,…"
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(help="PORT or HOST:PORT at which batches are taken; port 0 is any free port.")
    ] = "127.0.0.1:7700",
    settings: Annotated[
        Path | None, typer.Option(help="TOML file with the group's settings, as at the other members.")
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="total, priority or sequenced; the same at all members. Default: total.")
    ] = None,
    bind: Annotated[
        str | None, typer.Option(help="With --join: address of this member, such as 10.0.0.4:7000.")
    ] = None,
    force: Annotated[bool, FORCE] = False,
    verify: Annotated[bool, VERIFY] = False,
    key: Annotated[Path | None, KEY_ONCE] = None,
    insecure: Annotated[bool, INSECURE] = False,
    timeout: Annotated[float, typer.Option(help="Seconds for all members to join.")] = 60.0,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that whoever hands over batches must show (Authorization: Bearer TOKEN). "
            "Default: the variable ORDERCAST_GATEWAY_TOKEN. Required unless it listens on this machine alone."
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the certificate, and its private key, for HTTPS.")
    ] = None,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Run a member that accepts batches from outside, and hands each to its group once.

    It is the gateway of the sink of Spark streams, `df.writeStream.format("ordercast")`. A batch is one message,
    answered when it is durable. One that is handed over again, here or at another gateway, is in the group once: all
    members drop it by its source and number, see `ordercast.gateway`. On SIGINT or SIGTERM it leaves, and the others
    go on.
    Exit status 0: it left; 1: the group did not open, or was aborted; 2: an argument is wrong.
    """
    require(
        (member_list is None) != (contacts is None),
        "give --members A,B,C to open a group, or --join local to join one that is running",
    )
    from ordercast.cli.shared.gateway_process import GatewayProcess
    from ordercast.cli.shared.served_secrets import secrets_from

    token, tls = secrets_from(token_file, "ORDERCAST_GATEWAY_TOKEN", certificate)
    host, port = _address(listen, token)
    options: dict[str, Any] = {"name": name, "key": key, "insecure": insecure, "timeout": timeout}
    options["log"] = log_from(log, force=force, verify=verify)
    if member_list is not None:
        options["members"] = members_from(member_list)
    else:
        options |= {"contacts": contacts_from(str(contacts)), "bind": bind}
    if settings is not None:
        options["settings"] = Settings.from_toml(settings)
    process = GatewayProcess(log, (host, port), token, tls)
    with telling_options():
        joining = join(group, order=order, on_waiting=process.say, **options)
    raise typer.Exit(run(process.run(joining), uvloop=uvloop))


def _address(text: str, token: str | None) -> tuple[str, int]:
    from ipaddress import ip_address

    from ordercast.live.transport.addresses import LOOPBACK, address_of

    if text.isdecimal():
        require(int(text) < 1 << 16, f"--listen: ports are 1 to 65535, and 0 is any free one, not {text}")
        return LOOPBACK, int(text)
    found = address_of(text, any_port=True)
    require(
        token is not None or ip_address(found.host).is_loopback,
        f"{found.host} can be reached by others, who could send to the group: give --token-file, or "
        "ORDERCAST_GATEWAY_TOKEN",
    )
    return found.host, found.port
