"""The examples run, and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PROMISED = {
    "chat": "all three read the same, in the same order: True",
    "replicated_dictionary": "20 writes were applied 60 times: each by 3 members of 5",
    "alarms": "it overtook the others, and everywhere alike: True",
    "work_queue": "30 jobs were done once each, and all agree on by whom: True",
}


@pytest.mark.parametrize("name", PROMISED)
def test_an_example_runs_and_keeps_its_promise(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == PROMISED[name]


def test_replicas_of_a_key_hold_the_same_value() -> None:
    command = [sys.executable, str(EXAMPLES / "replicated_dictionary.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    lines = [line for line in done.stdout.splitlines() if "all have it" in line]
    assert len(lines) == 4
    assert not any(" / " in line for line in lines)


def test_a_chat_in_three_processes() -> None:
    pipe = subprocess.PIPE
    people = {
        name: subprocess.Popen([sys.executable, str(EXAMPLES / "chat.py"), name], stdin=pipe, stdout=pipe, text=True)  # noqa: S603
        for name in ("ann", "bob", "cy")
    }
    for name, process in people.items():
        assert process.stdin is not None
        process.stdin.write(f"hello from {name}\n")
        process.stdin.close()  # each stays until all have closed
        process.stdin = None
    printed = [process.communicate(timeout=60)[0].splitlines()[1:] for process in people.values()]
    assert printed[0] == printed[1] == printed[2]
    assert sorted(printed[0]) == [f"{name}: hello from {name}" for name in people]
