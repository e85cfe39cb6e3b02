"""Named timers on an event loop: replaced, cancelled, and asked again after what has arrived was read."""

import asyncio

from ordercast.live.host.timers import Timers
from ordercast.live.transport.endpoint import MAX_POSTPONED
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.machine import CancelTimer, SetTimer


def test_a_timer_fires_once_and_a_second_one_of_the_name_replaces_it() -> None:
    async def test() -> None:
        happened: list[str] = []

        def read() -> bool:
            happened.append("read")
            return True

        timers = Timers(happened.append, before=read, drained=lambda: happened.append("done"))
        timers.set(SetTimer("a", 1 * MILLISECOND))
        timers.set(SetTimer("a", 20 * MILLISECOND))
        timers.set(SetTimer("b", 5 * MILLISECOND))
        timers.set(SetTimer("c", 5 * MILLISECOND))
        timers.cancel(CancelTimer("c"))
        timers.cancel(CancelTimer("never set"))
        await asyncio.sleep(0.1)
        assert happened == ["read", "b", "done", "read", "a", "done"]

    asyncio.run(test())


def test_what_has_arrived_may_cancel_or_replace_a_timer_that_is_due() -> None:
    async def test() -> None:
        happened: list[str] = []

        def read() -> bool:
            timers.cancel(CancelTimer("cancelled"))
            if not happened:
                timers.set(SetTimer("replaced", 30 * MILLISECOND))
            return True

        timers = Timers(happened.append, before=read, drained=lambda: happened.append("done"))
        timers.set(SetTimer("cancelled", MILLISECOND))
        await asyncio.sleep(0.01)
        assert happened == ["done"]
        happened.clear()
        timers.set(SetTimer("replaced", MILLISECOND))
        await asyncio.sleep(0.015)
        assert happened == ["done"]
        await asyncio.sleep(0.06)
        assert happened == ["done", "replaced", "done"]

    asyncio.run(test())


def test_no_timer_fires_after_all_were_cancelled() -> None:
    async def test() -> None:
        happened: list[str] = []
        timers = Timers(happened.append)
        for name in "ab":
            timers.set(SetTimer(name, MILLISECOND))
        timers.cancel_all()
        await asyncio.sleep(0.01)
        assert happened == []

    asyncio.run(test())


def test_a_timer_that_is_due_waits_until_everything_that_has_arrived_was_read() -> None:
    async def test() -> None:
        left, happened = 3, []

        def read() -> bool:
            nonlocal left
            left -= 1
            happened.append(f"{left} left")
            return left == 0

        timers = Timers(
            happened.append,
            before=read,
            drained=lambda: happened.append("drained"),
            paused=lambda: happened.append("paused"),
        )
        timers.set(SetTimer("a", MILLISECOND))
        await asyncio.sleep(0.05)
        assert happened == ["2 left", "paused", "1 left", "paused", "0 left", "a", "drained"]

    asyncio.run(test())


def test_a_timer_that_waits_for_reading_can_be_cancelled() -> None:
    async def test() -> None:
        happened: list[str] = []
        turns = 0

        def read() -> bool:
            nonlocal turns
            turns += 1
            if turns == 3:
                timers.cancel(CancelTimer("a"))
            return False

        timers = Timers(happened.append, before=read)
        timers.set(SetTimer("a", MILLISECOND))
        await asyncio.sleep(0.05)
        assert (turns, happened) == (3, [])

    asyncio.run(test())


def test_who_floods_a_socket_does_not_stop_the_timers() -> None:
    async def test() -> None:
        happened: list[str] = []
        reads: list[str] = []

        def read() -> bool:
            reads.append("32")
            return False

        timers = Timers(happened.append, before=read)
        timers.set(SetTimer("a", MILLISECOND))
        await asyncio.sleep(0.2)
        assert happened == ["a"]
        assert len(reads) == MAX_POSTPONED + 1

    asyncio.run(test())


def test_a_pace_extends_all_timers_but_those_of_views() -> None:
    async def test() -> None:
        happened: list[str] = []
        timers = Timers(happened.append)
        timers.pace = 50.0
        timers.set(SetTimer("status", 2 * MILLISECOND))
        timers.set(SetTimer("view.repeat", 4 * MILLISECOND))
        await asyncio.sleep(0.03)
        assert happened == ["view.repeat"]
        await asyncio.sleep(0.15)
        assert happened == ["view.repeat", "status"]

    asyncio.run(test())


def test_a_timer_that_hurries_is_due_at_once_and_then_soon() -> None:
    async def test() -> None:
        fired: list[str] = []
        timers = Timers(fired.append)
        timers.hurry("a", SECOND)
        assert fired == [], "it is not set"
        timers.set(SetTimer("a", 600 * SECOND))
        timers.set(SetTimer("b", 600 * SECOND))
        timers.hurry("a", SECOND // 100)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert fired == ["a"]
        timers.set(SetTimer("a", 600 * SECOND))
        await asyncio.sleep(0.1)
        assert fired == ["a", "a"], "others keep their time"
        timers.cancel_all()

    asyncio.run(test())
