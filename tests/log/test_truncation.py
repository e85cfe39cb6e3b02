"""The end of a log is dropped, whatever happens meanwhile."""

from contextlib import suppress
from random import Random

import pytest

from ordercast.log.agreement import place_at
from ordercast.log.files import LogFiles
from ordercast.log.format import View
from ordercast.log.truncation import drop_above
from ordercast.model.errors import LogError
from ordercast.simulator.faulty_disk import Crashed, FaultyDisk
from tests.log.logs import GROUP, SMALL, packet, payloads, quiet_disk, write_frames, written

ENOUGH = 10**9


def log_with_note(disk: FaultyDisk) -> list[tuple[int, bytes]]:
    """Several segments, and all places."""
    log = LogFiles(disk, GROUP, SMALL)
    log.view(View(1, ("A", "B")))
    places = [(log.next, log.hash)]
    for number in range(40):
        log.packets([packet(number), packet(100 + number)])
        log.sync()
        places.append((log.next, log.hash))
    log.note(b"newest")
    log.sync()
    log.close()
    return places


@pytest.mark.parametrize("at", [0, 1, 13, 39, 40])
def test_what_is_behind_a_place_is_gone_and_the_log_goes_on(at: int) -> None:
    disk = quiet_disk()
    places = log_with_note(disk)
    drop_above(disk, *places[at])
    log = LogFiles(disk, GROUP, SMALL)
    assert (log.next, log.hash, log.context.note) == (*places[at], b"newest")
    log.packets([packet(7)])
    log.sync()
    log.close()
    assert payloads(disk)[-2:] == written(range(7, 8))
    assert len(payloads(disk)) == places[at][0] + 2


def test_a_place_within_a_frame() -> None:
    disk = quiet_disk()
    places = log_with_note(disk)
    inside = place_at(disk, places[3][0] + 2)
    assert inside is not None
    drop_above(disk, *inside)
    assert LogFiles(disk, GROUP, SMALL).place.hash == inside[1]


def test_only_a_place_of_the_log_can_be_its_end() -> None:
    disk = quiet_disk()
    places = log_with_note(disk)
    for position, hash_ in ((places[5][0], bytes(16)), (places[5][0] + 1, places[5][1]), (10**6, bytes(16))):
        with pytest.raises(LogError, match="cannot be cut there"):
            drop_above(disk, position, hash_)
    assert LogFiles(disk, GROUP, SMALL).next == places[-1][0]


def test_a_snapshot_behind_the_place_is_gone() -> None:
    disk = quiet_disk()
    log = write_frames(disk, range(3))
    place = (log.next, log.hash)
    log.packets([packet(5)])
    log.sync()
    log.adopt_snapshot(log.next, log.save_snapshot(log.place, b"state"))
    log.close()
    drop_above(disk, *place)
    again = LogFiles(disk, GROUP, SMALL)
    assert (again.snapshot, again.next) == (None, place[0])
    assert not any(name.endswith(".snapshot") for name in disk.names())


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_meanwhile_leaves_a_log_that_ends_there_or_later(seed: int) -> None:
    random = Random(seed)
    disk = FaultyDisk(random)
    disk.allow(ENOUGH, 0.0)
    places = log_with_note(disk)
    target = random.choice(places)
    disk.allow(random.randrange(1, 30), 0.0)
    with suppress(Crashed):
        drop_above(disk, *target)
    disk.allow(ENOUGH, 0.0)
    disk.restart(power=random.random() < 0.7)
    log = LogFiles(disk, GROUP, SMALL)
    assert (log.next, log.hash) in places
    assert log.next >= target[0]
    assert log.context.note == b"newest"
    log.close()
    drop_above(disk, *target)
    assert LogFiles(disk, GROUP, SMALL).place.position == target[0]
