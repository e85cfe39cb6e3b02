"""Two members find where their logs agree."""

from itertools import pairwise

from ordercast.log.agreement import common_place, locator
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import Packet
from ordercast.simulator.faulty_disk import FaultyDisk
from tests.log.logs import GROUP, ONE, packet, quiet_disk


def log_of(packets: list[Packet], frame: int, options: Options = ONE) -> tuple[FaultyDisk, list[tuple[int, bytes]]]:
    """A disk with these packets, so many in each frame; and the places after each frame."""
    disk: FaultyDisk = quiet_disk()
    log = LogFiles(disk, GROUP, options)
    places = [(log.next, log.hash)]
    for at in range(0, len(packets), frame):
        log.packets(packets[at : at + frame])
        log.sync()
        places.append((log.next, log.hash))
    return disk, places


ALL = [packet(number) for number in range(60)]
SMALLER = Options(max_segment=900, salt=lambda: 8)


def test_a_log_that_is_behind_is_common_up_to_its_end_however_frames_are_cut() -> None:
    behind, places = log_of(ALL[:40], 8)
    donor, _ = log_of(ALL, 3, SMALLER)
    assert common_place(donor, locator(behind)) == places[-1]
    assert common_place(behind, locator(donor)) is not None


def test_what_was_never_agreed_is_behind_the_common_place() -> None:
    own = [packet(100 + number) for number in range(9)]
    strayed, _ = log_of(ALL[:40] + own, 8)
    donor, _ = log_of(ALL, 3, SMALLER)
    place = common_place(donor, locator(strayed))
    assert place is not None
    assert 2 * (40 - 2 * 9) <= place[0] <= 80
    assert place in log_of(ALL, 1)[1]


def test_logs_that_have_nothing_in_common_agree_at_their_beginning_or_nowhere() -> None:
    other, places = log_of([packet(100 + number) for number in range(9)], 2)
    donor, _ = log_of(ALL, 3)
    assert common_place(donor, locator(other)) == places[0]
    assert common_place(donor, locator(other)[:-1]) is None
    assert common_place(donor, [(7, b"x" * 16), (10_000, b"x" * 16)]) is None


def test_a_locator_is_dense_at_the_end_and_sparse_before() -> None:
    disk, places = log_of(ALL, 1)
    found = locator(disk)
    positions = [position for position, _ in found]
    assert positions[:5] == [120, 118, 116, 114, 112]
    gaps = [after - before for after, before in pairwise(positions)]
    assert gaps[:-1] == sorted(gaps[:-1])
    assert positions[-1] == 0
    assert len(found) < 14
    assert set(found) <= set(places)


def test_a_locator_has_the_beginning_of_every_segment() -> None:
    disk, _ = log_of(ALL, 1, SMALLER)
    starts = {int(name) for name in disk.names() if name.isdigit()}
    assert len(starts) > 4
    assert starts <= {position for position, _ in locator(disk)}


def test_what_is_not_on_the_disk_is_no_place() -> None:
    disk, places = log_of(ALL[:4], 1)
    log = LogFiles(disk, GROUP, ONE)
    log.packets([packet(4)])
    assert locator(disk)[0] == places[-1]
    assert common_place(disk, [(log.next, log.hash)]) is None
