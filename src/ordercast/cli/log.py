"""`ordercast log`: looks at a durable log, verifies it, prints its messages, serves it to other machines."""

import base64
import sys
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.shared.printing import counted
from ordercast.model.config import require
from ordercast.model.errors import LogDamaged

if TYPE_CHECKING:
    from ordercast.log import LogReport, Message

_MEND = (
    "start the member again (with --verify, LogSettings(verify=True), if it is not at the end of the log): "
    "it sets this aside and fetches it from another member"
)


class Action(Enum):
    """What is done with the log."""

    SHOW = "show"
    CHECK = "check"
    CAT = "cat"
    SERVE = "serve"


def log_command(
    action: Annotated[
        Action,
        typer.Argument(
            help="show: segments, positions and disk use; check: verify every byte; cat: print a line POSITION, tab, "
            "SENDER, tab, TEXT for each message; serve: hand out its files over HTTP, until interrupted."
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Folder of the log.")],
    start: Annotated[
        int | None, typer.Option("--from", help="cat: begin with this position (default: with the oldest message).")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="cat: at the end, wait for more messages, until interrupted.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON; with cat, an object in each line.")] = False,
    bind: Annotated[
        str, typer.Option(help="serve: PORT or HOST:PORT to listen at; port 0 is any free port.")
    ] = "127.0.0.1:7600",
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="serve: file with the token that readers must show (Authorization: Bearer TOKEN). Default: the "
            "variable ORDERCAST_LOG_TOKEN. Required unless HOST is this machine alone."
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="serve: PEM file with the certificate, and its private key, for HTTPS.")
    ] = None,
) -> None:
    """Look at a durable log: its segments, its damage, its messages.

    Nothing is changed, and the log may be written meanwhile: what is shown, or served, is on the disk. In a TEXT, bytes
    that are no UTF-8 and line breaks are escaped by a backslash.
    Exit status 0: all that was read is intact; 1: something is missing or changed; 2: an argument is wrong, or there is
    no log in the folder.
    """
    require(action is Action.CAT or start is None, f"--from: {action.value} looks at the whole log; use cat")
    require(action is Action.CAT or not follow, f"--follow: {action.value} looks at the log as it is now; use cat")
    if action is Action.SERVE:
        require(not json, "--json: serve prints nothing but its address")
        _serve(folder, bind, token_file, certificate)
    elif action is Action.CAT:
        _cat(folder, start, follow=follow, json=json)
    else:
        _report(folder, verify=action is Action.CHECK, json=json)


def _cat(folder: Path, start: int | None, *, follow: bool, json: bool) -> None:
    from ordercast.log.disk import FolderDisk
    from ordercast.log.reader import messages_of

    write = sys.stdout.write
    line_of = _json_line if json else _line
    wait = _wait if follow else None
    try:
        for message in messages_of(FolderDisk(folder, write=False), start, None, wait):
            write(line_of(message))
        sys.stdout.flush()
    except LogDamaged as error:
        sys.stdout.flush()
        typer.echo(f"ordercast: the log is damaged: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        if not follow:
            raise
        sys.stdout.flush()


def _wait() -> None:
    from ordercast.log.reader import POLL_SECONDS

    sys.stdout.flush()
    time.sleep(POLL_SECONDS)


def _line(message: "Message") -> str:
    text = message.payload.decode(errors="backslashreplace").replace("\n", "\\n").replace("\r", "\\r")
    return f"{message.position}\t{message.sender}\t{text}\n"


def _json_line(message: "Message") -> str:
    import msgspec

    try:
        content = {"text": message.payload.decode()}
    except UnicodeDecodeError:
        content = {"base64": base64.b64encode(message.payload).decode()}
    fields = {"position": message.position, "sender": message.sender, **content}
    return msgspec.json.encode({**fields, "priority": message.priority, "view": message.view}).decode() + "\n"


def _serve(folder: Path, bind: str, token_file: Path | None, certificate: Path | None) -> None:
    from ipaddress import ip_address

    from ordercast.cli.shared.log_server import LogServer
    from ordercast.cli.shared.served_secrets import secrets_from
    from ordercast.live.transport.addresses import LOOPBACK, Address, address_of
    from ordercast.model.errors import ConfigError, reason_of

    host, port = Address(LOOPBACK, int(bind)) if bind.isdecimal() else address_of(bind, any_port=True)
    token, tls = secrets_from(token_file, "ORDERCAST_LOG_TOKEN", certificate)
    require(
        token is not None or ip_address(host).is_loopback,
        f"{host} can be reached by others, who could read all messages: give --token-file, or ORDERCAST_LOG_TOKEN",
    )
    try:
        server = LogServer(folder, (host, port), token, tls)
    except OSError as error:
        raise ConfigError(f"cannot listen at {bind}: {reason_of(error)}") from error
    kind = "http" if tls is None else "https"
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"ordercast: serves {folder} at {kind}://{shown}:{server.server_address[1]}/log", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


def _report(folder: Path, *, verify: bool, json: bool) -> None:
    import msgspec

    from ordercast.log import check

    found = check(folder, verify=verify)
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        _print_report(found)
    if found.damage:
        raise typer.Exit(1)


def _print_report(found: "LogReport") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table("segment", "positions", "bytes", "begun", "view", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for each in found.segments:
        begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.time / 1e9))
        positions = f"{each.first} to {each.next - 1}" if each.next > each.first else "none"
        table.add_row(*map(Text, (each.name, positions, f"{each.bytes:,}", begun, str(each.view))))
    console.print(Text(_headline(found)))
    console.print(table)
    for line in _notes(found):
        console.print(Text(line), soft_wrap=True)
    for line in found.damage:
        console.print(Text(f"damage: {line}", "bold red"), soft_wrap=True)
    if found.damage:
        console.print(Text(_MEND), soft_wrap=True)
    looked = "every byte was verified" if found.verified else "the last segment and all headers were verified"
    console.print(Text(f"{counted(len(found.damage), 'place')} damaged; {looked}"), soft_wrap=True)


def _headline(found: "LogReport") -> str:
    members = ", ".join(found.members) or "nobody"
    there = found.durable > found.first
    positions = f"positions {found.first} to {found.durable - 1}" if there else "no messages"
    return f"group {found.group}: {positions}, view {found.view} of {members}"


def _notes(found: "LogReport") -> list[str]:
    segment_bytes = sum(each.bytes for each in found.segments)
    lines = [
        f"running hash at position {found.next}: {found.hash}",
        f"disk use: {segment_bytes + found.snapshot_bytes:,} bytes, {found.snapshot_bytes:,} of them of a snapshot",
    ]
    if found.snapshot is not None:
        lines.append(f"snapshot: the state before position {found.snapshot}")
    if found.next > found.durable:
        lines.append(f"positions {found.durable} to {found.next - 1} are there and are not known to be on the disk")
    if found.tail_bytes and not found.damage:  # behind damage, what is there was promised, and is set aside
        lines.append(f"{counted(found.tail_bytes, 'byte')} at the end were never promised; opening the log drops them")
    lines += [f"{name}: set aside, does not count" for name in found.set_aside]
    return lines
