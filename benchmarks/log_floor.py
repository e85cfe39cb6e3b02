"""What writing a log must cost on this machine: checksum, hash, write and sync of the same bytes, each alone.

Beside it, what a log costs, and what a live group of three members has left for its logs: at full speed, where they
share processors and a disk, and at loads that leave these some room, where throughput must be the same.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from log_live import MEMBERS, in_turns, told

from ordercast.log import format as log_format
from ordercast.log.checksum import crc32
from ordercast.log.disk import File, FolderDisk
from ordercast.log.writer import MAX_FRAME

_SHARES = (0.25, 0.8)
"""Of the highest load without logs, or of what the disk takes, if that is less."""
_SECONDS = 2.0
_MEGABYTES = 256


def _least(call: Callable[[int], object], count: int) -> float:
    """Processor microseconds of a call, the least of five turns."""
    found = []
    for _ in range(5):
        begun = time.thread_time()
        for number in range(count):
            call(number)
        found.append((time.thread_time() - begun) / count)
    return min(found) * 1e6


class _Cached:
    """A file whose writes all go through the system's page cache."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)

    def write(self, start: int, parts: list[bytes]) -> int:
        return os.pwritev(self._file, parts, start)

    def sync(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _synced(file: File | _Cached, parts: list[bytes], megabytes: int) -> tuple[float, float]:
    """Frames as those of a log at full speed, written and synced: processor time of writes, and of syncs."""
    at, size = 0, sum(map(len, parts))
    writing = syncing = 0.0
    while at < megabytes << 20:
        times = [time.thread_time()]
        file.write(at, parts)
        times.append(time.thread_time())
        file.sync()
        times.append(time.thread_time())
        writing, syncing, at = writing + times[1] - times[0], syncing + times[2] - times[1], at + size
    file.close()
    return writing, syncing


def disk_speed(folder: Path, files: int) -> float:
    """Bytes a second that this disk takes when so many logs write frames and sync them at once."""
    disk, parts = FolderDisk(folder, write=True), [os.urandom(MAX_FRAME)]
    names = [f"file-{number}" for number in range(files)]
    for name in names:
        disk.create(name).close()
    threads = [
        threading.Thread(target=_synced, args=(disk.open(name), parts, _MEGABYTES // files), daemon=True)
        for name in names
    ]
    begun = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    seconds = time.perf_counter() - begun
    for name in names:
        disk.remove(name)
    disk.close()
    return (_MEGABYTES << 20) / seconds


def floor(folder: Path, size: int, packet: int) -> str:
    """Each part alone, in microseconds of a message; `packet`: bytes of messages in one."""
    count = packet // size
    payloads = [os.urandom(count * size) for _ in range(MAX_FRAME // packet + 1)]
    record = bytes(log_format.RECORD_SIZE + log_format.HASH_SIZE)
    checksum = _least(lambda number: crc32(payloads[number % len(payloads)]), 200) / count
    hashed = _least(lambda _: blake2b(record, digest_size=log_format.HASH_SIZE).digest(), 2000) / count
    disk = FolderDisk(folder, write=True)
    cached = _synced(_Cached(folder / "cached"), payloads, _MEGABYTES)
    disk.create("direct").close()
    direct = _synced(disk.open("direct"), payloads, _MEGABYTES)
    for name in ("cached", "direct"):
        disk.remove(name)
    disk.close()
    each = 1e6 * size / (_MEGABYTES << 20)
    return (
        f"{size:>5} B x {count:<4} alone, us of CPU a message: checksum {checksum:.3f}, running hash {hashed:.3f}, "
        f"write {direct[0] * each:.3f}, sync {direct[1] * each:.3f}, together "
        f"{checksum + hashed + sum(direct) * each:.3f}; through the page cache write {cached[0] * each:.3f}, "
        f"sync {cached[1] * each:.3f}"
    )


def live_floor(folders: Sequence[Path], orders: tuple[str, ...], messages: int, turns: int) -> Iterator[str]:
    """Live groups at full speed, beside what the disk takes of three logs, and at a part of that."""
    speeds = {files: disk_speed(folders[0], files) for files in (1, len(MEMBERS))}
    for files, speed in speeds.items():
        yield f"the disk, {MAX_FRAME >> 20} MiB written and synced, {files} at once: {speed / 1e6:,.0f} MB/s"
    for order in orders:
        for size, count in ((100, messages), (1024, messages // 5)):
            without, with_logs = in_turns(folders, order, size, count, turns)
            takes = speeds[len(MEMBERS)] / len(MEMBERS) / size
            yield told(order, size, without, with_logs)
            yield f"{'':11}the disk takes {takes:,.0f}/s of three logs: {takes / without.rate:.2f} of the rate without"
            for share in _SHARES:
                rate = share * min(without.rate, takes)
                yield f"offered {rate:,.0f}/s ({rate / without.rate:.2f} of the rate without logs):"
                yield told(order, size, *in_turns(folders, order, size, int(rate * _SECONDS), turns, rate))
