"""A member of several groups as a process that does what it is told, and tells what happens to it, in lines of JSON.

It talks in all of its groups until a line on standard input says otherwise: `quiet`, `talk`, `leave` or `close`. Every
line that it prints has the time of the clock that all processes of a machine share. When all of its groups are over it
prints what it was delivered, and ends. On SIGUSR1 it prints where all of its tasks and threads are, on standard error.
"""

import asyncio
import faulthandler
import json
import logging
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import msgspec

from ordercast.live.events import Blocked, Excluded, Message, Receipt, View
from ordercast.live.group import Group
from ordercast.model.errors import GroupAborted, GroupClosed, OrdercastError, Undelivered
from tests.live.groups import join
from tests.network.member import say

_TOLD = 0.1  # seconds between two lines of what was delivered


class Task(msgspec.Struct, kw_only=True):
    """What a process is told when it starts."""

    name: str
    life: int
    """Which start of this name it is, from 0."""
    groups: dict[str, dict[str, Any]]
    """Options of `join`, by the name of the group."""
    gap: float
    """Seconds between two messages of a group."""
    size: int = 100


class Participant:
    """Its part in one group."""

    def __init__(self, task: Task, group: str, talks: asyncio.Event) -> None:
        self.task, self.group_name, self.talks = task, group, talks
        self.sent = 0
        self.log: list[str | int | None] = []
        """Messages and numbers of views, not told yet; None: the others went on, and it is about to return."""
        self.group: Group
        self.waiting: set[asyncio.Task[None]] = set()

    def tell(self, event: str, **more: Any) -> None:
        say(json.dumps({"event": event, "group": self.group_name, "at": time.monotonic(), **more}))

    async def take_part(self) -> None:
        options = self.task.groups[self.group_name]
        try:
            self.group = await join(self.group_name, name=self.task.name, **options)
        except OrdercastError as error:
            self.tell("end", why=str(error), status=2)
            return
        self.log.append(self.group.view.number)
        self.tell("view", number=self.group.view.number, members=self.group.members, why="")
        parts = [asyncio.create_task(part()) for part in (self.talk, self.listen, self.tell_log)]
        why, status = "", 0
        try:
            await parts[1]
            await self.group._is_over()
        except (GroupAborted, GroupClosed) as error:
            why, status = str(error), 1
            await self.group._is_over()
        for part in (*parts, *self.waiting):
            part.cancel()
        await asyncio.gather(*parts, *self.waiting, return_exceptions=True)
        self.tell("log", entries=self.log)
        self.tell("end", why=why, status=status, sent=self.sent)

    async def tell_log(self) -> None:
        """Now and then: it may be killed at any moment."""
        while True:
            await asyncio.sleep(_TOLD)
            self.tell("log", entries=self.log)
            self.log = []

    async def talk(self) -> None:
        while True:
            await self.talks.wait()
            number = self.sent
            payload = f"{self.task.name}/{self.task.life}/{number} ".encode().ljust(self.task.size, b".")
            try:
                receipt = await self.group.send(payload)
            except (GroupAborted, GroupClosed):
                return
            self.sent += 1
            task = asyncio.create_task(self.follow(receipt, number))
            self.waiting.add(task)
            task.add_done_callback(self.waiting.discard)
            await asyncio.sleep(self.task.gap)

    async def follow(self, receipt: Receipt, number: int) -> None:
        """Tells when a message is stable."""
        try:
            await receipt.stable()
        except (GroupAborted, GroupClosed, Undelivered):
            return
        self.tell("stable", number=number)

    async def listen(self) -> None:
        async for event in self.group.events():
            if isinstance(event, View):
                self.log.append(event.number)
                self.tell("view", number=event.number, members=event.members, why=event.why)
            elif isinstance(event, Message):
                self.log.append(event.payload.partition(b" ")[0].decode())
            elif isinstance(event, Excluded):
                self.log.append(None)
                self.tell("excluded", why=event.why, delivered=event.delivered, not_delivered=event.not_delivered)
            else:
                self.tell("blocked" if isinstance(event, Blocked) else "unblocked")


def tell_where(*_: object) -> None:
    """For whoever waits for this process in vain."""
    with suppress(RuntimeError):  # the loop is over
        for task in asyncio.all_tasks():
            task.print_stack(file=sys.stderr)
    faulthandler.dump_traceback()


async def take_part_in_all(task: Task) -> None:
    """Until all groups are over."""
    talks = asyncio.Event()
    talks.set()
    participants = [Participant(task, group, talks) for group in task.groups]
    obeying = asyncio.create_task(obey(participants, talks))
    await asyncio.gather(*(participant.take_part() for participant in participants))
    obeying.cancel()


async def obey(participants: list[Participant], talks: asyncio.Event) -> None:
    """Does what standard input says; its end means that nobody is interested any more."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode().strip():
        if line == "quiet":
            talks.clear()
        elif line == "talk":
            talks.set()
        else:
            talks.clear()
            await asyncio.gather(*(_end(participant.group, line) for participant in participants))
    sys.exit("nobody is there")


async def _end(group: Group, how: str) -> None:
    with suppress(GroupAborted):  # the stream of events says so, too
        await (group.leave() if how == "leave" else group.close(60))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(group)s %(message)s")
    logging.getLogger().handlers[0].addFilter(lambda record: hasattr(record, "group"))
    signal.signal(signal.SIGUSR1, tell_where)
    asyncio.run(take_part_in_all(msgspec.json.decode(sys.argv[1], type=Task)))
