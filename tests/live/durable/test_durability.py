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

    def test_what_a_majority_has_when_it_is_delivered_is_durable_at_once(self) -> None:
        found, batch, next_one = Durability(), waiters(), waiters()
        found.enter_view((0, 1, 2))
        found.told(0, 5)
        found.told(1, 5)
        found.delivered(batch, 5)
        found.delivered(next_one, 6)
        assert (batch.done, next_one.done, found.end) == (True, False, 6)

    def test_what_was_told_in_no_view_or_before_somebody_left_does_not_count(self) -> None:
        found = Durability()
        found.enter_view((0, 1, 2))
        for node, position in ((3, 9), (1, 4), (2, 9)):
            found.told(node, position)
        assert found.majority == 4
        found.enter_view((0, 1))
        found.enter_view((0, 1, 2, 3, 4))
        for node in (0, 1):
            found.told(node, 8)
        assert found.majority == 4, "2 and 3 have to tell again"
        found.told(2, 8)
        assert found.majority == 8

    def test_who_lacks_what_is_not_durable_yet(self) -> None:
        found = Durability()
        found.enter_view((0, 1, 2))
        assert found.lacking(9) == [], "nothing of this member's own is awaited"
        found.delivered(waiters(), 5)
        found.told(0, 4)
        found.told(1, 5)
        assert found.lacking(5) == [0, 2]
        assert found.lacking(4) == [], "a majority has it"

    def test_each_who_waits_is_answered_once_and_those_who_come_later_at_once(self) -> None:
        async def test() -> None:
            asked: list[object] = []
            batch, lost, loop = DurableWaiters(asked.append), DurableWaiters(asked.append), asyncio.get_running_loop()
            early = [each.when(loop.create_future()) for each in (batch, batch, lost, lost)]
            assert asked == early
            early[1].cancel()
            early[3].cancel()
            batch.is_durable()
            lost.not_durable(GroupAborted("over", {}, 0))
            assert early[0].done()
            assert isinstance(early[2].exception(), GroupAborted)
            batch.not_durable(GroupAborted("over", {}, 0))
            lost.not_durable(ValueError())
            late = [each.when(loop.create_future()) for each in (batch, lost)]
            assert asked == early, "they wait for nothing"
            assert late[0].exception() is None
            assert isinstance(late[1].exception(), GroupAborted), "the first reason holds"

        run(test)

    def test_when_nothing_will_be_known_any_more_nobody_is_told_later(self) -> None:
        async def test() -> None:
            found, batch = Durability(), waiters()
            found.enter_view((0,))
            found.delivered(batch, 5)
            future = batch.when(asyncio.get_running_loop().create_future())
            found.stop(GroupAborted("over", {}, 0))
            assert isinstance(future.exception(), GroupAborted)
            assert found.end == 0
            found.told(0, 5)
            assert not batch.done

        run(test)


def waiters() -> DurableWaiters:
    return DurableWaiters(lambda _: None)
