"""Named timers on an event loop: replaced, cancelled, and asked again after what has arrived was read."""

import asyncio

from ordercast.live.host.timers import Timers
from ordercast.model.config import MILLISECOND
from ordercast.model.machine import CancelTimer, SetTimer


def test_a_timer_fires_once_and_a_second_one_of_the_name_replaces_it() -> None:
    async def test() -> None:
        happened: list[str] = []
        timers = Timers(happened.append, before=lambda: happened.append("read"), after=lambda: happened.append("done"))
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

        def read() -> None:
            timers.cancel(CancelTimer("cancelled"))
            if not happened:
                timers.set(SetTimer("replaced", 30 * MILLISECOND))

        timers = Timers(happened.append, before=read, after=lambda: happened.append("done"))
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
