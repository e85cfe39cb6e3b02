"""`ordercast node`: a member of a group that sends what it reads and prints what it is delivered, line by line."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ordercast.cli.shared.live_options import (
    FORCE_HELP,
    INSECURE,
    KEY,
    LOCAL,
    MEMBERS,
    MTU,
    MULTICAST,
    NETWORK,
    UVLOOP,
    VERIFY_HELP,
    address_or_port,
    contacts_from,
    log_from,
    members_from,
    run,
    telling_options,
)
from ordercast.cli.shared.node_process import NodeProcess
from ordercast.live.join import join
from ordercast.live.settings import Settings
from ordercast.live.transport.addresses import place_of
from ordercast.model.config import require

_GROUP, _OUTPUT_PANEL = "Group", "Output and recording"


def node_command(
    group: Annotated[str, typer.Argument(help="Name of the group; the same at all members.")],
    member_list: Annotated[str | None, MEMBERS] = None,
    size: Annotated[
        int | None,
        typer.Option(
            help="Number of members, instead of --members: they discover each other at --multicast.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            "--join",
            help="Join a group that is running, instead of --members: `local`, that of this name on this machine; or "
            "addresses of some of its members: HOST:PORT,HOST:PORT,… Order and settings are those of the group.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of this member. Default: the first whose address is free on this machine.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            help="TOML file with the group's settings; the other options override it.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="partial, total, priority or sequenced; the same at all members. Default: total.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Packets that a member may have in flight.", rich_help_panel=_GROUP)
    ] = None,
    resilience: Annotated[
        int | None,
        typer.Option(
            help="Members besides the sequencer that hold a message before it is delivered (order sequenced). "
            "Default: 0.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    delivery: Annotated[
        str | None,
        typer.Option(
            help="What a message must be when it is delivered (orders partial and total): known_stable or stable, "
            "which is faster. "
            "Default: known_stable.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    quorum: Annotated[
        str | None,
        typer.Option(
            help="Who may continue without the others: last_view or static. Default: last_view.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    failure_timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds without traffic from a member after which it counts as failed. Default: 3.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    leave: Annotated[
        bool,
        typer.Option(
            "--leave",
            help="Leave at the end of the input: the others go on without this member.",
            rich_help_panel=_GROUP,
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds for all members to join; with --join, to be taken into the group.", rich_help_panel=_GROUP
        ),
    ] = 60.0,
    bind: Annotated[
        str | None,
        typer.Option(
            help="With --size and --join: address of this member, such as 10.0.0.1:0; port 0 is any free port. With "
            "--members: where it binds its socket, such as 0.0.0.0:7000, if the others reach it at another address.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            help="With --size and --join: address at which the others reach this member, if that is not --bind.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    key: Annotated[Path | None, KEY] = None,
    insecure: Annotated[bool, INSECURE] = False,
    multicast: Annotated[str | None, MULTICAST] = None,
    relay: Annotated[
        str | None,
        typer.Option(
            help="Address of an `ordercast relay` (orders total and priority). Default: the first member relays.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    mtu: Annotated[int | None, MTU] = None,
    max_datagram_size: Annotated[
        int | None,
        typer.Option(help="Bytes of a datagram before fragmentation. Default: 60000.", rich_help_panel=NETWORK),
    ] = None,
    max_message_size: Annotated[
        int | None, typer.Option(help="Bytes of a message. Default: 64 MiB.", rich_help_panel=NETWORK)
    ] = None,
    round_trip: Annotated[
        float | None,
        typer.Option(
            help="Seconds of a round trip to another member. Default: measured when joining.", rich_help_panel=NETWORK
        ),
    ] = None,
    busy_poll: Annotated[
        bool,
        typer.Option(
            help="Poll the socket for up to 80 µs after a single message, where that shortens the round trip.",
            rich_help_panel=NETWORK,
        ),
    ] = True,
    record: Annotated[
        Path | None, typer.Option(help="Record a trace of this member in this folder.", rich_help_panel=_OUTPUT_PANEL)
    ] = None,
    record_detail: Annotated[
        Literal["all", "deliveries"],
        typer.Option(help="What the trace in --record contains.", rich_help_panel=_OUTPUT_PANEL),
    ] = "all",
    log: Annotated[
        Path | None,
        typer.Option(
            help="Durable log of this member, in this folder: started again with the same arguments after whatever "
            "happened, it goes on where the group was. All members have one, or none has.",
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help=FORCE_HELP,
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help=VERIFY_HELP,
            rich_help_panel=_OUTPUT_PANEL,
        ),
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(help="PORT or HOST:PORT to serve Prometheus metrics at.", rich_help_panel=_OUTPUT_PANEL),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Show statistics on standard error.", rich_help_panel=_OUTPUT_PANEL)
    ] = False,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Join a live group: send each line of standard input, print each message.

    Messages are printed as SENDER, a tab, TEXT. A line `@B,C text` goes to B and C only (orders partial and total),
    `!9 text` has priority 9 (order priority); after a backslash in front the rest is sent as it is. Each change of
    membership is printed on standard error as `view NUMBER: A, B, D`. With --log it says on standard error with which
    position it goes on; what was printed just before it was killed may be printed again. At the end of its input it
    stays until all members of that time have received everything and have ended, too; with --leave it leaves, and the
    others go on.
    Exit status 0: everything was delivered; 1: the group did not open, was aborted, or goes on without this member,
    which SIGINT and SIGTERM make leave; 2: an argument is wrong, or a line could not be sent.
    """
    _require_one_way(member_list, size, contacts)
    require(contacts is None or name is not None, "--join needs the name of this member: give --name")
    require(
        size is None or (name is not None and bind is not None and bool(multicast or settings)),
        "--size needs the name of this member, its address, and where members discover each other: give --name, "
        "--bind, such as 10.0.0.1:0, and --multicast, such as 239.7.7.7:7000",
    )
    require(log is None or name is not None, "--log is that of one member: give --name")
    kept = log_from(log, force=force, verify=verify)
    asked = contacts_from(contacts) if contacts is not None else None
    require(
        asked is None or asked == LOCAL or bind is not None or all(place_of(each).is_loopback() for each in asked),
        "--join with addresses of other machines needs the address of this member: give --bind, such as 10.0.0.4:7000",
    )
    served_at = address_or_port(metrics) if metrics is not None else None
    node = NodeProcess(status=status, served_at=served_at, key=key, leaves=leave)
    given = {
        "order": order,
        "window": window,
        "resilience": resilience,
        "delivery": delivery,
        "quorum": quorum,
        "failure_timeout": failure_timeout,
        "round_trip": round_trip,
        "mtu": mtu,
        "max_datagram_size": max_datagram_size,
        "max_message_size": max_message_size,
        "multicast": multicast,
        "relay": relay,
    }
    overrides: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with telling_options():
        joining = join(
            group,
            members=members_from(member_list) if member_list is not None else None,
            size=size,
            contacts=asked,
            name=name,
            bind=bind,
            advertise=advertise,
            settings=_settings(settings, overrides, joins=contacts is not None),
            key=key,
            insecure=insecure,
            timeout=timeout,
            record=record,
            record_detail=record_detail,
            busy_poll=busy_poll,
            log=kept,
            on_waiting=node.on_waiting,
        )
    if record is not None:
        _keep_small()
    raise typer.Exit(run(node.run(joining), uvloop=uvloop))


def _require_one_way(member_list: str | None, size: int | None, contacts: str | None) -> None:
    given = [
        option
        for option, value in (("--members", member_list), ("--size", size), ("--join", contacts))
        if value is not None
    ]
    require(
        bool(given),
        "the members are missing; give --members A,B,C, or --size 3 to discover so many, or --join local to join a "
        "group that is running",
    )
    require(
        len(given) == 1,
        f"{' and '.join(given)} exclude each other; give --members to open a group, --size to discover its members, or "
        "--join to join one that is running",
    )


def _settings(path: Path | None, overrides: dict[str, Any], *, joins: bool) -> Settings | None:
    """Those of the file and the options; None: those of the group that is joined."""
    if path is not None:
        return replace(Settings.from_toml(path), **overrides)
    return None if joins and not overrides else Settings(**overrides)


def _keep_small() -> None:
    """Saves memory in a process that records; for a process of our own only: an application may use all of this.

    pyarrow, which writes the trace, imports numpy where it is installed, and pandas for some functions, to see whether
    values are theirs; and its default allocator keeps what it has freed.
    """
    for package in ("numpy", "pandas"):
        sys.modules.setdefault(package, None)  # type: ignore[arg-type] # None: an import fails
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
