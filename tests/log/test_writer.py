"""The log with its thread, on real files and on disks that fail."""

import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ordercast.log.files import Options
from ordercast.log.format import View
from ordercast.log.reader import messages_of, read
from ordercast.log.retention import Retention
from ordercast.log.snapshots import read_snapshot
from ordercast.log.writer import Log
from ordercast.model.errors import LogError
from ordercast.simulator.faulty_disk import FaultyDisk
from tests.log.logs import GROUP, MEMBERS, folder_log, quiet_disk


def texts(folder: Path) -> list[bytes]:
    return [message.payload for message in read(folder)]


def test_what_is_appended_is_on_the_disk_when_it_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, bytes]] = []
    with Log(tmp_path, GROUP, on_durable=lambda *place: told.append(place)) as log:
        log.view(1, MEMBERS)
        assert log.append(0, 0, [1, 2], b"abb") == 2
        assert log.append(2, 0, [3], memoryview(b"?ccc")[1:], priority=7) == 3
        assert log.next == 3
    assert [position for position, _ in told] == sorted(position for position, _ in told)
    with Log(tmp_path, GROUP) as again:
        assert (again.recovered.position, again.recovered.hash) == told[-1]
        assert again.recovered.context.view == View(1, MEMBERS)
    found = list(read(tmp_path))
    assert [(m.position, m.sender, m.payload, m.priority, m.view) for m in found] == [
        (0, "A", b"a", 0, 1),
        (1, "A", b"bb", 0, 1),
        (2, "C", b"ccc", 7, 1),
    ]


class Held(FaultyDisk):
    """Its syncs of files wait."""

    def __init__(self) -> None:
        super().__init__(quiet_disk().random)
        self.go, self.asked = threading.Event(), threading.Event()
        self.go.set()
        self.syncs = 0

    def call(self, **how: object) -> None:
        if how.get("may_be_last") is False:
            self.syncs += 1
            self.asked.set()
            assert self.go.wait(10)


def test_the_caller_never_waits_and_what_comes_meanwhile_is_one_sync() -> None:
    disk, told = Held(), []
    log = Log(disk, GROUP, on_durable=lambda position, _: told.append(position))
    disk.go.clear()
    disk.asked.clear()
    log.append(0, 0, [1], b"x")
    assert disk.asked.wait(10)
    before = disk.syncs
    for number in range(1, 500):
        log.append(0, number, [1], b"x")
    assert told == []
    assert log.waiting == 500
    disk.go.set()
    log.close()
    assert told == [1, 500]
    assert disk.syncs - before <= 3, "one for all of them, one for the published end at the close"
    assert log.waiting == 0


def test_the_thread_is_woken_when_the_caller_says_so() -> None:
    disk, told = quiet_disk(), list[int]()
    wakers: list[Callable[[], None]] = []
    log = Log(disk, GROUP, on_durable=lambda position, _: told.append(position), soon=wakers.append)
    noted = threading.Event()
    log.append(0, 0, [1], b"a")
    log.note(b"after a")
    log.when_durable(noted.set)
    assert len(wakers) == 1, "once for all of them"
    assert not noted.wait(0.05)
    assert log.waiting == 1
    wakers.pop()()
    assert noted.wait(10)
    log.append(0, 1, [1], b"b")
    assert len(wakers) == 1, "and again"
    log.close()
    wakers.pop()()  # the event loop may do so when the log is closed
    assert told[-1] == 2, "who closes it does not wait to be woken"
    assert [message.payload for message in messages_of(disk)] == [b"a", b"b"]
    with Log(disk, GROUP) as again:
        assert again.recovered.context.note == b"after a"


def test_much_that_waits_is_cut_into_frames() -> None:
    disk, told = Held(), []
    log = Log(disk, GROUP, on_durable=lambda position, _: told.append(position))
    disk.go.clear()
    disk.asked.clear()
    log.append(0, 0, [1], b"x")
    assert disk.asked.wait(10)
    for number in range(3):
        log.append(0, 1 + number, [2_200_000], bytes(2_200_000))
    disk.go.set()
    log.close()
    assert told == [1, 3, 4]


def test_a_disk_that_fails_is_told_once_and_nothing_is_written_afterwards() -> None:
    disk: FaultyDisk = quiet_disk()
    why: list[str] = []
    told = threading.Event()

    def failed(sentence: str) -> None:
        why.append(sentence)
        told.set()

    log = Log(disk, GROUP, on_failed=failed)
    disk.error_rate = 1.0
    log.append(0, 0, [1], b"x")
    assert told.wait(10)
    log.append(0, 1, [1, 1], b"yz")
    log.note(b"not written")
    log.close()
    assert log.failed == why[0]
    assert len(why) == 1
    assert why[0] == "the disk of the log failed: this disk fails; nothing more is written to it"
    assert log.dropped == 2
    disk.error_rate = 0.0
    with Log(disk, GROUP) as again:
        assert again.recovered.context.note == b""


def test_a_mistake_in_a_call_is_told_too(tmp_path: Path) -> None:
    with Log(tmp_path, GROUP) as log:
        log.append(-1, 0, [1], b"x")
    assert log.failed is not None
    assert log.failed.startswith("the log is not written any more: ")


def test_a_snapshot_is_saved_beside_the_log_and_counts_when_it_is_done(tmp_path: Path) -> None:
    done: list[tuple[int, Exception | None]] = []
    options = Options(Retention(bytes=0), max_segment=300)
    with Log(tmp_path, GROUP, options=options) as log:
        for number in range(30):
            log.append(0, number, [2], b"%2d" % number)
        log.snapshot(iter([b"ab", b"", b"c"]), lambda *result: done.append(result))
        for number in range(30, 33):
            log.append(0, number, [2], b"%2d" % number)
    assert done == [(30, None)]
    with Log(tmp_path, GROUP, options=options) as log:
        snapshot = read_snapshot(log._files._disk)
        assert snapshot is not None
        assert (snapshot.position, b"".join(snapshot.parts())) == (30, b"abc")
        assert log.usage().first <= 30
        assert log.usage().snapshot == 30
    assert texts(tmp_path)[-3:] == [b"30", b"31", b"32"]


def test_an_exception_of_the_application_while_it_saves_does_not_hurt_the_log(tmp_path: Path) -> None:
    def state() -> Iterator[bytes]:
        yield b"half"
        raise KeyError("of the application")

    done: list[tuple[int, Exception | None]] = []
    with Log(tmp_path, GROUP) as log:
        log.append(0, 0, [1], b"x")
        log.snapshot(state(), lambda *result: done.append(result))
    assert log.failed is None
    assert done[0][0] == 1
    assert isinstance(done[0][1], KeyError)
    with Log(tmp_path, GROUP) as log:
        assert log.usage().snapshot is None


def test_a_snapshot_that_cannot_be_saved_is_an_error_of_the_disk() -> None:
    disk: FaultyDisk = quiet_disk()

    def state() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    log = Log(disk, GROUP)
    log.append(0, 0, [1], b"x")
    log.snapshot(state())
    log.close()
    assert log.failed == "the disk of the log failed: No space left on device; nothing more is written to it"


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match=r"cannot use .*file.* for a log: .*; give another folder"):
        Log(tmp_path / "file" / "log", GROUP)


def test_a_folder_is_free_again_after_the_log_is_closed(tmp_path: Path) -> None:
    folder_log(tmp_path, 3)
    folder_log(tmp_path, 3)
    assert texts(tmp_path) == [b"m%d" % number for number in range(6)]
    with pytest.raises(LogError, match="a log of the group"):
        Log(tmp_path, "another")
    with Log(tmp_path, GROUP) as log:
        assert repr(log) == "<Log: next position 6, working>"
