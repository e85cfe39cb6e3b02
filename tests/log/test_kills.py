"""A process that writes a log is killed, again and again: all that it told to be durable is there."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ordercast.log.check import check
from ordercast.log.reader import read

_PROGRAM = """
import sys, time
from ordercast.log import Log, Options, Retention
write, size = sys.stdout.write, int(sys.argv[2])

def tell(position, hash_):
    write(f"{position}\\n")
    sys.stdout.flush()

options = Options(Retention(bytes=4000 * size), max_segment=1000 * size)
log = Log(sys.argv[1], "killed", on_durable=tell, options=options)
log.view(log.next, ["A", "B"])
tell(log.next, b"")
while True:
    text = [b"%d." % position + bytes(size) for position in range(log.next, log.next + 5)]
    log.append(log.next % 2, log.next, [len(each) for each in text], b"".join(text))
    if log.next % 100 == 0 and log.snapshot_due():
        log.snapshot(b"%d" % log.next)
    if log.waiting > 400 * size:
        time.sleep(0.001)
"""


LARGE = 30_000
"""Of a message: frames pass the page cache by."""


def kill_one(folder: Path, seconds: float, size: int, lines: int) -> int:
    """Starts it, kills it some time after it has told so many positions; the last one that it told.

    It tells one when it has opened the log, and the others when they are on the disk.
    """
    with subprocess.Popen([sys.executable, "-c", _PROGRAM, str(folder), str(size)], stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        told = b"".join(process.stdout.readline() for _ in range(lines))
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        positions = (told + process.stdout.read()).split(b"\n")[:-1]  # the last one may be cut
    return int(positions[-1])


def kill_many(folder: Path, times: int, size: int = 50) -> None:
    chance = random.Random(1)
    told = 0
    for turn in range(times):
        now = kill_one(folder, chance.uniform(0.0, 0.15), size, lines=1 + turn % 2)
        assert now >= told, "positions never go back"
        told = now
        report = check(folder)
        assert report.damage == ()
        assert report.durable >= told
        position = report.first
        for message in read(folder):
            assert (message.position, message.sender) == (position, "AB"[position // 5 * 5 % 2])
            assert message.payload == b"%d." % position + bytes(size)
            position += 1
        assert position == report.durable
    assert told > 0


def test_a_killed_writer_loses_nothing_that_it_told(tmp_path: Path) -> None:
    kill_many(tmp_path, 3)


def test_a_killed_writer_of_large_messages_loses_nothing_that_it_told(tmp_path: Path) -> None:
    kill_many(tmp_path, 3, LARGE)


@pytest.mark.soak
def test_a_writer_of_large_messages_that_is_killed_a_hundred_times_loses_nothing(tmp_path: Path) -> None:
    kill_many(tmp_path, 100, LARGE)


@pytest.mark.soak
def test_a_writer_that_is_killed_hundreds_of_times_loses_nothing(tmp_path: Path) -> None:
    kill_many(tmp_path, 300)
