"""What is dropped: whole segments, the oldest first, and only what a snapshot has."""

from pathlib import Path

import pytest

from ordercast.log.check import check
from ordercast.log.disk import FolderDisk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import NO_HASH, Context, View
from ordercast.log.retention import Retention
from ordercast.log.snapshots import Place, read_snapshot
from ordercast.model.errors import ConfigError, LogDamaged, LogError
from ordercast.simulator.faulty_disk import FaultyDisk
from tests.log.logs import GROUP, MEMBERS, SMALL, folder_log, packet, payloads, quiet_disk, write_frames, written


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> int:
        return self.seconds * 1_000_000_000


def options(retention: Retention, clock: Clock | None = None) -> Options:
    return Options(retention, 400, salt=lambda: 7, clock=clock or Clock())


def save(log: LogFiles, state: bytes = b"state") -> None:
    log.adopt_snapshot(log.next, log.save_snapshot(log.place, state))


def test_without_retention_nothing_is_dropped_but_on_call() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(12))
    save(log)
    assert payloads(disk) == written(range(12))
    assert not log.snapshot_due()
    boundary = log.segments[2].first
    log.drop_below(boundary - 1)
    assert log.segments[0].first < boundary
    log.drop_below(boundary)
    assert log.segments[0].first == boundary
    assert payloads(disk) == written(range(12))[boundary:]


def test_what_no_snapshot_has_is_not_dropped() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(12))
    log.drop_below(log.next)
    assert log.segments[0].first == 0
    early = log.segments[2].first
    size = log.save_snapshot(Place(early, b"h" * 16, log.context), b"early")
    log.adopt_snapshot(early, size)
    log.drop_below(log.next)
    assert log.segments[0].first == early


@pytest.mark.parametrize("needs_snapshot", [True, False])
def test_the_log_is_bounded_by_bytes(needs_snapshot: bool) -> None:
    disk = quiet_disk()
    how = options(Retention(bytes=1500, needs_snapshot=needs_snapshot))
    log = write_frames(disk, range(0), how)
    due = largest = 0
    for number in range(60):
        log.packets([packet(number)])
        log.sync()
        if log.snapshot_due():
            due += 1
            save(log, b"%d" % number)
        largest = max(largest, log.usage().segment_bytes)
    assert (due > 3) == needs_snapshot
    assert largest <= 1500 + 2 * 600
    assert log.usage().segment_bytes > 1500 - 2 * 600, "no more is dropped than must be"
    on_disk = sum(disk.size(name) for name in disk.names() if name.isdigit())
    usage = log.usage()
    assert usage.segment_bytes == on_disk
    assert usage.segments == len(log.segments)
    assert usage.next == 120
    assert usage.first == log.segments[0].first
    assert usage.snapshot_bytes == sum(disk.size(name) for name in disk.names() if "snapshot" in name)
    assert (usage.snapshot is not None) == needs_snapshot
    assert payloads(disk) == written(range(60))[usage.first :]


def test_the_log_is_bounded_by_age() -> None:
    disk, clock = quiet_disk(), Clock()
    log = write_frames(disk, range(0), options(Retention(seconds=60), clock))
    for number in range(20):
        clock.seconds += 10
        log.packets([packet(number)])
        log.sync()
        if log.snapshot_due():
            save(log)
    after_oldest = log.segments[1].header.time / 1e9
    assert clock.seconds - 100 < after_oldest <= clock.seconds
    clock.seconds += 1000
    log.drop_below(0)
    assert log.segments[1:] == [] or log.segments[1].first > log.snapshot  # type: ignore[operator] # there is one
    for number in range(20, 26):
        log.packets([packet(number)])
    log.sync()
    clock.seconds += 1000
    assert log.snapshot_due()
    save(log)
    assert len(log.segments) == 1, "the last one stays"
    assert not log.snapshot_due()


def test_what_is_kept_is_found_again_and_goes_on() -> None:
    disk: FaultyDisk = quiet_disk()
    how = options(Retention(bytes=0))
    log = write_frames(disk, range(12), how)
    save(log, b"twelve")
    again = write_frames(disk, range(12, 14), how)
    assert again.segments[0].first == log.segments[0].first
    assert again.snapshot == 24
    snapshot = read_snapshot(disk)
    assert snapshot is not None
    assert b"".join(snapshot.parts()) == b"twelve"
    assert snapshot.members == MEMBERS
    assert snapshot.place.hash == log.place.hash
    assert again.usage().snapshot_bytes == log.usage().snapshot_bytes > 0


def test_only_the_newest_snapshot_is_kept() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2))
    save(log, b"one")
    log.packets([packet(2)])
    log.sync()
    save(log, b"two")
    assert [name for name in disk.names() if "snapshot" in name] == [f"{6:020}.snapshot"]
    log.adopt_snapshot(2, 5)  # one that was slower
    assert log.snapshot == 6


def test_a_snapshot_that_no_manifest_names_does_not_count() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2))
    log.save_snapshot(log.place, b"not adopted")
    assert read_snapshot(disk) is None
    LogFiles(disk, GROUP, SMALL)
    assert [name for name in disk.names() if "snapshot" in name] == []


def test_a_snapshot_that_is_saved_and_not_adopted_yet_is_not_removed_with_what_is_dropped() -> None:
    """It is saved by a thread of its own, while the log goes on."""
    disk = quiet_disk()
    log = write_frames(disk, range(12))
    save(log, b"the first")
    log.packets([packet(12)])
    log.sync()
    size = log.save_snapshot(log.place, b"the second")
    log.drop_below(log.next)
    log.adopt_snapshot(26, size)
    snapshot = read_snapshot(disk)
    assert snapshot is not None
    assert b"".join(snapshot.parts()) == b"the second"


def test_a_missing_snapshot_is_damage() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2))
    save(log)
    disk.remove(f"{4:020}.snapshot")
    with pytest.raises(LogDamaged, match=f"snapshot {4:020}.snapshot is missing"):
        LogFiles(disk, GROUP, SMALL)


def test_dropped_segments_that_come_back_do_not_count() -> None:
    """Removed names may come back after a power failure, in any selection."""
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(12))
    save(log)
    before = dict(disk.files)
    log.drop_below(log.next)
    names = sorted(name for name in before if name.isdigit())
    disk.files[names[1]] = disk._on_disk[names[1]] = before[names[1]]
    kept = payloads(disk)
    again = LogFiles(disk, GROUP, SMALL)
    assert again.next == 24
    assert payloads(disk) == kept
    assert names[1] not in disk.names()


def test_a_log_begins_at_a_snapshot_from_elsewhere() -> None:
    disk = quiet_disk()
    place = Place(100, b"h" * 16, Context(GROUP, View(5, MEMBERS)))
    log = LogFiles(disk, GROUP, SMALL, place)
    assert log.place == place
    log.packets([packet(0)])
    log.sync()
    again = LogFiles(disk, GROUP, SMALL)
    assert (again.next, again.context.view) == (102, View(5, MEMBERS))
    assert payloads(disk) == written(range(1))
    with pytest.raises(LogError, match="position 3 is not in the log any more: it begins at 100"):
        payloads(disk, 3)


def test_a_log_that_is_too_far_behind_goes_on_at_a_snapshot_from_elsewhere() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(5))
    with pytest.raises(LogError, match="the log is at position 10: it cannot go on at 10"):
        log.restart_at(Place(10, NO_HASH, log.context), b"")
    place = Place(100, b"h" * 16, Context(GROUP, View(5, MEMBERS), b"note"))
    log.restart_at(place, b"their state")
    assert (log.durable, log.durable_hash) == (100, b"h" * 16)
    assert log.context == place.context
    log.packets([packet(0)])
    log.sync()
    again = LogFiles(disk, GROUP, SMALL)
    assert again.next == 102
    assert again.context == place.context
    snapshot = read_snapshot(disk)
    assert snapshot is not None
    assert (snapshot.position, b"".join(snapshot.parts())) == (100, b"their state")
    assert payloads(disk) == written(range(1))
    assert again.usage().segments == 1


@pytest.mark.parametrize("wrong", [{"bytes": -1}, {"seconds": -0.5}])
def test_retention_is_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be 0 or more, not -"):
        Retention(**wrong)  # type: ignore[arg-type] # wrong on purpose


def test_a_segment_that_is_dropped_while_a_log_is_checked_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_log(tmp_path, 40, max_segment=300)
    dropped: list[str] = []

    def size(disk: FolderDisk, name: str) -> int:
        if not dropped:
            dropped.append(name)
            raise FileNotFoundError(2, "No such file or directory", name)
        return (disk.folder / name).stat().st_size

    monkeypatch.setattr(FolderDisk, "size", size)
    assert check(tmp_path).next == 40
    assert dropped

    def never(_: FolderDisk, name: str) -> int:
        raise FileNotFoundError(2, "No such file or directory", name)

    monkeypatch.setattr(FolderDisk, "size", never)
    with pytest.raises(LogError, match="No such file or directory"):
        check(tmp_path)
