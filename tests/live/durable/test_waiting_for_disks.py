"""Live members, and who waits for their disks: the event loop hears of its disk only if somebody does."""

import asyncio
from pathlib import Path

import pytest

from ordercast import Group, LogSettings
from ordercast.live.durability import DurableWaiters
from ordercast.live.host.durable import tellings as module
from ordercast.live.host.durable.member_log import MemberLog
from ordercast.log.format import Packet
from ordercast.protocols.membership.view import Incarnation, founding_view
from ordercast.wire.control import DurablePosition
from tests.live.durable.logged import kill, open_logged
from tests.live.groups import hear, member_of, new_name, run

ONE = Incarnation("A", 1, "127.0.0.1:7000")
TWO = Incarnation("B", 2, "127.0.0.1:7001")
LONG = 1e9


def test_the_event_loop_is_not_woken_by_a_disk_for_which_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        woken: list[object] = []
        log = MemberLog(LogSettings(tmp_path), "g", "A")
        await log.open(1 << 20)
        log.found(founding_view((ONE, TWO), b""), 0)
        monkeypatch.setattr(log, "_in_loop", woken.append)
        log.append(Packet(1, 0, [1], b"x"))
        async with asyncio.timeout(5):
            while log.durable < 1:
                await asyncio.sleep(0.001)
        assert woken == []
        waiting = asyncio.ensure_future(log.reaches(2))
        await asyncio.sleep(0)
        log.append(Packet(1, 1, [1], b"x"))
        async with asyncio.timeout(5):
            while not woken:
                await asyncio.sleep(0.001)
        log._notice()
        await waiting
        log.tellings.receive(1, 1, DurablePosition(0, asks=True))
        log._synced(2, b"")
        assert len(woken) == 2
        await log.close()

    run(test)


def test_what_reached_the_disk_before_somebody_waits_is_noticed(tmp_path: Path) -> None:
    async def test() -> None:
        log = MemberLog(LogSettings(tmp_path), "g", "A")
        await log.open(1 << 20)
        log.found(founding_view((ONE,), b""), 0)
        log.append(Packet(0, 0, [1], b"x"))
        async with asyncio.timeout(5):
            while log.durable < 1:
                await asyncio.sleep(0.001)
        batch = DurableWaiters(log.awaited_by)
        log.durability.delivered(batch, 1)
        await asyncio.wait_for(batch.when(asyncio.get_running_loop().create_future()), 5)
        await log.close()

    run(test)


def test_the_counter_of_what_is_durable_moves_though_nobody_waits(tmp_path: Path) -> None:
    async def test() -> None:
        groups = await open_logged(new_name(), tmp_path, "A", "B", "C")
        for _ in range(5):
            groups[0].send_nowait(b"x")
        await asyncio.gather(*(hear(group, 5) for group in groups))
        async with asyncio.timeout(10):
            while groups[0].stats().durable_position < 5:
                await asyncio.sleep(0.05)
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


def test_who_waits_is_told_though_its_question_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        groups: list[Group] = await open_logged(new_name(), tmp_path, "A", "B", "C")
        monkeypatch.setattr(module, "UNASKED", LONG)
        log = member_of(groups[0]).log
        assert log is not None
        monkeypatch.setattr(log.tellings, "_ask", lambda _: None)
        waiting = asyncio.ensure_future(groups[0].send(b"x", until="durable"))
        await asyncio.gather(*(hear(group, 1) for group in groups))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        monkeypatch.undo()
        await asyncio.wait_for(waiting, 10)
        await asyncio.gather(*(kill(group) for group in groups))

    run(test)
