"""Dictionary, counter, set, queue, lock, leader and barrier in live groups, through crashes, joins and exclusions."""

import asyncio
from contextlib import suppress

import pytest

from ordercast import ConfigError, LocalProtocolError, Settings
from ordercast.replicated import Barrier, Change, Counter, Dict, Holder, Leader, Lock, Queue, Replicated, Set
from ordercast.replicated.objects import Binding, Context
from tests.live.groups import run
from tests.replicated.groups import Cluster, cluster, cut_off, until

FAST = Settings(order="sequenced", resilience=1, failure_timeout=0.5)


async def dies(group: Cluster[object], name: str) -> None:  # type: ignore[type-var]
    group.crash(name)
    rest = next(iter(group.members.values()))
    await until(lambda: name not in rest.members)


# --- dictionary ---


def test_a_dictionary() -> None:
    async def test() -> None:
        async with cluster(Dict[int]) as group:
            a, b = group["A"], group["B"]
            await a.put("x", 1)
            await b.put("y", 2)
            assert await a.items(fresh=True) == {"x": 1, "y": 2}
            assert (await a.delete("x"), await a.delete("x"), await b.pop("y"), await b.pop("y")) == (
                True,
                False,
                2,
                None,
            )
            assert await b.compare_and_set("z", None, 1)
            assert not await a.compare_and_set("z", None, 2)
            assert not await a.compare_and_set("z", 2, 3)
            assert await a.compare_and_set("z", 1, 3)
            assert (a.get("z"), "z" in a, len(a), a.items("q")) == (3, True, 1, {})
            assert await b.compare_and_set("z", 3, None)
            assert await a.get("z", fresh=True) is None
            with pytest.raises(LocalProtocolError, match="a value must not be None"):
                await a.put("x", None)  # type: ignore[arg-type]

    run(test)


def test_changes_are_watched_by_prefix_in_their_order_at_each_member() -> None:
    async def test() -> None:
        async with cluster(Dict[int], "AB") as group:
            watching = group["B"].watch("a")
            for key, value in (("a1", 1), ("b1", 2), ("a2", 3)):
                await group["A"].put(key, value)
            await group["A"].delete("a1")
            await group["A"].delete("a1")
            await group["A"].put("a2", 4)
            found = [await anext(watching) for _ in range(4)]
            assert found == [Change("a1", 1), Change("a2", 3), Change("a1", None, deleted=True), Change("a2", 4)]
            binding = group["B"]._binding
            assert len(binding.watching) == 1
            del watching
            assert binding.watching == []

    run(test)


def test_keys_expire_at_all_members_by_the_time_of_the_group() -> None:
    async def test() -> None:
        async with cluster(Dict[int], "AB") as group:
            watching = group["B"].watch()
            await group["B"].put("short", 1, ttl=0.15)
            await group["B"].put("longer", 2, ttl=60)
            await group["B"].put("kept", 3, ttl=0.15)
            await group["B"].put("kept", 4)
            assert [(await anext(watching)).key for _ in range(4)] == ["short", "longer", "kept", "kept"]
            assert await anext(watching) == Change("short", None, deleted=True, expired=True)
            await group["A"].get("short", fresh=True)
            assert group["A"].items() == {"longer": 2, "kept": 4}
            assert group["A"].deadline() == group["A"].expiries["longer"] == group["B"].deadline()
            await group.members["A"].check()

    run(test)


def test_a_dictionary_expires_keys_before_the_next_command_sees_them() -> None:
    found = Dict[int](values={"k": 1, "l": 2}, expiries={"k": 10.0, "l": 20.0}, next_expiry=10.0)
    assert found.deadline() == 10.0
    context = bound_alone(found)
    context.time = 9.9
    assert Dict.compare_and_set.__wrapped__(found, "k", 1, 2)  # type: ignore[attr-defined]
    assert found.expiries == {"l": 20.0}
    context.time = 20.0
    assert not Dict.delete.__wrapped__(found, "l")  # type: ignore[attr-defined]
    assert (found.values, found.deadline()) == ({"k": 2}, None)


def test_what_was_missed_is_told_to_watchers_when_a_member_returns() -> None:
    async def test() -> None:
        async with cluster(Dict[int], settings=FAST) as group:
            for key in ("same", "other", "gone"):
                await group["A"].put(key, 1)
            await group["C"].get("gone", fresh=True)
            watching = group["C"].watch()
            heard = asyncio.create_task(cut_off(group, "C"))
            await until(lambda: "C" not in group.members["A"].members)
            await group["A"].put("other", 2)
            await group["A"].delete("gone")
            await heard
            found = [await asyncio.wait_for(anext(watching), 10) for _ in range(2)]
            assert found == [Change("other", 2), Change("gone", None, deleted=True)]

    run(test)


# --- counter and set ---


def test_a_counter() -> None:
    async def test() -> None:
        async with cluster(Counter) as group:
            found = await asyncio.gather(*(group[name].add() for name in "ABC" for _ in range(10)))
            assert sorted(found) == list(range(1, 31))
            assert (await group["A"].set(5), await group["B"].value(fresh=True)) == (30, 5)
            assert (await group["A"].compare_and_set(4, 6), await group["A"].compare_and_set(5, 7)) == (False, True)
            assert await group["C"].add(-2) == 5

    run(test)


def test_a_set_survives_a_join_and_compares_equal() -> None:
    async def test() -> None:
        async with cluster(Set[str], "AB") as group:
            assert [await group["A"].add(word) for word in ("x", "y", "x", "z")] == [True, True, False, True]
            assert [await group["B"].discard(word) for word in ("y", "y")] == [True, False]
            joined = await group.join("D")
            assert joined.all() == {"x", "z"}
            assert ("x" in joined, joined.has("y"), len(joined)) == (True, False, 2)
            await group.members["A"].check()

    run(test)


# --- lock and leader ---


def test_a_lock_is_held_by_one_at_a_time_and_in_turn() -> None:
    async def test() -> None:
        async with cluster(Lock) as group:
            tokens: list[int] = []

            async def work(name: str) -> None:
                for _ in range(3):
                    async with group[name].hold() as token:
                        assert group[name].holder() == Holder(name, token)
                        tokens.append(token)

            await asyncio.gather(*map(work, "ABC"))
            assert tokens == sorted(tokens)
            assert len(set(tokens)) == 9
            assert group["A"].holder() is None or await group["A"].holder(fresh=True) is None

    run(test)


def test_a_lock_is_freed_when_its_holder_dies_and_tokens_grow() -> None:
    async def test() -> None:
        async with cluster(Lock, settings=FAST) as group:
            first = await group["C"].acquire()
            waiting = [asyncio.create_task(group[name].acquire()) for name in "AB"]
            await until(lambda: len(group["A"].queue) == 3)
            assert not any(each.done() for each in waiting)
            await dies(group, "C")  # type: ignore[arg-type]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            second = done.pop().result()
            assert second > first
            holder = group["A"].holder()
            assert holder is not None
            assert holder.token == second
            assert not await group["A"].release(first)  # too late
            assert await group["A"].release(second)
            assert len({*await asyncio.gather(*waiting)}) == 2

    run(test)


def test_whoever_gives_up_waiting_is_not_given_the_lock() -> None:
    async def test() -> None:
        async with cluster(Lock, "AB") as group:
            token = await group["A"].acquire()
            waiting = asyncio.create_task(group["B"].acquire())
            await until(lambda: len(group["A"].queue) == 2)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
            await until(lambda: len(group["A"].queue) == 1)
            assert group["A"].is_held(token)

    run(test)


def test_one_that_was_excluded_lost_the_lock_and_waits_for_it_again() -> None:
    async def test() -> None:
        async with cluster(Lock, settings=FAST) as group:
            lost = await group["C"].acquire()
            waiting = asyncio.create_task(group["C"].acquire())
            await until(lambda: len(group["A"].queue) == 2)
            next_one = asyncio.create_task(group["B"].acquire())
            await cut_off(group, "C")
            held = await next_one
            assert held > lost
            await until(lambda: "C" in group.members["A"].members)
            assert not await group["C"].is_held(lost, fresh=True)
            await until(lambda: len(group["A"].queue) == 2)  # it asked again by itself
            await group["B"].release(held)
            assert await asyncio.wait_for(waiting, 10) > held

    run(test)


def test_a_leader_is_followed_by_the_next_candidate() -> None:
    async def test() -> None:
        async with cluster(Leader, settings=FAST) as group:
            terms = group["A"].terms()
            assert await anext(terms) is None
            first = await group["C"].campaign()
            assert await anext(terms) == Holder("C", first) == group["A"].leader()
            next_one = asyncio.create_task(group["B"].campaign())
            await until(lambda: len(group["A"].queue) == 2)
            await dies(group, "C")  # type: ignore[arg-type]
            second = await next_one
            assert await anext(terms) == Holder("B", second)
            assert second > first
            assert await group["B"].resign(second)
            assert await anext(terms) is None

    run(test)


# --- queue ---


def test_each_item_goes_to_one_worker() -> None:
    async def test() -> None:
        async with cluster(Queue[int]) as group:
            done: list[int] = []

            async def work(name: str) -> None:
                while True:
                    async with group[name].work() as item:
                        await asyncio.sleep(0)
                        done.append(item)

            workers = [asyncio.create_task(work(name)) for name in "ABC"]
            assert await group["A"].put(0) == 1
            await asyncio.gather(*(group["A"].put(item) for item in range(1, 20)))
            await until(lambda: len(done) == 20 and not group["A"].items)
            assert sorted(done) == list(range(20))
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await until(lambda: not group["A"].waiting)  # who gave up gets nothing
            await group["A"].put(99)
            assert (len(group["A"]), group["A"].assignments()) == (1, [])

    run(test)


def test_items_of_a_worker_that_dies_come_first_for_others() -> None:
    async def test() -> None:
        async with cluster(Queue[str], settings=FAST) as group:
            for item in ("one", "two", "three"):
                await group["A"].put(item)
            token, item = await group["C"].get()
            assert item == "one"
            assert [each.worker for each in group["C"].assignments()] == ["C"]
            await dies(group, "C")  # type: ignore[arg-type]
            again, item = await group["B"].get()
            assert (item, again > token) == ("one", True)
            assert not await group["A"].done(token)  # as C would say if it came back
            assert await group["B"].done(again)
            assert (await group["B"].get())[1] == "two"

    run(test)


def test_an_item_is_given_back_if_the_work_fails() -> None:
    async def test() -> None:
        async with cluster(Queue[str], "AB") as group:
            await group["A"].put("one")
            await group["A"].put("two")
            with pytest.raises(ZeroDivisionError):
                async with group["A"].work():
                    raise ZeroDivisionError
            async with group["B"].work() as item:
                assert item == "one"
            await group["A"].assignments(fresh=True)
            assert len(group["A"]) == 1

    run(test)


def test_items_that_come_back_keep_their_order() -> None:
    queue = Queue[str]()
    context = bound_alone(queue)
    call = {name: getattr(Queue, name).__wrapped__ for name in ("put", "ask", "give_back", "done")}
    for item in "abcd":
        call["put"](queue, item)
    for context.caller in ("B", "C", "B"):
        call["ask"](queue)
    queue.left("B")
    assert queue.returned == [1, 3]
    assert call["give_back"](queue, 2)
    assert queue.returned == [1, 2, 3]
    for _ in range(4):
        call["ask"](queue)
    assert [each.item for each in queue.assigned.values()] == [1, 2, 3, 4]
    assert not call["give_back"](queue, 2)


# --- barrier ---


def test_a_barrier_opens_for_all_members_and_again() -> None:
    async def test() -> None:
        async with cluster(Barrier) as group:
            early = [asyncio.create_task(group[name].wait()) for name in "AB"]
            await until(lambda: set(group["C"].waiting()) == {"A", "B"})
            assert not any(each.done() for each in early)
            assert await group["C"].wait() == 0
            assert await asyncio.gather(*early) == [0, 0]
            assert await asyncio.gather(*(group[name].wait() for name in "ABC")) == [1, 1, 1]
            given_up = asyncio.create_task(group["A"].wait())
            await until(lambda: group["B"].waiting() == ("A",))
            given_up.cancel()
            await until(lambda: group["B"].waiting() == ())

    run(test)


def test_a_barrier_does_not_wait_for_the_dead() -> None:
    async def test() -> None:
        async with cluster(Barrier, settings=FAST) as group:
            waiting = [asyncio.create_task(group[name].wait()) for name in "AB"]
            await until(lambda: len(group["C"].waiting()) == 2)
            await dies(group, "C")  # type: ignore[arg-type]
            assert await asyncio.gather(*waiting) == [0, 0]

    run(test)


def test_a_barrier_for_a_number_of_callers() -> None:
    async def test() -> None:
        async with cluster(lambda: Barrier(parties=4), "AB") as group:
            early = [asyncio.create_task(group[name].wait()) for name in "AAB"]
            await until(lambda: len(group["B"].waiting()) == 3)
            assert not any(each.done() for each in early)
            assert await group["B"].wait() == 0
            assert await asyncio.gather(*early) == [0, 0, 0]

    with pytest.raises(ConfigError, match="parties must be 0 or more, not -1"):
        Barrier(parties=-1)
    run(test)


def bound_alone(target: Replicated) -> Context:
    """For commands that are called as plain methods."""
    binding = Binding(None, None)  # type: ignore[arg-type]
    target.__dict__["binding"] = binding
    return binding.context
