"""Members as processes on real files, killed by SIGKILL at any moment under load, and started again.

They are forked from one process that has loaded everything, so that hundreds of lives take minutes. What a member was
told to be durable it writes to a file at once, with one call of the system: that survives its death.
"""

import asyncio
import logging
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

import ordercast
import ordercast.live.restart  # loaded once, before the members are forked
from ordercast.log import check, read
from tests.live.groups import new_name
from tests.small_disk import fill, small_disk

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
        self.others: list[float] = []
        """Seconds until the others were, after a disk was full."""


class Life:
    """One life of a member."""

    def __init__(self, name: str, folder: Path, group: str, settings: ordercast.Settings, number: int) -> None:
        self.name, self.told_in = name, folder / f"{name}.told"
        self.errors, self.has_ended = folder / f"{name}.errors", False
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
        """Raises an error with the reason if it has ended by itself, and was not expected to."""
        if not self.has_ended:
            found, _ = os.waitpid(self.process, os.WNOHANG)
            assert not found, f"{self.name} ended by itself: {self.errors.read_text()[-3000:]}"

    def wait_until_ended(self, why: str) -> None:
        """By itself, and with this in what it logged."""
        until = time.monotonic() + PATIENCE
        while not os.waitpid(self.process, os.WNOHANG)[0]:
            assert time.monotonic() < until, f"{self.name} did not end"
            time.sleep(0.002)
        self.has_ended = True
        assert why in self.errors.read_text()


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
        group,
        members=NAMES,
        name=name,
        settings=settings,
        log=ordercast.LogSettings(folder / name, verify=True),
        timeout=PATIENCE,
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


def flip_a_bit(log: Path, chance: random.Random) -> None:
    """Somewhere in a segment."""
    segment = chance.choice(sorted(each for each in log.iterdir() if each.name.isdigit()))
    data = bytearray(segment.read_bytes())
    bit = chance.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    segment.write_bytes(data)


def lose(log: Path, _: random.Random) -> None:
    """All of it."""
    shutil.rmtree(log)


Harm = Callable[[Path, random.Random], None]
"""What is done to the log of a member that was killed."""


def kill_again_and_again(folder: Path, times: int, seed: int, order: str, harm: Harm | None = None) -> Outcome:
    """Some or all are killed so many times; raises an error if anything is lost, or if they do not go on.

    With harm only one, whose log is harmed; the next one is killed when it is back.
    """
    chance, found = random.Random(seed), Outcome()
    with _Lives(folder, order) as lives:
        for _ in range(times):
            time.sleep(chance.uniform(0, 0.4))
            victims = chance.sample(NAMES, chance.choice([1, 2, 3, 3]) if harm is None else 1)
            for name in victims:
                lives.by_name[name].kill()
            found.killed[len(victims)] += 1
            time.sleep(chance.choice([0.0, chance.uniform(0, 0.5)]))
            if harm is not None:
                harm(folder / victims[0], chance)
            for name in chance.sample(victims, len(victims)):
                lives.start(name)
            if harm is not None or chance.random() < 0.5:  # else some are killed while they begin
                found.service[len(victims)].append(lives.wait_for_service(*victims))
    lives.examine(found)
    return found


def fill_again_and_again(folder: Path, times: int, order: str) -> Outcome:
    """The disk of C is really full so many times: it ends by itself, and comes back when there is room."""
    found = Outcome()
    with small_disk(folder / "C", 20_000) as disk, _Lives(folder, order) as lives:
        for _ in range(times):
            fill(disk)
            lives.by_name["C"].wait_until_ended("No space left")
            found.others.append(lives.wait_for_service("A", "B"))
            (disk / "filler").unlink()
            lives.start("C")
            found.service[1].append(lives.wait_for_service("C"))
        lives.end()
        lives.examine(found)
    return found


class _Lives:
    """The present lives of all members: all are there from the beginning to the end."""

    def __init__(self, folder: Path, order: str) -> None:
        self._folder, self._group, self._number, self._ended = folder, new_name(), 0, False
        self._settings = ordercast.Settings(order=order, failure_timeout=FAILURE_TIMEOUT)
        self.by_name: dict[str, Life] = {}

    def start(self, name: str) -> None:
        """The next life of a member."""
        self._number += 1
        self.by_name[name] = Life(name, self._folder, self._group, self._settings, self._number)

    def __enter__(self) -> Self:
        for name in NAMES:
            self.start(name)
        try:
            self.wait_for_service(*NAMES)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and not self._ended:
                self.end()
        finally:
            self._kill()

    def end(self) -> None:
        """All go on, and are told to end."""
        self.wait_for_service(*NAMES)
        for life in self.by_name.values():
            os.kill(life.process, signal.SIGTERM)
        for life in self.by_name.values():
            life.end()
        self._ended = True

    def _kill(self) -> None:
        for life in self.by_name.values():
            life.kill()

    def wait_for_service(self, *names: str) -> float:
        """Until these were told of something durable: seconds."""
        before, began = {name: self.by_name[name].told() for name in names}, time.monotonic()
        while lacking := [name for name in names if self.by_name[name].told() == before[name]]:
            for life in self.by_name.values():
                life.require_alive()
            passed = time.monotonic() - began
            assert passed < PATIENCE, f"{', '.join(lacking)} had nothing durable for {PATIENCE:g} s"
            time.sleep(0.01)
        return time.monotonic() - began

    def examine(self, found: Outcome) -> None:
        """Everything told durable is in every log, once, and the logs are equal."""
        reports = {name: check(self._folder / name) for name in NAMES}
        assert not any(each.damage for each in reports.values()), reports
        ends = {name: (each.next, each.hash) for name, each in reports.items()}
        assert len(set(ends.values())) == 1, ends
        payloads = [message.payload.decode() for message in read(self._folder / NAMES[0])]
        assert len(payloads) == len(set(payloads)), "something was delivered twice"
        lines = [life.told_in.read_text().split("\n")[:-1] for life in self.by_name.values()]
        told = {line for each in lines for line in each}
        assert told <= set(payloads), f"told durable and lost: {sorted(told - set(payloads))[:10]}"
        found.messages, found.told = len(payloads), len(told)
