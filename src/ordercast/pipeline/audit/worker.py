"""A worker of `workers`: reads tasks from standard input and writes what became of them."""

import sys

import msgspec

from ordercast.model.errors import TraceError
from ordercast.pipeline.audit.partitioned.tasks import TaskKind, run_task
from ordercast.pipeline.audit.short_runs import JUDGE, judge_batch
from ordercast.pipeline.audit.workers import Answer, Job, ignore_interrupts, receive, send


def main() -> None:
    """Works until there is nothing more to read."""
    ignore_interrupts()
    while (content := receive(sys.stdin.buffer)) is not None:
        send(sys.stdout.buffer, msgspec.msgpack.encode(_answer(msgspec.msgpack.decode(content, type=Job))))


def _answer(job: Job) -> Answer:
    try:
        work = judge_batch(job.task) if job.kind == JUDGE else run_task(TaskKind(job.kind), job.task)
    except TraceError as error:
        return Answer(error=str(error))
    return Answer(work)


if __name__ == "__main__":
    main()
