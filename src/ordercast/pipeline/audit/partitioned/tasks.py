"""The tasks of a partitioned audit: each takes and gives bytes, so that it can run in any process.

Answers are compressed: they are collected in one place, and tables of numbers of neighbouring messages shrink to a
seventh.
"""

import zlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from ordercast.pipeline.audit.partitioned.cut_points import ClosingTask, close_cuts
from ordercast.pipeline.audit.partitioned.explain import ExplainTask, explain
from ordercast.pipeline.audit.partitioned.log_comparison import ComparisonTask, compare
from ordercast.pipeline.audit.partitioned.partition_audit import PartitionTask, audit_partition
from ordercast.pipeline.audit.partitioned.row_group_summary import IndexTask, summarise

_T = TypeVar("_T")


class TaskKind(StrEnum):
    """What a task does."""

    INDEX = "index"
    CLOSE = "close"
    AUDIT = "audit"
    COMPARE = "compare"
    EXPLAIN = "explain"


RunTasks = Callable[[TaskKind, Sequence[bytes]], list[bytes]]
"""Runs tasks of one kind, in any process, and returns their results in order."""

_TASKS: dict[TaskKind, tuple[Any, Callable[[Any], Any]]] = {
    TaskKind.INDEX: (IndexTask, summarise),
    TaskKind.CLOSE: (ClosingTask, close_cuts),
    TaskKind.AUDIT: (PartitionTask, audit_partition),
    TaskKind.COMPARE: (ComparisonTask, compare),
    TaskKind.EXPLAIN: (ExplainTask, explain),
}


def run_task(kind: TaskKind, task: bytes) -> bytes:
    """Runs one task."""
    type_, work = _TASKS[kind]
    return zlib.compress(msgspec.msgpack.encode(work(msgspec.msgpack.decode(task, type=type_))), level=1)


def answer_of(work: bytes, type_: type[_T]) -> _T:
    """What a task answered."""
    return msgspec.msgpack.decode(zlib.decompress(work), type=type_)


def run_in_process(kind: TaskKind, tasks: Sequence[bytes]) -> list[bytes]:
    """Runs tasks in this process, one after the other."""
    return [run_task(kind, task) for task in tasks]
