"""What waits in the blocks: for a lock, a term, an item, the others; it is given up, lost, and waited for anew."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from ordercast import GroupClosed
from ordercast.replicated import Assignment, Barrier, Change, Dict, Holder, Leader, Lock, Queue, Replicated
from tests.replicated.alone import draw
from tests.replicated.in_memory import InMemory


def in_memory(make: Callable[[], Replicated], test: Callable[[InMemory], Awaitable[None]]) -> None:
    async def whole() -> None:
        group = InMemory(make)
        await asyncio.wait_for(test(group), 5)
        assert len(group.digests()) == 1

    asyncio.run(whole())


async def give_up(waiting: "asyncio.Task[Any]") -> None:
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting


async def the_end_is_told(group: InMemory, wait: Callable[[str], Coroutine[Any, Any, Any]]) -> None:
    """B has given up waiting when it ends; C waits."""
    waiting, late = asyncio.create_task(wait("C")), asyncio.create_task(wait("B"))
    await asyncio.sleep(0)
    late.cancel()
    group.ends("B")
    await group.turns()
    group.ends("C")
    with pytest.raises(GroupClosed):
        await waiting
    with suppress(asyncio.CancelledError):
        await late


# --- lock and leader ---


def test_a_lock_is_waited_for_in_turn() -> None:
    async def test(group: InMemory) -> None:
        assert await group["A"].acquire() == 1
        waiting = {name: asyncio.create_task(group[name].acquire()) for name in "BC"}
        await group.turns()
        assert not any(each.done() for each in waiting.values())
        assert await group["A"].release(1)
        assert await waiting["B"] == 2
        await group.turns()
        assert not waiting["C"].done()
        assert await group["B"].release(2)
        assert await waiting["C"] == 3

    in_memory(Lock, test)


def test_a_lock_is_given_back_after_the_block_whatever_happens_there() -> None:
    async def test(group: InMemory) -> None:
        async with group["A"].hold() as token:
            assert group["A"].holder() == Holder("A", token)
        assert group["A"].holder() is None
        with pytest.raises(ZeroDivisionError):
            async with group["B"].hold():
                raise ZeroDivisionError
        assert group["B"].holder() is None

    in_memory(Lock, test)


def test_who_gives_up_leaves_the_queue_before_and_after_its_place_is_known() -> None:
    async def test(group: InMemory) -> None:
        token = await group["A"].acquire()
        for turns in (0, 1, 5):  # nothing is sent; it is sent; it waits
            waiting = asyncio.create_task(group["B"].acquire())
            await group.turns(turns)
            await give_up(waiting)
            await group.turns()
            assert group["C"].queue == [Holder("A", token)]
        held = asyncio.create_task(group["B"].acquire())
        await group.turns()
        await group["A"].release(token)
        held.cancel()  # in the turn in which it gets it
        with suppress(asyncio.CancelledError):
            await group["B"].release(await held)
        await group.turns()
        assert group["C"].queue == []

    in_memory(Lock, test)


def test_one_that_was_excluded_is_the_last_in_the_queue_again() -> None:
    async def test(group: InMemory) -> None:
        first = await group["A"].acquire()
        waiting = {name: asyncio.create_task(group[name].acquire()) for name in "CB"}
        await group.turns()
        assert [each.member for each in group["A"].queue] == ["A", "C", "B"]
        group.leaves("C")
        await group.turns()
        assert not waiting["C"].done()
        group.returns("C")
        await group.turns()
        assert [each.member for each in group["A"].queue] == ["A", "B", "C"]
        await group["A"].release(first)
        second = await waiting["B"]
        await group["B"].release(second)
        assert await waiting["C"] > second > first

    in_memory(Lock, test)


def test_a_group_that_ends_is_told_to_whoever_waits_and_to_nobody_else() -> None:
    async def test(group: InMemory) -> None:
        lock = group["C"]
        await group["A"].acquire()
        waiting, cancelled = asyncio.create_task(lock.acquire()), asyncio.create_task(lock.acquire())
        await group.turns()
        group.ends("C")
        cancelled.cancel()
        with pytest.raises(GroupClosed):
            await waiting
        with pytest.raises((GroupClosed, asyncio.CancelledError)):
            await cancelled
        late = asyncio.create_task(group["B"].acquire())
        await asyncio.sleep(0)
        late.cancel()
        group.ends("B")
        with suppress(asyncio.CancelledError):
            await late
        await group.turns()
        assert [each.member for each in group["A"].queue] == ["A"]

    in_memory(Lock, test)


def test_terms_of_leaders_follow_each_other() -> None:
    async def test(group: InMemory) -> None:
        terms = group["C"].terms()
        assert await anext(terms) is None
        assert group["A"].leader() is None
        first = await group["A"].campaign()
        assert await anext(terms) == Holder("A", first) == group["B"].leader()
        following = asyncio.create_task(group["B"].campaign())
        upcoming = asyncio.ensure_future(anext(terms))
        await group.turns()
        assert not upcoming.done()
        assert await group["A"].resign(first)
        assert not await group["A"].resign(first)
        second = await following
        assert await upcoming == Holder("B", second)
        await group["B"].resign(second)
        assert await anext(terms) is None
        await group["A"].campaign()
        await group["A"].resign(3)
        last = await group["B"].campaign()
        assert await anext(terms) == Holder("B", last)  # the term between is over

    in_memory(Leader, test)


# --- queue ---


def test_items_are_waited_for_and_done() -> None:
    async def test(group: InMemory) -> None:
        waiting = [asyncio.create_task(group[name].get()) for name in "BC"]
        await group.turns()
        assert await group["A"].put("x") == 1
        token, item = await waiting[0]
        assert (item, group["A"].assignments()) == ("x", [Assignment(1, "B", token)])
        await group.turns()
        assert not waiting[1].done()
        await group["A"].put("y")
        assert (await waiting[1])[1] == "y"
        assert await group["B"].done(token)
        assert not await group["B"].done(token)
        assert sorted(group["A"].items) == [2]

    in_memory(Queue, test)


def test_work_is_done_or_given_back() -> None:
    async def test(group: InMemory) -> None:
        for item in "xy":
            await group["A"].put(item)
        async with group["A"].work() as item:
            assert (item, len(group["A"])) == ("x", 1)
        assert list(group["A"].items.values()) == ["y"]
        with pytest.raises(ZeroDivisionError):
            async with group["B"].work() as item:
                raise ZeroDivisionError(item)
        await group.turns()
        assert (group["A"].returned, group["A"].assigned) == ([2], {})
        async with group["C"].work() as item:
            assert item == "y"
        assert group["A"].items == {}

    in_memory(Queue, test)


def test_who_gives_up_gets_no_item_before_and_after_it_has_asked() -> None:
    async def test(group: InMemory) -> None:
        for turns in (0, 1, 5):
            waiting = asyncio.create_task(group["B"].get())
            await group.turns(turns)
            await give_up(waiting)
            await group.turns()
            assert group["A"].waiting == {}
        late = asyncio.create_task(group["B"].get())
        await group.turns()
        await group["A"].put("x")
        late.cancel()
        with suppress(asyncio.CancelledError):
            await group["B"].give_back((await late)[0])
        await group.turns()
        assert group["A"].assigned == {}
        assert len(group["A"]) == 1

    in_memory(Queue, test)


def test_a_worker_that_was_excluded_asks_again() -> None:
    async def test(group: InMemory) -> None:
        token, _ = await asyncio.gather(group["C"].get(), group["A"].put("x"))
        waiting = asyncio.create_task(group["C"].get())
        await group.turns()
        group.leaves("C")
        assert (group["A"].returned, group["A"].waiting) == ([1], {})
        group.returns("C")
        again, item = await waiting
        assert (item, again > token[0]) == ("x", True)
        assert not await group["C"].done(token[0])
        assert await group["C"].done(again)

    in_memory(Queue, test)


def test_a_queue_that_ends_is_told_to_whoever_waits() -> None:
    async def test(group: InMemory) -> None:
        await the_end_is_told(group, lambda name: group[name].get())

    in_memory(Queue, test)


# --- barrier ---


def test_all_wait_for_each_other_round_after_round() -> None:
    async def test(group: InMemory) -> None:
        for number in range(3):
            early = [asyncio.create_task(group[name].wait()) for name in "AB"]
            await group.turns()
            assert not any(each.done() for each in early)
            assert group["C"].waiting() == ("A", "B")
            assert await group["C"].wait() == number
            assert await asyncio.gather(*early) == [number, number]

    in_memory(Barrier, test)


def test_who_gives_up_has_not_arrived() -> None:
    async def test(group: InMemory) -> None:
        for turns in (0, 1, 5):
            waiting = asyncio.create_task(group["A"].wait())
            await group.turns(turns)
            await give_up(waiting)
            await group.turns()
            assert group["B"].waiting() == ()
        early = [asyncio.create_task(group[name].wait()) for name in "BC"]
        await group.turns()
        assert not any(each.done() for each in early)
        await group["A"].wait()
        assert await asyncio.gather(*early) == [0, 0]

    in_memory(Barrier, test)


def test_one_that_was_excluded_arrives_again() -> None:
    async def test(group: InMemory) -> None:
        waiting = {name: asyncio.create_task(group[name].wait()) for name in "AC"}
        await group.turns()
        group.leaves("C")
        group.returns("C")
        await group.turns()
        assert group["B"].waiting() == ("A", "C")
        assert group["B"].last_ticket == 3
        assert await group["B"].wait() == 0
        assert await waiting["A"] == await waiting["C"] == 0

    in_memory(Barrier, test)


def test_a_barrier_that_opened_while_one_was_away_has_opened_for_it() -> None:
    async def test(group: InMemory) -> None:
        waiting = asyncio.create_task(group["C"].wait())
        await group.turns()
        group.leaves("C")
        await asyncio.gather(group["A"].wait(), group["B"].wait())
        group.returns("C")
        assert await waiting == 0

    in_memory(Barrier, test)


def test_a_barrier_that_ends_is_told_to_whoever_waits() -> None:
    async def test(group: InMemory) -> None:
        await the_end_is_told(group, lambda name: group[name].wait())

    in_memory(Barrier, test)


# --- dictionary ---


def test_changes_are_told_as_they_come_to_those_who_watch_them() -> None:
    async def test(group: InMemory) -> None:
        await group["A"].put("a0", 0)
        some, everything = group["B"].watch("a"), group["B"].watch()
        await group["A"].put("a1", 1)
        await group["A"].put("b1", 1)
        await group["A"].compare_and_set("a1", 1, 2)
        await group["A"].compare_and_set("a1", 1, 3)
        await group["A"].compare_and_set("a1", 2, None)
        await group["A"].delete("a1")
        await group["A"].pop("a0")
        await group["A"].put("b1", 2, 1.0)
        group.tick(5.0)
        of_a = [Change("a1", 1), Change("a1", 2), Change("a1", None, deleted=True), Change("a0", None, deleted=True)]
        assert [await anext(some) for _ in range(4)] == of_a
        of_b = [Change("b1", 2), Change("b1", None, deleted=True, expired=True)]
        assert [await anext(everything) for _ in range(7)] == [of_a[0], Change("b1", 1), *of_a[1:], *of_b]
        assert group["B"].is_watched
        del some, everything
        assert not group["B"].is_watched

    in_memory(Dict, test)


def test_what_was_missed_comes_as_one_change_for_each_key() -> None:
    async def test(group: InMemory) -> None:
        for key in ("same", "other", "gone"):
            await group["A"].put(key, 1)
        watching = group["C"].watch()
        group.leaves("C")
        for value in (2, 3):
            await group["A"].put("other", value)
        await group["A"].delete("gone")
        await group["A"].put("new", 1)
        group.returns("C")
        found = [await anext(watching) for _ in range(3)]
        assert found == [Change("other", 3), Change("new", 1), Change("gone", None, deleted=True)]
        group.ends("C")
        for _ in range(2):
            with pytest.raises(GroupClosed):
                await anext(watching)
        with pytest.raises(GroupClosed):
            await anext(group.away["C"].hosted[""].target.watch())  # type: ignore[attr-defined]

    in_memory(Dict, test)


@pytest.mark.parametrize("seed", range(10))
def test_whoever_applies_all_changes_has_the_dictionary(seed: int) -> None:
    """Also one that was away: whatever commands, times to live and members that leave and return."""

    async def test(group: InMemory) -> None:
        rng = random.Random(seed)
        watching = {name: group[name].watch() for name in "ABC"}
        for _ in range(60):
            kind = rng.choice(["command", "command", "command", "time", "member"])
            if kind == "command":
                command, _, arguments = draw("register", group["A"], rng)
                ttl = (rng.choice([None, 1.0, 3.0]),) if command == "put" else ()
                await getattr(group[rng.choice([*group.replicas])], command)(*arguments, *ttl)
            elif kind == "time":
                group.tick(group.time + rng.random())
            elif group.away:
                group.returns("C")
            else:
                group.leaves("C")
        if group.away:
            group.returns("C")
        await group.turns()
        for name, changes in watching.items():
            found: dict[str, int] = {}
            group.binding(name).end(GroupClosed("over"))
            with suppress(GroupClosed):
                async for change in changes:
                    if change.deleted:
                        del found[change.key]
                    else:
                        found[change.key] = change.value
            assert found == group[name].values == group["A"].values

    in_memory(Dict, test)
