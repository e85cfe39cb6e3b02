"""Live groups that deliver what is stable: the same order and the same promises as those that wait a round longer."""

import asyncio
from random import Random

import pytest

from ordercast import JoinError, Level
from tests.live.groups import crash, group_of, hear, join, member_of, new_name, run
from tests.live.test_views import TIMEOUT, Reader, _lossy, check, send_many

STABLE = {"order": "total", "delivery": "stable"}


@pytest.mark.parametrize("order", ["partial", "total"])
@pytest.mark.parametrize("loss", [False, True])
@pytest.mark.parametrize("gone", ["A", "C"])
def test_what_one_that_is_gone_was_given_the_others_are_given_in_that_order(gone: str, loss: bool, order: str) -> None:
    """A is the relay, too."""

    async def test() -> None:
        count, chance = 40, Random(f"{gone} {loss}")
        options = {"order": order, "delivery": "stable", "failure_timeout": TIMEOUT}
        async with group_of(*"ABCD", close=False, **options) as groups:
            for group in groups.values() if loss else ():
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
            check(readers, gone, order, count)
            assert last.log()
            for sender in groups if order == "partial" else (None,):
                given = last.log(sender)
                assert all(reader.log(sender)[: len(given)] == given for reader in readers.values())

    run(test)


def test_receipts_reach_all_levels_and_who_closes_waits_for_that() -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, **STABLE) as groups:
            receipts = [await group.send(b"x") for group in groups.values() for _ in range(5)]
            await asyncio.gather(*(hear(group, 15) for group in groups.values()))
            await asyncio.gather(*(receipt.known_stable() for receipt in receipts))
            assert {receipt.level for receipt in receipts} == {Level.KNOWN_STABLE}
            receipt = await groups["B"].send(b"last")
            await asyncio.gather(*(hear(group, 1) for group in groups.values()))
            before = receipt.level
            await asyncio.gather(*(group.close() for group in groups.values()))
            assert before in {Level.STABLE, Level.KNOWN_STABLE}, "it is delivered"
            assert receipt.level == Level.KNOWN_STABLE, "but who closes waits for all"

    run(test)


def test_members_must_agree_on_it() -> None:
    async def test() -> None:
        name = new_name()
        joining = [
            join(name, name="A", members=["A", "B"], timeout=5, **STABLE),
            join(name, name="B", members=["A", "B"], timeout=5, order="total"),
        ]
        found = await asyncio.gather(*map(_outcome, joining))
        assert any("delivery" in each for each in found), found

    run(test)


async def _outcome(joining: object) -> str:
    try:
        await joining  # type: ignore[misc]
    except JoinError as error:
        return str(error)
    return ""
