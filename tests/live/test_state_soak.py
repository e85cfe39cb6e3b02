"""Large states beside traffic; donors that die at each tenth of a state."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ordercast import Message
from tests.live.groups import run
from tests.live.state_transfer import until
from tests.live.test_joining import contact
from tests.live.test_state_groups import Groups, Log

pytestmark = pytest.mark.soak
PART = bytes(range(256)) * 4096


class Large(Log):
    """A state of so many parts, each of which has its number, besides the log."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.count, self.loaded = parts, 0

    def save(self) -> Iterator[bytes]:
        self.saves += 1
        return self._parts("\n".join(self.log).encode())

    def _parts(self, log: bytes) -> Iterator[bytes]:
        yield len(log).to_bytes(8, "big") + log
        for number in range(self.count):
            yield number.to_bytes(8, "big") + PART

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        self.loads += 1
        self.loaded, rest = 0, b""
        log: bytes | None = None
        async for part in parts:
            rest += part
            if log is None:
                size = int.from_bytes(rest[:8])
                if len(rest) < 8 + size:
                    continue
                log, rest = rest[8 : 8 + size], rest[8 + size :]
            while len(rest) >= 8 + len(PART):
                assert int.from_bytes(rest[:8]) == self.loaded
                assert rest[8 : 8 + len(PART)] == PART
                self.loaded += 1
                rest = rest[8 + len(PART) :]
        assert not rest
        assert log is not None
        self.log = log.decode().splitlines()


class LargeGroups(Groups):
    """A group whose members have such a state."""

    parts = 0

    def new_log(self) -> Large:
        return Large(self.parts)


async def traffic(found: Groups, name: str, stop: asyncio.Event) -> int:
    sent = 0
    while not stop.is_set():
        await found.send(name, sent)
        sent += 1
        await asyncio.sleep(0.001)
    return sent


def within(seconds: float, test: Any) -> None:
    asyncio.run(asyncio.wait_for(test(), seconds))


@pytest.mark.parametrize("order", ["sequenced", "partial"])
def test_a_gibibyte_beside_traffic(order: str) -> None:
    async def test() -> None:
        found = LargeGroups(order=order, failure_timeout=3)
        found.parts = 1024
        await found.found("ABC")
        stop = asyncio.Event()
        sending = [asyncio.create_task(traffic(found, name, stop)) for name in "AB"]
        joined = Large(0)
        await found.join("D", joined)
        assert joined.loaded == 1024
        stop.set()
        sent = sum(await asyncio.gather(*sending))
        await found.close()
        assert len(joined.log) == sent
        assert sorted(joined.log) == sorted(found.logs["A"].log)
        assert [event.number for event in joined.views()][:1] == [1]
        assert joined.loads == 1

    within(300, test)


@pytest.mark.parametrize("tenth", range(11))
def test_a_donor_dies_at_each_tenth(tenth: int) -> None:
    async def test() -> None:
        found = LargeGroups(order="sequenced")
        found.parts = 100
        await found.found("ABC")
        stop = asyncio.Event()
        sending = asyncio.create_task(traffic(found, "A", stop))
        joined = Large(0)
        task = asyncio.create_task(found.join("D", joined))
        await until(lambda: joined.loaded >= 9 * tenth or task.done())
        found.crash("C")
        await task
        stop.set()
        await sending
        await found.close()
        assert joined.loaded == 100
        assert joined.log == found.logs["A"].log
        assert sum(isinstance(event, Message) for event in joined.events) > 0

    run(test)


SMALL = """
import asyncio, resource, sys
import ordercast

class Whole:
    def save(self):
        return b""

    async def load(self, parts):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
        self.parts = [bytes(part) async for part in parts]

async def main():
    try:
        await ordercast.join(sys.argv[1], contacts=[sys.argv[2]], name="D", state=Whole(), timeout=60)
    except ordercast.JoinError as error:
        print(error)

asyncio.run(main())
"""


def test_a_state_that_is_larger_than_the_memory_of_the_joiner_fails_it_alone() -> None:
    """A process of its own that may have 64 MiB more, and is given 200."""

    async def test() -> None:
        found = LargeGroups(order="total", key=None)
        found.parts = 200
        await found.found("ABC")
        stop = asyncio.Event()
        sending = asyncio.create_task(traffic(found, "A", stop))
        group = found.groups["A"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SMALL, group.name, contact(group)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        said, problem = await process.communicate()
        assert process.returncode == 0, problem.decode()
        assert "there is not enough memory" in said.decode()
        await until(lambda: [view.members for view in found.logs["A"].views()][-1] == ("A", "B", "C"))
        stop.set()
        sent = await sending
        await found.close()
        assert {len(log.log) for log in found.logs.values()} == {sent}

    within(120, test)
