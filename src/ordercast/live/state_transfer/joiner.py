"""The joiner's side: gets the state of its first view from one of the donors, the next one if that fails."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple, NoReturn

from ordercast.live.logs import GroupLogs
from ordercast.live.state_transfer.application import State, StateInterruptedError
from ordercast.live.state_transfer.connection import (
    Connection,
    ConnectionLostError,
    Frame,
    Request,
    connect,
    patience_for,
)
from ordercast.live.state_transfer.donor import LENGTH_SIZE
from ordercast.live.state_transfer.shared_log import JoinerLog
from ordercast.live.transport.addresses import Address
from ordercast.model.errors import JoinError, LogError
from ordercast.wire.keys import GroupKeys

_RETRY = 0.05  # seconds before donors are asked again that could not be reached
_LOG_PATIENCE = 8  # times as long as an application may take: a disk is waited for
_GONE_AFTER = 2  # failure timeouts without a word from any donor


class Source(NamedTuple):
    """A donor."""

    name: str
    node: int
    address: Address
    is_gone: Callable[[], bool]
    """Whether it is a member no longer."""


class Loaded(NamedTuple):
    """What was loaded."""

    view: int
    """The number of the view that the state is of."""
    donor: Source
    size: int
    """Bytes."""


class DonorsGoneError(Exception):
    """No donor is left: no other member has the state of this view any more."""


class StateLoader:
    """Loads the state of one view."""

    def __init__(  # noqa: PLR0913
        self,
        state: State | None,
        request: Request,
        donors: Sequence[Source],
        *,
        group: str,
        keys: GroupKeys | None,
        failure_timeout: float,
        state_timeout: float,
        log: JoinerLog | None = None,
    ) -> None:
        """Times are seconds; the state must be loaded after `state_timeout`. `state`: None if there is only a log."""
        self._log = log
        self._state, self._request, self._donors = state, request, list(donors)
        self._group, self._keys = group, keys
        self._failure_timeout, self._state_timeout = failure_timeout, state_timeout
        self._logs = GroupLogs(group, request.name)
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()  # when a donor was heard last
        self._problems: list[str] = []
        self._failed_to_save = 0
        self.bytes_received = 0
        """From all donors; what an interrupted one has sent counts."""

    async def load(self) -> Loaded:
        """Returns when the application has loaded the state.

        Raises `JoinError` if the application of a donor or of this member fails, or if it takes too long, and
        `DonorsGoneError` if all donors failed or left: whoever joins anew is given other ones.
        """
        try:
            async with asyncio.timeout(self._state_timeout) as limit:
                return await self._load()
        except TimeoutError:
            if not limit.expired():
                raise
            raise JoinError(
                f"the state of the group was not loaded within {self._state_timeout:g} s (state_timeout); "
                f"it came from {self._names()}: give it more time, or make it smaller"
            ) from None

    async def _load(self) -> Loaded:
        self._heard = self._loop.time()
        known = len(self._donors)
        while self._donors:
            for donor in list(self._donors):
                found = await self._attempt(donor)
                if found is not None:
                    return found
                if donor.is_gone() and donor in self._donors:
                    self._donors.remove(donor)
            if self._loop.time() - self._heard > _GONE_AFTER * self._failure_timeout:
                break
            await asyncio.sleep(_RETRY)
        if self._failed_to_save and self._failed_to_save == known:
            raise JoinError("; ".join(dict.fromkeys(self._problems)))
        raise DonorsGoneError("; ".join(dict.fromkeys(self._problems)) or "all donors are gone")

    def _names(self) -> str:
        return ", ".join(donor.name for donor in self._donors) or "nobody"

    async def _attempt(self, donor: Source) -> Loaded | None:
        """The state from one donor; None if it did not come."""
        silence = patience_for(self._failure_timeout, with_logs=self._log is not None)
        try:
            connection = await connect(donor.address, self._group, self._keys, self._request, silence)
        except ConnectionLostError as error:
            self._logs.membership.debug("%s does not reach %s for the state: %s", self._request.name, donor.name, error)
            self._problems.append(f"{donor.name}: {error}")
            return None
        patience = self._failure_timeout / 2 if len(self._donors) > 1 else None
        if patience is not None and self._log is not None:
            patience *= _LOG_PATIENCE
        parts = Parts(connection, patience=patience, count=self._count)
        try:
            if self._log is not None:
                await connection.send(Frame.LOCATOR, await self._log.locator())
            await self._take(parts, donor)
            if parts.problem is None:
                await _tell_loaded(connection)
                return Loaded(self._request.view, donor, parts.size)
        except ConnectionLostError as error:
            parts.problem = str(error)
        except LogError as error:
            raise JoinError(f"{self._request.name} could not go on with its log: {error}") from error
        finally:
            self._heard = self._loop.time()
            connection.close()
        assert parts.problem is not None, "else it was loaded"
        self._note(donor, parts, parts.problem)
        return None

    def _count(self, size: int) -> None:
        self.bytes_received += size

    async def _take(self, parts: "Parts", donor: Source) -> None:
        if not await parts.begins():
            return
        kind, heading = parts.heading
        if kind is Frame.SUFFIX and self._log is not None:
            self._logs.membership.info("%s takes the end of the log from %s", self._request.name, donor.name)
            with suppress(StateInterruptedError):
                if not await self._log.take_suffix(heading, parts):
                    parts.problem = "the application was handed what the group never agreed on, and needs a state"
            return
        assert self._state is not None, "a donor that has no state says so"
        self._logs.membership.info("%s loads the state from %s", self._request.name, donor.name)
        try:
            await self._state.load(parts)
        except Exception as error:
            if parts.problem is None:
                raise self._load_failed(error) from error
        else:
            if parts.problem is None and self._log is not None:
                await self._log.take_state(heading)

    def _load_failed(self, error: Exception) -> JoinError:
        why = "there is not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
        return JoinError(f"{self._request.name} could not load the state of the group: {why}")

    def _note(self, donor: Source, parts: "Parts", problem: str) -> None:
        """What went wrong with a donor; one that has no state is not asked again."""
        self._problems.append(f"{donor.name}: {problem}")
        self._logs.membership.warning("%s did not get the state from %s: %s", self._request.name, donor.name, problem)
        if parts.refused:
            self._donors.remove(donor)
            self._failed_to_save += parts.failed_to_save


class Parts(AsyncIterator[bytes]):
    """The parts of a state as they arrive; taken from the network only when the application asks for the next one."""

    def __init__(self, connection: Connection, *, patience: float | None, count: Callable[[int], None]) -> None:
        """`patience`: seconds for which the donor may not be ready; None: any time. `count`: is told sizes of parts."""
        self._connection, self._patience, self._count = connection, patience, count
        self._digest = sha256()
        self._first: tuple[Frame, bytes] | None = None
        self.heading: tuple[Frame, bytes] = (Frame.STATE, b"")
        """What the parts are."""
        self._ended = False
        self.size = 0
        """Bytes that have arrived."""
        self.problem: str | None = None
        """Why not all parts arrive."""
        self.refused = self.failed_to_save = False
        """The donor has no state; its application could not save it."""

    async def begins(self) -> bool:
        """Waits until the donor has the state."""
        try:
            async with asyncio.timeout(self._patience):
                self._first = await self._receive()
                if self._first[0] in {Frame.SUFFIX, Frame.STATE}:
                    self.heading, self._first = self._first, None
        except TimeoutError:
            self.problem = "it is not ready"
        except StateInterruptedError:
            pass
        return self.problem is None

    async def __anext__(self) -> bytes:
        """The next part; `StopAsyncIteration` after the last one, `StateInterruptedError` if it will not come."""
        if self.problem is not None:
            raise StateInterruptedError(self.problem)
        if self._ended:
            raise StopAsyncIteration
        found, self._first = self._first, None
        if found is None:
            await asyncio.sleep(0)  # a connection that gives everything at once must not stop the event loop
            found = await self._receive()
        kind, body = found
        if kind is Frame.PART:
            self.size += len(body)
            self._count(len(body))
            if not self._connection.authenticates:
                self._digest.update(body)
            return body
        self._check_end(kind, body)
        self._ended = True
        raise StopAsyncIteration

    async def _receive(self) -> tuple[Frame, bytes]:
        try:
            while True:
                kind, body = await self._connection.receive()
                if kind is not Frame.WAIT:
                    break
        except ConnectionLostError as error:
            self._interrupt(str(error))
        if kind in {Frame.REFUSED, Frame.FAILED}:
            self.refused, self.failed_to_save = True, kind is Frame.FAILED
            self._interrupt(body.decode(errors="replace"))
        return kind, body

    def _check_end(self, kind: Frame, body: bytes) -> None:
        digest = b"" if self._connection.authenticates else self._digest.digest()
        if kind is not Frame.END or body != self.size.to_bytes(LENGTH_SIZE, "big") + digest:
            self._interrupt("what it sent was changed on the way")

    def _interrupt(self, why: str) -> NoReturn:
        self.problem = why
        raise StateInterruptedError(why)


async def _tell_loaded(connection: Connection) -> None:
    """The donor need not keep it. If this is lost it hears so from the group."""
    with suppress(ConnectionLostError):
        await connection.send(Frame.LOADED)
