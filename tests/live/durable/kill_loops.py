"""Members as processes on real files, killed by SIGKILL at any moment under load, and started again.

They are forked from one process that has loaded everything, so that hundreds of lives take minutes. What a member was
told to be durable it writes to a file at once, with one call of the system: that survives its death.
"""

import asyncio
import logging
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import ordercast
import ordercast.live.restart  # loaded once, before the members are forked
from ordercast.log import check, read
from tests.live.groups import new_name

NAMES = ("A", "B", "C")
FAILURE_TIMEOUT = 1.0
PATIENCE = 60.0
"""Seconds within which all members must be told of something durable again."""


class Outcome:
    """What a loop found."""

    def __init__(self) -> None:
        self.killed = {1: 0, 2: 0, 3: 0}
        """Loops, by how many were killed in them."""
        self.messages = self.told = 0
        self.service: dict[int, list[float]] = {1: [], 2: [], 3: []}
        """Seconds until all members that were started again were told of something durable."""


class Life:
    """One life of a member."""

    def __init__(self, name: str, folder: Path, group: str, settings: ordercast.Settings, number: int) -> None:
        self.name, self.told_in = name, folder / f"{name}.told"
        self.errors = folder / f"{name}.errors"
        self.process = os.fork()
        if not self.process:
            _live(name, folder, group, settings, number, self.errors, self.told_in)

    def kill(self) -> None:
        """At once; returns when it is dead."""
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)

    def end(self) -> None:
        """Returns when it has ended, after all were told to."""
        _, status = os.waitpid(self.process, 0)
        assert not status, f"{self.name} did not end well: {self.errors.read_text()[-3000:]}"

    def told(self) -> int:
        """Bytes that it and earlier lives have written of what is durable."""
        return self.told_in.stat().st_size if self.told_in.exists() else 0

    def require_alive(self) -> None:
        """Raises an error with the reason if it has ended by itself."""
        found, _ = os.waitpid(self.process, os.WNOHANG)
        assert not found, f"{self.name} ended by itself: {self.errors.read_text()[-3000:]}"


def _live(  # noqa: PLR0917
    name: str, folder: Path, group: str, settings: ordercast.Settings, number: int, errors: Path, told: Path
) -> None:
    """The process of a member: never returns."""
    status = 1
    try:
        logging.basicConfig(filename=errors, format="%(asctime)s %(name)s %(message)s", force=True)
        asyncio.run(_member(name, folder, group, settings, number, told))
        status = 0
    except BaseException:
        logging.getLogger("kill_loops").exception("it ended")
    finally:
        os._exit(status)


async def _member(name: str, folder: Path, group: str, settings: ordercast.Settings, number: int, told: Path) -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    joined = await ordercast.join(
        group, members=NAMES, name=name, settings=settings, log=folder / name, timeout=PATIENCE
    )
    written = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    tasks = [asyncio.create_task(_send(joined, f"{name}-{number}-{task}", written)) for task in range(4)]
    tasks.append(asyncio.create_task(_read(joined)))
    for task in tasks:
        task.add_done_callback(lambda _: ending.set())
    await ending.wait()
    for task in tasks:
        if task.done():
            task.result()
    for task in tasks[:-1]:
        task.cancel()
    await joined.close()
    await tasks[-1]


async def _send(group: ordercast.Group, which: str, written: int) -> None:
    number = 0
    while True:
        number += 1
        try:
            await group.send(f"{which}-{number}".encode(), until="durable")
        except ordercast.Undelivered:
            continue
        os.write(written, f"{which}-{number}\n".encode())


async def _read(group: ordercast.Group) -> None:
    last = -1
    async for message in group:
        assert message.position > last, f"position {message.position} was handed out after {last}"
        last = message.position


def kill_again_and_again(
    folder: Path, times: int, seed: int, order: str, failure_timeout: float = FAILURE_TIMEOUT
) -> Outcome:
    """Some or all are killed so many times; raises an error if anything is lost, or if they do not go on."""
    chance, group, found = random.Random(seed), new_name(), Outcome()
    settings, number = ordercast.Settings(order=order, failure_timeout=failure_timeout), 0

    def start(name: str) -> Life:
        nonlocal number
        number += 1
        return Life(name, folder, group, settings, number)

    lives = {name: start(name) for name in NAMES}
    try:
        _wait_for_service(lives, NAMES)
        for _ in range(times):
            time.sleep(chance.uniform(0, 0.4))
            victims = chance.sample(NAMES, chance.choice([1, 2, 3, 3]))
            for name in victims:
                lives[name].kill()
            found.killed[len(victims)] += 1
            time.sleep(chance.choice([0.0, chance.uniform(0, 0.5)]))
            lives |= {name: start(name) for name in chance.sample(victims, len(victims))}
            if chance.random() < 0.5:  # else some are killed while they begin
                found.service[len(victims)].append(_wait_for_service(lives, tuple(victims)))
        _wait_for_service(lives, NAMES)
        for life in lives.values():
            os.kill(life.process, signal.SIGTERM)
        for life in lives.values():
            life.end()
    except BaseException:
        for life in lives.values():
            life.kill()
        raise
    _examine(folder, lives, found)
    return found


def _wait_for_service(lives: dict[str, Life], names: tuple[str, ...]) -> float:
    before, began = {name: lives[name].told() for name in names}, time.monotonic()

    def served(name: str) -> bool:
        return lives[name].told() > before[name]

    _wait(lambda: all(map(served, names)), lives, lambda: [name for name in names if not served(name)])
    return time.monotonic() - began


def _wait(done: Callable[[], bool], lives: dict[str, Life], lacking: Callable[[], list[str]]) -> None:
    until = time.monotonic() + PATIENCE
    while not done():
        for life in lives.values():
            life.require_alive()
        assert time.monotonic() < until, f"{', '.join(lacking())} had nothing durable for {PATIENCE:g} s"
        time.sleep(0.01)


def _examine(folder: Path, lives: dict[str, Life], found: Outcome) -> None:
    reports = {name: check(folder / name) for name in NAMES}
    assert not any(each.damage for each in reports.values()), reports
    ends = {name: (each.next, each.hash) for name, each in reports.items()}
    assert len(set(ends.values())) == 1, ends
    payloads = [message.payload.decode() for message in read(folder / NAMES[0])]
    assert len(payloads) == len(set(payloads)), "something was delivered twice"
    told = {line for life in lives.values() for line in life.told_in.read_text().split("\n")[:-1]}
    assert told <= set(payloads), f"told durable and lost: {sorted(told - set(payloads))[:10]}"
    found.messages, found.told = len(payloads), len(told)
