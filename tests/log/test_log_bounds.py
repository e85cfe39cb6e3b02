"""Where things begin and end in a log: bytes, positions, sizes, ages."""

import time
from pathlib import Path
from struct import pack

import pytest

from ordercast.log import arrow, reader
from ordercast.log import format as log_format
from ordercast.log.agreement import locator, place_at
from ordercast.log.arrow import read_batches
from ordercast.log.check import check_disk
from ordercast.log.damage import set_damage_aside
from ordercast.log.disk import Disk
from ordercast.log.files import LogFiles
from ordercast.log.format import (
    NO_HASH,
    Context,
    FrameBuilder,
    Kind,
    SegmentHeader,
    View,
    decode_segment_header,
    encode_segment_header,
    later_headers,
    read_frame,
)
from ordercast.log.published_end import NAME as END
from ordercast.log.reader import frames_of, messages_of
from ordercast.log.recovery import recover
from ordercast.log.retention import Retention, segments_to_drop
from ordercast.log.segments import Segment, read_segment, scanned, segment_name
from ordercast.log.snapshots import Place
from ordercast.log.truncation import drop_above
from ordercast.log.whole_files import read_whole, write_durably
from ordercast.model.errors import LogDamaged, LogError
from tests.log.logs import FRAME, GROUP, MEMBERS, ONE, SMALL, folder_log, packet, payloads, quiet_disk, write_frames

# --- bytes ---


def frames(count: int) -> bytes:
    builder = FrameBuilder(7, 0, NO_HASH)
    parts = [builder.packets([packet(number)], view=0, durable=0, time=0)[0] for number in range(count)]
    return b"".join(bytes(part) for frame in parts for part in frame)


def test_a_header_at_the_very_end_of_what_is_left_is_a_later_header() -> None:
    """Of a frame whose body was cut off: its mark says what was on the disk all the same."""
    data = frames(2)[: FRAME + log_format.FRAME_SIZE]
    assert [offset for offset, _ in later_headers(memoryview(data), FRAME, 7)] == [FRAME]
    assert list(later_headers(memoryview(data[:-1]), FRAME, 7)) == []


def test_what_is_too_short_for_a_header_is_told_from_one_that_is_wrong() -> None:
    size = log_format.FRAME_SIZE
    assert read_frame(memoryview(b"x" * (size - 1)), 0, 7) == f"{size - 1} bytes, too few for a frame"
    assert read_frame(memoryview(b"x" * size), 0, 7) == "the header of a frame is wrong"
    whole = encode_segment_header(SegmentHeader(0, NO_HASH, 7, Context(GROUP)))
    least = log_format._SEGMENT.size
    with pytest.raises(LogDamaged, match=f"its header has {least - 1} bytes instead of {least} or more"):
        decode_segment_header(whole[: least - 1])
    with pytest.raises(LogDamaged, match="the checksum of its header is wrong"):
        decode_segment_header(whole[:least])


def test_lengths_are_little_endian_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bytes are turned round where the machine has the other order: here that would make them big-endian."""
    assert log_format._lengths([1, 258]) == pack("<2I", 1, 258)
    monkeypatch.setattr(log_format, "byteorder", "big")
    assert log_format._lengths([1, 258]) == pack(">2I", 1, 258)
    builder = FrameBuilder(7, 0, NO_HASH)
    parts, _ = builder.packets([packet(3)], view=0, durable=0, time=0)
    frame = read_frame(memoryview(b"".join(parts)), 0, 7)
    assert not isinstance(frame, str)
    assert list(frame.lengths()) == packet(3).lengths


# --- where a log ends ---


def test_a_log_that_ends_between_two_frames_before_its_published_end_lacks_the_rest() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    log.close()
    file = disk.open(segment_name(0))
    file.cut(disk.size(segment_name(0)) - FRAME)
    file.close()
    with pytest.raises(LogDamaged, match="position 2: the rest is missing, though the log was on the disk up to"):
        recover(disk)


def test_where_no_segment_is_left_the_end_or_a_snapshot_tells_that_there_was_a_log() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    log.close()
    disk.remove(segment_name(0))
    with pytest.raises(LogDamaged, match="all segments are missing"):
        payloads(disk)
    disk.remove(END)
    with pytest.raises(LogError, match="there is no log: the folder has no segment"):
        payloads(disk)
    other = quiet_disk()
    log = write_frames(other, range(2), ONE)
    log.adopt_snapshot(4, log.save_snapshot(log.place, b"state"))
    log.close()
    other.remove(segment_name(0))
    other.remove(END)
    with pytest.raises(LogDamaged, match="all segments are missing"):
        payloads(other)


def test_the_check_tells_that_the_last_segment_is_missing() -> None:
    disk = quiet_disk()
    write_frames(disk, range(12)).close()
    last = max(name for name in disk.names() if name.isdigit())
    disk.remove(last)
    assert f"segment {last}, the last one, is missing" in check_disk(disk).damage


def test_an_old_published_end_says_nothing_of_the_last_segment() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(3))
    old = read_whole(disk, END)
    while len(log.segments) < 4:
        log.packets([packet(7)])
        log.sync()
    log.packets([packet(8)])
    log.sync()
    log.close()
    durable = check_disk(disk).durable
    write_durably(disk, END, [old])
    assert log.segments[-1].first <= check_disk(disk).durable <= durable


def test_a_quick_look_does_not_read_the_snapshot() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    log.adopt_snapshot(4, log.save_snapshot(log.place, b"state"))
    log.close()
    file = disk.open(f"{4:020}.snapshot")
    file.write(disk.size(f"{4:020}.snapshot") - 10, [b"?"])
    file.close()
    assert check_disk(disk, verify=False).damage == ()
    assert check_disk(disk).damage != ()


# --- reading ---


def test_only_frames_with_packets_that_are_asked_for_are_handed_out() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(3), ONE)
    log.note(b"noted")
    log.view(View(4, MEMBERS))
    log.packets([packet(3)])
    log.sync()
    headers = [logged.frame.header for logged in frames_of(disk)]
    assert [header.first for header in headers] == [0, 2, 4, 6]
    assert {header.kind for header in headers} == {Kind.PACKETS}
    assert [logged.frame.header.first for logged in frames_of(disk, 4)] == [4, 6]
    assert [logged.frame.header.first for logged in frames_of(disk, 5)] == [4, 6]


def test_a_reader_that_follows_looks_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    reader._wait()
    assert slept == [reader.POLL_SECONDS]


def test_a_batch_has_as_many_rows_as_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame here has one message, of 2 or 3 bytes."""
    folder_log(tmp_path, 12)
    assert [batch.num_rows for batch in read_batches(tmp_path, rows=1)] == [1] * 12
    assert [batch.num_rows for batch in read_batches(tmp_path, rows=5)] == [5, 5, 2]
    assert [batch.num_rows for batch in read_batches(tmp_path)] == [12]
    monkeypatch.setattr(arrow, "_MAX_BYTES", 8)
    assert [batch.num_rows for batch in read_batches(tmp_path)] == [4, 4, 4], "as soon as it is so large"


# --- places ---


def test_a_locator_has_the_last_places_and_then_every_second_fourth_and_eighth() -> None:
    disk = quiet_disk()
    log = LogFiles(disk, GROUP, ONE)
    for number in range(60):
        log.packets([packet(number)])
    log.sync()
    packets = [60, 59, 58, 57, 56, 54, 50, 42, 26, 0]
    assert [position for position, _ in locator(disk)] == [2 * number for number in packets]


def test_a_place_is_found_by_its_position() -> None:
    disk = quiet_disk()
    log = LogFiles(disk, GROUP, SMALL)
    places = {0: NO_HASH}
    for number in range(12):
        log.packets([packet(number)])
        log.sync()
        places[log.next] = log.hash
    assert len(log.segments) > 2
    for position in range(26):
        assert place_at(disk, position) == ((position, places[position]) if position in places else None)


# --- what is cut off ---


def place_of(log: LogFiles) -> tuple[int, bytes]:
    return log.next, log.hash


def test_views_before_the_place_where_a_log_is_cut_stay_and_later_ones_go() -> None:
    disk = quiet_disk()
    log = LogFiles(disk, GROUP, ONE)
    places = []
    for number in range(1, 4):
        log.view(View(number, MEMBERS))
        for each in (2 * number, 2 * number + 1):
            log.packets([packet(each)])
            log.sync()
            places.append(place_of(log))
    log.close()
    drop_above(disk, *places[3])
    again = LogFiles(disk, GROUP, ONE)
    assert (place_of(again), again.context.view) == (places[3], View(3, MEMBERS)), "it begins at this place"
    again.close()
    assert [message.view for message in messages_of(disk)] == [1] * 4 + [2] * 4
    drop_above(disk, *places[2])
    assert LogFiles(disk, GROUP, ONE).context.view == View(2, MEMBERS)


def test_no_segment_is_left_that_begins_where_a_log_is_cut() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(12))
    log.close()
    first = log.segments[2].first
    place = place_at(disk, first)
    assert place is not None
    drop_above(disk, *place)
    assert max(name for name in disk.names() if name.isdigit()) == log.segments[1].name
    assert LogFiles(disk, GROUP, SMALL).next == first


def test_a_place_before_the_beginning_of_a_log_is_not_in_it() -> None:
    disk = quiet_disk()
    log = LogFiles(disk, GROUP, SMALL, Place(100, b"h" * 16, Context(GROUP)))
    log.packets([packet(0)])
    log.sync()
    log.close()
    with pytest.raises(LogError, match="position 50 is not in the log: it cannot be cut there"):
        drop_above(disk, 50, b"h" * 16)


# --- damage ---


def damage(disk: Disk, name: str) -> None:
    """The last packet of a segment is changed."""
    file = disk.open(name)
    file.write(disk.size(name) - 16, [b"???"])
    file.sync()
    file.close()


def test_a_snapshot_that_the_good_part_of_a_log_leads_to_stays() -> None:
    """Also if the damage follows at once."""
    disk = quiet_disk()
    log = write_frames(disk, range(3), ONE)
    log.adopt_snapshot(6, log.save_snapshot(log.place, b"state"))
    log.packets([packet(3)])
    log.sync()
    log.close()
    damage(disk, segment_name(0))
    left = set_damage_aside(disk, lambda note: note)
    assert (left.next, left.set_aside) == (6, (segment_name(0),))
    assert LogFiles(disk, GROUP, ONE).snapshot == 6


def test_a_log_without_its_first_segment_has_no_good_part() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(12))
    log.close()
    disk.remove(log.segments[0].name)
    assert set_damage_aside(disk, lambda note: note).next == 0
    assert not [name for name in disk.names() if name.isdigit()]


def test_a_segment_behind_a_gap_is_good_whatever_is_before_it() -> None:
    """A crash came between the first segment at a snapshot from elsewhere and the manifest that drops those before."""
    disk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    log._begin_segment(Place(100, b"h" * 16, log.context), after_gap=True)
    for number in range(2):
        log.packets([packet(number)])
        log.sync()
    log.close()
    damage(disk, segment_name(100))
    left = set_damage_aside(disk, lambda note: note)
    assert (left.next, left.set_aside) == (102, (segment_name(100),))


def test_a_segment_that_was_written_on_after_the_next_one_was_begun_ends_the_good_part() -> None:
    """Its messages lead to the next one, but it is not the file that the next one names."""
    disk = quiet_disk()
    log = write_frames(disk, range(12))
    log.close()
    first = read_segment(disk, log.segments[0].name)
    scan = scanned(disk, first)
    parts, _ = FrameBuilder(7, scan.next, scan.hash).note(b"late", view=3, durable=0, time=0)
    file = disk.open(first.name)
    file.write(first.size, parts)
    file.sync()
    file.close()
    left = set_damage_aside(disk, lambda note: note)
    assert left.next == log.segments[1].first


def test_a_segment_of_the_same_size_with_other_messages_ends_the_good_part() -> None:
    disk, other = quiet_disk(), quiet_disk()
    log = write_frames(disk, range(12))
    log.close()
    write_frames(other, range(0)).close()
    strange = LogFiles(other, GROUP, SMALL)
    for number in range(12):
        strange.packets([packet(number or 5, number % 3)])
        strange.sync()
    strange.close()
    name = log.segments[1].name
    write_durably(disk, name, [read_whole(other, name)])
    assert set_damage_aside(disk, lambda note: note).next == log.segments[1].first


# --- retention ---


def of_size(first: int, size: int, seconds: int) -> Segment:
    header = SegmentHeader(first, NO_HASH, 7, Context(GROUP), time=seconds * 1_000_000_000)
    return Segment(segment_name(first), size, header)


SEGMENTS = [of_size(0, 100, 0), of_size(10, 100, 10), of_size(20, 100, 20), of_size(30, 50, 30)]


def dropped(seconds: float | None = None, *, size: int | None = None, now: float = 100, below: int = 0) -> int:
    how = Retention(bytes=size, seconds=seconds, needs_snapshot=False)
    return segments_to_drop(SEGMENTS, None, how, int(now * 1e9), below)


def test_the_oldest_segments_go_until_the_others_are_small_enough() -> None:
    assert [dropped(size=size) for size in (350, 349, 250, 249, 150, 149, 0)] == [0, 1, 1, 2, 2, 3, 3]


def test_a_segment_goes_when_it_was_complete_for_longer_than_is_said() -> None:
    """It was complete when the next one was begun."""
    assert [dropped(60, now=now) for now in (70, 70.1, 80, 80.1, 1000)] == [0, 1, 1, 2, 3]
    assert dropped(0, now=10) == 0
    assert dropped(0, now=11) == 1


def test_a_segment_goes_when_all_its_messages_are_below_a_position() -> None:
    assert [dropped(below=below) for below in (9, 10, 19, 20, 1000)] == [0, 1, 1, 2, 3]
