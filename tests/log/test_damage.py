"""A damaged log becomes one that ends before the damage, whatever happens meanwhile."""

from contextlib import suppress
from random import Random

import pytest

from ordercast.log.check import check_disk
from ordercast.log.damage import set_damage_aside
from ordercast.log.files import LogFiles
from ordercast.log.recovery import recover
from ordercast.model.errors import LogDamaged
from ordercast.simulator.faulty_disk import Crashed, FaultyDisk
from tests.log.logs import GROUP, SMALL, packet, payloads, quiet_disk, write_frames, written

FRAMES = 12
FORGOTTEN = b"forgotten"


def forget(note: bytes) -> bytes:
    return FORGOTTEN + note


def whole_log(disk: FaultyDisk, *, snapshot: bool = False) -> list[str]:
    """Several segments; their names, and that of the snapshot after the sixth frame."""
    log = write_frames(disk, range(6))
    log.note(b"noted")
    log.sync()
    if snapshot:
        log.adopt_snapshot(log.next, log.save_snapshot(log.place, b"state"))
    log.close()
    write_frames(disk, range(6, FRAMES)).close()
    return sorted(disk.names())


def flip(disk: FaultyDisk, name: str, at: int) -> None:
    """One bit, for good."""
    file = disk.open(name)
    byte = file.read(at, 1)[0]
    file.write(at, [bytes([byte ^ 1])])
    file.sync()
    file.close()


def sizes() -> list[tuple[str, int]]:
    disk = quiet_disk()
    names = whole_log(disk, snapshot=True)
    return [(name, at) for name in names if name != "end" for at in range(0, disk.size(name), 37)]


@pytest.mark.parametrize(("name", "at"), sizes())
def test_what_is_before_a_flipped_bit_is_kept_and_the_log_goes_on(name: str, at: int) -> None:
    disk = quiet_disk()
    whole_log(disk, snapshot=True)
    flip(disk, name, at)
    assert check_disk(disk).damage
    left = set_damage_aside(disk, forget)
    assert name in left.set_aside
    log = LogFiles(disk, GROUP, SMALL)
    assert log.next == left.next
    assert log.context.note.startswith(FORGOTTEN)
    assert payloads(disk) == written(range(FRAMES))[: left.next]
    assert not check_disk(disk).damage
    log.packets([packet(7)])
    log.sync()
    log.close()
    assert payloads(disk)[-2:] == written(range(7, 8))
    assert f"{name}.damaged" in check_disk(disk).set_aside


def test_only_what_follows_the_damage_is_lost() -> None:
    """A frame is damaged in the third segment: the frames before it are kept, and the newest note before it."""
    disk = quiet_disk()
    segments = [name for name in whole_log(disk) if name.isdigit()]
    flip(disk, segments[2], disk.size(segments[2]) - 3)
    assert recover(disk) is not None, "opening looks at the last segment only"
    left = set_damage_aside(disk, forget)
    assert int(segments[2]) <= left.next < int(segments[3])
    assert left.set_aside == tuple(segments[2:])


def test_a_missing_segment_ends_the_log() -> None:
    disk = quiet_disk()
    segments = [name for name in whole_log(disk) if name.isdigit()]
    disk.remove(segments[1])
    with pytest.raises(LogDamaged):
        recover(disk)
    assert set_damage_aside(disk, forget).next == int(segments[1])
    assert LogFiles(disk, GROUP, SMALL).next == int(segments[1])


def test_a_damaged_snapshot_is_no_reason_to_drop_messages() -> None:
    disk = quiet_disk()
    [snapshot] = [name for name in whole_log(disk, snapshot=True) if name.endswith(".snapshot")]
    flip(disk, snapshot, disk.size(snapshot) - 20)
    left = set_damage_aside(disk, forget)
    assert (left.next, left.set_aside) == (2 * FRAMES, (snapshot,))
    assert LogFiles(disk, GROUP, SMALL).snapshot is None


@pytest.mark.parametrize("seed", range(60))
def test_a_crash_meanwhile_never_brings_back_what_was_promised(seed: int) -> None:
    """Whoever opens the log after a crash finds it damaged still, or with the note that says so."""
    random = Random(seed)
    disk = FaultyDisk(random)
    disk.allow(10**9, 0.0)
    names = [name for name in whole_log(disk, snapshot=seed % 2 == 0) if name.isdigit()]
    damaged = random.choice(names)
    flip(disk, damaged, random.randrange(disk.size(damaged)))
    before = check_disk(disk)
    disk.allow(random.randrange(1, 40), 0.0)
    with suppress(Crashed):
        set_damage_aside(disk, forget)
    disk.allow(10**9, 0.0)
    disk.restart(power=random.random() < 0.7)
    try:
        log = LogFiles(disk, GROUP, SMALL)
    except LogDamaged:
        set_damage_aside(disk, forget)
        log = LogFiles(disk, GROUP, SMALL)
    if check_disk(disk).damage:  # of a segment that opening does not look at, as before
        assert check_disk(disk).damage == before.damage
        return
    assert log.context.note.startswith(FORGOTTEN)
    assert payloads(disk) == written(range(FRAMES))[: log.next]


def test_what_was_set_aside_is_kept_when_the_same_segment_is_damaged_again() -> None:
    disk = quiet_disk()
    first = next(name for name in whole_log(disk) if name.isdigit())
    for _ in range(3):
        flip(disk, first, disk.size(first) - 3)
        assert first in set_damage_aside(disk, forget).set_aside
        write_frames(disk, range(FRAMES)).close()
    aside = [name for name in disk.names() if name.startswith(first) and name.endswith(".damaged")]
    assert sorted(aside) == [f"{first}.2.damaged", f"{first}.3.damaged", f"{first}.damaged"]
    assert set(aside) <= set(check_disk(disk).set_aside)
