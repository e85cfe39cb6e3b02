"""A log between members: what one that joins or returns lacks is sent and taken, and replayed to its application.

A member that comes back tells places of its log. What a donor's log has behind the last common one is sent, written,
and on the disk, before the member counts as one that has the state. What the member had behind that place was never
agreed on, and is dropped. Its application is handed what it lacks from the own log, from the disk, as it reads.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from queue import SimpleQueue
from typing import TypeVar

import msgspec

from ordercast.live.events import Message, Origin
from ordercast.live.host.durable.member_log import MemberLog
from ordercast.live.host.durable.suffix import StateHeading, SuffixHeading, items_of, suffix_of
from ordercast.live.host.inbox import Inbox
from ordercast.live.state_transfer.application import State
from ordercast.log.agreement import LogPlace, common_place, locator, place_at
from ordercast.log.disk import FolderDisk
from ordercast.log.format import Context
from ordercast.log.reader import frames_of
from ordercast.log.snapshots import Place, latest_snapshot
from ordercast.model.errors import LogError

_places = msgspec.msgpack.Decoder(list[LogPlace])
_suffix_heading = msgspec.msgpack.Decoder(SuffixHeading)
_state_heading = msgspec.msgpack.Decoder(StateHeading)
_encode = msgspec.msgpack.encode
_Item = TypeVar("_Item")
_MAX_WAITING = 8 << 20  # bytes that are taken from the network before they are on the disk


class LogExchange:
    """Both sides, for one member. Used inside one event loop."""

    def __init__(self, log: MemberLog, state: State | None) -> None:
        self._log, self._state = log, state
        self._needs_state = False  # the application was handed something that the group never agreed on
        self._loaded_at: int | None = None  # the position of the state that the application was given by a donor

    def _disk(self) -> FolderDisk:
        return FolderDisk(self._log.folder, write=False)

    # --- as a donor (state.shared_log.DonorLog) ---

    async def suffix(self, view: int, locator: bytes) -> tuple[bytes, AsyncIterator[bytes]] | None:
        """A heading, and what a joiner lacks before a view; None: its log has nothing in common with this one."""
        end = self._log.position_of_view(view)
        await self._log.reaches(end)
        places = [place for place in _places.decode(locator) if place[0] <= end]
        common = await asyncio.to_thread(common_place, self._disk(), places)
        if common is None:
            return None
        return _encode(SuffixHeading(common, end)), _in_thread(suffix_of(self._disk(), common[0], end))

    async def state_heading(self, view: int) -> bytes:
        """The place of the state of a view."""
        position = self._log.position_of_view(view)
        await self._log.reaches(position)
        place = await asyncio.to_thread(place_at, self._disk(), position)
        if place is None:
            raise LogError(f"position {position} is not in the log any more")
        return _encode(StateHeading(*place, self._log.view))

    # --- as a joiner (state.shared_log.JoinerLog) ---

    async def locator(self) -> bytes:
        """The places that it knows; none: the application needs a state."""
        self._loaded_at = None
        if self._state is not None and not await self._can_replay():
            return _encode([])
        await self._log.reaches(self._log.next)
        return _encode(await asyncio.to_thread(locator, self._disk()))

    async def _can_replay(self) -> bool:
        """Whether an application with a state finds all that it lacks in the own log."""
        if self._needs_state:
            return False
        if self._log.resume_at is not None:
            return True  # it runs, and was handed everything before
        snapshot = await asyncio.to_thread(latest_snapshot, self._log.folder)
        return snapshot is not None or (self._log.first == 0 and self._log.next > 0)

    async def take_suffix(self, heading: bytes, parts: AsyncIterator[bytes]) -> bool:
        """Writes what it lacks; True when that is on the disk, False if the application needs a state instead."""
        found = _suffix_heading.decode(heading)
        position, _ = found.start
        if self._log.resume_at is not None and position < self._log.resume_at:
            if self._state is not None:
                self._needs_state = True
                return False
            self._log.resume_at = position
        await self._log.drop_above(*found.start)
        async for item in items_of(parts):
            self._log.append(item)
            while self._log.waiting > _MAX_WAITING:
                await self._log.moves()
        if self._log.next != found.end:
            raise LogError(f"it ends at position {self._log.next}, and the group is at {found.end}")
        await self._log.reaches(found.end)
        return True

    async def take_state(self, heading: bytes) -> None:
        """The application has loaded the state of a place: the log goes on there."""
        found = _state_heading.decode(heading)
        assert self._state is not None, "it was loaded"
        saved = self._state.save()
        parts = [part async for part in saved] if isinstance(saved, AsyncIterator) else saved
        place = Place(found.position, found.hash, Context(self._log.group, found.view, self._log.note))
        await self._log.restart_at(place, parts)
        self._needs_state, self._loaded_at = False, found.position

    # --- snapshots ---

    def snapshot_if_due(self) -> None:
        """Called when the application has been handed everything: its state is that at the end of the log."""
        if self._state is None or not self._log.snapshot_due or self._log.feed.is_held:
            return
        saved = self._state.save()
        if not isinstance(saved, AsyncIterator):
            self._log.snapshot(saved)
            return
        parts: SimpleQueue[bytes | Exception | None] = SimpleQueue()
        self._saving = asyncio.get_running_loop().create_task(_put_all(saved, parts))
        self._log.snapshot(_taken(parts))

    # --- what the application is handed from the log ---

    async def prepare(self) -> int:
        """Where the application goes on: loads the own snapshot into one that has a state and was just started."""
        if self._loaded_at is not None:
            return self._loaded_at
        if self._log.resume_at is not None:
            return self._log.resume_at
        if self._state is None:
            return min(self._log.start, self._log.next)
        snapshot = await asyncio.to_thread(latest_snapshot, self._log.folder)
        if snapshot is None:
            return self._log.first
        await self._state.load(_in_thread(snapshot.parts()))
        return snapshot.position

    async def replay(self, inbox: Inbox, start: int, stop: int) -> None:
        """Hands out messages of the own log, as the application reads, and then what is held."""
        self._log.has_begun = True
        inbox.replay_from(start)
        if start < stop:
            async for messages in _in_thread(_messages(self._disk(), start, stop)):
                await inbox.put_replayed(messages)
        inbox.release()


def _messages(disk: FolderDisk, start: int, stop: int) -> Iterator[list[Message]]:
    """Lists of the messages of one frame each."""
    for logged in frames_of(disk, start):
        position, view = logged.frame.header.first, logged.view
        if position >= stop:
            return
        found = []
        for source, priority, payload in logged.frame.messages():
            if start <= position < stop:
                origin = Origin(priority, view.members, position, view.number)
                found.append(Message(logged.sender(source), payload, 0, origin))
            position += 1
        yield found


async def _put_all(saved: AsyncIterator[bytes], parts: "SimpleQueue[bytes | Exception | None]") -> None:
    """From the event loop to the thread that saves."""
    try:
        async for part in saved:
            parts.put(part)
        parts.put(None)
    except Exception as error:  # whatever the application raises
        parts.put(error)


def _taken(parts: "SimpleQueue[bytes | Exception | None]") -> Iterator[bytes]:
    while (part := parts.get()) is not None:
        if isinstance(part, Exception):
            raise part
        yield part


async def _in_thread(items: Iterator[_Item]) -> AsyncIterator[_Item]:
    """The same, each of them made in a thread."""
    while True:
        found = await asyncio.to_thread(lambda: next(items, None))
        if found is None:
            return
        yield found
