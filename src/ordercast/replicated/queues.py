"""A queue of jobs: each goes to one worker, and comes back if the worker leaves the group."""

import asyncio
import bisect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import msgspec

from ordercast.replicated.objects import Replicated, command, query, undo_later

_V = TypeVar("_V")


class Assignment(msgspec.Struct, frozen=True):
    """An item that a worker has."""

    item: int
    worker: str
    token: int
    """Larger than that of all assignments before: also of the same item, if another worker had it."""


class Queue(Replicated, Generic[_V]):
    """A queue, the same at all members. Workers get the items in their order, and say when they are done.

    The items of a worker that leaves the group, fails or is excluded are given to others, and come first. So an item is
    worked on by one worker at a time as the group sees it, and possibly again if its worker failed; `done` tells a
    worker that it was too late.
    """

    items: dict[int, _V] = {}
    """All that are not done, by number."""
    last_item: int = 0
    next_item: int = 1
    """Items from here on were not given to anybody."""
    returned: list[int] = []
    """Items that were given back, in their order."""
    assigned: dict[int, Assignment] = {}
    """By token."""
    waiting: dict[int, str] = {}
    """Workers that wait, by token."""
    last_token: int = 0

    @command
    def put(self, item: _V) -> int:
        """Adds an item at the end; its number."""
        self.last_item += 1
        self.items[self.last_item] = item
        self._assign()
        return self.last_item

    @command
    def ask(self) -> int:
        """Asks for an item; the token with which it will be assigned."""
        self.last_token += 1
        self.waiting[self.last_token] = self.context.caller
        self._assign()
        return self.last_token

    @command
    def done(self, token: int) -> bool:
        """An item is done; False: it was given back before, and may be done by another worker."""
        found = self.assigned.pop(token, None)
        if found is not None:
            del self.items[found.item]
        return found is not None

    @command
    def give_back(self, token: int) -> bool:
        """An item is not done, or is not waited for any more; whether it was assigned or waited for."""
        waited = self.waiting.pop(token, None) is not None
        found = self.assigned.pop(token, None)
        if found is not None:
            bisect.insort(self.returned, found.item)
            self._assign()
        return waited or found is not None

    @query
    def assignments(self) -> list[Assignment]:
        """Who works on what."""
        return list(self.assigned.values())

    def __len__(self) -> int:
        """Items that nobody works on."""
        return len(self.items) - len(self.assigned)

    def left(self, member: str) -> None:
        """Takes its items back."""
        self.waiting = {token: worker for token, worker in self.waiting.items() if worker != member}
        lost = [each for each in self.assigned.values() if each.worker == member]
        for each in lost:
            del self.assigned[each.token]
            bisect.insort(self.returned, each.item)
        self._assign()

    def _assign(self) -> None:
        while self.waiting and (self.returned or self.next_item <= self.last_item):
            token = next(iter(self.waiting))
            if self.returned:
                item = self.returned.pop(0)
            else:
                item, self.next_item = self.next_item, self.next_item + 1
            self.assigned[token] = Assignment(item, self.waiting.pop(token), token)

    async def get(self) -> tuple[int, _V]:
        """Waits for an item: its token, for `done`, and the item. A call that is cancelled gets none."""
        while True:
            asked = self.ask()
            try:
                token = await asyncio.shield(asked)
                await self.until(lambda token=token: token not in self.waiting)  # type: ignore[misc]
                if token in self.assigned:
                    return token, self.items[self.assigned[token].item]
            except asyncio.CancelledError:
                undo_later(asked, self.give_back)
                raise

    @asynccontextmanager
    async def work(self) -> AsyncIterator[_V]:
        """Waits for an item, and has it during the block: done at its end, given back if it raises an exception."""
        token, item = await self.get()
        try:
            yield item
        except BaseException:
            self.give_back(token)
            raise
        await self.done(token)
