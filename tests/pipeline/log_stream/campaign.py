"""A live group, queries over its logs and a second group that they write to, all of which are killed at random.

What must hold in the end: the rows of every query are the messages of the group, each position once.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ordercast.gateway import batches_in
from ordercast.log import check, read
from tests.live.ports import free_group
from tests.pipeline.log_stream.examples import EXAMPLES, example
from tests.pipeline.sparks import environment, free_port

NAMES = ("A", "B", "C")
MEMBER = """
import asyncio, signal, sys
import ordercast

async def main(group, name, folder, contacts, pause, order):
    where = {"contacts": "local"} if contacts else {"members": ["A", "B", "C"]}
    settings = {} if contacts else {"settings": ordercast.Settings(order=order, failure_timeout=2.0)}
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    group = await ordercast.join(group, name=name, log=folder, timeout=120, **where, **settings)
    async def send():
        number = 0
        while pause:
            await group.send(b"%s.%d.%d" % (name.encode(), group.starts_at, number))
            number += 1
            await asyncio.sleep(pause)
    async def read():
        async for _ in group.batches():
            pass
    tasks = [asyncio.ensure_future(each()) for each in (send, read)]
    print("in", flush=True)
    await stop.wait()
    for task in tasks:
        task.cancel()
    await group.leave(20)

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "joins", float(sys.argv[5]), sys.argv[6]))
"""
_QUERIES = """
import importlib.util, json, random, sys, time
from pathlib import Path
from ordercast.pipeline import register
from ordercast.pipeline.session import session

root, gateways, once = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "once"
sys.path.append(sys.argv[4])
from exactly_once_tables import table_of

tables = ["sqlite", *(kind for kind, needs in (("delta", "deltalake"), ("iceberg", "pyiceberg"))
                      if importlib.util.find_spec(needs) is not None)]
trigger = {"availableNow": True} if once else {"processingTime": "1 second"}
begun = time.monotonic()

def note(what):
    with open(root / "lives.log", "a") as file:
        print(f"{time.monotonic() - begun:.1f} {what}", file=file)

with session("local[2,3]") as spark:
    note("Spark is there")
    register(spark)
    source = spark.readStream.format("ordercast-log").option("startingOffsets", "earliest")
    source = source.option("maxOffsetsPerTrigger", 2000).option("minPartitions", 2).option("memberTimeout", 300)
    messages = source.load(str(root / "logs"))
    text = messages.selectExpr("to_json(struct(position, sender, string(payload) AS payload)) AS payload")
    rows = messages.select("position", "sender", "payload")
    sinks = {
        "parquet": rows.writeStream.format("parquet").option("path", str(root / "rows")),
        "group": text.writeStream.format("ordercast").option("gateway", gateways).option("gatewayTimeout", 300),
    }
    for kind in tables:
        sinks[kind] = rows.writeStream.foreachBatch(table_of(kind, str(root / kind), "messages"))

    def start(name):
        sink = sinks[name].option("checkpointLocation", str(root / "checkpoints" / name))
        return sink.trigger(**trigger).start()

    queries = {}
    # Of a life that is soon ended two, or none would ever begin; one after the other: Spark gives its Python processes
    # ten seconds to start.
    for name in random.sample(list(sinks), len(sinks) if once else 2):
        queries[name] = start(name)
        while queries[name].isActive and queries[name].lastProgress is None:
            time.sleep(0.1)
        note(f"{name} runs: {queries[name].lastProgress and queries[name].lastProgress.batchId}")
    ended = set()
    while len(ended) < len(queries):
        time.sleep(0.1)
        for name in [name for name in queries if name not in ended and not queries[name].isActive]:
            failed = queries[name].exception()
            if failed is None:
                ended.add(name)
                continue
            note(f"{name} is started again: {str(failed)[-300:]!r}")  # in the same Java, from its checkpoint
            time.sleep(0.5)
            queries[name] = start(name)
    note("all have ended")
    found = spark.read.parquet(str(root / "rows")).orderBy("position").collect()
    with open(root / "parquet.json", "w") as file:
        json.dump([(row.position, row.sender, bytes(row.payload).decode()) for row in found], file)
    (root / "tables.json").write_text(json.dumps(tables))
"""
_WITHOUT_SPARK = """
import json, sqlite3, sys, time
from pathlib import Path
import pyarrow as pa
from pyspark.sql.types import StringType, StructType
from ordercast.pipeline.log_stream.member_log import OrderPlace
from ordercast.pipeline.log_stream.options import options_of
from ordercast.pipeline.log_stream.planning import LogPlanner
from ordercast.pipeline.log_stream.reading import rows_of
from ordercast.pipeline.log_stream.sink import BatchWriter, sink_options

root, gateways, once = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "once"
table = sqlite3.connect(root / "sqlite")
table.execute("CREATE TABLE IF NOT EXISTS orders (position INTEGER, sender TEXT, payload BLOB)")
table.execute("CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY)")
options = options_of({"path": str(root / "logs"), "startingOffsets": "earliest", "memberTimeout": "300"})
planner = LogPlanner(options)
sink = sink_options({"gateway": gateways, "queryId": "alone", "gatewayTimeout": "300"})
writer = BatchWriter(sink, StructType().add("payload", StringType()))
offsets = root / "checkpoints" / "alone" / "offsets"
offsets.mkdir(parents=True, exist_ok=True)
target = planner.boundary("latest") if once else None

def place(number):
    position, hash_ = json.loads((offsets / str(number)).read_text())
    return OrderPlace(position, bytes.fromhex(hash_))

def note(number, end):
    new = offsets / f".{number}"
    new.write_text(json.dumps([end.position, end.hash.hex()]))
    new.rename(offsets / str(number))

print("runs", flush=True)
known = sorted(int(each.name) for each in offsets.iterdir() if each.name.isdecimal())
number = max(known[-1], 1) if known else 0  # the last batch is repeated, as Spark does
if not known:
    note(0, planner.boundary("earliest"))
    number = 1
while True:
    start = place(number - 1)
    if not (offsets / str(number)).exists():
        end = planner.latest(start, 20000, target)
        if end.position == start.position:
            if once and start.position >= target.position:
                break
            time.sleep(0.2)
            continue
        note(number, end)
    found = []
    for part in planner.parts(start, place(number)):
        for rows in rows_of(part):
            columns = [rows.column(name).to_pylist() for name in ("position", "sender", "payload")]
            found += zip(*columns)
    texts = [json.dumps({"position": p, "sender": s, "payload": t.decode()}) for p, s, t in found]
    writer.commit([writer.write(iter([pa.record_batch({"payload": texts})]))], number)
    with table:
        if table.execute("INSERT OR IGNORE INTO batches VALUES (?)", (number,)).rowcount:
            table.executemany("INSERT INTO orders VALUES (?, ?, ?)", found)
    number += 1
"""
Messages = list[tuple[int, str, str]]


class Campaign:
    """All processes, each started again after whatever happened to it."""

    def __init__(self, root: Path, seed: int, pause: float, *, spark: bool = True) -> None:
        """`pause`: seconds between two messages of a member; `spark`: else a process stands for it, and starts faster.

        That plans, reads and sends as the source and the sink do in Spark, and repeats its last batch as Spark does.
        """
        self._spark = spark
        self._root, self._chance, self._pause = root, random.Random(seed), pause
        self._groups = free_group("source", (*NAMES, "D")), free_group("results", (*NAMES, "D"))
        self._ports = free_port(), free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.counts = dict.fromkeys(("queries", "in mid-batch", "workers", "member", "gateway", "joined", "left"), 0)
        """What has happened."""
        self._begun = 0
        self._log = (root / "processes.log").open("ab")

    # --- processes ---

    def _start(self, name: str, *command: str) -> None:
        self._processes[name] = subprocess.Popen(  # noqa: S603
            [sys.executable, *command], stdout=self._log, stderr=self._log, start_new_session=True, env=environment()
        )

    def _kill(self, name: str) -> None:
        """It and its children, at once: all are in a session of their own."""
        process = self._processes.pop(name)
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def member(self, name: str, *, joins: bool = False) -> None:
        """One that sends."""
        how = ["joins" if joins else "opens", str(self._pause), "total"]
        self._start(name, "-c", MEMBER, self._groups[0], name, str(self._root / "logs" / name), *how)

    def gateway(self, number: int) -> None:
        """One of two, in the other group, beside a member that only reads."""
        name = "AB"[number]
        place = ["--name", name, "--members", "A,B,C", "--log", str(self._root / "results" / name), "--timeout", "120"]
        listen = ["--listen", str(self._ports[number])]
        self._start(f"gateway{number}", "-m", "ordercast", "gateway", self._groups[1], *place, *listen)

    def queries(self, how: str = "on") -> None:
        """Three of them, in one Spark."""
        self._begun = self._batches()
        gateways = ",".join(f"http://127.0.0.1:{port}" for port in self._ports)
        program = _QUERIES if self._spark else _WITHOUT_SPARK
        self._start("queries", "-c", program, str(self._root), gateways, how, str(EXAMPLES))

    def begin(self) -> None:
        """Everything."""
        for name in NAMES:
            self.member(name)
        for number in (0, 1):
            self.gateway(number)
        results = self._root / "results" / "C"
        self._start("reader", "-m", "ordercast", "gateway", self._groups[1], *self._reader(results))
        self.queries()

    def _reader(self, folder: Path) -> list[str]:
        return ["--name", "C", "--members", "A,B,C", "--log", str(folder), "--listen", "0", "--timeout", "120"]

    def _batches(self) -> int:
        """So many were begun by all queries."""
        return sum(1 for each in self._root.glob("checkpoints/*/offsets/*") if each.name.isdecimal())

    # --- what happens ---

    def happen(self) -> None:
        """One thing."""
        kinds = ["queries", "queries", "member", "member", "gateway", "joins or leaves"]
        kind = self._chance.choice(kinds + ["workers"] * 4 * self._spark)
        if kind == "queries":
            if not self._wait_for_batches():
                return  # Spark is starting, which takes long on a busy machine
            self.counts["in mid-batch"] += self._uncommitted() > 0
            self._kill("queries")
            self.queries()
        elif kind == "workers":
            if not self._kill_worker():
                return
        elif kind == "member":
            name = self._chance.choice(NAMES)
            self._kill(name)
            time.sleep(self._chance.uniform(0, 4))
            self.member(name)
        elif kind == "gateway":
            number = self._chance.randrange(2)
            self._kill(f"gateway{number}")
            time.sleep(self._chance.uniform(0, 4))
            self.gateway(number)
        elif "D" in self._processes:
            self._end("D")
            kind = "left"
        else:
            self.member("D", joins=True)
            kind = "joined"
        self.counts[kind] += 1

    def _wait_for_batches(self) -> bool:
        """Whether all queries have begun a batch in this life; then, mostly, waits for one that is under way."""
        if self._batches() == self._begun:
            return False
        deadline = time.monotonic() + self._chance.choice([0, 3, 3])
        while time.monotonic() < deadline and not self._uncommitted():
            time.sleep(0.01)
        time.sleep(self._chance.uniform(0, 0.3))
        return True

    def _uncommitted(self) -> int:
        """Queries with a batch that was begun and not committed."""
        places = list(self._root.glob("checkpoints/*"))
        return sum(_last(each / "offsets") > _last(each / "commits") for each in places)

    def _kill_worker(self) -> bool:
        """One of the Python processes that plan, read and write for Spark: a task is tried again, or a query fails."""
        workers = [pid for pid in _descendants(self._processes["queries"].pid) if _is_python(pid)]
        if not workers:
            return False
        with suppress(ProcessLookupError):
            os.kill(self._chance.choice(workers), signal.SIGKILL)
        return True

    def run(self, seconds: float, pause: Callable[[random.Random], float]) -> None:
        """For so long; then all members leave, and the queries come to the end."""
        self.begin()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(pause(self._chance))
            for name in [name for name, each in self._processes.items() if each.poll() is not None]:
                self._again(name)
            self.happen()
        time.sleep(10)  # members that were just started
        for name in [name for name in (*NAMES, "D") if name in self._processes]:
            self._end(name)
        for left in (2, 1, 0):  # on a busy machine Spark's own workers may not start in time
            self._kill("queries")
            self.queries("once")
            if self._processes["queries"].wait(300) == 0:
                return
            assert left, (self._root / "processes.log").read_text(errors="replace")[-5000:]

    def _again(self, name: str) -> None:
        """A process that has ended by itself: a query, or a member that was left out."""
        self._processes.pop(name)
        if name == "queries":
            self.queries()
        elif name.startswith("gateway"):
            self.gateway(int(name[-1]))
        elif name in NAMES:
            self.member(name)

    def _end(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Nothing is left."""
        for name in list(self._processes):
            self._kill(name)
        self._log.close()

    # --- what must hold ---

    def order(self) -> Messages:
        """That of the group, by the longest of its logs; the others have its beginning."""
        logs = [[(one.position, one.sender, one.payload.decode()) for one in read(each)] for each in self._logs()]
        longest = max(logs, key=lambda each: each[-1][0] if each else 0)
        by_position = {one[0]: one for one in longest}
        for log in logs:
            assert all(by_position.get(one[0], one) == one for one in log)
        assert not any(check(each).damage for each in self._logs())
        return longest

    def _logs(self) -> list[Path]:
        return [each for each in (self._root / "logs").iterdir() if each.is_dir()]

    def found(self) -> dict[str, Messages]:
        """What each query has written, in the order of positions, and of the group in its own."""
        found = {"group": max((batches_of(self._root / "results" / name) for name in NAMES), key=len)}
        kinds = json.loads((self._root / "tables.json").read_text()) if self._spark else ["sqlite"]
        for kind in kinds:
            rows = example().rows_of(kind, str(self._root / kind))
            found[kind] = [(position, sender, payload.decode()) for position, sender, payload in rows]
        if self._spark:
            parquet = json.loads((self._root / "parquet.json").read_text())
            found["parquet"] = [(position, sender, payload) for position, sender, payload in parquet]
        return found


def batches_of(folder: Path) -> Messages:
    """The rows of all batches in a log."""
    rows = [json.loads(row) for batch in batches_in(folder) for row in batch.rows]
    return [(row["position"], row["sender"], row["payload"]) for row in rows]


def _last(folder: Path) -> int:
    """The number of the last batch in a folder of a checkpoint."""
    numbers = [int(each.name) for each in folder.iterdir() if each.name.isdecimal()] if folder.is_dir() else []
    return max(numbers, default=-1)


def _descendants(root: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError):
                parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(each.name))
    found, left = [], [root]
    while left:
        some = children.get(left.pop(), [])
        found += some
        left += some
    return found


def _is_python(pid: int) -> bool:
    try:
        return (
            b"pyspark" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
            and b"python" in (Path("/proc") / str(pid) / "comm").read_bytes()
        )
    except OSError:
        return False
