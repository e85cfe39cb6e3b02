"""An application that uses a live group as its documents say, one object for each life of a process."""

import asyncio
from pathlib import Path
from typing import Any

import ordercast
from ordercast import GroupAborted, GroupClosed, JoinError, Settings, Undelivered
from ordercast.live.events import Blocked, Excluded, Message, Receipt, Unblocked, View
from ordercast.live.group import Group
from ordercast.live.host.member import Member
from ordercast.wire.keys import keys_from_text, new_key
from tests.live_harness.plan import Plan
from tests.live_harness.world import Process, World

GROUP = "virtual"
PORT = 7000
_KEY = keys_from_text(new_key(), "here")
_TURNS = 4  # of the event loop, within which whoever waits for a receipt is told of the end
_AGAIN = 0.1  # seconds, then a process that could not join is started again


def place_of(plan: Plan, name: str) -> tuple[str, int]:
    """The address of a name."""
    number = ord(name) - ord("A") + 1
    return ("127.0.0.1", PORT + number) if plan.setup.place == "machine" else (f"10.0.0.{number}", PORT)


def address_of(plan: Plan, name: str) -> str:
    host, port = place_of(plan, name)
    return f"{host}:{port}"


class Sent:
    """A message, and what its receipt told."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.reached = ""
        self.failed: Exception | None = None
        self.done = False


class Segment:
    """The messages that were handed out between a view and the next one."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.messages: list[Message] = []
        self.excluded = False
        """The others went on without it: what it was handed last may have been handed to nobody else."""


class Life:
    """One life of a process that is a member, from its start to its end."""

    def __init__(self, world: World, plan: Plan, name: str, how: str, number: int) -> None:
        """`how`: `members`, or `contacts`, it is to join; `number`: of this life, so that its messages are its own."""
        self.process = Process(world, name)
        self.plan, self.name, self._how, self.number = plan, name, how, number
        self.group: Group | None = None
        self.sent: list[Sent] = []
        self.received: list[Message] = []
        self.heard: set[bytes] = set()
        self.views: list[View] = []
        self.segments: list[Segment] = []
        """What it was handed in each view, one after the other."""
        self.notices: list[Excluded | Blocked | Unblocked] = []
        self.wants_to_leave = self.ended = False
        self.asked_to_abort = False
        self.refusals: list[str] = []
        self.end: Exception | None = None
        """How reading ended; None: as it was asked to."""
        self._joins: asyncio.Task[Group] | None = None
        self._awaiting: set[asyncio.Task[None]] = set()
        self.process.start(self.main)

    @property
    def alive(self) -> bool:
        return self.process.alive and not self.ended

    @property
    def member(self) -> Member | None:
        return None if self.group is None else self.group._member

    def joining(self) -> ordercast.Joining:
        plan, setup = self.plan, self.plan.setup
        founders = {chr(ord("A") + each): address_of(plan, chr(ord("A") + each)) for each in range(setup.founders)}
        options: dict[str, Any] = {"name": self.name, "record": Path("/virtual"), "busy_poll": False, "timeout": 20.0}
        if setup.encrypted:
            options["key"] = _KEY
        else:
            options["insecure"] = True
        if self._how == "members":
            options["members"] = founders
        else:
            options["contacts"] = [address for name, address in founders.items() if name != self.name]
            options["bind"] = address_of(plan, self.name)
        if self._how == "members":
            options["settings"] = Settings(
                order=setup.order,
                failure_timeout=setup.failure_timeout,
                pause_timeout=0,
                resilience=setup.resilience,
                quorum=setup.quorum,
                window=setup.window,
                max_message_size=setup.max_message_size,
            )
        return ordercast.join(GROUP, **options)

    async def main(self) -> None:
        """Joins, reads until the end, and leaves."""
        try:
            while self.group is None:
                if self.wants_to_leave:
                    return
                self._joins = self.process.loop.create_task(self._join())
                try:
                    self.group = await self._joins
                except (JoinError, ordercast.ConfigError) as error:
                    self.refusals.append(str(error))
                    await asyncio.sleep(_AGAIN)
                except asyncio.CancelledError:
                    if not self.wants_to_leave:
                        raise
            if self.wants_to_leave:
                self._spawn(self._leave(now=False))
            self.segments.append(Segment(self.group.view))
            await self._read(self.group)
        finally:
            self.ended = True

    async def _join(self) -> Group:
        return await self.joining()

    async def _read(self, group: Group) -> None:
        try:
            async for event in group.events():
                if isinstance(event, Message):
                    self.received.append(event)
                    self.segments[-1].messages.append(event)
                    self.heard.add(event.payload)
                elif isinstance(event, View):
                    self.views.append(event)
                    self.segments.append(Segment(event))
                else:
                    self.notices.append(event)
                    self.segments[-1].excluded |= isinstance(event, Excluded)
        except GroupAborted as error:
            self.end = error
        try:
            await group.leave()
        except GroupAborted as error:
            self.end = error
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    # --- what it is told to do, in a turn of its own ---

    def send(self, size: int, to: tuple[str, ...], priority: int) -> None:
        """Sends a message, and waits for its receipt."""
        group = self.group
        if group is None or self.wants_to_leave:
            return
        text = f"{self.name}{self.number} {len(self.sent)} ".encode()
        sent = Sent(text + bytes(max(0, size - len(text))))
        known = {name for name in to if name in group.members}
        try:
            receipt = group.send_nowait(sent.payload, to=known or None, priority=priority)
        except (GroupClosed, GroupAborted):
            return
        self.sent.append(sent)
        self._spawn(self._follow(sent, receipt))

    async def _follow(self, sent: Sent, receipt: Receipt) -> None:
        try:
            for level in ("accepted", "stable", "known_stable"):
                await getattr(receipt, level)()
                sent.reached = level
        except (GroupAborted, GroupClosed, Undelivered) as error:
            sent.failed = error
        sent.done = True

    def leave(self, *, now: bool) -> None:
        """Leaves, with all its messages or at once."""
        if not self.wants_to_leave:
            self.wants_to_leave = True
            if self.group is not None:
                self._spawn(self._leave(now=now))
            elif self._joins is not None:
                self._joins.cancel()

    async def _leave(self, *, now: bool) -> None:
        assert self.group is not None
        try:
            if now:
                error = InterruptedError("it leaves at once")
                await self.group.__aexit__(type(error), error, None)
            else:
                await self.group.leave()
        except GroupAborted as error:
            self.end = error

    def close(self) -> None:
        """Closes the group together with the others."""
        if self.group is None:
            self.leave(now=True)
        elif not self.wants_to_leave:
            self.wants_to_leave = True
            self._spawn(self._close())

    async def _close(self) -> None:
        assert self.group is not None
        try:
            await self.group.close()
        except GroupAborted as error:
            self.end = error

    def suspect(self, name: str) -> None:
        """The host suspects a member, whether there is a reason or not."""
        member = self.member
        if member is not None and member.host is not None and not member.host.closed:
            places = [place for place, each in enumerate(member.views.view.members) if each.name == name]
            if places:
                member.reachability.suspect(1 << places[0])

    def abort(self) -> None:
        """Aborts the group for all members."""
        if self.group is not None and not self.wants_to_leave:
            self.asked_to_abort = self.wants_to_leave = True
            self._spawn(self.group.abort("it was asked to"))

    def _spawn(self, work: Any) -> None:
        task = self.process.loop.create_task(work)
        self._awaiting.add(task)
        task.add_done_callback(self._awaiting.discard)
