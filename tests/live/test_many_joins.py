"""Many members join a running group, one after the other and at once."""

import asyncio
import time

import pytest

import ordercast
from tests.live.groups import ORDERS, group_of, member_of
from tests.live.test_joining import contact
from tests.network.member import say


@pytest.mark.soak
@pytest.mark.parametrize("order", ORDERS)
def test_twenty_join_in_a_row(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order=order) as groups:
            for number in range(20):
                begun = time.monotonic()
                name = f"N{number}"
                contacts = [contact(groups["A"])]
                groups[name] = await ordercast.join(groups["A"].name, contacts=contacts, name=name, timeout=20)
                await groups[name].send(b"in")
                say(f"{order}: {name} joined after {time.monotonic() - begun:.3f} s")
            assert groups["N19"].members == tuple(groups)
            await asyncio.gather(*(group.close() for group in groups.values()))

    asyncio.run(asyncio.wait_for(test(), 300))


@pytest.mark.soak
def test_sixty_four_members() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="sequenced", failure_timeout=20.0) as groups:
            begun, contacts = time.monotonic(), [contact(groups["A"])]
            names = [f"N{number}" for number in range(62)]
            joining = [ordercast.join(groups["A"].name, contacts=contacts, name=name, timeout=200) for name in names]
            groups.update(zip(names, await asyncio.gather(*joining), strict=True))
            while {group.stats().view for group in groups.values()} != {groups["A"].stats().view}:
                await asyncio.sleep(0.01)
            say(f"64 members after {time.monotonic() - begun:.1f} s, view {groups['A'].stats().view}")
            assert {member_of(group).size for group in groups.values()} == {64}
            await groups["N61"].send(b"on")
            for group in groups.values():
                assert (await group.receive()).payload == b"on"
            await asyncio.gather(*(group.close() for group in groups.values()))

    asyncio.run(asyncio.wait_for(test(), 400))
