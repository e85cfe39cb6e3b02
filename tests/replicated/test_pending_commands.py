"""Commands of a member that were sent, until it is known what became of them."""

import asyncio
from typing import Any

import pytest

from ordercast.model.errors import GroupClosed
from ordercast.replicated.objects import Call
from ordercast.replicated.pending_commands import Outgoing, Sent, in_order
from ordercast.replicated.replica import Result


def sent(loop: asyncio.AbstractEventLoop, order: int) -> Sent:
    call: Call[Any] = Call(loop=loop)
    return Sent(None, b"%d" % order, None, order, call)  # type: ignore[arg-type]


def test_results_settle_the_commands_of_their_numbers() -> None:
    loop = asyncio.new_event_loop()
    outgoing = Outgoing(None, 0)  # type: ignore[arg-type]
    all_sent = [sent(loop, order) for order in range(4)]
    for each in all_sent:
        outgoing.add(each)
    assert (outgoing.next, outgoing.first) == (5, 1)
    outgoing.settle(Result(2, None, "two"))
    assert (outgoing.first, len(outgoing.waiting)) == (1, 4)  # the first one waits
    assert [each.order for each, _ in in_order([outgoing])] == [0, 2, 3]
    outgoing.settle(Result(1, KeyError("one"), None))
    assert (outgoing.first, len(outgoing.waiting)) == (3, 2)
    outgoing.settle(Result(1, None, "again"))
    outgoing.settle(Result(outgoing.next, None, "not sent yet"))
    assert all_sent[1].call.result() == "two"
    with pytest.raises(KeyError, match="one"):
        all_sent[0].call.result()
    outgoing.take_back(all_sent[3])
    assert (outgoing.next, all_sent[3].call.cancelled()) == (4, True)
    outgoing.end(GroupClosed("over"))
    assert not all_sent[2].call._log_traceback  # a program that has ended is told nothing
    with pytest.raises(GroupClosed):
        all_sent[2].call.result()
    assert not outgoing.waiting
    loop.close()


def test_messages_are_sent_again_in_their_order_and_once() -> None:
    loop = asyncio.new_event_loop()
    one, two = Outgoing(None, 0), Outgoing(None, 9)  # type: ignore[arg-type]
    for outgoing, order in ((one, 1), (two, 2), (one, 3), (two, 3)):
        outgoing.add(sent(loop, order))
    assert [each.order for each, _ in in_order([one, two])] == [1, 2, 3]
    loop.close()
