"""The guide "From live groups into Spark and back", followed literally from an empty folder."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.gateway import batches_in
from tests.live.ports import free_group
from tests.pipeline.log_stream.streams_page import blocks
from tests.pipeline.sparks import environment, free_port

SENDS_BACK = """
from ordercast.pipeline.session import session

with session("local[2]") as spark:
    query = send_back(orders(spark))
    query.processAllAvailable()
    query.stop()
"""
PATIENCE = 120.0  # seconds, on a machine that does much else


class Terminals:
    """Programs that run in one folder, and what they have said."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *command: str) -> None:
        with (self._folder / f"{name}.out").open("ab") as said:
            self._running[name] = subprocess.Popen(  # noqa: S603
                [sys.executable, *command],
                cwd=self._folder,
                env=environment(),
                text=True,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
            )

    def type(self, name: str, line: str) -> None:
        pipe = self._running[name].stdin
        assert pipe is not None
        pipe.write(f"{line}\n")
        pipe.flush()

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.out").read_text()

    def wait_for(self, name: str, words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while words not in self.said(name):
            assert time.monotonic() < deadline, f"{name} did not say {words!r}: {self.said(name)}"
            time.sleep(0.1)

    def end(self, name: str, how: signal.Signals | None = None) -> int:
        """By a signal, or by itself; its exit status."""
        process = self._running.pop(name)
        if how is not None:
            process.send_signal(how)
        process.communicate(timeout=PATIENCE)
        return process.returncode

    def end_all(self) -> None:
        for name in list(self._running):
            self.end(name, signal.SIGKILL)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    found = Terminals(tmp_path)
    try:
        yield found
    finally:
        found.end_all()


def positions(shown: str) -> list[int]:
    """The first column of what Spark's console shows."""
    return [int(each) for each in re.findall(r"^\| *(\d+)\|", shown, flags=re.MULTILINE)]


def commands(heading: str, **instead: str) -> list[list[str]]:
    """Those of the first block of a section, with some words replaced; as arguments of Python."""
    lines = blocks(heading, "sh")[0].splitlines()
    found = [[instead.get(word, word) for word in shlex.split(line, comments=True)] for line in lines]
    assert {each[0] for each in found} == {"ordercast"}
    return [["-m", *each] for each in found]


@pytest.mark.soak
def test_the_guide_works_as_it_stands(tmp_path: Path, terminals: Terminals) -> None:
    """A member is killed with its disk, the query is ended and goes on, and the rows come back into another group."""
    for name, command in zip("ABC", commands("Try it", orders=free_group("orders")), strict=True):
        terminals.start(name, *command)
    program = blocks("Try it", "python")[0]
    (tmp_path / "follow.py").write_text(program)
    for name in "ABC":
        terminals.wait_for(name, "is in the group")
        terminals.type(name, f"hello from {name}")
    terminals.start("follow", "follow.py")
    for name in "ABC":
        terminals.wait_for("follow", f"hello from {name}")
    terminals.end("B", signal.SIGKILL)
    shutil.rmtree(tmp_path / "logs" / "B")
    terminals.type("A", "B is gone")
    terminals.wait_for("follow", "B is gone")
    terminals.end("follow", signal.SIGINT)
    terminals.type("C", "nobody follows")
    terminals.wait_for("A", "nobody follows")
    terminals.start("follow", "follow.py")
    terminals.wait_for("follow", "nobody follows")
    assert positions(terminals.said("follow")) == [0, 1, 2, 3, 4]

    ports = {str(number): str(free_port()) for number in (7700, 7701, 7702)}
    for name, command in zip("123", commands("Write back", results=free_group("results"), **ports), strict=True):
        terminals.start(name, *command)
    for name in "123":
        terminals.wait_for(name, "takes batches at")
    sends = blocks("Write back", "python")[0]
    for number, port in ports.items():
        sends = sends.replace(number, port)
    (tmp_path / "send.py").write_text(f"{program.partition('def main')[0]}{sends}{SENDS_BACK}")
    terminals.start("send", "send.py")
    assert terminals.end("send") == 0, terminals.said("send")
    [batch] = batches_in(tmp_path / "results/A")
    assert len(batch.rows) == 5

    terminals.start("audit", *commands("Audit a group while it runs")[0])
    terminals.wait_for("audit", "cannot read the log of B")
    assert terminals.end("audit", signal.SIGINT) == 0
    assert "2 of 3 logs of the group" in terminals.said("audit")
    assert "no disagreement up to position 5" in terminals.said("audit")
