"""One member of a live group as a process: what it reads it sends, what it is delivered it prints, until it ends."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import TYPE_CHECKING, Any

from ordercast.cli.shared.input_lines import InputLine, parse_line
from ordercast.cli.shared.live_options import read_keys_on_hangup
from ordercast.cli.shared.pipes import Output, lines_of
from ordercast.cli.shared.printing import BROKEN_PIPE
from ordercast.live.events import Blocked, Excluded, Message, Unblocked, View
from ordercast.live.join import Joining
from ordercast.live.metrics_server import serve_metrics
from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError
from ordercast.wire.keys import GroupKeys

if TYPE_CHECKING:
    from ordercast.cli.shared.status_view import StatusView
    from ordercast.live.group import Group

_INPUT, _OUTPUT = 0, 1


class NodeProcess:
    """A member, from joining to an exit status."""

    def __init__(
        self,
        *,
        status: bool = False,
        served_at: tuple[str, int] | None = None,
        key: Path | None = None,
        leaves: bool = False,
    ) -> None:
        """`leaves`: at the end of its input it leaves, and the others go on; else it waits until all have ended."""
        self._leaves = leaves
        self._shows_status, self._served_at, self._key_file = status, served_at, key
        self._new_keys: GroupKeys | None = None  # read again before the group was open
        self._group: Group | None = None
        self._view: StatusView | None = None
        self._stopped: str | None = None  # why, if it was stopped
        self._refused = 0

    def on_waiting(self, sentence: str) -> None:
        """Some members are missing."""
        self.say(sentence)

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
            read_keys_on_hangup(self._key_file, self._rotate_keys, self.say)
        try:
            self._group = group = await joining
            if self._new_keys is not None:
                group.rotate_keys(self._new_keys)
            others = ", ".join(_others(group)) or "nobody else"
            self.say(f"{group.me} is in the group {group.name} with {others}")
            if group.starts_at:
                self.say(f"{group.me} goes on with position {group.starts_at}")
            return await self._take_part(group, task)
        except asyncio.CancelledError:
            return await self._leave()
        except GroupError as error:
            self.say(str(error))
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
        sending = asyncio.ensure_future(self.send_lines(group))
        try:
            await asyncio.gather(self._print_events(group, output), sending)
        finally:
            sending.cancel()
            if self._stopped is None:
                await output.flushed()
            if self._view is not None:
                self._view.close()
                self._view = None
            self._report_recording(group)
        return 2 if self._refused else 0

    async def send_lines(self, group: "Group") -> None:
        """Sends all lines, and closes or leaves."""
        number = 0
        try:
            async for line in lines_of(_INPUT, group.max_message_size):
                number += 1
                await self._send_line(group, number, line)
        except OSError as error:
            raise ConfigError(f"cannot read standard input: {error.strerror}") from error
        await (group.leave() if self._leaves else group.close())

    async def _send_line(self, group: "Group", number: int, line: bytes) -> None:
        try:
            was_cut = len(line) > group.max_message_size
            text, to, priority = InputLine(line) if was_cut else parse_line(line)
            await group.send(text, to=to, priority=priority)
        except LocalProtocolError as error:
            self._refused += 1
            self.say(f"line {number} was not sent: {error}")

    async def _print_events(self, group: "Group", output: Output) -> None:
        async for event in group.event_batches():
            if not isinstance(event, list):
                self.tell(event)
            elif not os.isatty(_OUTPUT):
                await output.write(b"".join(map(_printed, event)))
            elif self._view is None:
                await output.write("".join(f"{shown(message)}\n" for message in event).encode())
            else:
                for message in event:
                    self._view.say(shown(message))

    def tell(self, event: View | Excluded | Blocked | Unblocked) -> None:
        """What happens to the group."""
        match event:
            case View(number=number, members=members, why=why):
                if why:
                    self.say(why)
                self._print(f"view {number}: {', '.join(members)}")
            case Blocked(lacks=lacks):
                self.say(f"blocked: it does not reach {', '.join(lacks)}, and without them there are too few members")
            case Unblocked():
                self.say("not blocked any more")
            case Excluded(why=why):
                self.say(f"excluded, and joins again: {why}")

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
        self.say(f"{self._stopped}; {self._group.me} leaves the group" if self._group else self._stopped)
        if self._group is not None:
            try:
                await self._group.leave(_LEAVES_WITHIN)
            except GroupError as error:
                self.say(str(error))
            self._report_recording(self._group)
        return BROKEN_PIPE if self._stopped == _READER_GONE else 1

    def _report_recording(self, group: "Group") -> None:
        stats = group.stats()
        for error in (stats.recording_error, stats.log_error):
            if error is not None:
                self.say(error)

    def say(self, sentence: str) -> None:
        """Tells whoever runs the command."""
        self._print(f"ordercast: {sentence}")

    def _print(self, text: str) -> None:
        line = _harmless(text)  # it may contain text of other members
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


def shown(message: Message) -> str:
    """The same for a terminal, without control characters: no member may control another's terminal."""
    return _harmless(_printed(message).decode(errors="replace").rstrip("\n"))


def _harmless(text: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in text)
