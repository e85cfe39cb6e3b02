"""Flow control of one member, by hand: what it says and when, and for whom it waits."""

import asyncio

from ordercast.live.host.flow_control import FORGET, REPEAT, FlowControl
from ordercast.live.host.inbox import Inbox
from ordercast.model.units import Packet
from ordercast.wire.control import FlowNotice
from tests.live.groups import run

LIMIT = 1 << 20


class Room:
    """One member's flow control, by hand."""

    def __init__(self) -> None:
        self.inbox = Inbox(("A", "B", "C"), 1 << 20)
        self.inbox.limit = LIMIT
        self.sent: list[FlowNotice] = []
        self.opened = 0
        self.flow = FlowControl(self.inbox, self.sent.append, self.open)

    def open(self) -> None:
        self.opened += 1

    def waits(self) -> bool:
        return self.flow.must_wait

    def put(self, size: int) -> None:
        self.inbox.put(Packet(1, 7, 0, (0, 0, 0), 0, (size,), b"\0" + bytes(size)))


def test_it_says_when_it_is_full_and_again_and_when_half_was_read() -> None:
    async def test() -> None:
        room = Room()
        for _ in range(4):
            room.put(LIMIT // 4 - 1)
        room.put(1)
        assert [notice.closed for notice in room.sent] == [True]
        assert room.waits(), "its own messages come back to it"
        await asyncio.sleep(2.5 * REPEAT)
        assert [notice.closed for notice in room.sent] == [True] * 3
        room.inbox.take()
        assert room.waits()
        room.inbox.take()
        room.inbox.take()
        assert not room.waits()
        await asyncio.sleep(2.5 * REPEAT)
        assert [notice.closed for notice in room.sent] == [True] * 3 + [False] * 2, "one may be lost"
        assert [notice.number for notice in room.sent] == [1, 2, 3, 4, 5]
        assert room.opened == 1
        room.flow.stop()

    run(test)


def test_a_member_that_is_closed_is_waited_for_as_long_as_it_says_so() -> None:
    async def test() -> None:
        room = Room()
        flow = room.flow
        flow.received(1, FlowNotice(5, closed=True))
        flow.received(2, FlowNotice(9, closed=True))
        assert flow.closed == {1, 2}
        flow.received(1, FlowNotice(4, closed=False))
        assert flow.closed == {1, 2}, "it was overtaken"
        flow.received(1, FlowNotice(6, closed=False))
        assert flow.closed == {2}
        assert room.waits()
        await asyncio.sleep(FORGET + 2 * REPEAT)
        assert not room.waits(), "nothing was heard of it any more"
        assert room.opened == 1
        flow.received(2, FlowNotice(10, closed=True))
        flow.enter_view()
        assert not room.waits(), "places are others"
        flow.stop()

    run(test)


def test_who_has_closed_the_group_need_not_read() -> None:
    async def test() -> None:
        room = Room()
        room.put(2 * LIMIT)
        room.flow.disable()
        assert [notice.closed for notice in room.sent] == [True, False]
        room.put(2 * LIMIT)
        assert len(room.sent) == 2
        room.flow.stop()

    run(test)
