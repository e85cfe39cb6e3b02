"""`ordercast node --log`: killed and started again with the same arguments, it goes on where the group was."""

import subprocess
import sys
from pathlib import Path

from ordercast.log import read
from tests.live.ports import free_group
from tests.log.test_failing_device import failing_device

NAMES = ("A", "B", "C")


def start(group: str, folder: Path, name: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    arguments = ["node", group, "--members", ",".join(NAMES), "--name", name, "--log", str(folder / name)]
    command = [sys.executable, "-m", "ordercast", *arguments, "--failure-timeout", "1"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)  # noqa: S603


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def test_all_are_killed_and_nothing_is_printed_twice(tmp_path: Path) -> None:
    group = free_group("kept", NAMES)
    nodes = [start(group, tmp_path, name) for name in NAMES]
    try:
        say(nodes[0], "before")
        for node in nodes:
            assert node.stdout is not None
            assert node.stdout.readline() == "A\tbefore\n"
        while not all(any(read(tmp_path / name)) for name in NAMES):
            pass
        for node in nodes:
            node.kill()
            node.communicate()
        nodes = [start(group, tmp_path, name) for name in reversed(NAMES)]
        say(nodes[0], "after")
        for node in nodes:  # one that is started late joins the others
            assert node.stdout is not None
            assert node.stdout.readline() == "C\tafter\n"
        for node in nodes:
            assert node.stdin is not None
            node.stdin.close()
            node.stdin = None
        told = [node.communicate(timeout=30) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [printed for printed, _ in told] == [""] * 3
    assert all("goes on with position 1" in errors for _, errors in told)
    assert [node.returncode for node in nodes] == [0, 0, 0]
    assert [(one.position, one.sender, one.payload) for one in read(tmp_path / "B")] == [
        (0, "A", b"before"),
        (1, "C", b"after"),
    ]


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_one_and_then_two_are_killed_and_started_again_with_the_same_arguments(tmp_path: Path) -> None:
    group = free_group("kept", NAMES)
    nodes = {name: start(group, tmp_path, name) for name in NAMES}

    def all_print(line: str, *names: str) -> None:
        for name in names:
            assert line_of(nodes[name]) == line, name
        while not all(
            any(line.endswith(f"\t{one.payload.decode()}\n") for one in read(tmp_path / name)) for name in names
        ):
            pass  # what is printed may not be on the disk yet, and would be printed again

    def kill(*names: str) -> None:
        for name in names:
            nodes[name].kill()
            nodes[name].communicate()

    def start_again(*names: str) -> None:
        nodes.update({name: start(group, tmp_path, name) for name in names})

    try:
        say(nodes["A"], "first")
        all_print("A\tfirst\n", *NAMES)
        kill("B")
        say(nodes["C"], "meanwhile")
        all_print("C\tmeanwhile\n", "A", "C")
        start_again("B")
        all_print("C\tmeanwhile\n", "B")  # what it lacks, and nothing that it had
        kill("A", "C")
        start_again("C", "A")
        say(nodes["A"], "last")
        all_print("A\tlast\n", *NAMES)
        for node in nodes.values():
            assert node.stdin is not None
            node.stdin.close()
            node.stdin = None
        told = {name: node.communicate(timeout=30) for name, node in nodes.items()}
    finally:
        for node in nodes.values():
            node.kill()
    assert {name: printed for name, (printed, _) in told.items()} == dict.fromkeys(NAMES, "")
    assert [node.returncode for node in nodes.values()] == [0, 0, 0]
    expected = [(0, "A", b"first"), (1, "C", b"meanwhile"), (2, "A", b"last")]
    for name in NAMES:
        assert [(one.position, one.sender, one.payload) for one in read(tmp_path / name)] == expected


def test_a_node_whose_device_fails_says_so_and_comes_back_when_it_is_mended(tmp_path: Path) -> None:
    broken, environment = failing_device(tmp_path)
    group = free_group("kept", NAMES)
    nodes = {name: start(group, tmp_path, name, environment if name == "C" else None) for name in NAMES}
    try:
        say(nodes["A"], "first")
        for node in nodes.values():
            assert line_of(node) == "A\tfirst\n"
        while not any(read(tmp_path / "C")):
            pass
        broken.touch()
        say(nodes["A"], "without C")
        _, error = nodes["C"].communicate(timeout=30)
        assert nodes["C"].returncode == 1
        assert "C leaves the group, because the disk of the log failed: Input/output error" in error
        for name in "A", "B":
            assert line_of(nodes[name]) == "A\twithout C\n"
        broken.unlink()
        nodes["C"] = start(group, tmp_path, "C", environment)
        say(nodes["C"], "back")
        for node in nodes.values():
            line = line_of(node)
            if line == "A\twithout C\n" and node is nodes["C"]:  # unless its log was written before the sync failed
                line = line_of(node)
            assert line == "C\tback\n"
        for node in nodes.values():
            assert node.stdin is not None
            node.stdin.close()
            node.stdin = None
        told = [node.communicate(timeout=30)[0] for node in nodes.values()]
    finally:
        for node in nodes.values():
            node.kill()
    assert told == [""] * 3
    expected = [(0, b"first"), (1, b"without C"), (2, b"back")]
    for name in NAMES:
        assert [(one.position, one.payload) for one in read(tmp_path / name)] == expected
