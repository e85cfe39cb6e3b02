"""Commands of a member that were sent, until it is known what became of them."""

import asyncio

import pytest

from ordercast.model.errors import GroupClosed
from ordercast.replicated.objects import CommandId
from ordercast.replicated.pending_commands import Outgoing, Sent, in_order
from ordercast.replicated.results import Result


def sent(loop: asyncio.AbstractEventLoop, order: int) -> Sent:
    made = Sent(loop=loop)
    made.frame, made.payload, made.on, made.order = None, b"%d" % order, None, order  # type: ignore[assignment]
    return made


class Hosted:
    """What stands for an object."""

    name = "store"


def test_results_settle_the_commands_of_their_numbers() -> None:
    loop = asyncio.new_event_loop()
    outgoing = Outgoing(Hosted, 9, "A", 77)  # type: ignore[arg-type]
    all_sent = [sent(loop, order) for order in range(4)]
    for each in all_sent:
        outgoing.add(each)
    assert (outgoing.next, outgoing.first) == (5, 1)
    assert all_sent[2].id == CommandId("store", "A", 77, 9, 3)
    outgoing.settle(2, Result(None, "two"))
    assert (outgoing.first, len(outgoing.waiting)) == (1, 4)  # the first one waits
    assert [each.order for each, _ in in_order([outgoing])] == [0, 2, 3]
    outgoing.settle(1, Result(KeyError("one"), None))
    assert (outgoing.first, len(outgoing.waiting)) == (3, 2)
    outgoing.settle(1, Result(None, "again"))
    outgoing.settle(outgoing.next, Result(None, "not sent yet"))
    assert all_sent[1].result() == "two"
    with pytest.raises(KeyError, match="one"):
        all_sent[0].result()
    outgoing.take_back(all_sent[3])
    assert (outgoing.next, all_sent[3].cancelled()) == (4, True)
    outgoing.end(GroupClosed("over"))
    assert not all_sent[2]._log_traceback  # a program that has ended is told nothing
    with pytest.raises(GroupClosed):
        all_sent[2].result()
    assert not outgoing.waiting
    loop.close()


def test_messages_are_sent_again_in_their_order_and_once() -> None:
    loop = asyncio.new_event_loop()
    one, two = Outgoing(Hosted, 0, "A", 1), Outgoing(Hosted, 9, "A", 1)  # type: ignore[arg-type]
    for outgoing, order in ((one, 1), (two, 2), (one, 3), (two, 3)):
        outgoing.add(sent(loop, order))
    assert [each.order for each, _ in in_order([one, two])] == [1, 2, 3]
    loop.close()
