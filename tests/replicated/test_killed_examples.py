"""The examples of replicated objects as real processes, of which one is killed and started again."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from tests.live.ports import free_group

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Processes:
    """Members A, B and C of one example."""

    def __init__(self, example: str) -> None:
        self.group, self.example = free_group(example), example
        self.running: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str) -> None:
        line = [sys.executable, str(EXAMPLES / f"{self.example}.py"), name, self.group]
        self.running[name] = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def kill(self, name: str) -> list[str]:
        """What it still said."""
        process = self.running.pop(name)
        process.kill()
        return process.communicate(timeout=30)[0].splitlines()

    def end(self) -> None:
        for process in list(self.running.values()):
            process.kill()

    def line(self, name: str) -> str:
        pipe = self.running[name].stdout
        assert pipe is not None
        return pipe.readline().rstrip("\n")

    def until(self, name: str, pattern: str) -> list[str]:
        """Its next lines, up to one that fits."""
        found = [self.line(name)]
        while not re.fullmatch(pattern, found[-1]):
            assert found[-1], f"{name} has ended"
            found.append(self.line(name))
        return found


@contextmanager
def processes(example: str) -> Iterator[Processes]:
    found = Processes(example)
    late = Timer(60, found.end)  # who waits for a line goes on
    late.start()
    try:
        for name in "ABC":
            found.start(name)
        yield found
    finally:
        late.cancel()
        for name in list(found.running):
            found.kill(name)


def test_a_dictionary_counts_on_where_the_killed_process_was() -> None:
    with processes("visits") as members:
        for name in "ABC":
            members.until(name, f"{name} sees {name} = 1")
        members.kill("C")
        members.start("C")
        members.until("A", "A sees C = 2")
        members.until("C", "C sees C = 2")


def test_the_jobs_of_a_killed_worker_are_done_by_others() -> None:
    with processes("job_queue") as members:
        done = members.until("C", r"C did job \d+")
        done += members.kill("C")
        for name in "AB":
            text, _ = members.running[name].communicate(timeout=30)
            assert members.running[name].returncode == 0
            done += text.splitlines()
        jobs = {int(line.rpartition(" ")[2]) for line in done}
        assert jobs == set(range(30))


def test_the_lock_of_a_killed_process_goes_on_to_others_with_larger_tokens() -> None:
    with processes("fenced_lock") as members:
        held = members.until("C", r"C holds it with token \d+")
        held += members.kill("C")
        last = int(held[-1].rpartition(" ")[2])
        for name in "AB":
            while int(members.until(name, rf"{name} holds .*")[-1].rpartition(" ")[2]) < last + 3:
                pass
        members.start("C")
        again = members.until("C", r"C holds it with token \d+")
        assert int(again[-1].rpartition(" ")[2]) > last + 3


def test_a_bank_loses_nothing_when_a_branch_is_killed_and_comes_back() -> None:
    with processes("bank") as members:
        members.until("B", r"-\d+ and \d+ are 0")
        members.kill("A")
        seen = members.until("B", r"-(?:[6-9]\d|\d{3,}) and \d+ are 0")  # it goes on without it
        members.start("A")
        back = members.until("A", "A begins with .*")[-1]
        ann = int(back.split(" ")[3])
        assert ann <= -60  # Ann's account as B has it, which A was given; it does not hold Bob's
        assert back.endswith(" and 0")
        seen += [members.line("B") for _ in range(20)]
        assert all(line.endswith(" are 0") for line in seen if " are " in line)


@pytest.mark.soak
def test_a_paused_holder_has_lost_the_lock_and_every_token_has_one_holder() -> None:
    """SIGSTOP for longer than the failure timeout: what the lock protects would refuse the old token."""
    with processes("fenced_lock") as members:
        pattern = r"([ABC]) holds it with token (\d+)"
        said = {name: members.until(name, pattern) for name in "ABC"}
        members.running["C"].send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        while time.monotonic() < stopped + 8:
            said["A"].append(members.line("A"))
            said["B"].append(members.line("B"))
        members.running["C"].send_signal(signal.SIGCONT)
        largest = max(int(line.rpartition(" ")[2]) for name in "AB" for line in said[name])
        while int(said["C"][-1].rpartition(" ")[2]) <= largest:  # it returns, and waits for its turn
            said["C"].append(members.line("C"))
        tokens = [int(line.rpartition(" ")[2]) for name in "ABC" for line in said[name]]
        assert len(set(tokens)) == len(tokens)
        for name in "ABC":
            own = [int(line.rpartition(" ")[2]) for line in said[name]]
            assert own == sorted(own)
