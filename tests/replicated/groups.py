"""Members with replicated objects, several in one event loop, over sockets of this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Generic, TypeVar

import ordercast.replicated
from ordercast.replicated import Member, Replicated
from tests.live.groups import crash, member_of, new_name
from tests.live.state_transfer import until

__all__ = ["Cluster", "cluster", "cut_off", "until"]
S = TypeVar("S", bound=Replicated)


class Cluster(Generic[S]):
    """Members of one group, each with an object of the same class."""

    def __init__(self, make: Callable[[], S], **options: Any) -> None:
        self.name, self.make = new_name(), make
        self.options = {"check_interval": 0, "timeout": 10, **options}
        self.objects: dict[str, S] = {}
        self.members: dict[str, Member] = {}
        self._stacks: dict[str, AsyncExitStack] = {}

    def __getitem__(self, name: str) -> S:
        return self.objects[name]

    async def open(self, names: str) -> None:
        await asyncio.gather(*(self._join(name, members=list(names)) for name in names))

    async def join(self, name: str, **options: Any) -> S:
        contacts = [str(member_of(each.group).address) for each in self.members.values()]
        left_out = {"members", "settings", "order"}
        return await self._join(name, contacts=contacts, without=left_out, **options)

    async def _join(self, name: str, without: set[str] = frozenset(), **options: Any) -> S:  # type: ignore[assignment]
        made = self.make()
        given = {key: value for key, value in self.options.items() if key not in without}
        stack = AsyncExitStack()
        joining = ordercast.replicated.join(self.name, made, name=name, **{**given, **options})
        self.members[name] = await stack.enter_async_context(joining)
        self.objects[name], self._stacks[name] = made, stack
        return made

    async def leave(self, name: str) -> None:
        del self.objects[name], self.members[name]
        await self._stacks.pop(name).aclose()

    def crash(self, name: str) -> None:
        """Nothing reaches it any more, and it says nothing."""
        crash(self.members.pop(name).group)
        del self.objects[name], self._stacks[name]

    async def close(self) -> None:
        for name in list(self._stacks):
            await self.leave(name)


@asynccontextmanager
async def cluster(make: Callable[[], S], names: str = "ABC", **options: Any) -> AsyncIterator[Cluster[S]]:
    found = Cluster(make, **options)
    await found.open(names)
    yield found
    await found.close()


async def cut_off(group: Cluster[Any], name: str) -> None:
    """It lives, hears nothing, is excluded, and returns."""
    endpoint = member_of(group.members[name].group).transport.endpoint
    heard, endpoint.receive = endpoint.receive, lambda _: None
    others = next(each for other, each in group.members.items() if other != name)
    await until(lambda: name not in others.members)
    endpoint.receive = heard
    await until(lambda: name in others.members)
