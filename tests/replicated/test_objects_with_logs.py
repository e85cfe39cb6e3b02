"""Objects whose members keep logs: killed at any moment, one or all, they go on with all that was durable."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import ordercast.replicated
from ordercast import ConfigError, LocalProtocolError, LogSettings, Settings
from ordercast.log import Options, Retention
from ordercast.replicated import Call, Counter, Dict, Lock, Member, Replicated, command
from tests.live.durable.logged import LOGGED_ORDERS, kill
from tests.live.groups import new_name, run
from tests.replicated.groups import cluster, until

SETTINGS = {each: Settings(order=each, failure_timeout=0.5) for each in ("total", "priority")}
SETTINGS["sequenced"] = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
SMALL = Options(retention=Retention(bytes=1 << 16), max_segment=1 << 15)


class Process:
    """A member with a log: a dictionary, a lock and a counter."""

    def __init__(self, group: str, name: str, folder: Path) -> None:
        self.group, self.name, self.folder = group, name, folder
        self.asked: list[bytes] = []
        self.counter: type[Counter] = Counter

    async def start(self, order: str = "total", options: Options | None = None) -> "Process":
        self.store, self.lock, self.count = Dict[Any](), Lock(), self.counter()
        objects: dict[str, Replicated] = {"store": self.store, "lock": self.lock, "count": self.count}
        self._stack = AsyncExitStack()
        joining = ordercast.replicated.join(
            self.group,
            objects,
            answer=self.answer,
            members=list("ABC"),
            name=self.name,
            settings=SETTINGS[order],
            log=LogSettings(self.folder / self.name, options=options),
            check_interval=0,
            timeout=15,
        )
        self.members: Member = await self._stack.enter_async_context(joining)
        return self

    def answer(self, payload: bytes, _: str) -> bytes:
        self.asked.append(payload)
        return payload

    async def end(self) -> None:
        await self._stack.aclose()


class Group:
    """Members A, B and C."""

    def __init__(self, folder: Path, **options: Any) -> None:
        name = new_name()
        self.all = {each: Process(name, each, folder) for each in "ABC"}
        self._options = options

    def __getitem__(self, name: str) -> Process:
        return self.all[name]

    async def start(self, names: str = "ABC") -> None:
        await asyncio.gather(*(self.all[name].start(**self._options) for name in names))

    async def kill(self, names: str = "ABC") -> None:
        await kill(*(self.all[name].members.group for name in names))

    async def end(self) -> None:
        for each in self.all.values():
            await each.end()


@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_after_all_are_killed_they_have_what_was_durable_and_tell_what_became_of_commands(
    order: str, tmp_path: Path
) -> None:
    async def test() -> None:
        group = Group(tmp_path, order=order)
        await group.start()
        done: list[Call[Any]] = []
        for number, name in enumerate("ABCABC"):
            done += [group[name].store.put(f"k{number}", number), group[name].count.add(1)]
        token = await group["B"].lock.acquire()
        waiting = asyncio.create_task(group["C"].lock.acquire())
        await asyncio.gather(*done)
        await group["A"].members.call(b"before", gather="all")
        await asyncio.gather(*(group[name].members.durable() for name in "ABC"))
        await group.kill()
        waiting.cancel()
        never = done[-1].id._replace(sequence=99)
        await group.start()
        for name in "ABC":
            assert group[name].store.items() == {f"k{number}": number for number in range(6)}
            assert group[name].count.value() == 6
            assert group[name].asked == [b"before"]  # it was answered once, by the process of before
        ask = group["C"].members.applied
        assert [await ask(each.id) for each in done] == [True] * 12
        assert await ask(never) is False
        await until(lambda: group["A"].lock.holder() is None)  # its holder is another process now
        assert await group["C"].lock.acquire() > token
        assert await group["B"].count.add(1) == 7
        await group["B"].members.check()
        await group.end()

    run(test)


def test_one_that_is_killed_and_goes_on_from_its_log_has_the_state_of_the_others(tmp_path: Path) -> None:
    """Also if it returns at once, so that no view is without it, and if nothing was sent in a view."""

    async def test() -> None:
        group = Group(tmp_path)
        await group.start()
        for late in (False, True):
            token = await group["C"].lock.acquire()
            await group["C"].members.durable()
            await group.kill("C")
            if late:
                await until(lambda: group["A"].members.members == ("A", "B"))
                await group["A"].store.put("missed", 1)
            await group.start("C")
            assert (group["C"].store.get("missed") is not None) is late
            assert await asyncio.wait_for(group["C"].lock.acquire(), 5) == token + 1
            await group["C"].lock.release(token + 1)
            await group["B"].members.check()
        await group.end()

    run(test)


def test_a_snapshot_has_what_came_before_it(tmp_path: Path) -> None:
    async def test() -> None:
        group = Group(tmp_path, options=SMALL)
        await group.start()
        for number in range(12):
            await asyncio.gather(*(group["A"].store.put(f"k{number % 3}", "v" * 1000) for _ in range(20)))
            await group["A"].members.durable()
            await asyncio.sleep(0.05)  # so that snapshots are saved
        await group["B"].lock.acquire()
        await group["B"].members.durable()
        assert any((tmp_path / "A").glob("*snapshot*")), list((tmp_path / "A").iterdir())
        await group.kill()
        await group.start()
        assert group["B"].store.items() == {f"k{number}": "v" * 1000 for number in range(3)}
        await group["C"].members.check()
        await group.end()

    run(test)


class Other(Counter):
    """A counter with one more command."""

    @command
    def double(self) -> None:
        self.number *= 2


def test_a_log_of_other_commands_and_a_missing_log_are_told(tmp_path: Path) -> None:
    async def test() -> None:
        group = Group(tmp_path)
        await group.start()
        await group.kill()
        for each in group.all.values():
            each.counter = Other
        with pytest.raises(ConfigError, match="need the same classes, also those that wrote the log"):
            await group.start()
        async with cluster(Counter, "AB") as without:
            with pytest.raises(LocalProtocolError, match="this member has no log"):
                await without.members["A"].durable()
        with pytest.raises(ConfigError, match="omit `on`, or `log`"):
            async with ordercast.replicated.join("g", Counter(), on={"": ["A"]}, members=["A", "B"], log=tmp_path):
                pass

    run(test)


def test_a_group_that_all_have_left_goes_on_when_they_are_back(tmp_path: Path) -> None:
    async def test() -> None:
        group = Group(tmp_path)
        await group.start()
        await group["A"].store.put("k", 1)
        await group.end()
        await group.start()
        assert await group["B"].store.get("k", fresh=True) == 1
        await group.kill()

    run(test)
