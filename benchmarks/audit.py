"""How fast traces are judged: one long run and many short ones, in this process, on Spark, and by DuckDB beside them.

    python benchmarks/audit.py [--deliveries 10000000] [--protocol st] [--runs 500] [--duckdb PYTHON] [--folder DIR]

Traces are made without a simulation (`benchmarks/traces.py`) and kept in DIR, where there is one. Each way runs in a
process of its own; printed are its wall time, the CPU time and the most memory of it and all its children. DuckDB is
no dependency: PYTHON names one that has it. It is asked for less: senders' order, completeness and the order of each
pair of nodes (by one join and one window), but not whether there are cycles.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from traces import Shape, write_run

_IN_PROCESS = """
import sys
from pathlib import Path
from ordercast.pipeline import Engine, audit
verdict = audit([Path(sys.argv[1])], engine=Engine.VECTORISED, note=print)
assert verdict.holds
print(f"{verdict.deliveries:,} deliveries")
"""
_ON_SPARK = """
import os, sys, time
from audit import cpu_of
from pathlib import Path
from ordercast.pipeline import audit
from ordercast.pipeline.session import session
start = time.perf_counter()
with session("local[2]") as spark:
    print(f"session up after {time.perf_counter() - start:.1f} s;", end=" ")
    for word in ("first", "second"):
        start, used = time.perf_counter(), sum(cpu_of(os.getpid()).values())
        verdict = audit([Path(sys.argv[1])], spark=spark, note=print)
        assert verdict.holds
        seconds = time.perf_counter() - start
        used = sum(cpu_of(os.getpid()).values()) - used
        speed = f"{verdict.deliveries / seconds / 1e6:.2f} M deliveries/s"
        print(f"{word} pass {seconds:.1f} s, {used:.1f} s CPU, {speed};", end=" ")
print()
"""
_BY_DUCKDB = """
import sys
import duckdb
db = duckdb.connect()
db.execute("set threads = 2; set enable_progress_bar = false")
events = f"read_parquet('{sys.argv[1]}/events/*.parquet')"
db.execute(f"create table given as select run, node, step, source, seq from {events} where event = 'deliver'")
db.execute(f"create table sent as select run, source, seq, destinations from {events} where event = 'send'")
order = db.execute('''
    select count(*) from (
        select seq < lag(seq) over (partition by run, node, source order by step) as swapped
        from given)
    where swapped''').fetchone()
complete = db.execute('''
    with got as (select run, source, seq, list_sort(list(node)) as nodes from given group by all)
    select count(*) from got full join sent using (run, source, seq)
    where nodes is distinct from list_sort(destinations)''').fetchone()
pairs = db.execute('''
    select count(*) from (
        select b.step < lag(b.step) over (partition by a.run, a.node, b.node order by a.step) as swapped
        from given a join given b on a.run = b.run and a.source = b.source and a.seq = b.seq and a.node < b.node)
    where swapped''').fetchone()
assert (order, complete, pairs) == ((0,), (0,), (0,)), (order, complete, pairs)
print("nothing found")
"""


def main() -> None:
    """Makes the traces that are not there, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=int, default=10_000_000)
    parser.add_argument("--protocol", default="st")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--duckdb", default=None)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        long_run = folder / f"long-{asked.protocol}-{asked.deliveries}"
        if not long_run.exists():
            write_run(long_run, Shape(asked.deliveries, protocol=asked.protocol))
        short_runs = folder / f"short-{asked.runs}"
        if not short_runs.exists():
            for number in range(asked.runs):
                shape = Shape(20_000, protocol=("st", "to")[number % 2], seed=number)
                write_run(short_runs, shape, run=f"run-{number:05}")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for trace in (long_run, short_runs):
            print(trace.name)
            measure("in process", [sys.executable, "-c", _IN_PROCESS, str(trace)])
            measure("on Spark", [sys.executable, "-c", _ON_SPARK, str(trace)])
            if asked.duckdb is not None:
                measure("DuckDB", [asked.duckdb, "-c", _BY_DUCKDB, str(trace)])


def measure(name: str, command: list[str]) -> None:
    """Runs a command and prints what it took."""
    start = time.perf_counter()
    here = {"PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **here})  # noqa: S603
    tree = Tree(process.pid)
    said, _ = process.communicate()
    wall = time.perf_counter() - start
    tree.end()
    used = f"{wall:6.1f} s wall  {tree.cpu:6.1f} s CPU  {tree.memory / 2**20:6.0f} MiB"
    print(f"  {name:<12}{used}   {said.strip() if process.returncode == 0 else 'FAILED'}")


class Tree:
    """Watches a process and its descendants: CPU that they used, and the most memory that they had at one time."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._over = threading.Event()
        self._used: dict[int, float] = {}
        self.memory = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> None:
        """The process has ended."""
        self._over.set()
        self._thread.join()

    @property
    def cpu(self) -> float:
        """Seconds, of all of them."""
        return sum(self._used.values())

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self._used |= cpu_of(self._root)
            self.memory = max(self.memory, sum(_memory_of(pid) for pid in _descendants(self._root)))


def cpu_of(root: int) -> dict[int, float]:
    """The seconds of CPU that a process and its descendants, as far as they live, have used; by process."""
    used: dict[int, float] = {}
    for pid in _descendants(root):
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def _memory_of(pid: int) -> int:
    """Pages that several processes share count in parts: forked workers share most of theirs."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return 0


def _descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(path.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents.get(pid, [])
    return found


if __name__ == "__main__":
    main()
