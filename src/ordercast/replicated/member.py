"""A member of a group with replicated objects, as its application sees it."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Literal

from ordercast.live.events import View
from ordercast.live.group import Group
from ordercast.model.errors import LocalProtocolError
from ordercast.replicated.calls import Answers
from ordercast.replicated.object_host import ObjectHost
from ordercast.replicated.objects import Call, CommandId, next_id

_PENDING_LIMIT = 1 << 20  # bytes, as for messages


class Member:
    """A process in a group with replicated objects. `ordercast.replicated.join` makes one.

    Commands and queries are called on the objects themselves.
    """

    def __init__(self, host: ObjectHost) -> None:
        self._host = host

    def __repr__(self) -> str:
        return f"<Member {self.me} of {self.group.name!r}: {', '.join(self.members)}>"

    @property
    def me(self) -> str:
        """The name of this member."""
        return self._host.me

    @property
    def group(self) -> Group:
        """The group, for its statistics. Messages must not be read or sent there."""
        return self._host.group

    @property
    def members(self) -> tuple[str, ...]:
        """The members at the place of the last command that was applied here, the oldest first."""
        return self.group.members

    @property
    def view(self) -> View:
        """The view at that place."""
        return self.group.view

    async def call(
        self,
        payload: bytes | bytearray | memoryview,
        *,
        to: Iterable[str] | None = None,
        gather: Literal["first", "majority", "all"] = "all",
        timeout: float | None = None,
    ) -> Answers:
        """Asks members, all or those in `to` (order "total"), and returns their answers.

        Each of them calls the function `answer` that it was joined with, when the request has its place in the order.
        `gather`: "first" answer, those of a "majority" of all who are asked, or "all". Who leaves the group or fails
        before it answers is not waited for: it is in `Answers.gone`. If a first answer, or a majority, can no longer
        come, `Undelivered` is raised; it is raised too if this member is excluded meanwhile. After `timeout` seconds
        `TimeoutError` is raised.
        """
        self._host.require_open()
        if isinstance(to, str):
            raise LocalProtocolError(f"`to` must be a set of names, such as {{{to!r}}}, not one name")
        asked = None if to is None else tuple(dict.fromkeys(to))
        return await self._host.calls.call(payload, asked, gather, timeout, self.members)

    def together(self) -> AbstractContextManager[None]:
        """Commands that are called within the block are sent as one message, and have one place in the order.

        They may be of different objects: every member that holds several of them applies all at that place. The block
        must not await. Each command is applied whether or not another one raises an exception.
        """
        return self._host.together()

    async def drain(self) -> None:
        """Waits while too much is unsent: for callers that do not await each command."""
        while self.group.pending_bytes > _PENDING_LIMIT and self._host.error is None:
            await asyncio.sleep(0.001)

    async def durable(self) -> None:
        """Returns when all that was applied here is in the logs of a majority, on their disks: see `join(log=...)`.

        What is durable survives that all members are killed.

        """
        await self._host.durable()

    def next_id(self, method: Callable[..., Call[Any]]) -> CommandId:
        """Which command the next call of a command such as `store.put` would be, outside of `together`.

        Write it down before that call: whatever becomes of this process then, `applied` tells whether the command was
        applied. `Call.id` is the same, but is known only when the command may have been sent.
        """
        return next_id(method)

    async def applied(self, command: CommandId) -> bool | None:
        """Whether a command was applied, as of now: True or False; None: that is open, or was forgotten.

        It is open while the process that sent it may still send it again. The last eight processes of each member are
        remembered. Only members that hold the object know.
        """
        return await self._host.applied(command)

    async def check(self) -> None:
        """Compares the states of all members, at one place of the order; raises `Diverged` if one differs.

        This is done now and then by itself; see `join`. The members that differ leave the group with this error. If
        the view changes meanwhile, it is done again.
        """
        await self._host.check()
