"""Who is told how far a disk is: at once who waits, and now and then who does not."""

import asyncio
from typing import Any

import pytest

from ordercast.live.durability import Durability, DurableWaiters
from ordercast.live.host.durable import tellings as module
from ordercast.live.host.durable.tellings import Tellings
from ordercast.wire.control import DurablePosition
from tests.live.groups import run

LONG = 1e9


class Disk:
    """The own disk, and what is sent: position, place (None: all), and whether it asks."""

    def __init__(self) -> None:
        self.durable = self.next = 0
        self.counts = True
        self.transport: Any = self
        self.sent: list[tuple[int, int | None, bool]] = []

    def send_control(self, message: DurablePosition, place: int | None) -> None:
        self.sent.append((message.position, place, message.asks))

    def taken(self) -> list[tuple[int, int | None, bool]]:
        """What was sent since this was called last."""
        found, self.sent = self.sent, []
        return found


def begin(*nodes: int) -> tuple[Disk, Durability, Tellings]:
    """At the first of these nodes, in a view that was entered."""
    disk, durability = Disk(), Durability()
    durability.enter_view(nodes)
    tellings = Tellings(disk, durability)
    tellings.enter_view(nodes, 0)
    disk.taken()
    return disk, durability, tellings


def own(durability: Durability, tellings: Tellings, end: int) -> asyncio.Future[None]:
    """Somebody waits for own messages that were delivered, and end there."""
    batch = DurableWaiters(tellings.awaited_by)
    durability.delivered(batch, end)
    return batch.when(asyncio.get_running_loop().create_future())


def test_who_does_not_wait_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        disk, _, tellings = begin(0, 1, 2)
        tellings.tick()
        disk.taken()
        for position in (1, 2, 3):
            tellings.delivered(1)
            disk.durable = disk.next = position
            tellings.moved()
            tellings.tick()
        assert disk.taken() == []
        monkeypatch.setattr(module, "UNASKED", 0.0)
        tellings.tick()
        tellings.tick()
        assert disk.taken() == [(3, 1, False)], "once, and only the one whose messages they are"

    run(test)


def test_who_has_asked_is_answered_and_told_at_once_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(module, "UNASKED", LONG)
        disk, _, tellings = begin(0, 7, 8)
        tellings.receive(2, 8, DurablePosition(0, asks=True))
        assert disk.taken() == [(0, 2, False)]
        tellings.delivered(1)
        tellings.delivered(2)
        disk.durable = disk.next = 1
        tellings.moved()
        tellings.moved()
        assert disk.taken() == [(1, 2, False)]
        monkeypatch.setattr(module, "TOLD", -1.0)  # what is asked for now is over
        tellings.receive(2, 8, DurablePosition(0, asks=True))
        disk.taken()
        tellings.delivered(2)
        disk.durable = disk.next = 2
        tellings.moved()
        assert (disk.taken(), tellings.is_awaited) == ([], False)

    run(test)


def test_who_has_asked_is_told_later_if_more_is_on_its_way_to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(module, "PACE", 0.2)
        disk, _, tellings = begin(0, 1)
        tellings.receive(1, 1, DurablePosition(0, asks=True))
        disk.taken()
        for position in (1, 2):
            tellings.delivered(1)
            disk.durable = disk.next = position
            tellings.moved()
        assert disk.taken() == [(1, 1, False), (2, 1, False)], "one after the other"
        tellings.delivered(1)
        disk.next = 5
        for position in (3, 4):
            disk.durable = position
            tellings.moved()
        assert disk.taken() == [], "5 is on its way"
        async with asyncio.timeout(5):
            while not disk.sent:
                await asyncio.sleep(0.01)
        assert disk.taken() == [(4, 1, False)], "after a while, once for both"
        disk.durable = 5
        tellings.moved()
        assert disk.taken() == [(5, 1, False)]

    run(test)


def test_who_begins_to_wait_asks_all_and_again_those_that_lack_something() -> None:
    async def test() -> None:
        disk, durability, tellings = begin(0, 1, 2)
        disk.durable, disk.next = 2, 9
        futures = [own(durability, tellings, 5), own(durability, tellings, 9)]
        assert disk.taken() == [(2, None, True)], "once for both"
        durability.told(1, 9)
        tellings.tick()
        assert disk.taken() == [(2, 2, True)], "1 has told enough"
        assert tellings.is_awaited
        durability.told(0, 9)
        assert all(future.done() for future in futures)
        await asyncio.sleep(0)
        tellings.tick()
        assert ([each for each in disk.taken() if each[2]], tellings.is_awaited) == ([], False)

    run(test)


def test_who_waits_while_a_view_begins_asks_its_members() -> None:
    async def test() -> None:
        disk, durability, tellings = begin(0, 1)
        future = own(durability, tellings, 5)
        disk.taken()
        tellings.enter_view((0, 3), 0)
        assert disk.taken() == [(0, 1, False), (0, None, True)]
        future.cancel()
        await asyncio.sleep(0)
        tellings.enter_view((0, 4), 0)
        assert disk.taken() == [(0, 1, False)], "nobody waits any more"

    run(test)


def test_a_telling_that_is_lost_is_asked_for_though_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(module, "UNASKED", 0.0)
        disk, durability, tellings = begin(0, 1, 2)
        durability.delivered(DurableWaiters(tellings.awaited_by), 5)
        tellings.tick()
        assert disk.taken() == [], "they may be about to tell"
        tellings.tick()
        assert disk.taken() == [(0, 1, True), (0, 2, True)]
        durability.told(0, 5)
        durability.told(1, 5)
        tellings.tick()
        assert disk.taken() == []

    run(test)


@pytest.mark.parametrize("why", ["says nothing", "does not count"])
def test_what_is_not_of_the_groups_log_is_not_told(why: str) -> None:
    async def test() -> None:
        disk, _, tellings = begin(0, 1)
        disk.durable = disk.next = 5
        disk.transport, disk.counts = (None, True) if why == "says nothing" else (disk, False)
        tellings.receive(1, 1, DurablePosition(0, asks=True))
        tellings.enter_view((0, 1), 0)
        tellings.delivered(1)
        tellings.moved()
        tellings.tick()
        assert disk.taken() == []

    run(test)
