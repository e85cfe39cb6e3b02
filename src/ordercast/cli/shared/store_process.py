"""A member of a replicated dictionary as a process: commands from standard input, answers on standard output."""

import asyncio
import sys
from contextlib import suppress
from signal import SIGINT, SIGTERM
from socket import socket
from typing import Any

from ordercast.cli.shared.pipes import lines_of
from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.store_http import StoreServer, listening_at
from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError, OrdercastError
from ordercast.replicated import Dict, Member, join

_INPUT = 0
_MAX_LINE = 1 << 20
HELP = "get KEY, put KEY VALUE, del KEY, items [PREFIX], watch [PREFIX], members"


class StoreProcess:
    """A member, from joining to an exit status."""

    def __init__(self, port: int | None, *, durable: bool = False) -> None:
        """`port`: of the HTTP face; None: there is none. `durable`: there is a log."""
        self._store: Dict[Any] = Dict()
        self._port, self._durable = port, durable
        self._listening: socket | None = None
        self._watching: set[asyncio.Task[None]] = set()
        self._interrupted = False

    async def run(self, group: str, **options: Any) -> int:
        """The exit status. If the port is in use, the group never hears of this member."""
        if self._port is not None:
            try:
                self._listening = listening_at(self._port)
            except OSError as error:
                raise ConfigError(f"--http: cannot listen at port {self._port}: {error.strerror}") from error
        task = asyncio.current_task()
        assert task is not None
        for signal in (SIGINT, SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signal, self._interrupt, task)
        try:
            async with join(group, self._store, on_waiting=_say, **options) as member:
                await self._take_part(member)
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            return 1 if self._port is None else 0
        except GroupError as error:
            _say(str(error))
            return 1
        return 0

    def _interrupt(self, task: "asyncio.Task[Any]") -> None:
        self._interrupted = True
        task.cancel()

    async def _take_part(self, member: Member) -> None:
        others = ", ".join(name for name in member.members if name != member.me) or "nobody else"
        _say(f"{member.me} is in the group {member.group.name} with {others}; {counted(len(self._store), 'key')}")
        server = None
        if self._listening is not None:
            server = await StoreServer(self._store, member, durable=self._durable).serve(self._listening)
            host, port = server.sockets[0].getsockname()[:2]
            _say(f"http://{host}:{port}/keys")
        try:
            await self._read_lines(member)
            if server is not None:
                await asyncio.Event().wait()  # as a service: until it is interrupted
        finally:
            for each in self._watching:
                each.cancel()
            if server is not None:
                server.close()

    async def _read_lines(self, member: Member) -> None:
        async for line in lines_of(_INPUT, _MAX_LINE):
            text = line.decode(errors="replace").strip()
            if text:
                try:
                    await self._do(member, text)
                except LocalProtocolError as error:
                    _say(str(error))

    async def _do(self, member: Member, line: str) -> None:
        """One command, of which it awaits the end."""
        word, _, rest = line.partition(" ")
        key, _, value = rest.strip().partition(" ")
        store = self._store
        match word:
            case "put" if key and value:
                await store.put(key, value.strip())
                await self._done(member)
                _print("ok")
            case "get" if key and not value:
                _print(_shown(await store.get(key, fresh=True)))
            case "del" if key and not value:
                was_there = await store.delete(key)
                await self._done(member)
                _print("ok" if was_there else "no such key")
            case "items" if not value:
                for name, each in sorted((await store.items(key, fresh=True)).items()):
                    _print(f"{name} = {_shown(each)}")
            case "watch" if not value:
                task = asyncio.create_task(self._watch(key))
                self._watching.add(task)
                task.add_done_callback(self._watching.discard)
            case "members" if not key:
                _print(", ".join(member.members))
            case _:
                raise LocalProtocolError(f"not understood: {line[:80]!r}; there are: {HELP}")

    async def _done(self, member: Member) -> None:
        """Before a change is told to be done."""
        if self._durable:
            await member.durable()

    async def _watch(self, prefix: str) -> None:
        with suppress(OrdercastError):
            async for change in self._store.watch(prefix):
                gone = "expired" if change.expired else "deleted"
                _print(f"{change.key} {gone}" if change.deleted else f"{change.key} = {_shown(change.value)}")


def _shown(value: Any) -> str:
    """One line, without what would control a terminal."""
    if value is None:
        return "no such key"
    text = value if isinstance(value, str) else repr(value)
    return "".join(each if each.isprintable() else "�" for each in text)


def _print(text: str) -> None:
    print("".join(each if each.isprintable() else "�" for each in text), flush=True)  # noqa: T201 (its output)


def _say(sentence: str) -> None:
    with suppress(OSError):
        print(f"ordercast: {sentence}", file=sys.stderr, flush=True)  # noqa: T201 (for people)
