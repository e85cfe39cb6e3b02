"""A log that a thread of its own writes: what waits is written and synced at once, then what has come meanwhile.

There is no timer. While one sync runs, the next frames gather, and so there are as few syncs as the disk needs and none
is waited for longer. The caller's thread never waits for the disk: its calls put something into a queue. Positions that
are on the disk are reported by a callback, in the thread of the log.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Self

from ordercast.log.disk import Disk, FolderDisk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import Packet, View
from ordercast.log.recovery import Tail
from ordercast.log.retention import Usage
from ordercast.log.snapshots import Place
from ordercast.model.errors import LogError

MAX_FRAME = 4 << 20
"""Bytes that are gathered for one sync: more would make the first of them wait for the last."""
_MAX_ITEMS = 1 << 14
_Act = Callable[[], object]
_Done = Callable[[int, Exception | None], object]
_Item = Packet | _Act | None
"""A packet; a call to be made between packets; None: the end."""


class Log:
    """The log of one member, open for writing. All calls come from one thread and return at once, but `close`.

    `tail` has what was dropped from its end when it was opened, and `failed` why nothing is written any more. The
    position and the hash that were found are `next` and `hash` before the first call.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        place: Path | str | Disk,
        group: str,
        *,
        on_durable: Callable[[int, bytes], object] | None = None,
        on_failed: Callable[[str], object] | None = None,
        options: Options = Options(),  # noqa: B008 (frozen)
        begin: Place | None = None,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """Recovers the log in a folder, or begins one; this waits for the disk.

        Raises `LogDamaged` if something is missing that was once durable, and `LogError`.

        `group`: its name, which must be that of the log. `on_durable`: called with a position and the running hash
        there when all messages below it are on the disk. `on_failed`: called once, with a sentence; nothing is written
        from then on. Both are called in the thread of the log. `begin`: where a new log begins. `soon`: is given a
        function that wakes the thread of the log, to call it soon, in the thread of the caller; by default it is called
        at once. An event loop has more urgent things to do first, and the two threads never run at the same time.
        """
        self._folder = FolderDisk(Path(place), write=True) if isinstance(place, str | Path) else None
        try:
            self._files = LogFiles(self._folder or place, group, options, begin)  # type: ignore[arg-type] # no path
        except BaseException:
            self._close_folder()
            raise
        self.tail: Tail | None = self._files.tail
        self.recovered = self._files.place
        """Where the log ended when it was opened, and the view and the note there."""
        self.next = self._files.next
        """The position of the next message that is appended."""
        self.failed: str | None = None
        self.dropped = 0
        """Messages that were appended after the log failed: they are not in it."""
        self._on_durable = on_durable or (lambda *_: None)
        self._on_failed = on_failed or (lambda *_: None)
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._soon, self._handing_over = soon, Lock()
        self._kept: list[_Item] = []  # until the thread is woken
        self._added = self._taken = 0
        self._synced: list[Callable[[], object]] = []  # calls that wait for the next sync
        self._savers: list[Thread] = []
        self._thread = Thread(target=self._run, name="ordercast log", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<Log: next position {self.next}, {self.failed or 'working'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def waiting(self) -> int:
        """Bytes of messages that are not on the disk yet: a caller that never waits must bound them."""
        return self._added - self._taken

    def append(
        self, source: int, first: int, lengths: Sequence[int], payload: bytes | memoryview, priority: int = 0
    ) -> int:
        """Adds messages of one sender that were delivered one after the other; the position after the last one.

        `source`: its place in the view; `first`: its number of the first message; `lengths`: the size of each message;
        `payload`: all of them, which must not change any more.
        """
        if self.failed is None:
            self._added += len(payload)
            self._put(Packet(source, first, lengths, payload, priority))
        else:
            self.dropped += len(lengths)
        self.next += len(lengths)
        return self.next

    def view(self, number: int, members: Sequence[str]) -> None:
        """A view begins: sources of the packets that follow are places in this list."""
        view = View(number, tuple(members))
        self._put(lambda: self._files.view(view))

    def note(self, note: bytes) -> None:
        """Keeps this instead of the note before; it is durable when `on_durable` is next called."""
        self._put(lambda: self._files.note(note))

    def when_durable(self, done: Callable[[], object]) -> None:
        """Calls this in the thread of the log when all that was put in so far is on the disk; never if it fails."""
        self._put(lambda: self._synced.append(done))

    def snapshot(
        self, state: bytes | Iterable[bytes], done: Callable[[int, Exception | None], object] | None = None
    ) -> None:
        """Saves the application's state after all messages that were appended so far, in a thread of its own.

        `state`: bytes, or parts of something that does not change any more. `done`: called in the thread of the log,
        with the position and None when the snapshot counts, or with the exception that `state` raised.
        """
        self._put(lambda: self._save(state, done or (lambda *_: None)))

    def drop_below(self, position: int) -> None:
        """Drops segments all of whose messages are below this position and are in a snapshot."""
        self._put(lambda: self._files.drop_below(position))

    def snapshot_due(self) -> bool:
        """Retention needs a snapshot: the log is larger, or older, than it may be."""
        return self.failed is None and self._files.snapshot_due()

    def usage(self) -> Usage:
        """What is on the disk now."""
        return self._files.usage()

    def close(self) -> None:
        """Waits until all that was appended is on the disk, and for snapshots that are being saved."""
        self._hand_over()
        if self._thread.is_alive():
            self._queue.put(None)
        self._thread.join()
        self._close_folder()

    def _put(self, item: Packet | _Act) -> None:
        if self.failed is not None:
            return
        if self._soon is None:
            self._queue.put(item)
            return
        self._kept.append(item)
        if len(self._kept) == 1:
            self._soon(self._hand_over)

    def _hand_over(self) -> None:
        """Wakes the thread of the log. The caller's thread does, or whoever closes the log."""
        with self._handing_over:
            kept, self._kept = self._kept, []
            for item in kept:
                self._queue.put(item)

    def _close_folder(self) -> None:
        if self._folder is not None:
            self._folder.close()

    # In the thread of the log

    def _run(self) -> None:
        try:
            more = True
            while more:
                more = self._write_some()
            for saver in self._savers:
                saver.join()
            self._finish_calls()
        except Exception as error:  # (whatever it is, nothing more is written, and that must be told)
            self.failed = str(error) if isinstance(error, LogError) else f"the log is not written any more: {error!r}"
            self._on_failed(self.failed)
        finally:
            self._files.close()

    def _write_some(self) -> bool:
        """Writes and syncs what waits; whether more may come."""
        item: _Item = self._queue.get()
        packets: list[Packet] = []
        size = count = 0
        if item is None:
            return False
        while item is not None:
            count += 1
            if isinstance(item, Packet):
                packets.append(item)
                size += len(item.payload)
            else:
                self._write(packets)
                item()
            if size >= MAX_FRAME or count >= _MAX_ITEMS:
                break
            try:
                item = self._queue.get_nowait()
            except Empty:
                break
        self._write(packets)
        self._files.sync()
        self._taken += size
        self._on_durable(self._files.durable, self._files.durable_hash)
        synced, self._synced = self._synced, []
        for done in synced:
            done()
        return item is not None

    def _write(self, packets: list[Packet]) -> None:
        if packets:
            self._files.packets(packets)
            packets.clear()

    def _save(self, state: bytes | Iterable[bytes], done: "_Done") -> None:
        place = self._files.place

        def save() -> None:
            try:
                size = self._files.save_snapshot(place, state)
            except OSError as error:
                found = error
                self._queue.put(lambda: self._fail(found))
            except Exception as error:  # of the application
                raised = error
                self._queue.put(lambda: done(place.position, raised))
            else:
                self._queue.put(lambda: self._adopt(place.position, size, done))

        for saver in self._savers:  # one at a time
            saver.join()
        self._savers = [Thread(target=save, name="ordercast snapshot", daemon=True)]
        self._savers[0].start()

    def _adopt(self, position: int, size: int, done: "_Done") -> None:
        self._files.adopt_snapshot(position, size)
        done(position, None)

    def _fail(self, error: OSError) -> None:
        raise self._files.fail(error)

    def _finish_calls(self) -> None:
        """What snapshots that were under way at the end have left to do."""
        with contextlib.suppress(Empty):
            while True:
                item = self._queue.get_nowait()
                if item is not None and not isinstance(item, Packet):
                    item()
