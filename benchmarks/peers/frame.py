"""What all contestants written in Python share: processes that begin together, a window, and one line of JSON."""

import argparse
import json
import multiprocessing
import resource
import statistics
import time
import zlib
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from string import ascii_uppercase
from typing import Any

SENDERS = {"one": "B", "first": "A", "all": ascii_uppercase, "latency": "B"}
"""Who sends in each mode; A is the sequencer, the leader or nobody special."""
WARM_UP = 0.7
COMPARED = 500
"""Messages whose order is compared at all members."""


def names_of(asked: argparse.Namespace) -> tuple[str, ...]:
    """A, B, C, …: as many as asked for."""
    return tuple(ascii_uppercase[: asked.members])


class Meter:
    """Counts what one member hears inside the window."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begin = time.monotonic() + WARM_UP
        self.end = self.begin + seconds
        self.counted = self.heard = self.digest = 0
        self.latencies: list[float] = []
        self._used = time.process_time()

    def hear(self, payload: bytes) -> None:
        """One message came; it begins with its sender's name and its number."""
        self.heard += 1
        if self.heard <= COMPARED:
            self.digest = zlib.crc32(payload[:9], self.digest)
        if self.begin <= time.monotonic() < self.end:
            self.counted += 1

    def hear_many(self, payloads: list[bytes]) -> None:
        """Several came at once."""
        if self.heard < COMPARED:
            for payload in payloads[: COMPARED - self.heard]:
                self.digest = zlib.crc32(payload[:9], self.digest)
        self.heard += len(payloads)
        if self.begin <= time.monotonic() < self.end:
            self.counted += len(payloads)

    def stop(self) -> None:
        """What the processor does from now on is not for messages."""
        self._used = time.process_time() - self._used

    def figures(self) -> dict[str, Any]:
        """Of this member."""
        return {
            "rate": self.counted / self.seconds,
            "heard": self.heard,
            "digest": self.digest,
            "cpu": self._used,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "latencies": self.latencies[len(self.latencies) // 10 :],
        }


def summary(members: list[dict[str, Any]], *, cpu: float | None = None, compared: bool = True) -> dict[str, Any]:
    """The figures of all members together; `cpu`: of others that worked for them too."""
    latencies = sorted(latency for member in members for latency in member["latencies"])
    memory = max(member["memory"] for member in members)
    if latencies:
        p50, p99 = latencies[len(latencies) // 2], latencies[int(len(latencies) * 0.99)]
        return {"p50_us": 1e6 * p50, "p99_us": 1e6 * p99, "memory_mib": memory}
    messages = max(1.0, sum(member["heard"] for member in members) / len(members))
    enough = all(member["heard"] >= COMPARED for member in members)
    used = sum(member["cpu"] for member in members) + (cpu or 0.0)
    return {
        "rate": statistics.median(member["rate"] for member in members),
        "agree": len({member["digest"] for member in members}) == 1 if compared and enough else None,
        "cpu_us": 1e6 * used / messages,
        "memory_mib": memory,
    }


Member = Callable[[str, argparse.Namespace, Barrier], dict[str, Any]]


def _run(member: Member, name: str, asked: argparse.Namespace, ready: Barrier, told: "Queue[Any]") -> None:
    told.put(member(name, asked, ready))


def run_members(member: Member, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Each member in a process of its own; they begin when all have waited for the barrier."""
    fork = multiprocessing.get_context("fork")
    names = names_of(asked)
    ready, told = fork.Barrier(len(names)), fork.Queue()
    processes = [
        fork.Process(target=_run, args=(member, name, asked, ready, told), daemon=True) for name in names
    ]  # fmt: skip
    for process in processes:
        process.start()
    found = [told.get(timeout=asked.seconds + 60) for _ in names]
    for process in processes:
        process.join(10)
    return found


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Those that every contestant takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--mode", choices=SENDERS, default="one")
    parser.add_argument("--members", type=int, choices=range(2, 27), metavar="2…26", default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    return parser


def tell(found: dict[str, Any]) -> None:
    """Prints the figures."""
    print(json.dumps(found))
