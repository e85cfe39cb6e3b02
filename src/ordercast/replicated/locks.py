"""A fair lock and an election, both fenced: whoever leaves the group loses what it held."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from ordercast.replicated.objects import Replicated, command, query, undo_later


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock, or waits for it."""

    member: str
    token: int
    """Larger than that of all who held it before."""


class Lock(Replicated):
    """A lock that one caller of the whole group holds at a time, in the order in which they asked.

    Whoever leaves the group, fails or is excluded loses it at the same place of the order at all members, and the next
    one gets it. A process that was paused may learn that too late: give the token to what the lock protects, which must
    refuse a token that is smaller than one it has seen.
    """

    queue: list[Holder] = []
    """The holder first, then those that wait."""
    last_token: int = 0

    @command
    def enqueue(self) -> int:
        """Asks for the lock; the token with which it will be held."""
        self.last_token += 1
        self.queue.append(Holder(self.context.caller, self.last_token))
        return self.last_token

    @command
    def release(self, token: int) -> bool:
        """Gives the lock back, or gives up waiting for it; whether it was held, or waited for, with this token."""
        before = len(self.queue)
        self.queue = [each for each in self.queue if each.token != token]
        return len(self.queue) < before

    @query
    def holder(self) -> Holder | None:
        """Who holds it."""
        return self.queue[0] if self.queue else None

    @query
    def is_held(self, token: int) -> bool:
        """Whether it is held with this token: False after the member that had it was excluded."""
        return bool(self.queue) and self.queue[0].token == token

    def left(self, member: str) -> None:
        """Frees what the member held, and forgets what it waited for."""
        self.queue = [each for each in self.queue if each.member != member]

    async def acquire(self) -> int:
        """Waits until the lock is held, and returns the token. A call that is cancelled does not hold it.

        If this member is excluded meanwhile and returns, it is the last in the queue again.
        """
        while True:
            asked = self.enqueue()
            try:
                token = await asyncio.shield(asked)
                if await self.until(lambda token=token: self._state(token)) == "held":  # type: ignore[misc]
                    return token
            except asyncio.CancelledError:
                undo_later(asked, self.release)
                raise

    def _state(self, token: int) -> str:
        if self.is_held(token):
            return "held"
        return "" if any(each.token == token for each in self.queue) else "lost"

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[int]:
        """Holds the lock during the block; its value is the token."""
        token = await self.acquire()
        try:
            yield token
        finally:
            await self.release(token)


class Leader(Lock):
    """An election: one member leads at a time, until it resigns or leaves the group; then the next candidate does.

    Terms are fenced by tokens, as locks are.
    """

    async def campaign(self) -> int:
        """Waits until this member leads, and returns the token of its term."""
        return await self.acquire()

    async def resign(self, token: int) -> bool:
        """Ends a term, or a candidacy; whether it had not ended before."""
        return await self.release(token)

    @query
    def leader(self) -> Holder | None:
        """Who leads, with the token of its term."""
        return self.queue[0] if self.queue else None

    async def terms(self) -> AsyncIterator[Holder | None]:
        """Who leads now, and then each new leader; None: nobody leads. Terms that are over are left out."""
        last = self.holder()
        yield last
        while True:
            await self.until(lambda last=last: self.holder() != last)  # type: ignore[misc]
            last = self.holder()
            yield last
