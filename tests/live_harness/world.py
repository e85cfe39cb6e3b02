"""Virtual time, and the processes that live in it. One thread runs them all, one turn of one event loop at a time."""

import heapq
from asyncio import events as asyncio_events
from collections.abc import Callable
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any

from tests.live_harness.loop import VirtualLoop

if TYPE_CHECKING:
    from tests.live_harness.network import Network

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND
"""The time of the day when a run begins."""
TURN = 5_000
"""Nanoseconds from one turn of an event loop to its next one, if that has something to do."""
MOST_TURNS = 300_000


class EndlessError(Exception):
    """The run goes on and on."""


class World:
    """Time, the events to come, and the process whose turn it is."""

    def __init__(self, seed: int) -> None:
        self.seed, self.now = seed, SECOND
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = self.turns = 0
        self.processes: list[Process] = []
        self.network: Network
        self.current: Process | None = None
        self.history: list[str] = []
        """What went over the network, as a digest of each datagram, if `remembers`."""
        self.remembers = False
        self.grain = 1
        """Timers are due, and datagrams arrive, at multiples of so many nanoseconds: an event loop that waits for the
        system wakes a little late, and then finds more to do."""

    def chance(self, use: str) -> Random:
        """A stream of its own for each use."""
        return Random(blake2b(f"{self.seed} {use}".encode(), digest_size=8).digest())

    def at(self, when: int, action: Callable[..., None], *arguments: Any) -> None:
        """Something is to happen; what was asked for first is first."""
        self._count += 1
        heapq.heappush(self._heap, (max(self.now, when), self._count, action, arguments))

    def run(self, until: int, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Until then, or until it is done; whether it is."""
        heap = self._heap
        while not is_done():
            if not heap or heap[0][0] > until:
                self.now = until
                return is_done()
            self.now, _, action, arguments = heapq.heappop(heap)
            action(*arguments)
        return True


class Process:
    """One life of a process: its event loop, its sockets, its chance. `kill` ends it between two turns."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.chance = world.chance(f"process {len(world.processes)}")
        world.processes.append(self)
        self.loop = VirtualLoop(self)
        self.alive, self.paused_until = True, 0
        self._wakes_at: int | None = None
        self.errors: list[str] = []
        """What reached the event loop, and what the code calls an internal error."""
        self.on_kill: list[Callable[[], None]] = []

    def start(self, main: Callable[[], Any]) -> None:
        """Runs a coroutine function as the main program."""
        self.call(lambda: self.loop.create_task(main()))

    def call(self, action: Callable[[], Any]) -> None:
        """Does something in this process, in its next turn."""
        if self.alive:
            self.loop.call_soon(lambda: action() and None)
            self.wake(self.world.now)

    def wake(self, when: int) -> None:
        """It has something to do then, if not before."""
        if self.alive and (self._wakes_at is None or when < self._wakes_at):
            self._wakes_at = when
            self.world.at(when, self._turn, when)

    def _turn(self, meant: int) -> None:
        if not self.alive or meant != self._wakes_at:
            return
        world = self.world
        if world.now < self.paused_until:
            self._wakes_at = self.paused_until
            world.at(self.paused_until, self._turn, self.paused_until)
            return
        self._wakes_at = None
        world.turns += 1
        if world.turns > MOST_TURNS:
            raise EndlessError(f"{MOST_TURNS:,} turns of event loops")
        self.run_once()
        due = self.loop.due()
        if due is not None:
            grain, due = world.grain, max(due, world.now + TURN)
            self.wake(due if due <= world.now + TURN else -(-due // grain) * grain)

    def run_once(self) -> None:
        """One turn of its event loop."""
        self.world.current = self
        asyncio_events._set_running_loop(self.loop)
        try:
            self.loop.turn()
        finally:
            asyncio_events._set_running_loop(None)
            self.world.current = None

    def pause(self, until: int) -> None:
        """It gets no turn until then, as by SIGSTOP."""
        self.paused_until = max(self.paused_until, until)

    def kill(self) -> None:
        """As by SIGKILL."""
        if self.alive:
            self.alive = False
            for action in self.on_kill:
                action()
            self.loop.forget()

    def dispose(self) -> None:
        """Unwinds what it was in the middle of; nothing of it reaches anybody."""
        self.kill()
        self.world.current = self
        asyncio_events._set_running_loop(self.loop)
        try:
            self.loop.unwind()
        finally:
            asyncio_events._set_running_loop(None)
            self.world.current = None
