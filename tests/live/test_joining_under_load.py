"""What a joiner was given as the state, and what it is delivered after that, is together what all others have."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ordercast import Group
from ordercast.audit.reference import audit
from tests.live.groups import ORDERS, join, new_name, run

NAMES = ("A", "B", "C")


class Log:
    """All messages, as a state."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def save(self) -> bytes:
        return json.dumps(self.lines).encode()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        self.lines = json.loads(b"".join([part async for part in parts]))

    async def follow(self, group: Group) -> None:
        async for message in group:
            self.lines.append(f"{message.sender}: {message.payload.decode()}")


async def talk(group: Group) -> None:
    """Always has something in flight."""
    number = 0
    while True:
        await group.send(b"%d" % number)
        number += 1
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("detail", ["all", "deliveries"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_joiner_lacks_nothing_that_was_in_flight(order: str, detail: str, tmp_path: Path) -> None:
    async def test() -> None:
        name, logs = new_name(), {each: Log() for each in NAMES}
        options = {"order": order, "record": tmp_path, "record_detail": detail}
        joined = await asyncio.gather(
            *(join(name, name=each, members=NAMES, state=logs[each], **options) for each in NAMES)
        )
        groups = dict(zip(NAMES, joined, strict=True))
        following = [asyncio.create_task(logs[each].follow(groups[each])) for each in NAMES]
        talking = [asyncio.create_task(talk(groups[each])) for each in ("A", "B")]
        for _ in range(2):
            await asyncio.sleep(0.03)
            await groups["C"].leave()
            logs["C"] = Log()
            groups["C"] = await join(name, name="C", members=NAMES, state=logs["C"], **options)
            following.append(asyncio.create_task(logs["C"].follow(groups["C"])))
        await asyncio.sleep(0.03)
        for task in talking:
            task.cancel()
        await asyncio.gather(*(group.close() for group in groups.values()))
        await asyncio.gather(*following)
        first, *others = (Counter(log.lines) for log in logs.values())
        assert first.total() == len(first) > 20
        assert all(other == first for other in others)

    run(test)
    verdict = audit([tmp_path])
    assert verdict.holds, {name: each for name, each in verdict.findings.items() if each.violations}
