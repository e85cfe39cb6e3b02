"""The rules of recovery one by one, on a disk without chance."""

import errno
from pathlib import Path

import pytest

from ordercast.log.check import check_disk
from ordercast.log.disk import FolderDisk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import FrameBuilder, Packet, View
from ordercast.log.published_end import NAME as END
from ordercast.log.recovery import recover
from ordercast.log.segments import segment_name
from ordercast.model.errors import LogDamaged, LogError
from ordercast.simulator.faulty_disk import FaultyDisk
from tests.log.logs import FRAME, GROUP, MEMBERS, ONE, SMALL, packet, payloads, quiet_disk, write_frames, written

FIRST = segment_name(0)


def copy_of(disk: FaultyDisk) -> FaultyDisk:
    """Another disk with the same contents, all of them synced."""
    found: FaultyDisk = quiet_disk()
    for name, inode in disk.files.items():
        found.create(name).write(0, [bytes(inode.shown)])
    settle(found)
    return found


def settle(disk: FaultyDisk) -> None:
    disk.sync()
    for inode in disk.files.values():
        inode.sync()


def cut(disk: FaultyDisk, name: str, size: int) -> None:
    disk.files[name].cut(size)
    disk.files[name].sync()


def without_end(disk: FaultyDisk) -> FaultyDisk:
    """As after a power failure: the published end was never synced."""
    if END in disk.files:
        disk.remove(END)
    disk.sync()
    return disk


def test_a_new_log_is_empty_and_opened_again_it_is_the_same() -> None:
    disk = quiet_disk()
    assert recover(disk) is None
    log = LogFiles(disk, GROUP, SMALL)
    assert (log.next, log.durable, log.tail) == (0, 0, None)
    again = LogFiles(disk, GROUP, SMALL)
    assert (again.next, again.hash, again.tail) == (0, log.hash, None)
    assert payloads(disk) == []


def test_what_was_written_is_found_with_view_and_note() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(9))
    log.note(b"a promise")
    log.sync()
    again = LogFiles(disk, GROUP, SMALL)
    assert len(again.segments) > 2
    assert again.place == log.place
    assert again.context.view == View(3, MEMBERS)
    assert again.context.note == b"a promise"
    assert payloads(disk) == written(range(9))


def test_a_log_cut_at_every_byte_is_opened_and_written_and_cut_again() -> None:
    """Without the published end, the last frame may be anything; nothing of those before it may be missing."""
    whole = without_end(copy_of(write_disk(range(3))))
    size = whole.size(FIRST)
    for at in range(size - FRAME, size):
        disk = copy_of(whole)
        cut(disk, FIRST, at)
        log = write_frames(disk, range(7, 8), ONE)
        assert payloads(disk) == written(range(2)) + written(range(7, 8))
        assert log.tail is None or log.tail.size == at - log.tail.offset
        without_end(disk)
        cut(disk, FIRST, disk.size(FIRST) - 1 - at % 20)
        write_frames(disk, range(8, 9), ONE)
        assert payloads(disk) == written(range(2)) + written(range(8, 9))


def write_disk(numbers: range, options: Options = ONE) -> FaultyDisk:
    disk: FaultyDisk = quiet_disk()
    write_frames(disk, numbers, options)
    settle(disk)
    return disk


def test_a_flipped_bit_below_a_mark_is_damage_and_in_the_last_frame_it_is_set_aside() -> None:
    whole = without_end(copy_of(write_disk(range(3))))
    size = whole.size(FIRST)
    start = size - FRAME  # of the last frame
    for at in range(0, size, 3):
        disk = copy_of(whole)
        disk.flip(FIRST, 8 * at + at % 8)
        if at < start:
            with pytest.raises(LogDamaged, match=FIRST):
                LogFiles(disk, GROUP, ONE)
        else:
            log = LogFiles(disk, GROUP, ONE)
            assert log.next == 4
            assert log.tail is not None
            assert log.tail.size == FRAME
            assert log.tail.kept == (f"{FIRST}.tail" in disk.names()) == ("checksum" in log.tail.why)
            if log.tail.kept:
                assert len(disk.files[f"{FIRST}.tail"].on_disk) == FRAME
                assert check_disk(disk).set_aside == (f"{FIRST}.tail",)


def test_with_the_published_end_damage_of_the_last_frame_is_known_too() -> None:
    whole = write_disk(range(3))
    for at in range(whole.size(FIRST) - FRAME, whole.size(FIRST)):
        disk = copy_of(whole)
        disk.flip(FIRST, 8 * at)
        with pytest.raises(LogDamaged, match=r"position 4: .*, though the log was on the disk up to position 6"):
            LogFiles(disk, GROUP, ONE)


def test_a_damaged_note_is_damage_though_no_position_depends_on_it() -> None:
    disk: FaultyDisk = quiet_disk()
    log = LogFiles(disk, GROUP, ONE)
    before = disk.size(FIRST)
    log.note(b"the first")
    log.sync()
    log.note(b"the second")
    log.sync()
    settle(disk)
    without_end(disk)
    disk.flip(FIRST, 8 * (before + 85))
    with pytest.raises(LogDamaged):
        LogFiles(disk, GROUP, ONE)


def test_zeros_at_the_end_are_dropped() -> None:
    disk = write_disk(range(3))
    disk.open(FIRST).write(disk.size(FIRST), [bytes(500)])
    log = LogFiles(disk, GROUP, ONE)
    assert log.tail is not None
    assert (log.tail.size, log.tail.why, log.tail.kept) == (500, "zeros instead of a frame", False)
    assert payloads(disk) == written(range(3))


def test_frames_after_a_bad_one_do_not_count_if_it_was_never_promised() -> None:
    """Two frames were written before a sync, and the power failed: the disk has the second only."""
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(1), ONE)
    offset = disk.size(FIRST)
    log.packets([packet(1)])
    end = disk.size(FIRST)
    log.packets([packet(2)])
    disk.open(FIRST).write(offset, [bytes(end - offset)])
    settle(disk)
    again = LogFiles(disk, GROUP, ONE)
    assert again.tail is not None
    assert again.tail.why == "zeros instead of a frame"
    assert payloads(disk) == written(range(1))
    assert disk.size(FIRST) == offset, "what is behind it is cut off, so that it never counts again"


def test_what_no_mark_covers_is_written_again_since_it_may_only_be_shown() -> None:
    """After a sync that failed and a kill, the system shows a frame that is not on the disk."""
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(1), ONE)
    log.packets([packet(1)])
    inode = disk.files[FIRST]
    inode._forget()  # the sync failed: clean, and not written
    assert len(inode.on_disk) < len(inode.shown)
    again = LogFiles(disk, GROUP, ONE)
    assert again.next == 4
    assert again.durable == 4
    assert inode.on_disk == inode.shown, "and synced"
    disk.restart(power=True)
    assert LogFiles(disk, GROUP, ONE).next == 4
    assert payloads(disk) == written(range(2))


def test_the_name_of_an_empty_segment_is_written_again_since_it_may_only_be_shown() -> None:
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    log._begin_segment(log.place, after_gap=False)
    disk._on_disk.pop(segment_name(4))  # the sync of the folder failed, and the process was killed
    write_frames(disk, range(2, 3), ONE)
    disk.restart(power=True)
    assert LogFiles(disk, GROUP, ONE).next == 6
    assert payloads(disk) == written(range(3))


def test_a_message_that_holds_a_copy_of_the_log_is_not_taken_for_it() -> None:
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    text = bytes(disk.files[FIRST].shown)
    text = bytes(-len(text) % 8) + text
    log.packets([Packet(0, 4, [len(text)], text)])  # never synced
    disk.open(FIRST).write(disk.size(FIRST) - len(text) - 8, [b"changed!"])
    settle(disk)
    assert LogFiles(without_end(disk), GROUP, ONE).next == 4


@pytest.mark.parametrize("wrong", ["position", "hash"])
def test_a_frame_of_another_place_is_not_good_though_its_checksums_are(wrong: str) -> None:
    disk: FaultyDisk = quiet_disk()
    log = write_frames(disk, range(2), ONE)
    first, before = (5, log.hash) if wrong == "position" else (4, b"?" * 16)
    parts, _ = FrameBuilder(7, first, before).packets([packet(2)], view=3, durable=0, time=1)
    disk.open(FIRST).write(disk.size(FIRST), parts)
    again = LogFiles(disk, GROUP, ONE)
    assert again.place == log.place
    assert again.tail is not None
    assert again.tail.size == FRAME
    assert wrong in again.tail.why


@pytest.mark.parametrize("missing", ["first", "middle", "last"])
def test_a_missing_segment_is_damage(missing: str) -> None:
    disk = write_disk(range(9), SMALL)
    names = sorted(name for name in disk.names() if name.isdigit())
    assert len(names) >= 3
    disk.remove({"first": names[0], "middle": names[1], "last": names[-1]}[missing])
    with pytest.raises(LogDamaged, match="missing"):
        LogFiles(disk, GROUP, SMALL)


def test_a_sealed_segment_that_is_shorter_is_damage() -> None:
    disk = write_disk(range(9), SMALL)
    cut(disk, FIRST, disk.size(FIRST) - 8)
    with pytest.raises(LogDamaged, match=f"segment {FIRST} has .* bytes instead of"):
        LogFiles(disk, GROUP, SMALL)


def test_opening_verifies_the_last_segment_and_the_headers_of_the_others() -> None:
    disk = write_disk(range(9), SMALL)
    disk.flip(FIRST, 8 * (disk.size(FIRST) - 10))
    log = LogFiles(disk, GROUP, SMALL)
    assert log.next == 18
    assert [FIRST in each for each in check_disk(disk).damage] == [True]
    disk.flip(FIRST, 8 * 20)
    with pytest.raises(LogDamaged, match=f"segment {FIRST}: the checksum of its header is wrong"):
        LogFiles(disk, GROUP, SMALL)


def test_a_segment_with_another_name_is_damage() -> None:
    disk = write_disk(range(2))
    disk.rename(FIRST, segment_name(1))
    with pytest.raises(LogDamaged, match="it was renamed"):
        LogFiles(disk, GROUP, ONE)


def test_no_segments_though_there_was_a_log_is_damage() -> None:
    disk = write_disk(range(1))
    disk.remove(FIRST)
    with pytest.raises(LogDamaged, match="all segments are missing"):
        LogFiles(disk, GROUP, ONE)


def test_unfinished_files_are_removed() -> None:
    disk = write_disk(range(1))
    disk.create(f".{segment_name(2)}").write(0, [b"half a header"])
    assert LogFiles(disk, GROUP, ONE).next == 2
    assert [name for name in disk.names() if name.startswith(".")] == []


def test_the_log_of_another_group_is_refused() -> None:
    disk = write_disk(range(1))
    with pytest.raises(LogError, match="a log of the group 'orders', not of 'prices'"):
        LogFiles(disk, "prices", ONE)


class Failing(FaultyDisk):
    """Fails at one call."""

    def __init__(self, at: int) -> None:
        super().__init__(quiet_disk().random)
        self.at = at
        self.refused = 0

    def call(self, **how: object) -> None:
        self.at -= 1
        if self.at == 0 and how.get("may_fail", True):
            self.refused += 1
            raise OSError(errno.EIO, "Input/output error")


def test_the_first_error_is_final_and_is_told() -> None:
    """At whichever call it comes: nothing is written afterwards, and all that was promised is found."""
    failed = 0
    for at in range(1, 120):
        disk = Failing(at)
        promised, log = 0, None
        try:
            log = LogFiles(disk, GROUP, SMALL)
            for number in range(6):
                log.packets([packet(number)])
                log.sync()
                promised = log.durable
        except LogError as error:
            failed += "Input/output error" in str(error)
            calls = disk.at
            if log is not None:
                assert log.failed is not None
                with pytest.raises(LogError, match="nothing more is written"):
                    log.packets([packet(9)])
                with pytest.raises(LogError, match="nothing more is written"):
                    log.sync()
            assert disk.at == calls, "the disk is not asked again"
        disk.at = 0
        assert payloads_again(disk) >= promised
    assert failed > 20, "the error is told"


def payloads_again(disk: FaultyDisk) -> int:
    LogFiles(disk, GROUP, SMALL)
    return len(payloads(disk))


def test_two_writers_of_one_folder_are_refused(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path / "log", write=True)
    with pytest.raises(LogError, match="is being written by another process"):
        FolderDisk(disk.folder, write=True)
    disk.close()
    FolderDisk(disk.folder, write=True).close()
