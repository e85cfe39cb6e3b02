"""Live groups of the order `total` that place what was lost: the same order, and the same promises at a death."""

import asyncio
from random import Random

import pytest

from tests.live.groups import crash, group_of, member_of, run
from tests.live.test_views import TIMEOUT, Reader, _lossy, check, send_many


@pytest.mark.parametrize("gone", ["A", "C"])
def test_the_others_go_on_in_one_order_when_one_dies_while_datagrams_are_lost(gone: str) -> None:
    """A is the relay, too."""

    async def test() -> None:
        count, chance = 40, Random(gone)
        async with group_of(*"ABCD", close=False, order="total", recovery="place", failure_timeout=TIMEOUT) as groups:
            for group in groups.values():
                endpoint = member_of(group).transport.endpoint
                endpoint.send = _lossy(endpoint.send, chance)  # type: ignore[method-assign, assignment]
            readers = {name: Reader(groups[name]) for name in groups}
            sending = [asyncio.create_task(send_many(group, count)) for group in groups.values()]
            await asyncio.sleep(0.2)
            crash(groups[gone])
            await asyncio.gather(*sending)
            last = readers.pop(gone)
            await asyncio.gather(*(groups[name].close() for name in readers))
            await asyncio.gather(*(reader.task for reader in readers.values()))
            check(readers, gone, "total", count)
            given = last.log()
            assert all(reader.log()[: len(given)] == given for reader in readers.values())

    run(test)
