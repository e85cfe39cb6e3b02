"""The donor's side: offers the state of a view to those that joined with it.

A joiner may connect as soon as the donor is in the view. It is told to wait until the donor's application is handed the
view, which is when the state is saved: after the last message of the view before, and before the first of this one.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar

from ordercast.live.logs import GroupLogs
from ordercast.live.state_transfer.application import State
from ordercast.live.state_transfer.connection import (
    Connection,
    ConnectionLostError,
    Frame,
    Request,
    answer_hello,
    listen,
    patience_for,
    read_hello,
)
from ordercast.live.state_transfer.shared_log import DonorLog
from ordercast.live.state_transfer.snapshot import Chunks, Snapshot
from ordercast.live.transport.addresses import Address
from ordercast.model.errors import LogError
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.wire.keys import GroupKeys

LENGTH_SIZE = 8
WAITS_PER_TIMEOUT = 8
"""How often a joiner is told to wait, in a failure timeout."""
_BACKLOG = 16
_MAX_UNKNOWN = 32  # connections that have not said yet what they want
_SHARE = 16  # while the group has traffic, the donor gives others so many times the processor time of the state
_SHORTEST_PAUSE = 0.001  # seconds; event loops do not sleep for less

_NOTHING_COMMON = (
    "the log of the one that joins has no place in common with the log of the group as far as that is kept, and the "
    "application has no state to give: move the folder of its log away, so that it joins as a new member; with state= "
    "it would be given a snapshot"
)

_Found = TypeVar("_Found")
Joiner = tuple[str, int]
"""A name and an incarnation."""


class Offer:
    """The state of one view, for those that joined with it."""

    def __init__(self, view: GroupView, joined: Iterable[Incarnation]) -> None:
        self.number, self.tag = view.number, view.tag
        self.joiners: set[Joiner] = {(each.name, each.number) for each in joined}
        """Who has not loaded it yet."""
        self.saved = asyncio.Event()
        self.snapshots: dict[Joiner, Snapshot] = {}
        self.problem: str | None = None
        """Why there is no state."""
        self.since = asyncio.get_running_loop().time()
        self.timer: asyncio.TimerHandle | None = None


class Donor:
    """Offers states of views, each to those that joined with it. Used inside one event loop."""

    def __init__(  # noqa: PLR0913
        self,
        state: State | None,
        address: Address,
        group: str,
        *,
        name: str,
        keys: Callable[[], GroupKeys | None],
        failure_timeout: float,
        state_timeout: float,
        is_busy: Callable[[], bool],
        log: DonorLog | None = None,
    ) -> None:
        """`address`: of the member's datagrams. `is_busy`: whether this member has messages to send: states give way.

        `state`: None if members have nothing to give but the log.

        Times are seconds; after `state_timeout` a state is not kept any longer.
        """
        self._state, self._address, self._group, self._name = state, address, group, name
        self._keys, self._failure_timeout, self._state_timeout = keys, failure_timeout, state_timeout
        self._is_busy, self._logs, self._log = is_busy, GroupLogs(group, name), log
        self._loop = asyncio.get_running_loop()
        self._offers: dict[int, Offer] = {}  # by number of the view
        self._listener: socket.socket | None = None
        self._unknown = 0
        self._serving: dict[asyncio.Task[None], Joiner | None] = {}
        self.bytes_sent = 0
        """Of states."""

    @property
    def waiting(self) -> frozenset[Joiner]:
        """Who has been offered a state, and is not known to have loaded it."""
        return frozenset(joiner for offer in self._offers.values() for joiner in offer.joiners)

    def offer(self, view: GroupView, joined: Iterable[Incarnation]) -> None:
        """The member is in the view, and a donor for those that joined with it. `save` follows."""
        offer = self._offers[view.number] = Offer(view, joined)
        offer.timer = self._loop.call_later(self._state_timeout, self._expire, offer)
        self._listen()

    def _listen(self, *, again: bool = False) -> None:
        """The port may be taken for a while, by a connection of another program: it is tried again."""
        if self._listener is not None or not self._offers:
            return
        try:
            self._listener = listen(self._address, _BACKLOG)
        except OSError as error:
            if not again:
                self._logs.live.error(
                    "%s cannot offer its state yet: TCP %s: %s; another program may use the port",
                    *(self._name, self._address, error.strerror or error),
                )
            self._loop.call_later(self._failure_timeout / WAITS_PER_TIMEOUT, lambda: self._listen(again=True))
        else:
            self._loop.add_reader(self._listener.fileno(), self._accept, self._listener)

    def save(self, number: int) -> None:
        """The application is handed the view of this number: its state is the one that was offered, if it was.

        Whatever the application raises is logged, and told to the joiners.
        """
        offer = self._offers.get(number)
        if offer is None or offer.saved.is_set():
            return
        if self._state is None:
            offer.saved.set()
            return
        try:
            shared: Snapshot | None = None
            for joiner in sorted(offer.joiners):
                if shared is None or not shared.is_shared:
                    shared = Snapshot(self._state.save())
                offer.snapshots[joiner] = shared
        except Exception as error:
            self._fails(offer, error)
        offer.saved.set()

    def refuse_unsaved(self, after: float) -> None:
        """What was offered for so many seconds, and is not saved, never will be."""
        for offer in self._offers.values():
            if self._loop.time() >= offer.since + after:
                offer.saved.set()

    def keep(self, joiners: Iterable[Joiner]) -> None:
        """Only these may still want a state: the others have left, or failed."""
        remaining = set(joiners)
        for joiner in self.waiting - remaining:
            self.loaded(*joiner)
            for task in [task for task, served in self._serving.items() if served == joiner]:
                task.cancel()

    def loaded(self, name: str, incarnation: int) -> None:
        """A joiner has the state, from whatever donor, or does not need it any more."""
        for offer in list(self._offers.values()):
            offer.joiners.discard((name, incarnation))
            offer.snapshots.pop((name, incarnation), None)
            if not offer.joiners:
                self._drop(offer)

    def close(self) -> None:
        """Offers nothing any more."""
        for offer in list(self._offers.values()):
            self._drop(offer)
        for task in self._serving:
            task.cancel()

    def _expire(self, offer: Offer) -> None:
        names = ", ".join(sorted(name for name, _ in offer.joiners))
        self._logs.membership.warning(
            "%s drops the state of view %d: %s did not load it within %g s",
            *(self._name, offer.number, names, self._state_timeout),
        )
        joiners = set(offer.joiners)
        self._drop(offer)
        for task, joiner in list(self._serving.items()):
            if joiner in joiners:
                task.cancel()

    def _drop(self, offer: Offer) -> None:
        if offer.timer is not None:
            offer.timer.cancel()
        if self._offers.get(offer.number) is offer:
            del self._offers[offer.number]
        offer.snapshots.clear()
        if not self._offers and self._listener is not None:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def _fails(self, offer: Offer, error: Exception) -> str:
        """The text of the error stays here: the others are told its kind."""
        self._logs.live.error("%s could not save its state for those that join", self._name, exc_info=error)
        offer.problem = f"{self._name} could not save its state ({type(error).__name__}; its log has the whole error)"
        offer.snapshots.clear()
        return offer.problem

    # --- connections ---

    def _accept(self, listener: socket.socket) -> None:
        try:
            connected, _ = listener.accept()
        except OSError:  # it went away, or there are too many open files
            return
        if self._unknown >= _MAX_UNKNOWN:
            connected.close()
            return
        connected.setblocking(False)  # noqa: FBT003 (the standard library's way)
        task = self._loop.create_task(self._serve(connected))
        self._serving[task] = None
        task.add_done_callback(lambda task: self._served(task, connected))

    def _served(self, task: "asyncio.Task[None]", connected: socket.socket) -> None:
        connected.close()  # a task that was cancelled before it began has not closed it
        del self._serving[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logs.live.error("internal error: %s ends a transfer of its state", self._name, exc_info=error)

    async def _serve(self, connected: socket.socket) -> None:
        try:
            found = await self._requested(connected)
            if found is not None:
                await self._give(*found)
        except ConnectionLostError as error:
            self._logs.membership.info("%s lost a connection for its state: %s", self._name, error)

    async def _requested(self, connected: socket.socket) -> tuple[Connection, Offer, Joiner] | None:
        """Who asks for which state; None for one that has no right to it."""
        patience = patience_for(self._failure_timeout, with_logs=self._log is not None)
        self._unknown += 1
        try:
            async with asyncio.timeout(2 * patience):
                hello, number = await read_hello(connected, patience)
                offer = self._offers.get(number)
                if offer is None:
                    return None
                connection, request = await answer_hello(
                    connected, hello, offer.tag, self._group, self._keys(), patience
                )
        except TimeoutError:
            return None
        finally:
            self._unknown -= 1
        joiner = self._joiner(offer, request)
        if joiner is None:
            self._logs.security.warning("%s refuses its state to one that did not join", self._name)
            return None
        self._replace(joiner)
        return connection, offer, joiner

    def _joiner(self, offer: Offer, request: Request) -> Joiner | None:
        joiner = (request.name, request.incarnation)
        return joiner if request.tag == offer.tag and joiner in offer.joiners else None

    def _replace(self, joiner: Joiner) -> None:
        """Of two connections of one joiner the later one counts."""
        current = asyncio.current_task()
        assert current is not None
        for task, served in self._serving.items():
            if served == joiner and task is not current:
                task.cancel()
        self._serving[current] = joiner

    async def _give(self, connection: Connection, offer: Offer, joiner: Joiner) -> None:
        if self._log is not None:
            try:
                if await self._gives_suffix(connection, offer, joiner, self._log):
                    return
            except LogError as error:
                self._logs.live.error("%s cannot give its log to %s: %s", self._name, joiner[0], error)
                await connection.send(Frame.REFUSED, b"it cannot read its log")
                return
        await self._wait_for(connection, offer)
        snapshot = offer.snapshots.get(joiner)
        if offer.problem is not None:
            await connection.send(Frame.FAILED, offer.problem.encode())
            return
        if snapshot is None or snapshot.is_spent:
            await connection.send(Frame.REFUSED, b"it does not keep the state any longer")
            return
        if self._log is not None:
            heading = await self._waiting(connection, self._log.state_heading(offer.number))
            await connection.send(Frame.STATE, heading)
        chunks = snapshot.chunks()
        try:
            await self._stream(connection, chunks)
        except (ConnectionLostError, asyncio.CancelledError):
            raise
        except Exception as error:  # the application's iterator raised it
            await connection.send(Frame.FAILED, self._fails(offer, error).encode())
            return
        finally:
            with suppress(Exception):  # the application's, too
                await chunks.close()
        await self._await_loaded(connection, joiner)

    async def _gives_suffix(self, connection: Connection, offer: Offer, joiner: Joiner, log: DonorLog) -> bool:
        """Sends the end of the log, if the joiner has its beginning; the log says whether it has."""
        kind, locator = await connection.receive()
        if kind is not Frame.LOCATOR:
            raise ConnectionLostError("it does not say which places of its log it knows")
        found = await self._waiting(connection, log.suffix(offer.number, locator))
        if found is None:
            if self._state is None:
                await connection.send(Frame.FAILED, _NOTHING_COMMON.encode())
            return self._state is None
        heading, parts = found
        await connection.send(Frame.SUFFIX, heading)
        chunks = Snapshot(parts).chunks()
        try:
            await self._stream(connection, chunks)
        finally:
            await chunks.close()
        await self._await_loaded(connection, joiner)
        return True

    async def _wait_for(self, connection: Connection, offer: Offer) -> None:
        """Until the application has come to the place of the view."""
        while not offer.saved.is_set():
            await connection.send(Frame.WAIT)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._failure_timeout / WAITS_PER_TIMEOUT):
                    await offer.saved.wait()

    async def _stream(self, connection: Connection, chunks: Chunks) -> None:
        """As fast as the joiner loads it, and this member has nothing more urgent to do."""
        digest, total, owed = sha256(), 0, 0.0
        while chunk := await self._next(connection, chunks):
            begun = time.thread_time()  # waiting for one that loads slowly takes nobody's time
            if not connection.authenticates:
                digest.update(chunk)
            total += len(chunk)
            await connection.send(Frame.PART, chunk)
            self.bytes_sent += len(chunk)
            if self._is_busy():
                owed += _SHARE * (time.thread_time() - begun)
                pause = owed if owed >= _SHORTEST_PAUSE else 0
                owed -= pause
                await asyncio.sleep(pause)
            else:
                await asyncio.sleep(0)  # a connection that takes everything at once must not stop the event loop
        ending = b"" if connection.authenticates else digest.digest()
        await connection.send(Frame.END, total.to_bytes(LENGTH_SIZE, "big") + ending)

    async def _next(self, connection: Connection, chunks: Chunks) -> bytes | bytearray | memoryview:
        """The next chunk; while it is waited for, the joiner is told that this member lives."""
        if not chunks.may_wait:
            return await chunks.next()
        return await self._waiting(connection, chunks.next())

    async def _waiting(self, connection: Connection, work: Coroutine[Any, Any, _Found]) -> _Found:
        """What is worked out; meanwhile the joiner is told that this member lives."""
        task = self._loop.create_task(work)
        try:
            while not (await asyncio.wait((task,), timeout=self._failure_timeout / WAITS_PER_TIMEOUT))[0]:
                await connection.send(Frame.WAIT)
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait((task,))  # what it reads may be closed only when it has ended

    async def _await_loaded(self, connection: Connection, joiner: Joiner) -> None:
        """The joiner may be slow, and says nothing meanwhile; if it fails, a view tells so."""
        kind, _ = await connection.receive(at_any_time=True)
        if kind is Frame.LOADED:
            self.loaded(*joiner)
