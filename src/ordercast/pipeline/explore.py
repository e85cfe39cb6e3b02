"""Exhaustive searches on Spark: each level of a search is a DataFrame of states, expanded by tasks.

A row is a state: its digest, a path that leads to it, and its sleep set. Tasks replay paths on machines of their own
and give the states that they reach; Spark removes those that were reached before. The processes of tasks cache results
from level to level. See `ordercast.explorer.portable` for paths and digests.

Only Spark's DataFrame API is used.
"""

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ordercast.explorer.distributed import SearchCounts, counterexample_of, path_of_failure
from ordercast.explorer.expansion import SAMPLE, Expansion
from ordercast.explorer.explore import SearchProgress, SearchReport
from ordercast.explorer.parallel import Share
from ordercast.explorer.portable import Portable, PortablePath
from ordercast.explorer.scenario import Scenario
from ordercast.model.config import require
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DIGEST, _ASLEEP, _PATH, _NEW = "digest", "asleep", "path", "new"
_STATE = pa.schema([(_DIGEST, pa.binary()), (_ASLEEP, pa.int64()), (_PATH, pa.binary())])
_BROKEN, _EDGES, _CONTINUED, _LONGEST, _NODE_STATES = "broken", "edges", "continued", "longest", "node_states"
_COUNTS = (_EDGES, _CONTINUED, _LONGEST, _NODE_STATES)
_REACHED = pa.schema([*_STATE, (_BROKEN, pa.binary()), *[(name, pa.int64()) for name in _COUNTS]])
_SHARE, _SHARES = 1_000, 64  # at most: states of a task, and tasks of a level
_ROWS = 20_000  # of a batch that a task gives


def explore_on_spark(
    spark: "SparkSession",
    scenario: Scenario,
    max_states: int = 1_000_000,
    *,
    reduced: bool = True,
    progress: SearchProgress | None = None,
    from_states: int = 5_000,
) -> SearchReport:
    """Searches a scenario; the report is that of a search in one process, except for times and continuations.

    `max_states`: the search ends with the level in which it finds more. `from_states`: levels with fewer states are
    searched in this process, until one has so many. `progress` is called after each level. That receipts come to an end
    is checked where a schedule returns to a state that was expanded before (see `explore`), in the levels searched in
    this process only.
    """
    began = time.perf_counter()
    here = Share(scenario, 0, 1, reduced=reduced)
    require(here.expansion.highest_action() < 1 << 62, "the group is too large for a search on Spark; use fewer nodes")
    total = _Total()
    while here.frontier and len(here.frontier) < from_states and here.states() <= max_states and here.broken is None:
        here.level()
        total.level(here.states(), len(here.frontier))
    if total.left and here.broken is None and total.states > max_states:
        here.continue_frontier()
    counts = total.counts = here.counts()
    if total.left and counts.broken is None and total.states <= max_states:
        _search(spark, here, total, max_states, began, progress)
    return SearchReport(
        states=total.states,
        edges=counts.edges,
        exhausted=not total.left and counts.broken is None,
        seconds=time.perf_counter() - began,
        node_states=counts.node_states,
        continued=counts.continued,
        longest=counts.longest,
        depth=total.depth,
        counterexample=None if counts.broken is None else counterexample_of(scenario, counts.broken),
    )


@dataclass
class _Total:
    counts: SearchCounts = field(default_factory=SearchCounts)
    states: int = 1
    left: int = 1
    depth: int = 0

    @property
    def broken(self) -> PortablePath | None:
        return self.counts.broken

    def level(self, states: int, left: int) -> None:
        """Counts one more level."""
        self.states, self.left = states, left
        self.depth += bool(left)

    def add(self, reached: "DataFrame") -> None:
        """Adds the counters of tasks."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark is used

        totals = reached.agg(
            f.sum(_EDGES).alias(_EDGES),
            f.sum(_CONTINUED).alias(_CONTINUED),
            f.max(_LONGEST).alias(_LONGEST),
            f.max(_NODE_STATES).alias(_NODE_STATES),
            f.min(_BROKEN).alias(_BROKEN),
        )
        [row] = collected(totals).to_pylist()
        counts = self.counts
        counts.edges += row[_EDGES] or 0
        counts.continued += row[_CONTINUED] or 0
        counts.longest = max(counts.longest, row[_LONGEST] or 0)
        counts.node_states = max(counts.node_states, row[_NODE_STATES] or 0)
        counts.broken = row[_BROKEN]


def _search(
    spark: "SparkSession", here: Share, total: _Total, max_states: int, began: float, progress: SearchProgress | None
) -> None:
    """Continues the search on Spark until it is exhausted, finds a violation, or exceeds the limit."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark is used

    space = here.expansion.space
    expand = partial(_expanded, scenario=pickle.dumps(space.scenario), reduced=here.reduced)
    rows = [{_DIGEST: digest, _ASLEEP: asleep, _PATH: path} for digest, asleep, path in here.portable_states()]
    known = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_STATE))
    frontier = known.where(f.col(_PATH).isNotNull()).localCheckpoint()
    known = known.select(_DIGEST, _ASLEEP).localCheckpoint()
    while total.left and total.broken is None and total.states <= max_states:
        shares = max(1, min(total.left // _SHARE, _SHARES))
        spread = frontier.repartitionByRange(shares, _PATH)
        reached = spread.mapInArrow(expand, spark_schema(_REACHED)).localCheckpoint()
        total.add(reached)
        frontier = _next_level(reached, known)
        [row] = collected(frontier.agg(f.count("*").alias("left"), f.sum(_NEW).alias(_NEW))).to_pylist()
        total.level(total.states + (row[_NEW] or 0), row["left"])
        known = known.unionByName(frontier.select(_DIGEST, _ASLEEP))
        if progress is not None:
            progress(total.states, time.perf_counter() - began)
    if total.left and total.broken is None:
        sample = frontier.sample(fraction=1 / SAMPLE, seed=0)
        total.add(sample.mapInArrow(partial(expand, ends_only=True), spark_schema(_REACHED)))


def _next_level(reached: "DataFrame", known: "DataFrame") -> "DataFrame":
    """The states that are new, or whose sleep set became smaller."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark is used

    arrived = (
        reached.where(f.col(_DIGEST).isNotNull())
        .groupBy(_DIGEST)
        .agg(f.bit_and(_ASLEEP).alias(_ASLEEP), f.min(_PATH).alias(_PATH))
    )
    before = known.groupBy(_DIGEST).agg(f.bit_and(_ASLEEP).alias("slept"))
    joined = arrived.join(before, _DIGEST, "left")
    slept = f.coalesce("slept", f.lit(-1))
    stays = slept.bitwiseAND(f.col(_ASLEEP))
    return (
        joined.where(stays != slept)
        .select(_DIGEST, stays.alias(_ASLEEP), _PATH, f.col("slept").isNull().cast("long").alias(_NEW))
        .localCheckpoint()
    )


@lru_cache(maxsize=1)
def _expansion(scenario: bytes, *, reduced: bool) -> tuple[Expansion, Portable]:
    """Kept from task to task, with its caches."""
    expansion = Expansion(pickle.loads(scenario), reduced=reduced)  # noqa: S301 - we wrote it ourselves
    return expansion, Portable(expansion.space)


def _expanded(
    batches: Iterator[pa.RecordBatch], *, scenario: bytes, reduced: bool, ends_only: bool = False
) -> Iterator[pa.RecordBatch]:
    """The states reached from those of some rows; the last row has the counters, and the path of a violation."""
    expansion, portable = _expansion(scenario, reduced=reduced)
    continuations = expansion.continuations
    edges, continued = expansion.edges, continuations.runs
    rows: dict[bytes, tuple[int, PortablePath]] = {}
    broken: PortablePath | None = None
    for path, asleep in sorted((row[_PATH], row[_ASLEEP]) for batch in batches for row in batch.to_pylist()):
        state = portable.state(path)
        if ends_only:
            broken = None if expansion.reaches_goal(state) else path
        else:
            for step, after, behind in expansion.expand(state, asleep):
                digest = portable.digest(after)
                known = rows.get(digest)
                rows[digest] = (
                    (behind, portable.longer(path, state, step)) if known is None else (known[0] & behind, known[1])
                )
            if expansion.failure is not None:
                broken = path_of_failure(portable, path, state, expansion.failure)
        if broken is not None:
            break
    found = [{_DIGEST: digest, _ASLEEP: asleep, _PATH: path} for digest, (asleep, path) in rows.items()]
    counted = {_BROKEN: broken, _EDGES: expansion.edges - edges, _CONTINUED: continuations.runs - continued}
    counted |= {_LONGEST: continuations.longest, _NODE_STATES: len(expansion.space.nodes.states)}
    for first in range(0, len(found), _ROWS):
        yield pa.RecordBatch.from_pylist(found[first : first + _ROWS], schema=_REACHED)
    yield pa.RecordBatch.from_pylist([counted], schema=_REACHED)
