"""The calls of a log that is open for writing: what each does in the thread of the log, and when."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.log import writer
from ordercast.log.files import Options
from ordercast.log.retention import Retention
from ordercast.log.writer import Log
from ordercast.simulator.faulty_disk import FaultyDisk
from tests.log.logs import GROUP, MEMBERS, payloads, quiet_disk
from tests.log.watched_disk import WatchedDisk


class HeldDisk(FaultyDisk):
    """Its syncs of files wait while it is held."""

    def __init__(self) -> None:
        super().__init__(quiet_disk().random)
        self._go, self._asked = threading.Event(), threading.Event()
        self._go.set()

    def call(self, **how: object) -> None:
        if how.get("may_be_last") is False:
            self._asked.set()
            assert self._go.wait(10)

    def hold(self, log: Log) -> None:
        """The first message is being synced, and what is put in now gathers."""
        self._go.clear()
        self._asked.clear()
        log.append(0, 0, [1], b"0")
        assert self._asked.wait(10)

    def go_on(self) -> None:
        self._go.set()


def test_a_note_is_found_again_when_the_log_is_opened(tmp_path: Path) -> None:
    with Log(tmp_path, GROUP) as log:
        log.note(b"older")
        log.note(b"newest")
    with Log(tmp_path, GROUP) as log:
        assert log.recovered.context.note == b"newest"


def test_what_waits_for_the_disk_is_called_once_when_all_before_is_on_it() -> None:
    disk, called = HeldDisk(), []
    log = Log(disk, GROUP, on_durable=lambda position, _: called.append(position))
    disk.hold(log)
    log.append(0, 1, [1], b"1")
    log.when_durable(lambda: called.append(-1))
    assert called == []
    disk.go_on()
    log.close()
    assert called == [1, 2, -1]


def test_a_view_between_two_packets_leaves_each_of_them_in_the_log_once() -> None:
    disk = HeldDisk()
    log = Log(disk, GROUP)
    disk.hold(log)
    log.append(0, 1, [1], b"1")
    log.view(1, MEMBERS)
    log.append(0, 2, [1], b"2")
    disk.go_on()
    log.close()
    assert payloads(disk) == [b"0", b"1", b"2"]


def test_so_many_things_are_gathered_for_one_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_MAX_ITEMS", 3)
    disk, told = HeldDisk(), []
    log = Log(disk, GROUP, on_durable=lambda position, _: told.append(position))
    disk.hold(log)
    for number in range(1, 8):
        log.append(0, number, [1], b"x")
    disk.go_on()
    log.close()
    assert told[:3] == [1, 4, 7]
    assert told[-1] == 8


def test_so_many_bytes_are_gathered_for_one_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_FRAME", 10)
    disk, told = HeldDisk(), []
    log = Log(disk, GROUP, on_durable=lambda position, _: told.append(position))
    disk.hold(log)
    for number in range(1, 6):
        log.append(0, number, [5], b"12345")
    disk.go_on()
    log.close()
    assert told[:3] == [1, 3, 5]
    assert told[-1] == 6


def filled(disk: FaultyDisk, options: Options) -> Log:
    """All of it is on the disk."""
    log = Log(disk, GROUP, options=options)
    written = threading.Event()
    for number in range(40):
        log.append(0, number, [30], bytes(30))
        log.note(b"")  # each message is a frame
    log.when_durable(written.set)
    assert written.wait(10)
    return log


def test_segments_are_dropped_on_call_when_a_snapshot_has_their_messages() -> None:
    log = filled(quiet_disk(), Options(max_segment=600))
    log.snapshot(b"state")
    log.close()
    assert log.usage().first == 0
    again = Log(log._files._disk, GROUP, options=Options(max_segment=600))
    again.drop_below(30)
    again.close()
    assert 0 < again.usage().first <= 30


def test_a_snapshot_is_due_when_the_log_is_too_large_and_works() -> None:
    disk = quiet_disk()
    small = filled(disk, Options(Retention(bytes=1 << 20), max_segment=600))
    assert not small.snapshot_due()
    small.close()
    log = Log(disk, GROUP, options=Options(Retention(bytes=600), max_segment=600))
    assert log.snapshot_due()
    failed = threading.Event()
    log._on_failed = lambda _: failed.set()
    disk.error_rate = 1.0
    log.append(0, 40, [1], b"x")
    assert failed.wait(10)
    assert not log.snapshot_due(), "none can be saved any more"
    log.close()


def test_snapshots_are_saved_one_after_the_other() -> None:
    events: list[str] = []
    first_begun, first_may_end = threading.Event(), threading.Event()

    def state(name: str) -> Iterator[bytes]:
        events.append(f"{name} begins")
        if name == "first":
            first_begun.set()
            assert first_may_end.wait(10)
        yield name.encode()
        events.append(f"{name} ends")

    log = Log(quiet_disk(), GROUP)
    log.append(0, 0, [1], b"x")
    log.snapshot(state("first"))
    assert first_begun.wait(10)
    log.append(0, 1, [1], b"y")
    log.snapshot(state("second"))
    threading.Timer(0.05, first_may_end.set).start()
    log.close()
    assert events == ["first begins", "first ends", "second begins", "second ends"]
    assert log.usage().snapshot == 2


def test_a_log_that_is_closed_has_no_file_open() -> None:
    disk = WatchedDisk(quiet_disk())
    log = Log(disk, GROUP)
    log.append(0, 0, [1], b"x")
    log.close()
    assert disk.open_files == []


def test_what_is_appended_too_late_does_not_keep_a_snapshot_from_counting() -> None:
    """The log is being closed, and waits for a snapshot; then its thread has only calls left to make."""
    done: list[tuple[int, Exception | None]] = []
    begun, may_end = threading.Event(), threading.Event()

    def state() -> Iterator[bytes]:
        begun.set()
        assert may_end.wait(10)
        yield b"state"

    log = Log(quiet_disk(), GROUP)
    log.append(0, 0, [1], b"x")
    log.snapshot(state(), lambda *result: done.append(result))
    assert begun.wait(10)
    log._queue.put(None)
    log.append(0, 1, [1], b"y")
    log._queue.put(None)
    may_end.set()
    log.close()
    assert (log.failed, done) == (None, [(1, None)])
