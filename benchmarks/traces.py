"""Large traces without a simulation: as a good protocol would leave them, and in the layout of our own writer."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.trace.arrow_schema import EVENTS, RUNS

_ROWS = 50_000  # of a row group
_GROUPS = 2_000  # of a file
_SHUFFLED_ROWS = 3_000_000  # of a file, about
_SCATTERED_ROWS = 1_000_000  # that are read at once to be scattered
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_DELIVERIES = 320_000  # that are made at once
_LONGEST = 2_000  # delay, in messages
_BETWEEN = 10  # nanoseconds between sends


@dataclass(frozen=True)
class Shape:
    """What a trace looks like."""

    deliveries: int
    nodes: int = 8
    protocol: str = "st"
    lags: tuple[int, ...] = ()
    """By node: how many messages it is behind. None, if not said."""
    partial: bool = False
    """Whether nodes are given messages of different sources in different orders."""
    seed: int = 1


class _Messages:
    """All messages of a run: who sent them, their numbers, and to whom they go."""

    def __init__(self, shape: Shape) -> None:
        chance = np.random.default_rng(shape.seed)
        nodes = shape.nodes
        selective = shape.protocol in {"st", "spo"}
        mean = nodes * 2 ** (nodes - 1) / (2**nodes - 1) if selective else nodes
        self.count = round(shape.deliveries / mean)
        self.source = chance.integers(0, nodes, self.count).astype(np.int32)
        self.seq = np.empty(self.count, np.int64)
        for node in range(nodes):
            (mine,) = np.nonzero(self.source == node)
            self.seq[mine] = np.arange(mine.size)
        if selective:
            self.to = (chance.integers(1, 2**nodes, self.count)[:, None] >> np.arange(nodes) & 1).astype(np.bool_)
        else:
            self.to = np.ones((self.count, nodes), np.bool_)
        # By node and source: how much later messages arrive than others do.
        self.delay = (
            chance.integers(1, _LONGEST, (nodes, nodes)) if shape.partial else np.ones((nodes, nodes), np.int64)
        )


def write_run(folder: Path, shape: Shape, run: str = "long") -> Path:
    """Writes the trace of one run, block by block in the order of time, in files of a hundred million events."""
    for part in ("events", "runs"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    messages = _Messages(shape)
    groups = _row_groups(run, messages, shape)
    for number, first in enumerate(groups):
        with _writer(folder / f"events/{run}{f'-{number}' if number else ''}.parquet", EVENTS) as file:
            for group in chain([first], islice(groups, _GROUPS - 1)):
                file.write_table(group)
    row = {"run": run, "protocol": shape.protocol, "nodes": shape.nodes, "complete": True, "sent": messages.count}
    pq.write_table(pa.Table.from_pylist([row], schema=RUNS), folder / f"runs/{run}.parquet")
    return folder


def write_shuffled(trace: Path, folder: Path, run: str = "long", seed: int = 1) -> Path:
    """Writes the run of a trace anew: in folders by run and kind of event, its rows in any order.

    Each row goes to one of many files by chance, and then each file's rows are put into any order.
    """
    chance = np.random.default_rng(seed)
    scattered_columns = EVENTS.remove(EVENTS.get_field_index("run"))
    stored = scattered_columns.remove(scattered_columns.get_field_index("event"))
    files = sorted((trace / "events").glob("*.parquet"))
    count = -(-sum(pq.read_metadata(file).num_rows for file in files) // _SHUFFLED_ROWS)
    with tempfile.TemporaryDirectory(dir=trace) as scattered, ExitStack() as open_files:
        heaps = [
            open_files.enter_context(pa.ipc.new_file(f"{scattered}/{number}", scattered_columns, options=_COMPRESSED))
            for number in range(count)
        ]
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(_SCATTERED_ROWS, columns=scattered_columns.names):
                heap = chance.integers(0, count, batch.num_rows)
                rows = batch.take(pa.array(np.argsort(heap, kind="stable")))
                ends = np.searchsorted(np.sort(heap), np.arange(count + 1))
                for number in range(count):
                    heaps[number].write(rows.slice(ends[number], ends[number + 1] - ends[number]))
        open_files.close()
        for number in range(count):
            with pa.ipc.open_file(pa.memory_map(f"{scattered}/{number}")) as heap:
                table = heap.read_all()
            table = table.take(pa.array(chance.permutation(table.num_rows)))
            for kind in ("send", "deliver"):
                place = folder / f"events/run={run}/event={kind}"
                place.mkdir(parents=True, exist_ok=True)
                rows = table.filter(pc.equal(table.column("event"), kind)).drop_columns(["event"])
                with _writer(place / f"{number}.parquet", stored) as file:
                    file.write_table(rows, row_group_size=_ROWS)
    shutil.copytree(trace / "runs", folder / "runs")
    return folder


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Encodes columns as our own writer does."""
    rising = ["step", "time", "seq", "transmission"]
    coded = [name for name in schema.names if name not in {*rising, "destinations"}]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[*coded, "destinations.list.element"],
        column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    )


def _row_groups(run: str, messages: "_Messages", shape: Shape) -> Iterator[pa.Table]:
    lags = np.array(shape.lags or (0,) * shape.nodes)
    steps = np.zeros(shape.nodes, np.int64)
    at_once = max(_DELIVERIES // shape.nodes, _LONGEST if shape.partial else 1)
    left = EVENTS.empty_table()
    for start in range(0, messages.count + int(lags.max()) + 2 * at_once, at_once):
        left = pa.concat_tables([left, _block(run, messages, shape, lags, (start, start + at_once), steps)])
        while left.num_rows >= _ROWS:
            yield left.slice(0, _ROWS)
            left = left.slice(_ROWS)
    if left.num_rows:
        yield left


def _block(
    run: str,
    messages: _Messages,
    shape: Shape,
    lags: npt.NDArray[np.int64],
    between: tuple[int, int],
    steps: npt.NDArray[np.int64],
) -> pa.Table:
    """The events between two instants: the sends of a block, and what nodes are given, which may be of earlier ones."""
    start, end = between
    block = end - start
    sent = np.arange(start, min(end, messages.count))
    node, message, time = [messages.source[sent]], [sent], [sent * _BETWEEN]
    for at in range(shape.nodes):
        # Whatever arrives in this block was sent in it, or at most one block (the longest delay) before it.
        first = start - int(lags[at])
        near = np.arange(max(0, first - block), max(0, min(first + block, messages.count)))
        near = near[messages.to[near, at]]
        arrival = near + messages.delay[at, messages.source[near]] + lags[at]
        here = near[(arrival >= start) & (arrival < end)]
        node.append(np.full(here.size, at, np.int32))
        message.append(here)
        time.append((here + messages.delay[at, messages.source[here]] + lags[at]) * _BETWEEN + 1 + at)
    sizes = [part.size for part in message]
    sends = np.repeat([True, *[False] * shape.nodes], sizes)
    nodes, names, times = np.concatenate(node), np.concatenate(message), np.concatenate(time)
    order = np.lexsort((names, sends, times))
    nodes, names, times, sends = nodes[order], names[order], times[order], sends[order]
    step = np.empty(nodes.size, np.int64)
    for at in range(shape.nodes):
        (mine,) = np.nonzero(nodes == at)
        step[mine] = steps[at] + np.arange(mine.size)
        steps[at] += mine.size
    columns = {
        "run": pa.repeat(run, nodes.size),
        "node": pa.array(nodes),
        "step": pa.array(step),
        "time": pa.array(times),
        "event": pa.DictionaryArray.from_arrays(pa.array(sends.astype(np.int8)), ["deliver", "send"]).cast(pa.string()),
        "source": pa.array(messages.source[names]),
        "seq": pa.array(messages.seq[names]),
        "destinations": _lists(messages.to[names[sends]], sends),
    }
    nothing = {name: pa.nulls(nodes.size, EVENTS.field(name).type) for name in EVENTS.names if name not in columns}
    return pa.Table.from_pydict({name: {**columns, **nothing}[name] for name in EVENTS.names}, schema=EVENTS)


def _lists(to: npt.NDArray[np.bool_], sends: npt.NDArray[np.bool_]) -> pa.Array:
    """The destinations of the rows that are sends, null for the others."""
    rows = sends.size
    offsets = np.zeros(rows + 1, np.int32)
    offsets[1:][sends] = to.sum(axis=1)
    np.cumsum(offsets, out=offsets)
    addressees = pa.array(np.nonzero(to)[1].astype(np.int32))
    return pa.ListArray.from_arrays(pa.array(offsets), addressees, mask=pa.array(~sends))
