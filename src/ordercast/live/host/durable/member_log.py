"""The log of one live member: opened in a thread, fed by what the member is delivered, and told of by its disk.

The event loop never waits for the disk, and is not disturbed by it either: the thread of the log notes what is on it,
and wakes the event loop only if somebody waits for that, here or elsewhere.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from ordercast.live.durability import Durability
from ordercast.live.events import View
from ordercast.live.host.durable.feed import LogFeed
from ordercast.live.host.durable.tellings import Tellings
from ordercast.live.log_settings import LogSettings
from ordercast.live.logs import GroupLogs
from ordercast.live.transport.transport import Transport
from ordercast.log import format as log_format
from ordercast.log.agreement import place_at
from ordercast.log.check import check_disk
from ordercast.log.damage import set_damage_aside
from ordercast.log.disk import FolderDisk
from ordercast.log.files import LogFiles, Options
from ordercast.log.segments import segment_names
from ordercast.log.snapshots import Place
from ordercast.log.truncation import drop_above
from ordercast.log.writer import Log
from ordercast.model.errors import ConfigError, LogDamaged, LogError, reason_of
from ordercast.protocols.membership.applicants import Terms
from ordercast.protocols.membership.units import AcceptedValue
from ordercast.protocols.membership.view import Ballot, GroupView
from ordercast.protocols.restart.standing import Plan, Standing, decode_standing, encode_standing, forgetting

_REMEMBERED = 64  # views


class MemberLogOwner(Protocol):
    """The member."""

    transport: Transport

    def log_failed(self, why: str) -> None:
        """Nothing is written any more."""

    def log_caught_up(self) -> None:
        """The disk was slower than the group, and is not any more."""


class MemberLog:
    """Used inside one event loop."""

    def __init__(self, settings: LogSettings, group: str, name: str) -> None:
        self.settings = settings
        self.folder = Path(settings.folder)
        self._group, self._name = group, name
        self._logs, self._loop = GroupLogs(group, name), asyncio.get_running_loop()
        self._log: Log  # once it is open
        self.feed: LogFeed
        """Is given what the inbox is."""
        self.durability = Durability()
        self.tellings = Tellings(self, self.durability)
        self.standing: Standing | None = None
        """What this member was when the log was opened, and is now; None: it was never a member."""
        self.on_disk = (0, b"")
        """A position before which all is on the own disk, and the hash there; the thread of the log sets them."""
        self._noticed = 0  # the position of it that was looked at in the event loop
        self.failed: str | None = None
        self._owner: MemberLogOwner | None = None
        self.start = 0
        """The position at which an application without a state begins, if it was just started."""
        self.has_begun = False
        """The application is handed messages."""
        self.resume_at: int | None = None
        """The position of the next message for the application; None: it was just started."""
        self.view = log_format.View()
        """The last one that was put into the log."""
        self.snapshot_due = self._saving = False
        """Retention needs a snapshot of the application's state."""
        self._positions: dict[int, int] = {}  # of the views that others joined with, by number
        self._me = -1  # node
        self._moved: list[asyncio.Future[None]] = []
        self._changing: asyncio.Task[None] | None = None
        self._promised: Standing | None = None  # the last promise that is on the disk
        self.terms: Terms = ()
        """What all members have in common, once it is known."""
        self._entering: list[Callable[[], None]] = []  # what is said when the next view is noted
        self.unsaid = 0
        """Units for other members that wait for the disk."""
        self._agreed = asyncio.Event()  # what was agreed to last is on the disk, or the disk failed
        self._closed = self._was_behind = False

    async def open(self, max_message_size: int) -> None:
        """Recovers the log; raises `ConfigError`, with what to do, if it cannot be used."""
        try:
            log = await asyncio.to_thread(self._recovered)
        except LogError as error:
            named = str(self.folder) in str(error)
            raise ConfigError(str(error) if named else f"the log in {self.folder}: {error}") from error
        self.standing = decode_standing(log.recovered.context.note)
        if self.standing is not None and self.standing.name not in {"", self._name}:
            await asyncio.to_thread(log.close)
            raise ConfigError(
                f"the log in {self.folder} is that of {self.standing.name}, and must not be used by {self._name}: a "
                f"copy of a log is not a disk of its own; give {self._name} a folder of its own"
            )
        self.feed = LogFeed(log, max_message_size)
        self._use(log)
        self.start = log.next if self.settings.start is None else self.settings.start
        if log.tail is not None:
            self._logs.live.warning(
                "the log of %s ended with %d bytes that were never promised to anybody, and are dropped: %s",
                *(self._name, log.tail.size, log.tail.why),
            )

    def _use(self, log: Log) -> None:
        self._log = self.feed.log = log
        self.on_disk = (log.next, log.recovered.hash)
        self._noticed = log.next

    def _recovered(self) -> Log:
        """What is damaged is set aside: another member has it."""
        try:
            if self.settings.verify and self.folder.is_dir():
                self._verify()
            return self._opened()
        except OSError as error:
            raise LogError(reason_of(error)) from error
        except LogDamaged as error:
            disk = FolderDisk(self.folder, write=True)
            try:
                left = set_damage_aside(disk, forgetting)
            except OSError as failed:
                raise LogError(reason_of(failed)) from failed
            finally:
                disk.close()
            self._logs.live.error(
                "the log of %s in %s is damaged: %s; what follows position %d is fetched again from the others "
                "(set aside: %s)",
                *(self._name, self.folder, error, left.next, ", ".join(left.set_aside) or "nothing"),
            )
            return self._opened()

    def _verify(self) -> None:
        disk = FolderDisk(self.folder, write=False)
        if segment_names(disk.names()):
            found = check_disk(disk)
            if found.damage:
                raise LogDamaged("; ".join(found.damage))

    def _opened(self) -> Log:
        self.folder.mkdir(parents=True, exist_ok=True)
        return Log(
            *(self.folder, self._group),
            on_durable=self._synced,
            on_failed=lambda why: self._in_loop(self._has_failed, why),
            options=self.settings.options or Options(),
            soon=self._loop.call_soon,  # the application is handed what is delivered before the disk is
        )

    def _in_loop(self, call: Callable[..., object], *arguments: object) -> None:
        """From the thread of the log."""
        with suppress(RuntimeError):  # the event loop has ended before this member did
            self._loop.call_soon_threadsafe(call, *arguments)

    def use(self, owner: MemberLogOwner) -> None:
        """The member whose log this is."""
        self._owner = owner

    @property
    def next(self) -> int:
        """The position after the last message in it, on the disk or about to be."""
        return self._log.next

    @property
    def group(self) -> str:
        """Its name."""
        return self._group

    @property
    def note(self) -> bytes:
        """What this member has noted last."""
        return b"" if self.standing is None else encode_standing(self.standing)

    @property
    def first(self) -> int:
        """The position of the oldest message in it."""
        return self._log.usage().first

    @property
    def disk_use(self) -> int:
        """Bytes of segments and snapshot."""
        usage = self._log.usage()
        return usage.segment_bytes + usage.snapshot_bytes

    @property
    def waiting(self) -> int:
        """Bytes that are not on the disk yet."""
        return self._log.waiting

    @property
    def behind(self) -> bool:
        """More waits for the disk than should."""
        if self.failed is not None or not self.feed.behind:
            return False
        self._was_behind = True
        return self.feed.behind  # if so, the thread of the log has yet to see that this was asked

    @property
    def durable(self) -> int:
        """Everything below this position is on the own disk."""
        return self.on_disk[0]

    @property
    def transport(self) -> Transport | None:
        """What this member says things with, while it does."""
        return None if self._owner is None or self._closed else self._owner.transport

    @property
    def counts(self) -> bool:
        """What is on the disk is of the group's log, and stays there."""
        return self.failed is None and not self.feed.is_held

    async def close(self) -> None:
        """Returns when everything is on the disk."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._log.close)

    # --- what happens to the member ---

    def keep_position(self, number: int, position: int) -> None:
        """Others may ask for what is before this position, as that of a view."""
        self._positions[number] = position

    async def agree(self, plan: Plan) -> None:
        """Notes that this member has agreed to a plan; returns when that is on the disk; raises `LogError`."""
        assert self.standing is not None, "it was a member"
        self.standing = msgspec.structs.replace(self.standing, plan=plan)
        self.write_note()
        self._agreed = noted = asyncio.Event()  # one for each: a plan before, which was given up, may still be written
        self.when_durable(noted.set)
        await noted.wait()
        if self.failed is not None:
            raise LogError(self.failed)

    def found(self, view: GroupView, place: int) -> None:
        """The first view of a group that this member opens."""
        names = tuple(one.name for one in view.members)
        self.feed.put_view(View(number=view.number, position=self.next, members=names), {})
        self.enter_view(view, place, self.next)

    def enter_view(self, view: GroupView, place: int, position: int) -> None:
        """A view, from whose first position on its messages follow; the view itself was put into the feed."""
        self.view = log_format.View(view.number, tuple(one.name for one in view.members))
        self._positions[view.number] = position
        for old in sorted(self._positions)[:-_REMEMBERED]:
            del self._positions[old]
        self._me = view.nodes[place]
        self.durability.enter_view(view.nodes)
        if not self.feed.is_held:
            self.durability.told(self._me, self.durable)
        own = view.members[place].name
        self.standing = Standing(view=view, complete=not self.feed.is_held, terms=self.terms, name=own)
        self.write_note()
        said, self._entering = self._entering, []
        for send in said:
            self._say_when_durable(send)
        self.tellings.enter_view(view.nodes, place)

    def caught_up(self) -> None:
        """The log has what the group had before the view, and goes on."""
        self.feed.caught_up()
        if self.standing is not None:
            self.standing = self.standing.with_complete()
            self.write_note()
        self.durability.told(self._me, self.durable)

    def write_note(self) -> None:
        """Writes what this member is, behind all that was appended."""
        assert self.standing is not None, "it is a member, or was"
        self._log.note(encode_standing(self.standing))

    # --- coming back ---

    def snapshot(self, state: bytes | Iterable[bytes]) -> None:
        """Saves the state of the application after all that was appended; `state` is read in a thread."""
        self.snapshot_due, self._saving = False, True
        self._log.snapshot(state, lambda _, error: self._in_loop(self._saved, error))

    def _saved(self, error: Exception | None) -> None:
        self._saving = False
        if error is not None:
            self._logs.live.error("%s could not save its state for its log", self._name, exc_info=error)

    def append(self, item: log_format.View | log_format.Packet) -> None:
        """What another member has had in its log."""
        if isinstance(item, log_format.View):
            self._log.view(item.number, item.members)
        else:
            self._log.append(item.source, item.first, item.lengths, item.payload, item.priority)

    async def drop_above(self, position: int, hash_: bytes) -> None:
        """Drops what was never agreed on; raises `LogError`."""
        dropped = self.next - position
        if dropped <= 0:
            return
        self._logs.live.error(
            "%s drops %d messages from its log, from position %d on: the group never agreed on them",
            *(self._name, dropped, position),
        )
        await self._while_closed(lambda disk: drop_above(disk, position, hash_))
        self.start = min(self.start, position)

    async def restart_at(self, place: Place, state: bytes | Iterable[bytes]) -> None:
        """Goes on behind what is missing here, at a snapshot that came from elsewhere; raises `LogError`."""

        def restart(disk: FolderDisk) -> None:
            first = None if self.next < place.position else place_at(disk, self.first)
            if first is not None and self.next > place.position:
                drop_above(disk, *first)
            files = LogFiles(disk, self._group, self.settings.options or Options())
            try:
                if files.next == place.position and files.hash == place.hash:
                    files.adopt_snapshot(place.position, files.save_snapshot(place, state))
                else:
                    files.restart_at(place, state)
            finally:
                files.close()

        await self._while_closed(restart)

    async def _while_closed(self, change: Callable[[FolderDisk], None]) -> None:
        def changed() -> Log:
            self._log.close()
            disk = FolderDisk(self.folder, write=True)
            try:
                change(disk)
            except OSError as error:
                raise LogError(f"the log in {self.folder}: {reason_of(error)}") from error
            finally:
                disk.close()
            return self._opened()

        async def change_and_use() -> None:
            self._use(await asyncio.to_thread(changed))

        self._changing = self._loop.create_task(change_and_use())
        await asyncio.shield(self._changing)  # whoever is cancelled leaves no closed log

    async def settled(self) -> None:
        """Returns when nothing is dropped from it any more, after whoever wanted that was cancelled."""
        if self._changing is not None:
            await asyncio.wait((self._changing,))

    def position_of_view(self, number: int) -> int:
        """Of the first message that was delivered in a view; raises `LogError` if it is long ago."""
        if number not in self._positions:
            raise LogError(f"view {number} is over")
        return self._positions[number]

    def say_when_entered(self, view: int, send: Callable[[], None]) -> None:
        """Sends what lets others enter a view that was decided, perhaps by this one alone, once it is on the disk."""
        if self.standing is not None and self.standing.view.number < view:
            self._entering.append(send)
        else:
            self._say_when_durable(send)

    def promise(
        self, view: int, promised: Ballot | None, accepted: AcceptedValue | None, send: Callable[[], None]
    ) -> None:
        """Sends what tells of a promise when the promise is on the disk: after a restart it still holds."""
        standing = self.standing
        if standing is None or standing.view.number != view:  # a later view is noted already
            self.say_when_entered(view + 1, send)
            return
        value = None if accepted is None else accepted[1]
        noted = msgspec.structs.replace(standing, promised=promised, accepted=value)
        if noted != standing:
            self.standing = noted
            self.write_note()
        elif self._promised == noted:
            send()
            return

        def is_noted() -> None:
            self._promised = noted
            send()

        self._say_when_durable(is_noted)

    def _say_when_durable(self, send: Callable[[], None]) -> None:
        def say() -> None:
            self.unsaid -= 1
            if not self._closed:
                send()

        self.unsaid += 1
        self.when_durable(say)

    def when_durable(self, done: Callable[[], object]) -> None:
        """Calls this in the event loop when all that was written so far is on the disk.

        If the disk failed: never; one that stays without a log calls it at once.
        """
        if self.failed is None:
            self._log.when_durable(lambda: self._in_loop(done))
        elif self.settings.on_failure == "stay":
            done()

    # --- the own disk ---

    def _synced(self, position: int, hash_: bytes) -> None:
        """In the thread of the log. Whoever begins to wait says so first, and looks at what is on the disk then."""
        self.on_disk = (position, hash_)
        if self._moved or self._was_behind or self.tellings.is_awaited:
            self._in_loop(self._notice)

    def _notice(self) -> None:
        """Looks at how far the disk is."""
        moved, self._noticed = self.durable > self._noticed, self.durable
        if moved:
            self._wake()
        if self._was_behind and (self.failed is not None or not self.feed.behind) and self._owner is not None:
            self._was_behind = False
            self._owner.log_caught_up()
        if moved and self.counts:
            self.durability.told(self._me, self._noticed)
            self.tellings.moved()

    def _wake(self) -> None:
        for future in self._moved:
            if not future.done():
                future.set_result(None)
        self._moved.clear()

    def awaited_by(self, future: "asyncio.Future[None]") -> None:
        """Somebody begins to wait until an own message is durable."""
        self.tellings.awaited_by(future)
        if self.durable > self._noticed:
            self._notice()

    async def reaches(self, position: int) -> None:
        """Returns when everything below a position is on the own disk; raises `LogError` if the disk fails."""
        while self.durable < position:
            await self.moves()

    async def moves(self) -> None:
        """Returns when more is on the disk; raises `LogError` if the disk fails."""
        if self.failed is not None:
            raise LogError(self.failed)
        future = self._loop.create_future()
        self._moved.append(future)
        if self.durable > self._noticed:  # since it was looked at, and the thread saw nobody that waits
            self._notice()
        await future

    def _has_failed(self, why: str) -> None:
        self.failed = why
        self._agreed.set()
        self._wake()
        self._logs.live.error("the log of %s in %s has failed: %s", self._name, self.folder, why)
        if self._owner is not None:
            self._owner.log_failed(why)

    def tick(self) -> None:
        """Now and then."""
        self.snapshot_due = not self._saving and self._log.snapshot_due()
        self._notice()
        if self.standing is not None:
            self.tellings.tick()
