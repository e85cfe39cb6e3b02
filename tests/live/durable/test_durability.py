"""On how many disks messages are."""

import asyncio

import pytest

from ordercast import GroupAborted
from ordercast.live.durability import Durability, DurableWaiters
from tests.live.groups import run


class TestDurability:
    def test_a_majority_counts_and_positions_never_go_back(self) -> None:
        found, batch = Durability(), DurableWaiters(lambda _: None)
        found.enter_view((0, 1, 2, 3))
        found.delivered(batch, 5)
        for node, position in ((0, 9), (1, 5), (7, 9)):
            found.told(node, position)
        assert (found.majority, batch.done) == (0, False)
        found.told(3, 4)
        assert found.majority == 4
        found.enter_view((0, 1, 3))
        assert (found.majority, batch.done) == (5, True)
        found.enter_view((0, 1, 3, 4, 5, 6))
        assert found.majority == 5

    def test_who_waits_in_vain_is_told(self) -> None:
        async def test() -> None:
            found, batch = Durability(), DurableWaiters(lambda _: None)
            found.delivered(batch, 5)
            future = batch.when(asyncio.get_running_loop().create_future())
            found.stop(GroupAborted("over", {}, 0))
            with pytest.raises(GroupAborted):
                await future
            assert not found.end

        run(test)
