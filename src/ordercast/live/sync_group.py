"""A group for threads: the same calls, which wait instead of being awaited.

Every call is carried out by the group's event loop, and its thread waits for the outcome; a call that has waited long
enough is cancelled there, so that it is carried out or not, and nothing is lost between. No call waits for a loop that
has ended or stopped, and none can be made by the loop's own thread, which would wait for itself.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from ordercast.live.events import Message, View
from ordercast.live.settings import require_seconds
from ordercast.live.stats import Stats
from ordercast.model.errors import GroupClosed, LocalProtocolError

if TYPE_CHECKING:
    from ordercast.live.group import Group

_T = TypeVar("_T")
_LOOK = 0.5
"""Seconds between two looks whether the event loop still runs."""
_ANSWER = 1.0
"""Seconds that the event loop has to say what became of a call that has waited long enough."""


class SyncGroup:
    """A `Group` for threads other than that of its event loop: `Group.sync`, or `Joining.sync` without a loop at all.

        with ordercast.join("orders", members=["A", "B", "C"]).sync() as group:
            group.send(b"hello")
            for message in group:
                print(message.sender, message.payload)

    Several threads may use it at once. `timeout` is in seconds: `TimeoutError` is raised after it.
    """

    def __init__(self, group: "Group", loop: asyncio.AbstractEventLoop, thread: "LoopThread | None" = None) -> None:
        """`thread`: of a loop that is only for this group, and ends with the block."""
        self._group, self._loop, self._thread = group, loop, thread
        self._kept: deque[Message] = deque()  # taken for calls that had been given up; used by the loop only

    def __repr__(self) -> str:
        return f"<SyncGroup of {self._group!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves, as the block of a `Group` does."""
        try:
            self._call(lambda _: self._group.__aexit__(kind, error, trace), None)
        finally:
            if self._thread is not None:
                self._thread.stop()

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._group.name

    @property
    def me(self) -> str:
        """The name of this member."""
        return self._group.me

    @property
    def view(self) -> View:
        """The last view that was handed out; see `Group.view`."""
        return self._group.view

    @property
    def members(self) -> tuple[str, ...]:
        """The members of `view`."""
        return self._group.members

    @property
    def blocked(self) -> bool:
        """Too few members can be reached to continue."""
        return self._group.blocked

    def stats(self, timeout: float | None = None) -> Stats:
        """Counters and sizes of this member."""

        async def work(_: "_Call[Stats]") -> Stats:
            return self._group.stats()

        return self._call(work, timeout)

    def send(
        self,
        payload: bytes | bytearray | memoryview,
        *,
        to: Iterable[str] | None = None,
        priority: int = 0,
        until: Literal["accepted", "stable", "known_stable", "durable"] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends a message, as `Group.send`. After a `TimeoutError` it is sent if `until` was waited for, else not."""

        async def work(call: "_Call[None]") -> None:
            if not call.is_given_up:
                await self._group.send(payload, to=to, priority=priority, until=until)

        self._call(work, timeout)

    def receive(self, timeout: float | None = None) -> Message:
        """The next message; raises `GroupClosed` after the last one, `GroupAborted` if the group was aborted.

        After a `TimeoutError` nothing is lost: the next call returns what came meanwhile.
        """

        async def work(call: "_Call[Message]") -> Message:
            message = self._kept.popleft() if self._kept else await self._group.receive()
            if not call.take():
                self._kept.append(message)
            return message

        return self._call(work, timeout)

    def __iter__(self) -> Iterator[Message]:
        """All messages until the group is closed; raises `GroupAborted` if it is aborted."""
        while True:
            try:
                message = self.receive()
            except GroupClosed:
                return
            yield message

    def close(self, timeout: float | None = None) -> None:
        """Sends nothing more, and waits until all members have closed; see `Group.close`."""
        self._call(lambda _: self._group.close(timeout), None)

    def leave(self, timeout: float | None = None) -> None:
        """Leaves when all own messages have arrived; the others continue. See `Group.leave`."""
        self._call(lambda _: self._group.leave(timeout), None)

    def abort(self, why: str) -> None:
        """Aborts the group for all members."""
        self._call(lambda _: self._group.abort(why), None)

    def _call(self, work: "Callable[[_Call[_T]], Coroutine[Any, Any, _T]]", timeout: float | None) -> _T:
        return call_in(self._loop, work, timeout)


class _Call(Generic[_T]):
    """One call of another thread: its outcome, which is taken or given up, never both."""

    def __init__(self) -> None:
        self._lock, self.ended = Lock(), Event()
        self._taken = self.is_given_up = False
        self.result: _T
        self.error: BaseException | None = None
        self.task: asyncio.Task[_T] | None = None  # of the loop's thread

    def take(self) -> bool:
        """The loop has what was asked for; False: nobody waits for it any more."""
        with self._lock:
            self._taken = not self.is_given_up
            return self._taken

    def give_up(self) -> bool:
        """Nobody waits any more; False: it was taken already, and comes at once."""
        with self._lock:
            self.is_given_up = not self._taken
            return self.is_given_up

    def begin(self, work: "Callable[[_Call[_T]], Coroutine[Any, Any, _T]]") -> None:
        """In the loop's thread."""
        self.task = asyncio.get_running_loop().create_task(work(self))
        self.task.add_done_callback(self._finish)

    def cancel(self) -> None:
        """In the loop's thread, too; what has an outcome keeps it."""
        if self.task is not None:
            self.task.cancel()

    def _finish(self, task: "asyncio.Task[_T]") -> None:
        if task.cancelled():
            self.error = TimeoutError()
        else:
            self.error = task.exception()
            if self.error is None:
                self.result = task.result()
        self.ended.set()


def call_in(
    loop: asyncio.AbstractEventLoop,
    work: "Callable[[_Call[_T]], Coroutine[Any, Any, _T]]",
    timeout: float | None,
) -> _T:
    """Has the loop of another thread do something, and returns what it returns, or raises what it raises."""
    require_seconds(timeout=timeout)
    _refuse_own_thread(loop)
    call: _Call[_T] = _Call()
    _tell(loop, lambda: call.begin(work))
    try:
        if not _wait(call.ended, loop, timeout):
            _tell(loop, call.cancel)
            _await_answer(call, loop)
    except BaseException:
        if not call.ended.is_set() and call.give_up() and not loop.is_closed():
            _tell(loop, call.cancel)
        raise
    if isinstance(call.error, TimeoutError):
        raise TimeoutError(f"not done within {timeout:g} s" if timeout is not None else "it was cancelled")
    if call.error is not None:
        raise call.error
    return call.result


def _await_answer(call: _Call[_T], loop: asyncio.AbstractEventLoop) -> None:
    """What became of a call that was cancelled; raises `TimeoutError` if the loop does not say so."""
    if not _wait(call.ended, loop, _ANSWER) and call.give_up():
        raise TimeoutError(
            f"the event loop did not answer within {_ANSWER:g} s after the timeout: something blocks it, and what was "
            "to be sent may be sent still"
        )
    _wait(call.ended, loop, None)


def _refuse_own_thread(loop: asyncio.AbstractEventLoop) -> None:
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return
    if here is loop:
        raise LocalProtocolError(
            "a call of SyncGroup in the group's own event loop would wait for itself: await the same call of Group"
        )


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        raise _ended() from None


def _wait(ended: Event, loop: asyncio.AbstractEventLoop, timeout: float | None) -> bool:
    """Until it has ended; False: the time is over. Raises `LocalProtocolError` if nobody would ever end it."""
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _LOOK if until is None else min(until - time.monotonic(), _LOOK)
        if left > 0 and ended.wait(left):
            return True
        if not loop.is_running() and not ended.wait(_LOOK):
            raise _ended()
        if until is not None and time.monotonic() >= until:
            return ended.is_set()


def _ended() -> LocalProtocolError:
    return LocalProtocolError("the event loop of the group has ended, or does not run: nothing can be asked of it")


class LoopThread:
    """An event loop in a thread of its own, for a program that has none."""

    def __init__(self, name: str) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.loop = self._runner.get_loop()
        self._stopped = asyncio.Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._runner:
            self._runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stopped.wait()

    def stop(self) -> None:
        """Ends it, when whatever it still does is cancelled and has ended: a group that is being joined leaves."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
