"""Small logs for tests."""

from pathlib import Path
from random import Random
from typing import Any

from ordercast.log.disk import Disk, FolderDisk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import Packet, View
from ordercast.log.reader import messages_of
from ordercast.simulator.faulty_disk import FaultyDisk

GROUP = "orders"
MEMBERS = ("A", "B", "C")
SMALL = Options(max_segment=400, salt=lambda: 7, clock=lambda: 1)
ONE = Options(max_segment=1 << 20, salt=lambda: 7, clock=lambda: 1)
"""All in one segment."""
FRAME = 128
"""Bytes of a frame with one `packet`."""


def packet(number: int, source: int = 0, size: int = 5) -> Packet:
    """Of two messages, which have the number in them."""
    first, second = b"%d." % number + bytes(size), b"%d!" % number
    return Packet(source, 2 * number, [len(first), len(second)], first + second)


def write_frames(disk: Disk, numbers: range, options: Options = SMALL) -> LogFiles:
    """Opens a log, writes a frame for each number and syncs it; its view is number 3 of `MEMBERS`."""
    log = LogFiles(disk, GROUP, options)
    if log.context.view.number != 3:
        log.view(View(3, MEMBERS))
    for number in numbers:
        log.packets([packet(number, number % 3)])
        log.sync()
    return log


def payloads(disk: Disk, start: int | None = None) -> list[bytes]:
    return [message.payload for message in messages_of(disk, start)]


def written(numbers: range) -> list[bytes]:
    """The payloads of `write_frames`."""
    return [each for number in numbers for each in (b"%d." % number + bytes(5), b"%d!" % number)]


def folder_log(folder: Path, count: int, max_segment: int = 1000) -> Path:
    """A log in a folder, of messages "m0", "m1", … of senders in turn, a frame for each."""
    disk = FolderDisk(folder, write=True)
    log = LogFiles(disk, GROUP, Options(max_segment=max_segment))
    log.view(View(3, MEMBERS))
    for number in range(log.next, log.next + count):
        text = b"m%d" % number
        log.packets([Packet(number % 3, number, [len(text)], text)])
    log.sync()
    log.close()
    disk.close()
    return folder


def quiet_disk() -> Any:
    """A disk without faults."""
    return FaultyDisk(Random(0))
