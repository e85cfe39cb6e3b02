"""Members of a pysyncobj cluster (Raft), measured like `ordercast_group.py`; needs the package pysyncobj.

`first` is the leader, whoever that is. A sender has so many commands under way at once: more only queue up.
"""

import argparse
import sys
import threading
import time
from multiprocessing.synchronize import Barrier
from typing import Any

from frame import Meter, arguments, names_of, run_members, summary, tell
from pysyncobj import SyncObj, SyncObjConf, replicated

FIRST_PORT = 21_801
MAX_BYTES_IN_FLIGHT = {"one": 5_000, "first": 5_000, "all": 2_000, "latency": 1}


def address_of(name: str) -> str:
    """Where a member is."""
    return f"127.0.0.1:{FIRST_PORT + ord(name)}"


class Log(SyncObj):  # type: ignore[misc]
    """A log that all apply in one order."""

    def __init__(self, name: str, asked: argparse.Namespace) -> None:
        self.meter: Meter | None = None
        self.mine = threading.Semaphore(0)
        others = [address_of(other) for other in names_of(asked) if other != name]
        options = SyncObjConf(appendEntriesUseBatch=asked.mode != "latency", commandsQueueSize=1_000_000)
        super().__init__(address_of(name), others, options)

    @replicated  # type: ignore[untyped-decorator]
    def apply(self, payload: bytes) -> None:
        """A command, in its place."""
        if self.meter is not None:
            self.meter.hear(payload)


def member(name: str, asked: argparse.Namespace, ready: Barrier) -> dict[str, Any]:
    """A process: the cluster works in a thread of its own, the sender in this one."""
    log = Log(name, asked)
    while log._getLeader() is None or not log.isReady():  # noqa: SLF001 (it has no other name)
        time.sleep(0.05)
    ready.wait(30)
    time.sleep(0.5)
    leads = log._isLeader()  # noqa: SLF001
    leader = log._getLeader().address  # noqa: SLF001
    followers = [each for each in names_of(asked) if leader != address_of(each)]
    is_first_follower = not leads and name == followers[0]
    sends = {"first": leads, "one": is_first_follower, "latency": is_first_follower, "all": True}[asked.mode]
    meter = log.meter = Meter(asked.seconds)
    ready.wait(30)  # nobody sends before all count
    room = threading.Semaphore(MAX_BYTES_IN_FLIGHT[asked.mode])
    padding, number = bytes(asked.size - 9), 0
    while sends and time.monotonic() < meter.end:
        room.acquire(timeout=2)
        sent = time.perf_counter()

        def is_applied(*_: object, sent: float = sent) -> None:
            if asked.mode == "latency":
                meter.latencies.append(time.perf_counter() - sent)
            room.release()

        log.apply(name.encode() + number.to_bytes(8, "big") + padding, callback=is_applied)
        number += 1
    time.sleep(max(0.0, meter.end + 0.3 - time.monotonic()))
    meter.stop()
    log.meter = None
    ready.wait(30)
    log.destroy()
    return meter.figures()


if __name__ == "__main__":
    found = run_members(member, arguments(__doc__).parse_args())
    tell(summary(found))
    sys.exit(0)
