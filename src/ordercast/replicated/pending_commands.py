"""Commands of this member that were sent, until it is known what became of them."""

from collections import deque
from collections.abc import Iterable
from typing import Any

from ordercast.replicated.objects import Call, CommandId
from ordercast.replicated.replica import Frame, Hosted
from ordercast.replicated.results import Result


class Sent(Call[Any]):
    """A command that was sent."""

    __slots__ = ("frame", "on", "order", "payload", "settled")
    frame: Frame
    payload: bytes
    on: frozenset[str] | None
    """It was sent to these members, or to all."""
    order: int
    """Among all that this member sent."""
    settled: bool


class Outgoing:
    """The commands to one object with one priority, in the order of their sequence numbers."""

    def __init__(self, hosted: Hosted, priority: int, member: str, session: int) -> None:
        """`member`: this one; `session`: the one in which its commands are numbered."""
        self.hosted, self.priority = hosted, priority
        self._member, self._session = member, session
        self.waiting: deque[Sent] = deque()
        self.next = 1
        """The sequence number of the next command."""

    @property
    def first(self) -> int:
        """The sequence number of the first command that waits."""
        return self.next - len(self.waiting)

    def command_id(self, sequence: int) -> CommandId:
        """Which command has this number."""
        return CommandId(self.hosted.name, self._member, self._session, self.priority, sequence)

    def add(self, sent: Sent) -> None:
        """A command was sent."""
        sent._stream, sent._sequence, sent.settled = self, self.next, False  # noqa: SLF001 (of its base)
        self.waiting.append(sent)
        self.next += 1

    def take_back(self, sent: Sent) -> None:
        """The last command was not sent after all."""
        last = self.waiting.pop()  # not in the assertion, which `python -O` omits
        assert last is sent, "it is the last one"
        self.next -= 1
        sent.cancel()

    def settle(self, sequence: int, result: Result) -> None:
        """It is known what became of a command."""
        waiting = self.waiting
        place = sequence - self.next + len(waiting)
        if not 0 <= place < len(waiting):
            return
        sent = waiting[place]
        if not sent.done():
            error, value = result
            if error is not None:
                sent.set_exception(error)
            else:
                sent.set_result(value)
        if place:
            sent.settled = True
            return
        waiting.popleft()
        while waiting and waiting[0].settled:
            waiting.popleft()

    def end(self, why: Exception) -> None:
        """Nothing is known of the rest."""
        for sent in self.waiting:
            if not sent.done():
                sent.set_exception(why)
                sent.exception()  # marks it as retrieved: most programs have ended
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
