"""On how many disks messages are: the position below which a majority of the view has everything.

Each member tells the position below which its own disk has everything; one that has not caught up with the group yet
tells nothing. What a majority has is in the log of at least one member of every majority, and so is never lost while a
majority of the disks lives.
"""

from asyncio import Future
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol


class DurableBatch(Protocol):
    """Own messages that share a packet."""

    def is_durable(self) -> None:
        """A majority has them on the disk."""

    def not_durable(self, why: BaseException) -> None:
        """Nobody will ever tell."""


class Durability:
    """What is known of the disks of a view's members."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}  # by node
        self._nodes: Sequence[int] = ()
        self._batches: deque[tuple[int, DurableBatch]] = deque()  # own ones, by the position after them
        self.majority = 0
        """Everything below this position is on the disks of a majority of the view."""

    @property
    def end(self) -> int:
        """Below this position are all own messages that were delivered, and are not known to be durable; 0: none."""
        return self._batches[-1][0] if self._batches else 0

    def enter_view(self, nodes: Sequence[int]) -> None:
        """The members of the view, by their nodes; what those that go on have told still holds."""
        self._nodes = nodes
        self._positions = {node: at for node, at in self._positions.items() if node in nodes}
        self._update()

    def begin_anew(self) -> None:
        """The group began anew: its nodes are others."""
        self._positions = {}

    def told(self, node: int, position: int) -> None:
        """The disk of a member has everything below this position."""
        if position > self._positions.get(node, 0) and node in self._nodes:
            self._positions[node] = position
            self._update()

    def lacking(self, end: int) -> list[int]:
        """Nodes that have not told that their disks have everything below this position, while that matters."""
        end = end if self._batches and end > self.majority else 0
        return [node for node in self._nodes if self._positions.get(node, 0) < end]

    def delivered(self, batch: DurableBatch, end: int) -> None:
        """Own messages were delivered, and end before this position."""
        if end <= self.majority:
            batch.is_durable()
        else:
            self._batches.append((end, batch))

    def stop(self, why: BaseException) -> None:
        """Nothing will be known any more."""
        for _, batch in self._batches:
            batch.not_durable(why)
        self._batches.clear()

    def _update(self) -> None:
        found = sorted((self._positions.get(node, 0) for node in self._nodes), reverse=True)
        self.majority = max(self.majority, found[len(found) // 2] if found else 0)
        while self._batches and self._batches[0][0] <= self.majority:
            self._batches.popleft()[1].is_durable()


class DurableWaiters:
    """Who waits for one batch to be durable."""

    __slots__ = ("_awaited_by", "_futures", "done", "lost")

    def __init__(self, awaited_by: Callable[[Future[None]], object]) -> None:
        """`awaited_by`: is called with each future that is not done yet."""
        self._awaited_by = awaited_by
        self.done = False
        self.lost: BaseException | None = None
        self._futures: list[Future[None]] = []

    def when(self, future: "Future[None]") -> "Future[None]":
        """The future, which is done when the batch is durable, or fails when nobody will ever know."""
        if self.done:
            future.set_result(None)
        elif self.lost is not None:
            future.set_exception(self.lost)
        else:
            self._futures.append(future)
            self._awaited_by(future)
        return future

    def is_durable(self) -> None:
        """It is."""
        self.done = True
        for future in self._futures:
            if not future.done():
                future.set_result(None)
        self._futures.clear()

    def not_durable(self, why: BaseException) -> None:
        """Nobody will ever know."""
        if self.lost is None and not self.done:
            self.lost = why
            for future in self._futures:
                if not future.done():
                    future.set_exception(why)
                    future.exception()  # marks it as retrieved: nobody may be waiting any more
            self._futures.clear()
