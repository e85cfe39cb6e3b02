"""`ordercast node`: a member of a group that sends what it reads and prints what it is delivered, line by line."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import Annotated, Any

import typer

from ordercast.cli.joined import (
    INSECURE,
    KEY,
    MEMBERS,
    MTU,
    MULTICAST,
    NETWORK,
    UVLOOP,
    address_or_port,
    members_from,
    run,
)
from ordercast.cli.pipes import Output, lines_of
from ordercast.cli.printing import BROKEN_PIPE
from ordercast.cli.said import Said, said
from ordercast.cli.status import StatusView
from ordercast.live.events import Message, View
from ordercast.live.group import Group
from ordercast.live.joining import Joining, join
from ordercast.live.metrics import serve_metrics
from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError
from ordercast.model.runs import Record

_GROUP, _SHOW = "The group", "What is shown and kept"
_INPUT, _OUTPUT = 0, 1


def node_command(
    group: Annotated[str, typer.Argument(help="The name of the group: all members give the same.")],
    member_list: Annotated[str | None, MEMBERS] = None,
    size: Annotated[
        int | None,
        typer.Option(
            help="How many members there are, instead of who: they find each other at --multicast.",
            rich_help_panel=_GROUP,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Which member this is; if not said, the first whose place is free.", rich_help_panel=_GROUP),
    ] = None,
    order: Annotated[
        str, typer.Option(help="partial, total, priority or sequenced; all the same.", rich_help_panel=_GROUP)
    ] = "total",
    window: Annotated[int | None, typer.Option(help="Packets under way.", rich_help_panel=_GROUP)] = None,
    resilience: Annotated[
        int, typer.Option(help="Failures that sequenced messages survive.", rich_help_panel=_GROUP)
    ] = 0,
    timeout: Annotated[
        float, typer.Option(help="Seconds for all members to come together.", rich_help_panel=_GROUP)
    ] = 60.0,
    bind: Annotated[
        str | None,
        typer.Option(help="With --size: our own address, such as 10.0.0.1:0; 0 is any port.", rich_help_panel=NETWORK),
    ] = None,
    key: Annotated[Path | None, KEY] = None,
    insecure: Annotated[bool, INSECURE] = False,
    multicast: Annotated[str | None, MULTICAST] = None,
    channel: Annotated[
        str | None, typer.Option(help="Where an `ordercast channel` is.", rich_help_panel=NETWORK)
    ] = None,
    mtu: Annotated[int | None, MTU] = None,
    datagram: Annotated[int | None, typer.Option(help="Bytes of a datagram.", rich_help_panel=NETWORK)] = None,
    round_trip: Annotated[
        float | None,
        typer.Option(help="Seconds to another member and back; if not said, measured.", rich_help_panel=NETWORK),
    ] = None,
    silence: Annotated[
        float | None,
        typer.Option(
            help="Seconds without a sign of life after which a member is taken for dead; if not said, 3.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write a trace of this member there.", rich_help_panel=_SHOW)
    ] = None,
    recorded: Annotated[Record, typer.Option(help="How much it keeps.", rich_help_panel=_SHOW)] = Record.ALL,
    metrics: Annotated[
        str | None, typer.Option(help="PORT or HOST:PORT to serve /metrics at.", rich_help_panel=_SHOW)
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Show how it stands on standard error.", rich_help_panel=_SHOW)
    ] = False,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Joins a group, sends each line of standard input, and prints each message as SENDER, a tab, TEXT.

    `@B,C text` goes to B and C only (orders partial and total), `!9 text` has the priority 9 (order priority); a
    backslash in front sends the rest as it is. At the end of its input it stays until everybody has everything.
    Exit 0: all was delivered; 1: the group was given up, or did not come about; 2: an argument is wrong, or a line
    could not be sent.
    """
    served_at = address_or_port(metrics) if metrics is not None else None
    node = _Node(status=status, served_at=served_at)
    joining = join(
        group,
        members=members_from(member_list) if member_list is not None else None,
        size=size,
        bind=bind,
        name=name,
        order=order,
        key=key,
        insecure=insecure,
        multicast=multicast,
        channel=channel,
        mtu=mtu,
        datagram=datagram,
        window=window,
        round_trip=round_trip,
        silence=silence,
        resilience=resilience,
        timeout=timeout,
        record=record,
        recorded=recorded,
        on_view=node.on_view,
        on_waiting=node.on_waiting,
    )
    raise typer.Exit(run(node.run(joining), uvloop=uvloop))


class _Node:
    """The life of a member, from its joining to an exit status."""

    def __init__(self, *, status: bool, served_at: tuple[str, int] | None) -> None:
        self._shows_status, self._served_at = status, served_at
        self._group: Group | None = None
        self._view: StatusView | None = None
        self._stopped: str | None = None  # why, if not by itself
        self._refused = 0

    def on_view(self, view: View) -> None:
        """The group goes on without somebody; if it does while we join, that is told when we are in it."""
        if self._group is not None:
            self._say(f"the group goes on with {', '.join(self._group.members)}: {view.why}")

    def on_waiting(self, sentence: str) -> None:
        """Not all are there yet."""
        self._say(sentence)

    async def run(self, joining: Joining) -> int:
        """The exit status. What can fail here alone is tried before the others count on us."""
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
            loop.add_signal_handler(signal, self._stop, task, f"stopped by {Signals(signal).name}")
        try:
            self._group = group = await joining
            self._say(f"{group.me} is in the group {group.name} with {', '.join(_others(group))}")
            return await self._live(group, task)
        except asyncio.CancelledError:
            return await self._give_up()
        except GroupError as error:
            self._say(str(error))
            return 1
        except ConfigError as error:  # ours alone: the others need not wait until we seem to be dead
            if self._group is not None:
                await self._group.abort(str(error))
            raise

    async def _live(self, group: Group, task: "asyncio.Task[Any]") -> int:
        output = Output(_OUTPUT, lambda error: self._stop(task, _why_not_written(error)))
        self._view = StatusView(group.stats) if self._shows_status else None
        sending = asyncio.ensure_future(self._send(group))
        try:
            await asyncio.gather(self._hear(group, output), sending)
        finally:
            sending.cancel()
            if self._stopped is None:
                await output.flushed()
            if self._view is not None:
                self._view.close()
                self._view = None
            self._tell_of_record(group)
        return 2 if self._refused else 0

    async def _send(self, group: Group) -> None:
        """All lines, and then the end."""
        number = 0
        try:
            async for line in lines_of(_INPUT, group.largest):
                number += 1
                await self._send_line(group, number, line)
        except OSError as error:
            raise ConfigError(f"standard input cannot be read: {error.strerror}") from error
        await group.close()

    async def _send_line(self, group: Group, number: int, line: bytes) -> None:
        try:
            was_cut = len(line) > group.largest
            text, to, priority = Said(line) if was_cut else said(line)
            await group.send(text, to=to, priority=priority)
        except LocalProtocolError as error:
            self._refused += 1
            self._say(f"line {number} was not sent: {error}")

    async def _hear(self, group: Group, output: Output) -> None:
        async for batch in group.batches():
            if not os.isatty(_OUTPUT):
                await output.write(b"".join(map(_printed, batch)))
            elif self._view is None:
                await output.write("".join(f"{_shown(message)}\n" for message in batch).encode())
            else:
                for message in batch:
                    self._view.say(_shown(message))

    def _stop(self, task: "asyncio.Task[Any]", why: str) -> None:
        if self._stopped is None:
            self._stopped = why
            task.cancel()

    async def _give_up(self) -> int:
        assert self._stopped is not None
        self._say(f"{self._stopped}; the group is given up" if self._group else self._stopped)
        if self._group is not None:
            await self._group.abort(self._stopped)
            self._tell_of_record(self._group)
        return BROKEN_PIPE if self._stopped == _READER_GONE else 1

    def _tell_of_record(self, group: Group) -> None:
        failed = group.stats().record_failed
        if failed is not None:
            self._say(failed)

    def _say(self, sentence: str) -> None:
        told = f"ordercast: {_harmless(sentence)}"  # others may have said why the group is over
        if self._view is not None:
            self._view.say(told)
        else:
            with suppress(OSError):
                print(told, file=sys.stderr, flush=True)  # noqa: T201


_READER_GONE = "left by the reader of its output"


def _why_not_written(error: OSError) -> str:
    return _READER_GONE if isinstance(error, BrokenPipeError) else f"unable to write its output ({error.strerror})"


def _others(group: Group) -> list[str]:
    return [name for name in group.members if name != group.me]


def _printed(message: Message) -> bytes:
    """One line, whatever is in it."""
    return b"%b\t%b\n" % (message.sender.encode(), message.payload.replace(b"\n", b"\\n"))


def _shown(message: Message) -> str:
    """The same for a terminal, which does what control characters say: no member may clear another's screen."""
    return _harmless(_printed(message).decode(errors="replace").rstrip("\n"))


def _harmless(text: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in text)
