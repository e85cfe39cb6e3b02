"""Groups whose members have logs, in one event loop."""

import asyncio
from pathlib import Path
from typing import Any

from ordercast import Group, GroupClosed
from ordercast.log import check, read
from tests.live.groups import join, member_of

LOGGED_ORDERS = ["total", "priority", "sequenced"]


async def open_logged(group: str, folder: Path, *names: str, of: tuple[str, ...] = (), **options: Any) -> list[Group]:
    """Members of a group, each with its log in a folder of its name; `of`: all members, if these are not all."""
    joining = (join(group, name=each, members=of or names, timeout=20, log=folder / each, **options) for each in names)
    return list(await asyncio.gather(*joining))


async def kill(*groups: Group) -> None:
    """The members are gone: they say nothing any more. What waits for their disks is still written."""
    for group in groups:
        member = member_of(group)
        member.ending.end(GroupClosed("it was killed"))
        member.ending.disconnect()
    for group in groups:
        log = member_of(group).log
        assert log is not None
        await log.close()


def texts(folder: Path, *names: str) -> list[list[tuple[int, str, bytes]]]:
    """What is in the logs of members."""
    return [[(message.position, message.sender, message.payload) for message in read(folder / name)] for name in names]


def hashes(folder: Path, *names: str) -> set[tuple[int, str]]:
    """The ends of logs: equal ones have the same messages."""
    found = [check(folder / name) for name in names]
    assert not any(each.damage for each in found)
    return {(each.next, each.hash) for each in found}


def is_file_in(folder: Path, descriptor: int) -> bool:
    """Whether an open file is in this folder."""
    return Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(folder)
