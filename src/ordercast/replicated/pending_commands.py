"""Commands of this member that were sent, until it is known what became of them."""

from collections import deque
from collections.abc import Iterable
from typing import Any

from ordercast.replicated.objects import Call
from ordercast.replicated.replica import Frame, Hosted, Result


class Sent:
    """A command that was sent."""

    __slots__ = ("call", "frame", "on", "order", "payload", "settled")

    def __init__(self, frame: Frame, payload: bytes, on: frozenset[str] | None, order: int, call: Call[Any]) -> None:
        """`order`: among all that this member sent; `on`: to these members, or to all."""
        self.frame, self.payload, self.on, self.order = frame, payload, on, order
        self.call = call
        self.settled = False


class Outgoing:
    """The commands to one object with one priority, in the order of their sequence numbers."""

    def __init__(self, hosted: Hosted, priority: int) -> None:
        self.hosted, self.priority = hosted, priority
        self.waiting: deque[Sent] = deque()
        self.next = 1
        """The sequence number of the next command."""

    @property
    def first(self) -> int:
        """The sequence number of the first command that waits."""
        return self.next - len(self.waiting)

    def add(self, sent: Sent) -> None:
        """A command was sent."""
        self.waiting.append(sent)
        self.next += 1

    def take_back(self, sent: Sent) -> None:
        """The last command was not sent after all."""
        assert self.waiting.pop() is sent, "it is the last one"
        self.next -= 1
        sent.call.cancel()

    def settle(self, result: Result) -> None:
        """It is known what became of a command."""
        waiting = self.waiting
        place = result.sequence - self.next + len(waiting)
        if not 0 <= place < len(waiting):
            return
        sent = waiting[place]
        sent.settled = True
        call = sent.call
        if not call.done():
            if result.error is not None:
                call.set_exception(result.error)
            else:
                call.set_result(result.value)
        while waiting and waiting[0].settled:
            waiting.popleft()

    def end(self, why: Exception) -> None:
        """Nothing is known of the rest."""
        for sent in self.waiting:
            if not sent.call.done():
                sent.call.set_exception(why)
                sent.call.exception()  # marks it as retrieved: most programs have ended
        self.waiting.clear()


def in_order(all_outgoing: Iterable[Outgoing]) -> list[tuple[Sent, int]]:
    """All messages that wait for their results, each once, in the order in which they were sent; with priorities."""
    found = {
        sent.order: (sent, outgoing.priority)
        for outgoing in all_outgoing
        for sent in outgoing.waiting
        if not sent.settled
    }
    return [found[order] for order in sorted(found)]
