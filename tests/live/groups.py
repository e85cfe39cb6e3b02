"""Groups of several members in one event loop, over real sockets of this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

import ordercast
from ordercast import Group, GroupClosed, Joining, Message, Settings
from ordercast.live.host.member import Member
from tests.live.ports import free_group

ORDERS = ["partial", "total", "priority", "sequenced"]


def new_name() -> str:
    """Of a group; names stand for ports, and other tests may run at the same time."""
    return free_group("test")


def run(test: Callable[..., Any], *arguments: object) -> None:
    asyncio.run(asyncio.wait_for(test(*arguments), 30))


SETTINGS = {field.name for field in fields(Settings)}


def join(group: str, **options: Any) -> Joining:
    """`ordercast.join`, with settings among its options."""
    settings = Settings(**{name: value for name, value in options.items() if name in SETTINGS})
    others = {name: value for name, value in options.items() if name not in SETTINGS}
    return ordercast.join(group, settings=settings, **others)


@asynccontextmanager
async def group_of(*names: str, close: bool = True, **options: Any) -> AsyncIterator[dict[str, Group]]:
    """All members of a new group; in the end all close it together, or crash if the test has failed."""
    name = new_name()
    joined = await asyncio.gather(*(join(name, name=each, members=names, timeout=10, **options) for each in names))
    try:
        yield dict(zip(names, joined, strict=True))
    except BaseException:
        for group in joined:
            if not member_of(group).left.done():
                crash(group)  # one left open would be found by, and fail, another test
        raise
    if close:
        await asyncio.gather(*(group.close() for group in joined))


def member_of(group: Group) -> Member:
    """What is behind a group, for tests that look at its parts."""
    return group._member


async def hear(group: Group, count: int) -> list[Message]:
    return [await group.receive() for _ in range(count)]


def crash(group: Group) -> None:
    """The process is gone: it says nothing any more, and nothing reaches it."""
    member = member_of(group)
    member.ending.end(GroupClosed("it crashed"))
    member.ending.disconnect()
