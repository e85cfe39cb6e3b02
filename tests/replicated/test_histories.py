"""Histories of live groups and of simulated ones are linearizable, through crashes, joins and loss."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from ordercast import Settings, TraceError
from ordercast.audit.linearizability import audit_history
from ordercast.model.history import Operation
from ordercast.replicated import Dict, History
from ordercast.trace.history import read_history
from tests.live.groups import run
from tests.replicated.groups import cluster
from tests.replicated.histories import BLOCKS, FAULTS, history_of, violations

ORDERS: tuple[Literal["sequenced", "total", "priority"], ...] = ("sequenced", "total", "priority")


SPLIT = ("leader", "queue")  # these take seconds
CASES = [("crash", each) for each in BLOCKS] + [("split" if each in SPLIT else "loss", each) for each in BLOCKS]


@pytest.mark.parametrize(("fault", "name"), CASES)
def test_every_block_is_linearizable_under_faults(fault: str, name: str) -> None:
    """A crash and a join; a member that is cut off and returns; loss. The soak has all of them for each block."""
    found: list[Operation] = []

    async def test() -> None:
        found.extend(await history_of(name, 1, fault=fault))

    run(test)
    assert len(found) >= 4 * BLOCKS[name].times
    assert violations(found) == []


@pytest.mark.parametrize("order", ["total", "priority"])
def test_other_orders_are_linearizable_too(order: str) -> None:
    async def test() -> None:
        assert violations(await history_of("dictionary", 2, fault=None, settings=Settings(order=order))) == []

    run(test)


def test_local_reads_are_not_linearizable_and_that_is_noticed() -> None:
    """The recorder and the search would find what fresh reads prevent."""

    async def test() -> None:
        async with cluster(Dict[int]) as group:
            history = History("p")
            for number in range(50):
                await history.run(partial(group["A"].put, "k", number), "register", "k", "put", number)

                async def read_here() -> int | None:
                    return group["C"].get("k")

                await history.run(read_here, "register", "k", "get")
            assert violations(history.operations) != []

    run(test)


def test_a_history_is_saved_and_read(tmp_path: Path) -> None:
    async def test() -> History:
        history, future = History("p", "r"), asyncio.get_running_loop().create_future()
        async with cluster(Dict[int], "AB") as group:
            await history.run(lambda: group["A"].put("k", 1), "register", "k", "put", 1, object_name="store")
        waiting = asyncio.create_task(history.run(lambda: future, "lock", "", "acquire"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        history.lost("lock", "", 3, since=5)
        return history

    history = asyncio.run(test())
    history.save(tmp_path / "folder" / "p.parquet")
    found = list(read_history(tmp_path / "folder"))
    assert found == history.operations == list(read_history(tmp_path / "folder" / "p.parquet"))
    put, acquire, lost = found
    assert (put.arguments, put.result, put.object_name, put.run) == (("1",), "null", "store", "r")
    assert put.returned is not None
    assert (acquire.returned, acquire.result) == (None, "")
    assert (lost.kind, lost.arguments, lost.called) == ("lost", ("3",), 5)


def test_what_is_no_history_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no history"):
        list(read_history(tmp_path))
    (tmp_path / "x.parquet").write_bytes(b"nonsense")
    with pytest.raises(TraceError, match="cannot read the history"):
        list(read_history(tmp_path))


@pytest.mark.soak
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_many_histories_of_each_block(fault: str, name: str) -> None:
    """HISTORY_LIVE_SEEDS says how many."""
    for seed in range(100, 100 + int(os.environ.get("HISTORY_LIVE_SEEDS", "15"))):
        settings = Settings(order=ORDERS[seed % 3], resilience=int(not seed % 3), failure_timeout=0.5)
        found: list[Operation] = []

        async def test(seed: int = seed, found: list[Operation] = found, settings: Settings = settings) -> None:
            found.extend(await history_of(name, seed, fault=fault, settings=settings))

        run(test)
        assert violations(found) == [], seed
        assert audit_history(found)
