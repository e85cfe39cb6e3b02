"""The tutorial works: its programs run, one is killed, the records are audited, commands exit as the page says."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.app import app
from tests.documented_programs import new_names

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/tutorial.md").read_text()
PROGRAMS = {
    name: block
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"\A# (\w+\.py)$", block, flags=re.MULTILINE)
}


def section(number: int) -> str:
    return PAGE.partition(f"\n## {number}. ")[2].partition("\n## ")[0]


def commands(number: int) -> list[list[str]]:
    shell = "".join(re.findall(r"^```sh\n(.*?)^```", section(number), flags=re.DOTALL | re.MULTILINE))
    return [shlex.split(line)[1:] for line in shell.splitlines() if line.startswith("ordercast ")]


def run(arguments: list[str], folder: Path) -> Result:
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, arguments)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program of the page with its arguments, in a group of the test's own. None outlives the test."""
    rename, started = new_names(), ExitStack()

    def start(name: str, *arguments: str, text: str = "") -> "subprocess.Popen[str]":
        if not (tmp_path / name).exists():  # one that starts at this moment would find an empty program, and end
            (tmp_path / name).write_text(rename(text or PROGRAMS[name]))
        pipe = subprocess.PIPE
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, name, *arguments], cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        started.enter_context(process)  # which closes its pipes
        started.callback(process.kill)
        return process

    with started:
        yield start


def say(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def read_until(process: "subprocess.Popen[str]", wanted: str) -> list[str]:
    """The lines that it prints up to the one that has these words."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or wanted not in lines[-1]:
        line = process.stdout.readline()
        if not line:
            _, told = process.communicate()
            pytest.fail(f"it ended with {process.returncode}, without {wanted!r}: {lines}; {told}")
        lines.append(line.rstrip("\n"))
    return lines


def ended(*processes: "subprocess.Popen[str]") -> list[list[str]]:
    """What each still prints after the end of its input: they end together."""
    printed = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    for process in processes:
        with process:  # which waits, and closes its pipes
            assert process.stdout is not None
            assert process.stderr is not None
            printed.append(process.stdout.read().splitlines())  # it has some lines of what was read already
            assert process.stderr.read() == ""
    return printed


def killed(process: "subprocess.Popen[str]") -> None:
    with process:
        process.kill()


def test_the_page_has_the_programs_that_are_run_here() -> None:
    assert set(PROGRAMS) == {"hello.py", "store.py"}


def test_three_processes_print_one_order(start: Start) -> None:
    printed = ended(*(start("hello.py") for _ in range(3)))
    assert printed[0] == printed[1] == printed[2]
    assert [int(line.split()[0]) for line in printed[0]] == list(range(9))
    assert sorted(line.split(maxsplit=1)[1] for line in printed[0]) == sorted(
        f"{name} {number} from {name}" for name in "ABC" for number in range(3)
    )


def test_three_replicas_hold_the_same_store(tmp_path: Path, start: Start) -> None:
    members = [start("store.py", name) for name in "ABC"]
    for member, line in zip(members, ("color green", "size 7", "color blue"), strict=True):
        say(member, line)
    found = ended(*members)
    writes = [[line for line in out if " sets " in line] for out in found]
    assert writes[0] == writes[1] == writes[2]
    assert len(writes[0]) == 3
    (store,) = {out[-1] for out in found}
    assert json.loads(store)["size"] == "7"
    assert json.loads(store)["color"] in {"green", "blue"}
    (audit,) = commands(5)
    assert run(audit, tmp_path).exit_code == 0


def test_the_others_go_on_when_the_sequencer_is_killed_and_the_audit_holds(tmp_path: Path, start: Start) -> None:
    a, b, c = (start("store.py", name) for name in "ABC")
    say(b, "color green")
    for member in (a, b, c):
        read_until(member, "B sets color to green")
    killed(a)
    shown = re.findall(r"^```text\n(view .*)\n```", section(4), flags=re.MULTILINE)
    assert shown == read_until(b, "view ")[-1:] == read_until(c, "view ")[-1:]
    say(c, "size 7")
    assert read_until(b, "C sets size to 7")
    (joins,) = re.findall(r"`python store.py A` prints `(view .*?)`", section(4))
    again = start("store.py", "A")
    assert read_until(again, "view ") == read_until(b, "view ") == [joins]
    say(c, "size 8")
    assert [line for line in read_until(again, "C sets size to 8") if "view" in line] == [], "it was told once"
    stores = [{"color": "green", "size": "8"}, {"color": "green", "size": "8"}, {"size": "8"}]
    assert [json.loads(out[-1]) for out in ended(b, c, again)] == stores
    (audit,) = commands(5)
    verdict = run(audit, tmp_path)
    assert verdict.exit_code == 0, verdict.stdout
    assert "violated" not in verdict.stdout


def test_the_others_go_on_in_total_order_too(start: Start) -> None:
    before = 'order="sequenced", resilience=1'
    assert f'`{before}` to `order="total"`' in section(4)
    program = PROGRAMS["store.py"].replace(before, 'order="total"')
    assert program != PROGRAMS["store.py"]
    a, b, c = (start("store.py", name, text=program) for name in "ABC")
    say(b, "color green")
    for member in (a, b, c):
        read_until(member, "B sets color to green")
    killed(c)
    for member in (a, b):
        assert read_until(member, "view ")[-1] == "view 1: A, B"
    say(a, "size 7")
    assert [json.loads(out[-1]) for out in ended(a, b)] == [{"color": "green", "size": "7"}] * 2


def test_who_is_left_without_a_majority_ends_alone(start: Start) -> None:
    a, b, c = (start("store.py", name) for name in "ABC")
    say(b, "color green")
    for member in (a, b, c):
        read_until(member, "B sets color to green")
    killed(a)
    read_until(c, "view 1")
    killed(b)
    (printed,) = ended(c)
    assert "C ended alone: it did not reach B" in printed[-2]
    assert json.loads(printed[-1]) == {"color": "green"}


def test_the_simulation_exits_as_the_page_says(tmp_path: Path) -> None:
    simulate, audit, check = commands(6)
    assert [run(arguments, tmp_path).exit_code for arguments in (simulate, audit)] == [0, 0]
    assert run([*check, "--jobs", "1"], tmp_path).exit_code == 0
