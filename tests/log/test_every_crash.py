"""Every crash of short histories: each selection of sectors, sizes and names that a power failure may leave.

The disk is the model of the random histories; its chance is replaced by one that is told what to choose, and tells how
much there was to choose from. What a log that is opened again has is always a beginning of what was written, and has
all that was synced. That is what the explorer takes for granted of a node's disk (`ordercast.explorer.node_disk`).
`pytest --log-cli-level=INFO` says how many disks there were.
"""

import logging
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple

import pytest

from ordercast.log.check import check_disk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import Packet, View
from ordercast.model.errors import LogError
from ordercast.simulator.faulty_disk import Crashed, FaultyDisk
from tests.log.logs import GROUP, MEMBERS, payloads

logger = logging.getLogger(__name__)


class Choices:
    """Chance, as told by a path."""

    def __init__(self, path: list[int]) -> None:
        self._path, self.of = path, list[int]()
        """Of how many each choice was."""

    def _choose(self, count: int) -> int:
        self.of.append(count)
        return self._path[len(self.of) - 1] if len(self.of) <= len(self._path) else 0

    def random(self) -> float:
        """Below anything that may happen, or above it."""
        return (0.0, 1.0)[self._choose(2)]

    def choice(self, options: list[Any]) -> Any:
        """One of them; how likely something is, and what an error is called, does not matter."""
        return options[self._choose(len(options))] if isinstance(options[0], bytes) else options[0]

    def randrange(self, start: int, stop: int) -> int:
        """From start to below stop."""
        return start + self._choose(stop - start)


def every(run: Callable[[Choices], FaultyDisk]) -> Iterator[FaultyDisk]:
    """What comes of each path."""
    path: list[int] = []
    while True:
        chance = Choices(path)
        yield run(chance)
        path = [*path, *[0] * (len(chance.of) - len(path))]
        while path and path[-1] + 1 == chance.of[len(path) - 1]:
            path.pop()
        if not path:
            return
        path[-1] += 1


def after_power(disk: FaultyDisk) -> dict[object, FaultyDisk]:
    """All that a power failure may leave, by what is on the disk."""

    def fail(chance: Choices) -> FaultyDisk:
        left = deepcopy(disk)
        left.random = chance  # type: ignore[assignment] # it chooses
        left.restart(power=True)
        left.random = Random(0)
        return left

    return {contents(left): left for left in every(fail)}


def contents(disk: FaultyDisk) -> object:
    return tuple(sorted((name, bytes(inode.on_disk)) for name, inode in disk._on_disk.items()))


class History(NamedTuple):
    """What is written before the crash."""

    synced: int
    """So many messages are synced."""
    written: int
    """So many are written."""
    max_segment: int = 1 << 20
    note: bytes = b""
    """Written behind them."""
    failing: bool = False
    """The last sync fails: some of it is on the disk, and the rest never will be."""

    def options(self) -> Options:
        return Options(max_segment=self.max_segment, salt=lambda: 7, clock=lambda: 1)

    def open(self, disk: FaultyDisk) -> LogFiles:
        return LogFiles(disk, GROUP, self.options())

    def disks(self) -> Iterator[FaultyDisk]:
        """At the crash: one, or what a sync that fails may leave of one."""
        disk = FaultyDisk(Random(0))
        log = self.open(disk)
        log.view(View(1, MEMBERS))
        log.sync()
        for number in range(self.written):
            text = message(number)
            log.packets([Packet(number % 3, number, [len(text)], text)])
            if number < self.synced:
                log.sync()
        if self.note:
            log.note(self.note)
        if not self.failing:
            yield disk
            return

        def fail(chance: Choices) -> FaultyDisk:
            failed, log_there = deepcopy((disk, log))
            failed.random, failed.error_rate = chance, 2.0  # type: ignore[assignment]
            with pytest.raises(LogError):
                log_there.sync()
            failed.random, failed.error_rate = Random(0), 0.0
            return failed

        yield from {(contents(each), self.shown(each)): each for each in every(fail)}.values()

    @staticmethod
    def shown(disk: FaultyDisk) -> object:
        return tuple(sorted((name, bytes(inode.shown)) for name, inode in disk.files.items()))


HISTORIES = {
    "nothing synced": History(0, 1),
    "one frame behind a synced one": History(1, 2),
    "two frames": History(1, 3),
    "a note behind a frame": History(1, 2, note=b"noted"),
    "a segment for each frame": History(1, 2, max_segment=1),
    "a sync that fails": History(1, 2, failing=True),
}


def message(number: int) -> bytes:
    return b"%d" % number


def require_promised(history: History, log: LogFiles, disk: FaultyDisk) -> None:
    found = payloads(disk)
    assert found == [message(number) for number in range(log.next)], "a beginning of what was written"
    assert history.synced <= log.next <= history.written
    assert log.context.view == View(1, MEMBERS)
    assert log.context.note in {b"", history.note}
    assert log.context.note == b"" or log.next == history.written, "nothing before it is missing"


def require_goes_on(history: History, disk: FaultyDisk) -> int:
    """Opens the log, writes and syncs one more, and opens it again; the position that was found."""
    log = history.open(disk)
    require_promised(history, log, disk)
    before = log.next
    log.packets([Packet(0, 99, [4], b"more")])
    log.sync()
    report = check_disk(disk)
    assert (report.damage, report.durable, report.tail_bytes) == ((), before + 1, 0)
    disk.restart(power=False)
    again = history.open(disk)
    assert payloads(disk) == [*map(message, range(before)), b"more"]
    assert again.next == before + 1
    return before


LONG = {"two frames", "a note behind a frame"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name in LONG else ()) for name in HISTORIES]
)
def test_whatever_a_power_failure_leaves_the_log_goes_on_with_all_that_was_synced(name: str) -> None:
    history, found, tried = HISTORIES[name], set(), 0
    for disk in history.disks():
        for left in after_power(disk).values():
            found.add(require_goes_on(history, left))
            tried += 1
    logger.info("%s: %d disks", name, tried)
    assert found == set(range(history.synced, history.written + 1)), "each of them can happen"


def crashes_while_opening(history: History, disk: FaultyDisk) -> Iterator[FaultyDisk]:
    """All that is left when the process that opens the log dies at any of its calls, and the power fails then."""
    for calls in range(1_000):
        dying = deepcopy(disk)
        dying.allow(calls, 0.0)
        try:
            history.open(dying)
        except Crashed:
            dying.allow(-1, 0.0)
            yield from after_power(dying).values()
        else:
            return
    raise AssertionError("it never ends")


def require_second_crash(history: History) -> int:
    seen: set[object] = set()
    for disk in history.disks():
        for left in after_power(disk).values():
            for again in crashes_while_opening(history, left):
                if contents(again) not in seen:
                    seen.add(contents(again))
                    require_goes_on(history, again)
    return len(seen)


def test_what_is_found_after_a_sync_that_failed_stays_when_the_power_fails() -> None:
    """The process was killed, so that the next one is shown pages that are not on the disk, and promises them."""
    history, found = HISTORIES["a sync that fails"], set()
    for disk in history.disks():
        disk.restart(power=False)
        log = history.open(disk)
        require_promised(history, log, disk)
        for left in after_power(disk).values():
            assert require_goes_on(history, left) == log.next
        found.add(log.next)
    assert found == {2}, "all that is shown"


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in HISTORIES if name != "two frames"])  # that takes too long
def test_every_crash_while_it_is_opened_after_every_crash(name: str) -> None:
    tried = require_second_crash(HISTORIES[name])
    logger.info("%s, and a crash while it is opened: %d disks", name, tried)
    assert tried > 50
