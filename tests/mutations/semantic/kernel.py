"""Semantic mutants of the vectorised audit: a check that is left out, or compares something else."""

from dataclasses import replace as changed
from typing import Any

import numpy as np

from ordercast.pipeline.audit import memory, run
from ordercast.pipeline.audit.kernel import checks, columns, levels
from ordercast.pipeline.audit.kernel.columns import EventArrays, RunColumns
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("pipeline.audit.kernel.checks")
LEVELS = "pipeline.audit.kernel.levels"
COLUMNS = "pipeline.audit.kernel.columns"


def _always(*_: Any, **__: Any) -> bool:
    return True


@MUTANTS.add("completeness is not checked")
def _() -> None:
    replace(checks, "_complete", _always)


@MUTANTS.add("senders' order is not checked")
def _() -> None:
    replace(checks, "in_sending_order", _always)


@MUTANTS.add("the common order is not checked")
def _() -> None:
    replace(checks, "is_one_order", _always)


@MUTANTS.add("cycles are not searched for")
def _() -> None:
    replace(checks, "acyclic", _always)


@MUTANTS.add("priority runs are not compared")
def _() -> None:
    replace(checks, "_same_runs", _always)


@MUTANTS.add("logs of stopped nodes count as a whole")
def _() -> None:
    def whole(run_: RunColumns, logs: EventArrays) -> EventArrays:
        del run_
        return logs

    replace(checks, "_without_tails", whole)


@MUTANTS.add("acceptance is not checked", LEVELS)
def _() -> None:
    replace(levels, "_accepted", _always)


@MUTANTS.add("pre-acknowledgment and acknowledgment are not checked", LEVELS)
def _() -> None:
    replace(levels, "_after", _always)


@MUTANTS.add("delivery before acknowledgment is not checked", LEVELS)
def _() -> None:
    replace(levels, "_delivered", _always)


@MUTANTS.add("every node is in every view", LEVELS)
def _() -> None:
    replace(levels, "_counted_in", lambda _, steps, __: np.ones(steps.shape, np.bool_))


@MUTANTS.add("levels of messages that nobody sent are accepted", LEVELS)
def _() -> None:
    replace(levels, "_all_known", _always)


@MUTANTS.add("crashes, aborts and views are ignored", COLUMNS)
def _() -> None:
    replace(columns, "membership_of", lambda *_: (frozenset(), {}, {}, {}))


@MUTANTS.add("all messages have one priority", COLUMNS)
def _() -> None:
    def around(convert: Any) -> Any:
        def flat(nodes: int, batches: Any) -> RunColumns:
            found: RunColumns = convert(nodes, batches)
            return changed(found, sends=changed(found.sends, priority=np.zeros_like(found.sends.priority)))

        return flat

    wrap(columns, "columns_of", around)


@MUTANTS.add("a run's own counters are not compared", "pipeline.audit.run")
def _() -> None:
    replace(run, "missing_by_counters", lambda *_: "")


@MUTANTS.add("an abort by an unknown node is ignored", "pipeline.audit.run")
def _() -> None:
    replace(run, "_with_abort", lambda _, found: found)


@MUTANTS.add("memory is never checked", "pipeline.audit.memory")
def _() -> None:
    replace(memory, "require_memory", lambda *_: None)
