"""Members of a group as processes, as people and scripts start them."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import IO, Self

from tests.live.ports import free_group

NAMES = ("A", "B", "C")
_PATIENCE = 60
_WAITING = """
import ordercast.cli.relay, rich.console, uvloop
from ordercast.cli import main
print(flush=True)
input()
main()
"""


def new_group() -> str:
    """A name that no other test has, also of those that run at the same time."""
    return free_group("nodes")


class Nodes(AbstractContextManager["Nodes"]):
    """Some members; what is still there in the end is killed."""

    def __init__(self, *options: str, names: Sequence[str] = NAMES, own: dict[str, list[str]] | None = None) -> None:
        """`own`: options of one member only."""
        self.group = new_group()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._names = list(names)
        self._killed: list[subprocess.Popen[bytes]] = []
        for name in names:
            given = (*options, *(own or {}).get(name, ()))
            self.start("node", self.group, "--name", name, "--members", ",".join(NAMES), *given, called=name)

    def start(
        self, command: str, *arguments: str, called: str | None = None, waits: bool = False, stdin: int | None = None
    ) -> None:
        """Starts an `ordercast` with pipes; one that `waits` is loaded, and begins when it is said a line."""
        begin = ["-c", _WAITING] if waits else ["-m", "ordercast.cli"]
        line = [sys.executable, *begin, command, *arguments]
        pipe = subprocess.PIPE
        given = pipe if stdin is None else stdin
        self.processes[called or command] = subprocess.Popen(line, stdin=given, stdout=pipe, stderr=pipe)  # noqa: S603

    def kill(self, name: str) -> None:
        """Without a chance to say anything."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(_PATIENCE)  # or its port may still be taken when another is started in its place
        self._killed.append(process)

    def say(self, name: str, text: bytes) -> None:
        """Types something at a member."""
        pipe = _pipe(self.processes[name].stdin)
        pipe.write(text)
        pipe.flush()

    def hear(self, name: str, lines: int) -> list[bytes]:
        """The next lines that a member prints."""
        pipe = _pipe(self.processes[name].stdout)
        return [pipe.readline() for _ in range(lines)]

    def error(self, name: str) -> bytes:
        """The next line that a member says on standard error."""
        return _pipe(self.processes[name].stderr).readline()

    def opened(self) -> None:
        """Waits until all have said that they are in the group."""
        for process in self.processes.values():
            line = _pipe(process.stderr).readline()
            while line.startswith(b"ordercast: waiting for "):  # on a busy machine
                line = _pipe(process.stderr).readline()
            assert b"is in the group" in line, line

    def end(self, text: bytes = b"") -> dict[str, tuple[int, bytes, str]]:
        """Ends the input of all members, after a last text; status, output and errors of each."""
        members = [name for name in self._names if name in self.processes]
        for process in (self.processes[name] for name in members):
            pipe = _pipe(process.stdin)
            if text:
                pipe.write(text)
            pipe.close()
            process.stdin = None
        return {name: self.outcome(name) for name in members}

    def outcome(self, name: str) -> tuple[int, bytes, str]:
        """Waits for a member's end: its status, output and errors."""
        process = self.processes[name]
        out, err = process.communicate(timeout=_PATIENCE)
        return process.returncode, out, err.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self.processes.values(), *self._killed):
            if process.poll() is None:
                process.kill()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # what it did not read any more
                        pipe.close()
            process.wait(_PATIENCE)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
