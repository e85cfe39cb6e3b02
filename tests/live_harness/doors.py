"""How live code comes to virtual time, chance, sockets and threads: by the names under which its modules import them.

Live code reads clocks, chance and sockets only as attributes of the modules `time`, `secrets` and `socket`
(`test_doors.py` looks for others), and gives work to threads only by `asyncio.to_thread`, by the recorder's executor
and by the thread of heartbeats. So these names are bound to something else in its modules; nothing in it is changed.
"""

import asyncio
import secrets as real_secrets
import socket as real_socket
import sys
import time as real_time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import ordercast.live.host.trace_recorder
import ordercast.live.join
import ordercast.live.join_open_group
import ordercast.live.member_parts
import ordercast.live.open_group
import ordercast.live.state_transfer.donor
from ordercast.live.host.heartbeat_thread import HeartbeatThread
from ordercast.live.local_groups import Registration
from ordercast.live.transport.addresses import Address
from tests.live_harness.sockets import SocketModule
from tests.live_harness.world import EPOCH, World

LIVE = ("ordercast.live", "ordercast.wire")


class TimeModule:
    """What live code imports as `time`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic_ns(self) -> int:
        return self._world.now

    def monotonic(self) -> float:
        return self._world.now / 1e9

    perf_counter = monotonic

    def time_ns(self) -> int:
        return EPOCH + self._world.now


class SecretsModule:
    """What live code imports as `secrets`: repeatable chance, of each process its own."""

    def __init__(self, world: World) -> None:
        self._world = world

    def _chance(self) -> Any:
        assert self._world.current is not None, "only a process draws"
        return self._world.current.chance

    def randbits(self, bits: int) -> int:
        return int(self._chance().getrandbits(bits))

    def randbelow(self, below: int) -> int:
        return int(self._chance().randrange(below))

    def token_bytes(self, size: int) -> bytes:
        return bytes(self._chance().randbytes(size))

    def token_hex(self, size: int) -> str:
        return self.token_bytes(size).hex()


class InlineExecutor:
    """Does at once what a thread would do."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done

    def shutdown(self, *, wait: bool) -> None:
        """There is nothing to wait for."""


async def _to_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    await asyncio.sleep(0)
    return function(*arguments, **named)


class LocalNotes:
    """What `local_groups` has in files: which members of which groups are on this machine."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._notes: dict[object, tuple[str, Address]] = {}

    def contacts_of(self, group: str) -> list[Address]:
        found = [address for (owner, address) in self._notes.values() if owner == group]
        return list(dict.fromkeys(found))

    def register(self, group: str, name: str, address: Address) -> Registration:
        process, notes, note = self._world.current, self._notes, object()
        assert process is not None
        del name
        notes[note] = group, address
        process.on_kill.append(lambda: notes.pop(note, None) and None)

        class Note(Registration):
            def remove(self) -> None:
                notes.pop(note, None)

        return Note()


class _Replaced(NamedTuple):
    """A name of a module of live code that is bound to a module with another life."""

    names: dict[str, Any]
    name: str
    real: ModuleType


@cache
def _replaced(modules: int) -> list[_Replaced]:
    """Found once for each number of loaded modules: to look takes as long as a tenth of a run."""
    del modules
    return [
        _Replaced(names, name, value)
        for path, module in sorted(sys.modules.items())
        if path.startswith(LIVE)
        for names in [vars(module)]
        for name, value in list(names.items())
        if any(value is real for real in (real_time, real_secrets, real_socket))
    ]


@contextmanager
def installed(world: World, *, new_trace: Callable[..., Any]) -> Iterator[None]:
    """Within it live code lives in this world; `new_trace` replaces the writer of records."""
    virtual = {real_time: TimeModule(world), real_secrets: SecretsModule(world), real_socket: SocketModule(world)}
    notes = LocalNotes(world)
    found = _replaced(len(sys.modules))
    with ExitStack() as stack:
        for names, name, real in found:
            names[name] = virtual[real]
        stack.callback(_put_back, found)
        recorder = ordercast.live.host.trace_recorder
        stack.enter_context(patch.object(recorder, "_STARTED", EPOCH))
        stack.enter_context(patch.object(recorder, "ThreadPoolExecutor", InlineExecutor))
        stack.enter_context(patch.object(recorder, "IncrementalTraceWriter", new_trace))
        stack.enter_context(patch.object(asyncio, "to_thread", _to_thread))
        stack.enter_context(patch.object(HeartbeatThread, "ticked", lambda *_: None))
        stack.enter_context(patch.object(ordercast.live.member_parts, "register", notes.register))
        for module in (ordercast.live.open_group, ordercast.live.join_open_group):
            stack.enter_context(patch.object(module, "contacts_of", notes.contacts_of))
        stack.enter_context(patch.object(ordercast.live.open_group, "require_writable", lambda _: None))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def _put_back(found: list[_Replaced]) -> None:
    for names, name, real in found:
        names[name] = real
