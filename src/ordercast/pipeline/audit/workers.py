"""Processes of this machine that run tasks of an audit beside each other, one for each core.

They are programs of their own, which get tasks through a pipe: so the program that audits may be of any kind, without
a guard around its main part, and a worker that is killed is told as such. A worker ends when its input does.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from signal import SIG_IGN, SIGINT, signal
from typing import IO

import msgspec

from ordercast.model.errors import PipelineError, TraceError
from ordercast.pipeline.audit.memory import free_memory

BYTES_OF_A_WORKER = 400_000_000
"""About the most memory that one takes."""
_LENGTH = struct.Struct(">Q")


class Job(msgspec.Struct, frozen=True):
    """A task, and what kind of task it is."""

    kind: str
    task: bytes


class Answer(msgspec.Struct, frozen=True):
    """What became of it."""

    result: bytes = b""
    error: str = ""
    """Of a `TraceError`."""


def useful_workers(tasks: int) -> int:
    """As many as there are cores and tasks, and as have memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = free_memory()
    fit = cores if free is None else free // BYTES_OF_A_WORKER
    return max(1, min(cores, tasks, fit))


class Workers:
    """Some workers, which are started when they are needed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._threads = ThreadPoolExecutor(count)

    def run(self, kind: str, tasks: Sequence[bytes]) -> list[bytes]:
        """Runs tasks of one kind and returns their results in order; raises the first `TraceError` of any."""
        while len(self.processes) < min(self._count, len(tasks)):
            self.start()
        return list(self._threads.map(lambda task: self._run(Job(kind, task)), tasks))

    def close(self) -> None:
        """Ends them all."""
        for process in self.processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self.processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):  # what was not sent yet
                    pipe.close()
        self.processes = []

    def start(self) -> None:
        """Starts one more process."""
        command = [sys.executable, "-P", "-m", "ordercast.pipeline.audit.worker"]
        here = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=here)  # noqa: S603
        self.processes.append(process)
        self._idle.put(process)

    def _run(self, job: Job) -> bytes:
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            send(process.stdin, msgspec.msgpack.encode(job))
            content = receive(process.stdout)
        except OSError:
            content = None
        finally:
            self._idle.put(process)
        if content is None:
            raise PipelineError(
                "a process of the audit ended: it was killed, or had no memory left; audit with fewer --processes"
            )
        answer = msgspec.msgpack.decode(content, type=Answer)
        if answer.error:
            raise TraceError(answer.error)
        return answer.result


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Workers that are ended at the end of the block."""
    found = Workers(count)
    try:
        yield found
    finally:
        found.close()


def send(pipe: IO[bytes], content: bytes) -> None:
    """Writes one message."""
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Reads one message; None if the other side has ended."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = pipe.read(length)
    return content if len(content) == length else None


def ignore_interrupts() -> None:
    """An interrupt of the terminal is for the program that audits, which ends its workers."""
    signal(SIGINT, SIG_IGN)
