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
write = sys.stdout.write

def tell(position, hash_):
    write(f"{position}\\n")
    sys.stdout.flush()

log = Log(sys.argv[1], "killed", on_durable=tell, options=Options(Retention(bytes=200_000), max_segment=50_000))
log.view(log.next, ["A", "B"])
tell(log.next, b"")
while True:
    text = [b"%d." % position + bytes(50) for position in range(log.next, log.next + 5)]
    log.append(log.next % 2, log.next, [len(each) for each in text], b"".join(text))
    if log.next % 100 == 0 and log.snapshot_due():
        log.snapshot(b"%d" % log.next)
    if log.waiting > 20_000:
        time.sleep(0.001)
"""


def kill_one(folder: Path, seconds: float) -> int:
    """Starts it, kills it some time after it has opened the log; the last position that it told."""
    with subprocess.Popen([sys.executable, "-c", _PROGRAM, str(folder)], stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        told = process.stdout.readline()
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        lines = (told + process.stdout.read()).split(b"\n")[:-1]  # the last one may be cut
    return int(lines[-1])


def kill_many(folder: Path, times: int) -> None:
    chance = random.Random(1)
    told = 0
    for _ in range(times):
        now = kill_one(folder, chance.uniform(0.0, 0.15))
        assert now >= told, "positions never go back"
        told = now
        report = check(folder)
        assert report.damage == ()
        assert report.durable >= told
        position = report.first
        for message in read(folder):
            assert (message.position, message.sender) == (position, "AB"[position // 5 * 5 % 2])
            assert message.payload == b"%d." % position + bytes(50)
            position += 1
        assert position == report.durable
    assert told > 0


def test_a_killed_writer_loses_nothing_that_it_told(tmp_path: Path) -> None:
    kill_many(tmp_path, 3)


@pytest.mark.soak
def test_a_writer_that_is_killed_hundreds_of_times_loses_nothing(tmp_path: Path) -> None:
    kill_many(tmp_path, 300)
