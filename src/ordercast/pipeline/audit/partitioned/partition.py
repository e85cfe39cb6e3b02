"""A long run in boxes: what a task does with one. There is no Spark in here.

A box is a set of messages: of each source those with numbers in an interval. Which box an event belongs to is plain
from its own name, so boxes need no agreement between nodes about anything. Where the events of a box may be is known
from a *survey*: of each row group, which numbers of which source it has at which node.

A box is judged by the kernel as if it were a run. What this leaves open is whether boxes come one after the other; so
each box also tells between which steps its events are, and `long_runs` compares.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.audit.logs import LEVELS
from ordercast.audit.priorities import same_runs
from ordercast.audit.services import PROMISES
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.checks import acquits
from ordercast.pipeline.audit.kernel.columns import (
    CODES,
    FIRST_ENDING,
    OTHER,
    UNKNOWN,
    Flags,
    Numbers,
    RunColumns,
    StrangeError,
    columns_of,
    endings_of,
    kinds_of,
    numbers,
)
from ordercast.trace.reader import Part, event_file
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, PRIORITY, RUN, SEQ, SOURCE, STEP, TIME, EventKind

_LEVELS = [CODES[level] for level in LEVELS]
MOST, LEAST = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)


class GroupsOfFile(msgspec.Struct, frozen=True):
    """Some row groups of a file, and the run that is meant."""

    path: str
    in_path: dict[str, str]
    groups: tuple[int, ...]
    run: str | None
    """None if these row groups have no other run's events."""

    def read(self, columns: Sequence[str]) -> pa.RecordBatch:
        """The run's events in there, in the order of the file."""
        columns = tuple(columns) if self.run is None else (*columns, RUN)
        part, opened = _opened(self.path, Path(self.path).stat().st_mtime_ns, tuple(self.in_path.items()), columns)
        batch = part.read_groups(self.groups, opened)
        return batch if self.run is None else batch.filter(pc.equal(batch.column(RUN), self.run))


@lru_cache(maxsize=16)
def _opened(
    path: str, changed: int, in_path: tuple[tuple[str, str], ...], columns: tuple[str, ...]
) -> tuple[Part, pq.ParquetFile]:
    """A file, opened; a worker reads many of its row groups, one by one. When it last changed tells it from another."""
    del changed
    part = event_file(Path(path), dict(in_path), columns)
    return part, part.opened()


class Range(msgspec.Struct, frozen=True):
    """The least and the greatest of some numbers, for each cell of a table; `MOST` and `LEAST` where there are none."""

    lowest: bytes
    highest: bytes

    @classmethod
    def over(cls, cells: int, cell: npt.NDArray[np.signedinteger], values: Numbers) -> "Range":
        """Of values, given the cell of each."""
        lowest, highest = np.full(cells, MOST), np.full(cells, LEAST)
        if values.size:
            order = np.argsort(cell.astype(np.int16) if cells < 2**15 else cell, kind="stable")
            sorted_cells, values = cell[order], values[order]
            starts = np.flatnonzero(np.concatenate(([True], sorted_cells[1:] != sorted_cells[:-1])))
            lowest[sorted_cells[starts]] = np.minimum.reduceat(values, starts)
            highest[sorted_cells[starts]] = np.maximum.reduceat(values, starts)
        return cls(lowest.tobytes(), highest.tobytes())

    def tables(self) -> tuple[Numbers, Numbers]:
        """The least and the greatest of each cell."""
        return np.frombuffer(self.lowest, np.int64), np.frombuffer(self.highest, np.int64)


# --- the survey ---


class Ending(msgspec.Struct, frozen=True):
    """An event that is about a node, not about a message: a crash, a view, giving the group up."""

    node: int
    step: int
    time: int
    event: str
    destinations: tuple[int, ...] | None

    def as_row(self) -> dict[str, object]:
        """As a trace has it."""
        return msgspec.structs.asdict(self)


class SurveyTask(msgspec.Struct, frozen=True):
    """Row groups to be surveyed."""

    nodes: int
    first: int
    """Number of the first of them among all."""
    files: tuple[GroupsOfFile, ...]


class Surveyed(msgspec.Struct, frozen=True):
    """What a row group has."""

    number: int
    strange: bool
    """Whether it names nodes that there are not."""
    rows: int
    """Events about messages."""
    sends: int
    deliveries: bytes
    """How many, by node."""
    endings: tuple[Ending, ...]
    levels: bool
    receipts: bool
    begins: int
    """The least time."""
    steps: Range
    """Of sends and deliveries, by node."""
    in_order: bool
    """Whether each node's sends and deliveries are in the order of its steps."""
    numbers: Range
    """Of all messages, by node and source."""
    delivered: Range
    """Of messages that were delivered, by node and source."""


def survey(task: SurveyTask) -> list[Surveyed]:
    """Looks at row groups one by one."""
    found: list[Surveyed] = []
    for file in task.files:
        for group in file.groups:
            one = msgspec.structs.replace(file, groups=(group,))
            found.append(_surveyed(task.nodes, task.first + len(found), one))
    return found


def _surveyed(nodes: int, number: int, file: GroupsOfFile) -> Surveyed:
    batch = file.read((NODE, STEP, TIME, EVENT, SOURCE, SEQ))
    kind = kinds_of(batch.column(EVENT))
    endings = _endings(file) if np.any((kind >= FIRST_ENDING) & (kind < OTHER)) else ()
    strange = any(not 0 <= at < nodes for one in endings for at in (one.node, *(one.destinations or ())))
    about = kind < FIRST_ENDING
    if not about.all():
        batch, kind = batch.filter(pa.array(about)), kind[about]
    node, step, source, seq = (values(batch.column(name)) for name in (NODE, STEP, SOURCE, SEQ))
    inside = (node >= 0) & (node < nodes) & (source >= 0) & (source < nodes)
    if not inside.all():
        strange = True
        node, step, source, seq, kind = node[inside], step[inside], source[inside], seq[inside], kind[inside]
    cell = node * nodes + source
    is_delivery = kind == CODES[EventKind.DELIVER]
    in_logs = is_delivery | (kind == CODES[EventKind.SEND])
    order = np.argsort(node[in_logs].astype(np.int16), kind="stable")
    steps, at = step[in_logs][order], node[in_logs][order]
    time = batch.column(TIME)
    return Surveyed(
        number=number,
        strange=strange,
        rows=int(node.size),
        sends=int(np.count_nonzero(kind == CODES[EventKind.SEND])),
        deliveries=np.bincount(node[is_delivery], minlength=nodes).tobytes(),
        endings=endings,
        levels=bool(np.isin(kind, _LEVELS).any()),
        receipts=bool(np.any(kind == CODES[EventKind.RECEIVE])),
        begins=pc.min(time).as_py() if batch.num_rows else 0,
        steps=Range.over(nodes, node[in_logs], step[in_logs]),
        in_order=bool(np.all((steps[1:] > steps[:-1]) | (at[1:] != at[:-1]))),
        numbers=Range.over(nodes * nodes, cell, seq),
        delivered=Range.over(nodes * nodes, cell[is_delivery], seq[is_delivery]),
    )


def _endings(file: GroupsOfFile) -> tuple[Ending, ...]:
    batch = file.read((NODE, STEP, TIME, EVENT, DESTINATIONS))
    kind = kinds_of(batch.column(EVENT))
    rows = batch.filter(pa.array((kind >= FIRST_ENDING) & (kind < OTHER))).to_pylist()
    return tuple(msgspec.convert(row, Ending) for row in rows)


def values(column: pa.Array) -> Numbers:
    """A column as an array, with -1 for null."""
    return numbers(column, -1)


# --- judging a box ---


class BoxTask(msgspec.Struct, frozen=True):
    """A box to be judged, and where its events may be."""

    number: int
    nodes: int
    service: str
    levels: bool
    """Whether the run recorded the levels anywhere."""
    receipts: bool
    uniform: bool
    endings: tuple[Ending, ...]
    """Of the whole run."""
    start: tuple[int, ...]
    """By source: the least number in the box."""
    end: tuple[int, ...]
    """By source: the least number above the box."""
    files: tuple[GroupsOfFile, ...]

    def batches(self) -> list[pa.RecordBatch]:
        """The events of the box."""
        columns = [NODE, STEP, EVENT, SOURCE, SEQ, DESTINATIONS]
        columns += [TIME] if self.levels else []
        columns += [PRIORITY] if same_runs in PROMISES[Service(self.service)] else []
        found: list[pa.RecordBatch] = []
        for file in self.files:
            batch = file.read(columns)
            inside = self.holds(values(batch.column(SOURCE)), values(batch.column(SEQ)))
            inside &= kinds_of(batch.column(EVENT)) < FIRST_ENDING
            found.append(batch if inside.all() else batch.filter(pa.array(inside)))
        return found

    def holds(self, source: Numbers, seq: Numbers) -> npt.NDArray[np.bool_]:
        """Whether messages are in the box."""
        start, end = np.array(self.start), np.array(self.end)
        return (seq >= start[source]) & (seq < end[source])


class BoxJudged(msgspec.Struct, frozen=True):
    """What was found of a box."""

    number: int
    acquitted: bool
    rows: int
    unaccepted: bytes = b""
    """By node and source: whether the node did not accept all that it should have."""
    sent: Range | None = None
    """Steps of the sends, by source."""
    delivered: Range | None = None
    """Steps of the deliveries, by node and source."""
    accepted: Range | None = None
    """Steps of the acceptances, by node and source."""
    given: bytes = b""
    """How many deliveries, by node."""
    by_priority: dict[int, Range] = {}
    """Steps of the deliveries, by node and source, of each priority."""


def judge_box(task: BoxTask) -> BoxJudged:
    """Judges a box as if it were a run."""
    batches = task.batches()
    rows = sum(batch.num_rows for batch in batches)
    try:
        run = columns_of(task.nodes, batches)
    except StrangeError:
        return BoxJudged(task.number, acquitted=False, rows=rows)
    stopped, gave_up, views = endings_of(task.nodes, [ending.as_row() for ending in task.endings])
    run = replace(run, stopped=stopped, gave_up=gave_up, views=views)
    run = replace(run, levels_recorded=task.levels, receipts_recorded=task.receipts)
    service = Service(task.service)
    return BoxJudged(
        number=task.number,
        acquitted=acquits(run, service, uniform=task.uniform),
        rows=rows,
        unaccepted=_unaccepted(run, service).tobytes() if task.levels else b"",
        sent=Range.over(task.nodes, run.sends.source, run.sends.step),
        delivered=_steps_of(run, EventKind.DELIVER),
        accepted=_steps_of(run, EventKind.ACCEPT),
        given=np.bincount(run.happened[EventKind.DELIVER].node, minlength=task.nodes).tobytes(),
        by_priority=_steps_by_priority(run) if same_runs in PROMISES[service] else {},
    )


def _steps_of(run: RunColumns, kind: EventKind, priority: int | None = None) -> Range:
    rows = run.happened[kind]
    (known,) = np.nonzero(rows.message != UNKNOWN)
    if priority is not None:
        known = known[run.sends.priority[rows.message[known]] == priority]
    source = run.sends.source[rows.message[known]]
    cell = rows.node[known].astype(np.int32) * run.nodes + source
    return Range.over(run.nodes**2, cell, rows.step[known])


def _steps_by_priority(run: RunColumns) -> dict[int, Range]:
    priorities: list[int] = np.unique(run.sends.priority).tolist()
    return {priority: _steps_of(run, EventKind.DELIVER, priority) for priority in priorities}


def _unaccepted(run: RunColumns, service: Service) -> Flags:
    rows = run.happened[EventKind.ACCEPT]
    known = rows.message != UNKNOWN
    lacking = run.sends.addressed.copy() if service in SELECTIVE else np.ones_like(run.sends.addressed)
    lacking[rows.node[known], rows.message[known]] = False
    found = np.zeros((run.nodes, run.nodes), np.bool_)
    node, message = np.nonzero(lacking)
    found[node, run.sends.source[message]] = True
    return found
