"""Clocks that jump: what a group does depends on monotonic time alone."""

import asyncio
import re
import time
from pathlib import Path
from random import Random

import pytest

import ordercast
from ordercast.audit import audit
from tests.live.groups import ORDERS, crash, group_of, run
from tests.live.test_views import TIMEOUT, Reader, send_many

OTHERS = sorted({*ORDERS} - {"total"})
SOURCES = Path(ordercast.__file__).parent
WALL_CLOCK = re.compile(r"\btime\.(time|time_ns|localtime|gmtime|ctime)\b|\bdatetime\b|from time import")
USES = {
    "live/host/trace_recorder.py",  # for the times of rows, once
    "live/local_groups.py",  # the age of files
    "live/member_parts.py",  # a number for the relay of a view, which is compared with no other
    "live/relay_process.py",  # the same for a relay of its own: it must be higher after a restart
}


def test_who_uses_the_wall_clock_is_known() -> None:
    rooms = ("live", "protocols", "wire", "model")
    files = [file for room in rooms for file in (SOURCES / room).rglob("*.py")]
    found = {str(file.relative_to(SOURCES)) for file in files if WALL_CLOCK.search(file.read_text())}
    assert found == USES


@pytest.mark.parametrize("order", ["total", *(pytest.param(order, marks=pytest.mark.soak) for order in OTHERS)])
def test_a_clock_that_jumps_changes_nothing(order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(order)
    monkeypatch.setattr(time, "time", lambda: chance.uniform(0, 4e9))
    monkeypatch.setattr(time, "time_ns", lambda: chance.randrange(1, 1 << 61))

    async def test() -> None:
        options = {"order": order, "failure_timeout": TIMEOUT, "record": tmp_path}
        async with group_of(*"ABC", close=False, **options) as groups:
            readers = {name: Reader(group) for name, group in groups.items()}
            await asyncio.gather(*(send_many(group, 20) for group in groups.values()))
            crash(groups.pop("A"))
            await asyncio.gather(*(send_many(group, 20) for group in groups.values()))
            await asyncio.gather(*(group.close() for group in groups.values()))
            await asyncio.gather(*(readers[name].task for name in groups))
        assert [view.members for view in readers["B"].views()] == [("B", "C")]

    run(test)
    verdict = audit([tmp_path])
    assert verdict.holds, {name: found.witnesses for name, found in verdict.findings.items() if found.violations}
