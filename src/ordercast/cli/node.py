"""`ordercast node`: a member of a group that sends what it reads and prints what it is delivered, line by line."""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ordercast.cli.shared.input_lines import InputLine, parse_line
from ordercast.cli.shared.live_options import (
    INSECURE,
    KEY,
    MEMBERS,
    MTU,
    MULTICAST,
    NETWORK,
    UVLOOP,
    address_or_port,
    members_from,
    read_keys_on_hangup,
    run,
    telling_options,
)
from ordercast.cli.shared.pipes import Output, lines_of
from ordercast.cli.shared.printing import BROKEN_PIPE
from ordercast.live.events import Message, View
from ordercast.live.join import Joining, join
from ordercast.live.metrics import serve_metrics
from ordercast.live.settings import Settings
from ordercast.model.config import require
from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError
from ordercast.wire.keys import GroupKeys

if TYPE_CHECKING:
    from ordercast.cli.shared.status_view import StatusView
    from ordercast.live.group import Group

_GROUP, _OUTPUT_PANEL = "Group", "Output and recording"
_INPUT, _OUTPUT = 0, 1


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
    failure_timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds without traffic from a member after which it counts as failed. Default: 3.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for all members to join.", rich_help_panel=_GROUP)] = 60.0,
    bind: Annotated[
        str | None,
        typer.Option(
            help="With --size: address of this member, such as 10.0.0.1:0; port 0 is any free port.",
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
        Path | None, typer.Option(help="Folder for a trace of this member.", rich_help_panel=_OUTPUT_PANEL)
    ] = None,
    record_detail: Annotated[
        Literal["all", "deliveries"], typer.Option(help="What the trace contains.", rich_help_panel=_OUTPUT_PANEL)
    ] = "all",
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
    `!9 text` has priority 9 (order priority); after a backslash in front the rest is sent as it is. At the end of its
    input it stays until all members have received everything and have ended, too.
    Exit status 0: everything was delivered; 1: the group was aborted, also by SIGINT or SIGTERM, or did not open; 2: an
    argument is wrong, or a line could not be sent.
    """
    require(
        member_list is not None or size is not None,
        "the members are missing; give --members A,B,C, or --size 3 to discover so many",
    )
    require(
        member_list is None or size is None,
        "--members and --size exclude each other; give --members, or --size to discover so many",
    )
    served_at = address_or_port(metrics) if metrics is not None else None
    node = _Node(status=status, served_at=served_at, key=key)
    given = {
        "order": order,
        "window": window,
        "resilience": resilience,
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
            name=name,
            bind=bind,
            settings=replace(Settings.from_toml(settings), **overrides) if settings else Settings(**overrides),
            key=key,
            insecure=insecure,
            timeout=timeout,
            record=record,
            record_detail=record_detail,
            busy_poll=busy_poll,
            on_view=node.on_view,
            on_waiting=node.on_waiting,
        )
    if record is not None:
        _keep_small()
    raise typer.Exit(run(node.run(joining), uvloop=uvloop))


def _keep_small() -> None:
    """Saves memory in a process that records; for a process of our own only: an application may use all of this.

    pyarrow, which writes the trace, imports numpy where it is installed, and pandas for some functions, to see whether
    values are theirs; and its default allocator keeps what it has freed.
    """
    for package in ("numpy", "pandas"):
        sys.modules.setdefault(package, None)  # type: ignore[arg-type] # None: an import fails
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


class _Node:
    """A member, from joining to an exit status."""

    def __init__(self, *, status: bool, served_at: tuple[str, int] | None, key: Path | None) -> None:
        self._shows_status, self._served_at, self._key_file = status, served_at, key
        self._new_keys: GroupKeys | None = None  # read again before the group was open
        self._group: Group | None = None
        self._view: StatusView | None = None
        self._stopped: str | None = None  # why, if it was stopped
        self._refused = 0

    def on_view(self, view: View) -> None:
        """The membership changed."""
        self._say(f"the group continues with {', '.join(view.members)}: {view.why}")

    def on_waiting(self, sentence: str) -> None:
        """Some members are missing."""
        self._say(sentence)

    async def run(self, joining: Joining) -> int:
        """The exit status. What can fail here alone is tried before the others rely on this member."""
        server = None
        if self._served_at is not None:
            host, port = self._served_at
            server = await serve_metrics(lambda: self._group.stats() if self._group else None, port, host)
        try:
            return await self._join(joining)
        finally:
            if server is not None:
                server.close()

    async def _join(self, joining: Joining) -> int:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for signal in (SIGINT, SIGTERM):
            loop.add_signal_handler(signal, self._stop, task, f"interrupted by {Signals(signal).name}")
        if self._key_file is not None:
            read_keys_on_hangup(self._key_file, self._rotate_keys, self._say)
        try:
            self._group = group = await joining
            if self._new_keys is not None:
                group.rotate_keys(self._new_keys)
            self._say(f"{group.me} is in the group {group.name} with {', '.join(_others(group))}")
            return await self._take_part(group, task)
        except asyncio.CancelledError:
            return await self._leave()
        except GroupError as error:
            self._say(str(error))
            return 1
        except ConfigError:  # of this member alone: the others need not wait for the failure timeout
            if self._group is not None:
                await self._group.leave(_LEAVES_WITHIN)
            raise

    async def _take_part(self, group: "Group", task: "asyncio.Task[Any]") -> int:
        output = Output(_OUTPUT, lambda error: self._stop(task, _why_not_written(error)))
        if self._shows_status:
            from ordercast.cli.shared.status_view import StatusView

            self._view = StatusView(group.stats)
        sending = asyncio.ensure_future(self._send(group))
        try:
            await asyncio.gather(self._print_messages(group, output), sending)
        finally:
            sending.cancel()
            if self._stopped is None:
                await output.flushed()
            if self._view is not None:
                self._view.close()
                self._view = None
            self._report_recording(group)
        return 2 if self._refused else 0

    async def _send(self, group: "Group") -> None:
        """Sends all lines, and closes."""
        number = 0
        try:
            async for line in lines_of(_INPUT, group.max_message_size):
                number += 1
                await self._send_line(group, number, line)
        except OSError as error:
            raise ConfigError(f"cannot read standard input: {error.strerror}") from error
        await group.close()

    async def _send_line(self, group: "Group", number: int, line: bytes) -> None:
        try:
            was_cut = len(line) > group.max_message_size
            text, to, priority = InputLine(line) if was_cut else parse_line(line)
            await group.send(text, to=to, priority=priority)
        except LocalProtocolError as error:
            self._refused += 1
            self._say(f"line {number} was not sent: {error}")

    async def _print_messages(self, group: "Group", output: Output) -> None:
        async for batch in group.batches():
            if not os.isatty(_OUTPUT):
                await output.write(b"".join(map(_printed, batch)))
            elif self._view is None:
                await output.write("".join(f"{_shown(message)}\n" for message in batch).encode())
            else:
                for message in batch:
                    self._view.say(_shown(message))

    def _rotate_keys(self, keys: GroupKeys) -> None:
        if self._group is not None:
            self._group.rotate_keys(keys)
        else:
            self._new_keys = keys

    def _stop(self, task: "asyncio.Task[Any]", why: str) -> None:
        if self._stopped is None:
            self._stopped = why
            task.cancel()

    async def _leave(self) -> int:
        """The others continue."""
        assert self._stopped is not None
        self._say(f"{self._stopped}; {self._group.me} leaves the group" if self._group else self._stopped)
        if self._group is not None:
            try:
                await self._group.leave(_LEAVES_WITHIN)
            except GroupError as error:
                self._say(str(error))
            self._report_recording(self._group)
        return BROKEN_PIPE if self._stopped == _READER_GONE else 1

    def _report_recording(self, group: "Group") -> None:
        error = group.stats().recording_error
        if error is not None:
            self._say(error)

    def _say(self, sentence: str) -> None:
        line = f"ordercast: {_harmless(sentence)}"  # it may contain text of other members
        if self._view is not None:
            self._view.say(line)
        else:
            with suppress(OSError):
                print(line, file=sys.stderr, flush=True)  # noqa: T201 (for people)


_LEAVES_WITHIN = 5.0
"""Seconds in which its last messages must have arrived when it is stopped."""
_READER_GONE = "the reader of its output has gone"


def _why_not_written(error: OSError) -> str:
    return _READER_GONE if isinstance(error, BrokenPipeError) else f"its output cannot be written ({error.strerror})"


def _others(group: "Group") -> list[str]:
    return [name for name in group.members if name != group.me]


def _printed(message: Message) -> bytes:
    """One line, whatever the message contains."""
    return b"%b\t%b\n" % (message.sender.encode(), message.payload.replace(b"\n", b"\\n"))


def _shown(message: Message) -> str:
    """The same for a terminal, without control characters: no member may control another's terminal."""
    return _harmless(_printed(message).decode(errors="replace").rstrip("\n"))


def _harmless(text: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in text)
