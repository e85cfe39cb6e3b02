"""Reading a log: from any position, while it is written, and never beyond what is on the disk."""

from pathlib import Path

import pyarrow as pa
import pytest

import ordercast.log
from ordercast.log.check import check, check_disk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import Packet, View
from ordercast.log.published_end import NAME as END
from ordercast.log.reader import messages_of
from ordercast.log.segments import segment_name
from ordercast.log.writer import Log
from ordercast.model.errors import ConfigError, LogDamaged, LogError
from ordercast.simulator.faulty_disk import FaultyDisk
from tests.log.logs import GROUP, MEMBERS, ONE, SMALL, folder_log, packet, payloads, quiet_disk, write_frames, written


def test_it_begins_at_any_position_and_ends_at_any(tmp_path: Path) -> None:
    folder_log(tmp_path, 40, max_segment=300)
    everything = list(ordercast.log.read(tmp_path))
    assert [message.position for message in everything] == list(range(40))
    assert [message.sender for message in everything[:4]] == ["A", "B", "C", "A"]
    assert {message.view for message in everything} == {3}
    for start in range(41):
        assert list(ordercast.log.read(tmp_path, start)) == everything[start:]
        assert list(ordercast.log.read(str(tmp_path), start, stop=start + 3)) == everything[start : start + 3]
    assert list(ordercast.log.read(tmp_path, 1000)) == []


def test_senders_are_members_of_the_view_of_their_message() -> None:
    disk = quiet_disk()
    log = LogFiles(disk, GROUP, ONE)
    log.packets([Packet(1, 0, [1], b"x")])
    log.view(View(1, ("A", "B")))
    log.packets([Packet(1, 0, [1], b"y")])
    log.view(View(2, ("B", "C")))
    log.packets([Packet(1, 0, [1], b"z")])
    log.sync()
    assert [(m.sender, m.view) for m in messages_of(disk)] == [("[1]", 0), ("B", 1), ("C", 2)]


def test_batches_are_the_same_messages(tmp_path: Path) -> None:
    folder_log(tmp_path, 40, max_segment=300)
    rows = [row for batch in ordercast.log.read_batches(tmp_path, rows=7) for row in batch.to_pylist()]
    fields = ("position", "sender", "payload", "priority", "view")
    assert rows == [{name: getattr(message, name) for name in fields} for message in ordercast.log.read(tmp_path)]
    for start, stop in ((0, 40), (5, 9), (11, 12), (39, 100), (40, 41), (12, 12)):
        some = [row for batch in ordercast.log.read_batches(tmp_path, start, stop=stop) for row in batch.to_pylist()]
        assert some == rows[start:stop]
    schema = next(ordercast.log.read_batches(tmp_path)).schema
    assert schema.types == [pa.int64(), pa.string(), pa.binary(), pa.uint8(), pa.int64()]
    with pytest.raises(ConfigError, match="rows must be 1 or more, not 0"):
        ordercast.log.read_batches(tmp_path, rows=0)


def test_batches_of_packets_with_many_messages_are_cut_within_a_packet() -> None:
    disk = quiet_disk()
    log = LogFiles(disk, GROUP, ONE)
    log.view(View(1, MEMBERS))
    log.packets([Packet(0, 0, [1, 0, 2], b"abb", 4), Packet(1, 0, [3, 1], b"cccd", 5)])
    log.sync()
    from ordercast.log.arrow import _batches  # noqa: PLC0415
    from ordercast.log.reader import frames_of  # noqa: PLC0415

    for start in range(5):
        for stop in range(start, 7):
            rows = [row for batch in _batches(frames_of(disk, start), start, stop, 2) for row in batch.to_pylist()]
            assert [(row["position"], row["payload"], row["priority"], row["sender"]) for row in rows] == [
                *[(0, b"a", 4, "A"), (1, b"", 4, "A"), (2, b"bb", 4, "A"), (3, b"ccc", 5, "B"), (4, b"d", 5, "B")][
                    start:stop
                ],
            ]


def test_nothing_is_read_that_is_not_known_to_be_on_the_disk() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    log.packets([packet(2)])
    assert payloads(disk) == written(range(2))
    disk.remove(END)
    assert payloads(disk) == written(range(2)), "the frame that is not synced says that those before it are"
    log.sync()


def test_without_a_published_end_marks_tell_what_is_on_the_disk() -> None:
    disk = quiet_disk()
    write_frames(disk, range(3), ONE)
    disk.remove(END)
    assert payloads(disk) == written(range(2))
    assert check_disk(disk).durable == 4
    assert check_disk(disk).next == 6


def test_after_a_regular_end_all_of_it_is_read_even_if_the_power_fails() -> None:
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(3), ONE)
    log.close()
    assert disk.files[END].on_disk == disk.files[END].shown
    disk.sync()
    disk.restart(power=True)
    assert payloads(disk) == written(range(3))


def test_it_follows_from_segment_to_segment() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(1), SMALL)
    numbers = iter(range(1, 30))
    waits = 0

    def wait() -> None:
        nonlocal waits
        waits += 1
        if waits % 2:
            log.packets([packet(next(numbers))])
            log.sync()

    reading = messages_of(disk, None, None, wait)
    found = [next(reading).payload for _ in range(60)]
    assert found == written(range(30))
    assert len(log.segments) > 5


def test_a_follower_whose_segments_were_dropped_is_told() -> None:
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(12), SMALL)
    reading = messages_of(disk)
    next(reading)
    log.adopt_snapshot(log.next, log.save_snapshot(log.place, b""))
    log.drop_below(log.next)
    with pytest.raises(LogError, match=r"position . is not in the log any more: it begins at"):
        list(reading)
    with pytest.raises(LogError, match="position 0 is not in the log any more: it begins at 2"):
        list(messages_of(disk, 0))
    assert next(messages_of(disk)).position == log.segments[0].first


def test_a_folder_without_a_log_is_told(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"there is no log in .*: it is not there"):
        ordercast.log.read(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="it is no folder"):
        ordercast.log.read(tmp_path / "file")
    with pytest.raises(LogError, match=r"there is no log in /.*: the folder has no segment"):
        list(ordercast.log.read(tmp_path))
    with pytest.raises(LogError, match=r"there is no log in /.*: the folder has no segment"):
        check(tmp_path)
    with pytest.raises(ConfigError, match="a position is 0 or more, not -1"):
        list(ordercast.log.read(tmp_path, -1))


def test_reading_goes_up_to_damage_and_names_it(tmp_path: Path) -> None:
    folder_log(tmp_path, 40, max_segment=300)
    report = check(tmp_path)
    assert report.damage == ()
    for segment in report.segments:
        path = tmp_path / segment.name
        data = path.read_bytes()
        path.write_bytes(data[:-20] + bytes([data[-20] ^ 4]) + data[-19:])
        found: list[int] = []
        with pytest.raises(LogDamaged, match=segment.name):
            found.extend(message.position for message in ordercast.log.read(tmp_path, segment.first))
        (damage,) = check(tmp_path).damage
        assert segment.name in damage
        path.write_bytes(data)
    assert check(tmp_path).damage == ()


def test_the_check_finds_a_changed_bit_in_every_file(tmp_path: Path) -> None:
    options = Options(max_segment=300)
    with Log(tmp_path, GROUP, options=options) as log:
        log.view(1, MEMBERS)
        for number in range(20):
            log.append(0, number, [2], b"%2d" % number)
        log.snapshot(b"state" * 20)
    whole = check(tmp_path)
    assert whole.damage == ()
    assert whole.snapshot == 20
    assert whole.snapshot_bytes > 100
    names = [*(each.name for each in whole.segments), f"{segment_name(20)}.snapshot", "manifest"]
    for name in names:
        data = (tmp_path / name).read_bytes()
        for at in range(0, len(data), 7):
            changed = bytearray(data)
            changed[at] ^= 1 << at % 8
            (tmp_path / name).write_bytes(changed)
            assert check(tmp_path).damage, (name, at)
        (tmp_path / name).write_bytes(data[:-1])
        assert check(tmp_path).damage, name
        (tmp_path / name).write_bytes(data)
    (tmp_path / names[-2]).unlink()
    assert check(tmp_path).damage == (f"snapshot {names[-2]} is missing",)


def test_a_quick_look_says_the_same_of_a_whole_log(tmp_path: Path) -> None:
    folder_log(tmp_path, 40, max_segment=300)
    thorough, quick = check(tmp_path), check(tmp_path, verify=False)
    assert len(thorough.segments) > 2
    assert [(each.name, each.first, each.next, each.bytes) for each in quick.segments] == [
        (each.name, each.first, each.next, each.bytes) for each in thorough.segments
    ]
    assert (quick.durable, quick.next, quick.hash, quick.group) == (40, 40, thorough.hash, GROUP)
    assert thorough.verified
    assert all(each.frames for each in thorough.segments)
    assert not quick.verified
    path = tmp_path / thorough.segments[1].name
    path.write_bytes(path.read_bytes()[:-8])
    assert check(tmp_path, verify=False).damage == (
        f"segment {path.name} has {path.stat().st_size} bytes instead of {path.stat().st_size + 8}",
    )


def test_a_tail_that_was_never_promised_is_no_damage(tmp_path: Path) -> None:
    folder_log(tmp_path, 5)
    with (tmp_path / segment_name(0)).open("ab") as file:
        file.write(b"half a frame")
    report = check(tmp_path)
    assert (report.damage, report.tail_bytes) == ((), 12)
    with Log(tmp_path, GROUP) as log:
        assert log.tail is not None
    assert check(tmp_path).tail_bytes == 0
