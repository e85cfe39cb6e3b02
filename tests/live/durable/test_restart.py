"""All members fail, or so many that no view can follow: they begin anew, from their logs."""

import asyncio
import logging
import random
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Group, JoinError, LogSettings
from tests.live.durable.logged import LOGGED_ORDERS, hashes, kill, open_logged, texts
from tests.live.durable.test_coming_back import FAST, Sum, join_with
from tests.live.groups import hear, member_of, new_name, run

NAMES = ("A", "B", "C")


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_all_are_killed_and_go_on_with_the_next_position(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, *NAMES, order=order, failure_timeout=FAST)
        for number in range(10):
            await groups[number % 3].send(b"%d" % number, until="durable")
        view = groups[0].view.number
        await kill(*groups)
        again = await open_logged(name, tmp_path, *NAMES, order=order, failure_timeout=FAST)
        assert {(group.view.number, group.view.position, group.members) for group in again} == {(view + 1, 10, NAMES)}
        await again[1].send(b"more", until="durable")
        found = [(await hear(group, 1))[0] for group in again]
        assert {(message.position, message.payload, message.view) for message in found} == {(10, b"more", view + 1)}
        await asyncio.gather(*(group.close() for group in again))
        assert len(hashes(tmp_path, *NAMES)) == 1
        assert [payload for _, _, payload in texts(tmp_path, "B")[0]] == [
            *(b"%d" % each for each in range(10)),
            b"more",
        ]

    run(test)


def test_logs_of_different_lengths_become_the_longest(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, *NAMES, failure_timeout=FAST)
        await groups[0].send(b"first", until="durable")
        await asyncio.gather(*(hear(group, 1) for group in groups))
        await kill(groups[2])
        for number in range(200):
            await groups[0].send(b"%d" % number)
        await (await groups[1].send(b"last")).durable()
        await kill(*groups[:2])
        again = await open_logged(name, tmp_path, *NAMES, failure_timeout=FAST)
        assert {group.view.position for group in again} == {202}
        assert [message.position for message in await hear(again[2], 201)] == list(range(1, 202))
        await asyncio.gather(*(group.close() for group in again))
        assert len(hashes(tmp_path, *NAMES)) == 1

    run(test)


def test_a_majority_is_enough_and_the_last_one_joins(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, *NAMES, failure_timeout=FAST)
        await groups[0].send(b"first", until="durable")
        await kill(*groups)
        two = await open_logged(name, tmp_path, "C", "B", of=NAMES, failure_timeout=FAST)
        assert two[0].members == ("B", "C")
        await two[0].send(b"second", until="durable")
        [late] = await open_logged(name, tmp_path, "A", of=NAMES, failure_timeout=FAST)
        assert (await hear(late, 1))[0].payload in {b"first", b"second"}
        await late.send(b"third", until="durable")
        await asyncio.gather(*(group.close() for group in (*two, late)))
        assert len(hashes(tmp_path, *NAMES)) == 1

    run(test)


def test_a_minority_waits_and_says_for_whom_and_force_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, *NAMES, failure_timeout=FAST)
        await groups[0].send(b"first", until="durable")
        await kill(*groups)
        settings = ordercast.Settings(failure_timeout=FAST)

        def alone(log: LogSettings) -> ordercast.Joining:
            return ordercast.join(name, members=NAMES, name="C", settings=settings, log=log, timeout=1.5)

        with pytest.raises(JoinError, match=r"A, B, which were in the last view \(0: A, B, C\).*--force"):
            await alone(LogSettings(tmp_path / "C"))
        forced = await alone(LogSettings(tmp_path / "C", force=True, start=0))
        assert forced.members == ("C",)
        assert [message.payload for message in await hear(forced, 1)] == [b"first"]
        await forced.send(b"second", until="durable")
        await forced.leave()

    run(test)


def test_a_lost_disk_is_a_new_member(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, *NAMES, failure_timeout=FAST)
        await groups[0].send(b"first", until="durable")
        await kill(*groups)
        (tmp_path / "B").rename(tmp_path / "lost")
        again = await open_logged(name, tmp_path, *NAMES, failure_timeout=FAST)
        assert set(again[0].members) <= set(NAMES)
        await again[1].send(b"second", until="durable")
        await asyncio.gather(*(group.close() for group in again))
        assert len(hashes(tmp_path, *NAMES)) == 1

    run(test)


def test_what_a_survivor_was_delivered_is_kept(tmp_path: Path) -> None:
    """Two of three are killed and started again; the third is in the last view, and has the longest log."""

    async def test() -> None:
        name = new_name()
        groups = await open_logged(name, tmp_path, *NAMES, order="sequenced", failure_timeout=FAST)
        await groups[0].send(b"first", until="durable")
        await kill(*groups[:2])
        again = await open_logged(name, tmp_path, "A", "B", of=NAMES, order="sequenced", failure_timeout=FAST)
        await again[0].send(b"second", until="durable")
        found = await hear(groups[2], 2)
        assert [(message.position, message.payload) for message in found] == [(0, b"first"), (1, b"second")]
        await groups[2].send(b"third", until="durable")
        await asyncio.gather(*(group.close() for group in (*again, groups[2])))
        assert len(hashes(tmp_path, *NAMES)) == 1

    run(test)


def test_an_application_with_a_state_is_whole_after_all_were_killed(tmp_path: Path) -> None:
    async def test() -> None:
        name, sums = new_name(), [Sum(), Sum(), Sum()]
        groups = await asyncio.gather(
            *(join_with(name, each, one, tmp_path) for each, one in zip(NAMES, sums, strict=True))
        )
        for number in range(20):
            await groups[number % 3].send(b"%d" % number, until="durable")
        await kill(*groups)
        fresh = [Sum(), Sum(), Sum()]
        again = await asyncio.gather(
            *(join_with(name, each, one, tmp_path) for each, one in zip(NAMES, fresh, strict=True))
        )
        await again[0].send(b"1000", until="durable")
        for one, group in zip(fresh, again, strict=True):
            await one.read(group, 21)
        assert {one.total for one in fresh} == {1190}
        await asyncio.gather(*(group.close() for group in again))

    run(test)


class Cluster:
    """Members under load, of which some are killed and started again."""

    def __init__(self, folder: Path, order: str) -> None:
        self.folder, self.name = folder, new_name()
        self.options: dict[str, Any] = {"order": order, "failure_timeout": FAST}
        self.groups: dict[str, Group] = {}
        self.promised: list[bytes] = []
        self._number = 0
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    async def start(self, *names: str) -> None:
        for each, group in zip(
            names, await open_logged(self.name, self.folder, *names, of=NAMES, **self.options), strict=True
        ):
            self.groups[each] = group
            self._tasks[each] = [asyncio.create_task(self._read(group)), asyncio.create_task(self._load(group))]

    async def kill(self, *names: str) -> None:
        for each in names:
            for task in self._tasks[each]:
                task.cancel()
        await kill(*(self.groups.pop(each) for each in names))

    async def end(self) -> None:
        for _, load in self._tasks.values():
            load.cancel()
        while not self._are_together():
            await asyncio.sleep(0.05)
            for name in NAMES:
                reading = self._tasks[name][0]
                assert not reading.done(), f"{name} ended: {reading.exception()!r}"
        await asyncio.gather(*(group.close() for group in self.groups.values()))

    def _are_together(self) -> bool:
        """In one view, and all logs have caught up with it."""
        stats = [group.stats() for group in self.groups.values()]
        logs = [member_of(group).log for group in self.groups.values()]
        return (
            {(each.view, len(each.members)) for each in stats} == {(stats[0].view, len(NAMES))}
            and not any(log is None or log.feed.is_held for log in logs)
            and not any(group.blocked for group in self.groups.values())
        )

    async def _read(self, group: Group) -> None:
        last = -1
        async for message in group:
            assert message.position > last, "positions never go back"
            last = message.position

    async def _load(self, group: Group) -> None:
        while True:
            self._number += 1
            payload = b"%d" % self._number
            try:
                await group.send(payload, until="durable")
            except ordercast.Undelivered:
                continue
            except ordercast.GroupError:
                return
            self.promised.append(payload)


def kill_again_and_again(folder: Path, times: int, seed: int, order: str) -> None:
    """Some or all are killed under load, and started again; nothing that was told durable is lost or twice."""

    async def test() -> None:
        chance, cluster = random.Random(seed), Cluster(folder, order)
        await cluster.start(*NAMES)
        for _ in range(times):
            await asyncio.sleep(chance.uniform(0, 0.3))
            victims = chance.sample(NAMES, chance.choice([1, 2, 3, 3]))
            await cluster.kill(*victims)
            await asyncio.sleep(chance.uniform(0, 0.3))
            await cluster.start(*chance.sample(victims, len(victims)))
        await cluster.end()
        assert len(hashes(folder, *NAMES)) == 1
        payloads = [payload for _, _, payload in texts(folder, "A")[0]]
        assert len(payloads) == len(set(payloads))
        assert set(cluster.promised) <= set(payloads)
        assert len(cluster.promised) > times

    asyncio.run(asyncio.wait_for(test(), 30 + 10 * times))


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_members_that_are_killed_again_and_again_lose_nothing(order: str, tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 3, 1, order)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_members_that_are_killed_hundreds_of_times_lose_nothing(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    kill_again_and_again(tmp_path, 10, seed, LOGGED_ORDERS[seed % 3])
