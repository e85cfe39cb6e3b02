"""In which order files are changed, synced and closed: what a crash in between relies on."""

import pytest

from ordercast.log.agreement import locator
from ordercast.log.check import check_disk
from ordercast.log.damage import set_damage_aside
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import NO_HASH, Context, View
from ordercast.log.manifest import KEPT_NOTE, read_manifest
from ordercast.log.published_end import PublishedEnd, read_published_end
from ordercast.log.snapshots import Place, read_snapshot
from ordercast.log.truncation import drop_above
from ordercast.log.whole_files import write_durably
from tests.log.logs import GROUP, MEMBERS, ONE, SMALL, packet, payloads, quiet_disk, write_frames, written
from tests.log.watched_disk import WatchedDisk

MANIFEST = ["rename manifest", "sync"]
NOTED = [f"rename {KEPT_NOTE}", "sync"]


def segments(disk: WatchedDisk) -> list[str]:
    return sorted(name for name in disk.names() if name.isdigit())


def a_log(*, note: bytes = b"", snapshot: bool = False) -> WatchedDisk:
    """Of several segments, closed; the snapshot is at its end."""
    disk = WatchedDisk(quiet_disk())
    log = write_frames(disk, range(12))
    if note:
        log.note(note)
    log.sync()
    if snapshot:
        log.adopt_snapshot(log.next, log.save_snapshot(log.place, b"state"))
    log.close()
    assert len(segments(disk)) > 3
    disk.calls.clear()
    return disk


# --- files are closed ---


def test_a_log_that_is_written_has_two_files_open_and_none_when_it_is_closed() -> None:
    disk = WatchedDisk(quiet_disk())
    log = write_frames(disk, range(12))
    log.adopt_snapshot(log.next, log.save_snapshot(log.place, b"state"))
    assert sorted(disk.open_files) == sorted([segments(disk)[-1], "end"])
    log.close()
    assert disk.open_files == []
    again = write_frames(disk, range(12, 14))
    assert sorted(disk.open_files) == sorted([segments(disk)[-1], "end"])
    again.close()


def test_whoever_reads_a_log_leaves_no_file_open() -> None:
    disk = a_log(note=b"noted", snapshot=True)
    assert payloads(disk) == written(range(12))
    assert not check_disk(disk).damage
    assert locator(disk)
    snapshot = read_snapshot(disk)
    assert snapshot is not None
    assert b"".join(snapshot.parts()) == b"state"
    assert disk.open_files == []
    drop_above(disk, *locator(disk)[-1])
    set_damage_aside(disk, lambda note: note)
    assert disk.open_files == []


# --- the end is dropped ---


def place_in(disk: WatchedDisk, segment: str) -> tuple[int, bytes]:
    """The highest place of a log in this segment."""
    after = segments(disk)[segments(disk).index(segment) + 1]
    return next(place for place in locator(disk) if place[0] == int(after))


def test_segments_are_dropped_one_after_the_other_from_the_last_one_on() -> None:
    """First the note is kept; then nothing may say any more that what goes was on the disk."""
    disk = a_log(note=b"noted", snapshot=True)
    names, snapshot = segments(disk), f"{24:020}.snapshot"
    place = place_in(disk, names[1])
    disk.calls.clear()
    drop_above(disk, *place)
    gone = [call for name in reversed(names[2:]) for call in (f"remove {name}", "sync")]
    assert disk.changes_of_names() == [
        *(*NOTED, *MANIFEST, f"remove {snapshot}", "remove end", "sync"),
        *(*gone, f"rename {names[1]}", "sync", f"remove {KEPT_NOTE}"),
    ]
    assert segments(disk) == names[:2]
    assert read_manifest(disk).snapshot is None


def test_a_log_without_a_note_keeps_none() -> None:
    disk = a_log()
    place = place_in(disk, segments(disk)[-2])
    disk.calls.clear()
    drop_above(disk, *place)
    assert not any(KEPT_NOTE in call for call in disk.calls)


def test_a_snapshot_at_the_place_where_a_log_is_cut_stays() -> None:
    disk = a_log(snapshot=True)
    place = locator(disk)[0]
    drop_above(disk, *place)
    assert LogFiles(disk, GROUP, SMALL).snapshot == place[0] == 24


# --- damage is set aside ---


def test_damaged_segments_are_set_aside_one_after_the_other_from_the_last_one_on() -> None:
    disk = a_log(note=b"noted")
    names = segments(disk)
    file = disk.open(names[1])
    file.write(disk.size(names[1]) - 3, [b"?"])
    file.close()
    disk.calls.clear()
    set_damage_aside(disk, lambda note: note)
    aside = [call for name in reversed(names[2:]) for call in (f"rename {name} {name}.damaged", "sync")]
    last = [f"rename {names[1]} {names[1]}.damaged", f"rename {names[1]}", "sync"]
    assert disk.changes_of_names() == [*NOTED, "remove end", *aside, *last]


# --- opening and going on ---


def test_a_note_that_was_kept_is_on_the_disk_again_before_it_is_removed() -> None:
    disk = a_log()
    write_durably(disk, KEPT_NOTE, [b"kept"])
    disk.calls.clear()
    log = LogFiles(disk, GROUP, SMALL)
    assert log.context.note == b"kept"
    removed = disk.calls.index(f"remove {KEPT_NOTE}")
    last = segments(disk)[-1]
    wrote = max(at for at, call in enumerate(disk.calls) if call == f"write {last}")
    assert wrote < disk.calls.index(f"sync {last}", wrote) < removed


def test_what_opening_removes_is_removed_when_the_manifest_is_on_the_disk() -> None:
    """A crash may have left a manifest that is only shown. Later it is on the disk when it says that something goes."""
    disk = a_log(snapshot=True)
    write_durably(disk, f"{99:020}.snapshot", [b"left over"])
    disk.calls.clear()
    log = LogFiles(disk, GROUP, SMALL)
    assert disk.changes_of_names() == [*MANIFEST, f"remove {99:020}.snapshot"]
    disk.calls.clear()
    log.drop_below(24)
    gone = [call for call in disk.changes_of_names() if call.startswith("remove")]
    assert disk.changes_of_names() == [*MANIFEST, *gone]
    assert gone


def test_a_log_that_goes_on_at_a_snapshot_has_all_before_on_the_disk() -> None:
    disk = WatchedDisk(quiet_disk())
    log = write_frames(disk, range(2), ONE)
    log.packets([packet(2)])
    disk.calls.clear()
    log.restart_at(Place(100, b"h" * 16, Context(GROUP, View(5, MEMBERS))), b"their state")
    assert disk.calls.index(f"sync {0:020}") < disk.calls.index(f"rename {100:020}.snapshot")
    assert log.usage().snapshot_bytes == disk.size(f"{100:020}.snapshot")
    begun = disk.size(f"{100:020}")
    assert read_published_end(disk) == PublishedEnd(100, begun, 100)


def test_the_published_end_is_in_the_segment_that_is_written() -> None:
    disk = WatchedDisk(quiet_disk())
    log = write_frames(disk, range(1))
    while len(log.segments) == 1:
        log.packets([packet(1)])
    published = read_published_end(disk)
    assert published is not None
    assert published.segment == log.segments[-1].first > 0


@pytest.mark.parametrize("position", [0, 100])
def test_only_a_log_that_begins_at_a_snapshot_begins_after_a_gap(position: int) -> None:
    log = LogFiles(quiet_disk(), GROUP, SMALL, Place(position, NO_HASH, Context(GROUP)))
    assert log.segments[0].header.after_gap == (position > 0)


def test_a_log_that_was_opened_is_durable_up_to_the_end_that_was_found() -> None:
    disk = quiet_disk()
    before = write_frames(disk, range(3))
    before.close()
    log = LogFiles(disk, GROUP, SMALL)
    assert (log.durable, log.durable_hash) == (6, before.hash)


def test_a_segment_that_has_its_size_is_followed_by_the_next_one() -> None:
    first = write_frames(quiet_disk(), range(1), ONE)
    size = first.usage().segment_bytes
    for most, count in ((size, 2), (size + 1, 1)):
        log = write_frames(quiet_disk(), range(2), Options(max_segment=most, salt=lambda: 7, clock=lambda: 1))
        assert len(log.segments) == count


def test_a_snapshot_that_is_saved_again_at_the_same_position_is_the_one_that_is_counted() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2))
    for state in (b"state", b"the same state in more words"):
        log.adopt_snapshot(log.next, log.save_snapshot(log.place, state))
    assert log.usage().snapshot_bytes == disk.size(f"{4:020}.snapshot")


def test_an_end_that_cannot_be_synced_when_the_log_is_closed_is_told() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2))
    disk.error_rate = 1.0
    log.close()
    assert log.failed == "this disk fails"
