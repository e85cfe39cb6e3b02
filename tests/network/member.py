"""A member as a process of its own: joins, talks, listens, and reports in JSON how it ended.

It may take part in several groups at once, each with a job of its own. Times in reports are those of the clock that all
processes of a machine share. The status of each, the highest of which is that
of the process: 0: the group was closed and everything is everywhere; 1: it was given up; 2: it did not come about.
"""

import asyncio
import hashlib
import json
import sys
import time
from random import Random
from typing import Any

import msgspec

import ordercast.live.transport.sockets
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, GroupAborted, GroupClosed, JoinError
from tests.live.groups import join


class Job(msgspec.Struct, kw_only=True):
    """What a member does."""

    group: str
    name: str
    order: str = "total"
    messages: int = 50
    size: int = 100
    gap: float = 0.005
    """Seconds between two messages, about."""
    selective: bool = False
    """Each message to some members only."""
    buffers: int = 0
    """Bytes of the socket's buffers, if they are to be small."""
    within: float = 60.0
    """Seconds that closing may take."""
    leaves: bool = False
    """It leaves, and the others go on; else it closes the group together with them."""
    options: dict[str, Any] = {}
    """More options of `join`."""
    members: dict[str, str] | list[str] = {}
    key: str | None = None
    record: str | None = None


class Talker:
    """One member's part, and what came of it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sent_to: dict[str, int] = {}
        self.heard: dict[str, int] = {}
        self.order = hashlib.sha256()
        self.report: dict[str, Any] = {}

    async def take_part(self) -> dict[str, Any]:
        try:
            self.report["status"] = await self._take_part()
        except (ConfigError, JoinError) as error:
            self.report |= {"why": str(error), "status": 2}
        return self.report

    async def _take_part(self) -> int:
        job = self.job
        options = {**job.options, **({"members": job.members} if job.members else {})}
        began = time.monotonic()
        views = self.report["views"] = []
        group = await join(
            job.group,
            name=job.name,
            order=job.order,
            key=job.key,
            record=job.record,
            on_view=lambda view: views.append([time.monotonic(), list(view.members)]),
            **options,
        )
        opened = time.monotonic()
        say(f"open {job.group}")
        listening = asyncio.create_task(self.listen(group))
        self.report["handshake"] = opened - began
        status = 0
        try:
            await self.talk(group)
            await (group.leave(job.within) if job.leaves else group.close(job.within))
        except (GroupAborted, GroupClosed) as error:
            status = 1
            self.report |= {"why": str(error), "over": time.monotonic()}
            await group.abort("it is over")  # waits for the record
        await listening
        self.report.setdefault("over", time.monotonic())
        self.report |= {
            "seconds": time.monotonic() - opened,
            "sent": self.sent_to,
            "heard": self.heard,
            "order": self.order.hexdigest(),
            "members": group.stats().members,
            "stats": msgspec.to_builtins(group.stats()),
        }
        return status

    async def talk(self, group: Group) -> None:
        job = self.job
        chance = Random(job.name)
        for number in range(job.messages):
            everybody = list(group.members)
            to = chance.sample(everybody, chance.randint(1, len(everybody))) if job.selective else everybody
            payload = f"{job.name}{number} ".encode().ljust(job.size, b".")
            priority = chance.choice((0, 0, 0, 1, 2)) if job.order == "priority" else 0
            await group.send(payload, to=to if job.selective else None, priority=priority)
            for name in to:
                self.sent_to[name] = self.sent_to.get(name, 0) + 1
            await asyncio.sleep(job.gap * 2 * chance.random())

    async def listen(self, group: Group) -> None:
        try:
            async for message in group:
                self.heard[message.sender] = self.heard.get(message.sender, 0) + 1
                self.order.update(message.payload)
        except GroupAborted:
            pass


def say(line: str) -> None:
    """At once, whoever reads."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def take_part_in_all(jobs: list[Job]) -> dict[str, dict[str, Any]]:
    """The reports, by group."""
    reports = await asyncio.gather(*(Talker(job).take_part() for job in jobs))
    return {job.group: report for job, report in zip(jobs, reports, strict=True)}


def main(text: str) -> int:
    jobs = msgspec.json.decode(text, type=list[Job])
    if jobs[0].buffers:
        ordercast.live.transport.sockets.BUFFER = jobs[0].buffers // 2  # what is forced is twice as much
    reports = asyncio.run(take_part_in_all(jobs))
    say(json.dumps(reports))
    return max(int(report["status"]) for report in reports.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
