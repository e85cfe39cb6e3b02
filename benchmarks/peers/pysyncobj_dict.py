"""`ReplDict` of pysyncobj, three processes, measured like `benchmarks/replicated.py`; needs the package pysyncobj."""

import argparse
import json
import multiprocessing
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from threading import Semaphore
from typing import Any

from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.batteries import ReplDict

PORTS = {"A": 21_711, "B": 21_712, "C": 21_713}
IN_FLIGHT = {"put": 5_000, "put, 64 await": 64, "put, 1 awaits": 1}


def member(name: str, seconds: float, ready: Barrier, found: "Queue[dict[str, float]]") -> None:
    """A process; the leader is the caller."""
    others = [f"127.0.0.1:{port}" for other, port in PORTS.items() if other != name]
    store = ReplDict()
    cluster = SyncObj(f"127.0.0.1:{PORTS[name]}", others, SyncObjConf(commandsQueueSize=1_000_000), consumers=[store])
    while cluster._getLeader() is None or not cluster.isReady():  # noqa: SLF001 (it has no other name)
        time.sleep(0.05)
    ready.wait(30)
    if cluster._isLeader():  # noqa: SLF001
        found.put({mode: _rate(store, limit, seconds) for mode, limit in IN_FLIGHT.items()} | _reads(store, seconds))
    ready.wait(120)
    cluster.destroy()


def _rate(store: Any, limit: int, seconds: float) -> float:
    room, value, done = Semaphore(limit), "v" * 80, 0

    def applied(*_: object) -> None:
        nonlocal done
        done += 1
        room.release()

    begun = time.perf_counter()
    while time.perf_counter() < begun + seconds:
        room.acquire(timeout=5)
        store.set("key", value, callback=applied)
    return done / (time.perf_counter() - begun)


def _reads(store: Any, seconds: float) -> dict[str, float]:
    begun, count = time.perf_counter(), 0
    while time.perf_counter() < begun + seconds:
        for _ in range(1000):
            store.get("key")
        count += 1000
    return {"local read": count / (time.perf_counter() - begun)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    queue, barrier = context.Queue(), context.Barrier(3)
    processes = [context.Process(target=member, args=(name, asked.seconds, barrier, queue)) for name in PORTS]
    for process in processes:
        process.start()
    print(json.dumps(queue.get(timeout=120)))
    for process in processes:
        process.join(30)
