"""`ordercast members`."""

import json
import os
import signal

import pytest

from ordercast.live import group_members
from tests.cli.conftest import Command
from tests.cli.nodes import Nodes


def test_it_says_who_is_there_and_who_does_not_answer(ordercast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_members, "PATIENCE", 0.3)
    with Nodes("--failure-timeout", "30") as nodes:
        nodes.opened()
        found = ordercast("members", nodes.group)
        assert found.status == 0
        assert found.out.startswith(f"group {nodes.group}: order total, view 0, 3 members\n")
        assert [line.split()[:2] for line in found.out.splitlines()[2:]] == [["0", "A"], ["1", "B"], ["2", "C"]]
        assert found.out.count("present") == 3
        watched = ordercast("top", nodes.group, "--once", "--every", "0.1", "--json")
        lines = [json.loads(line) for line in watched.out.splitlines()]
        assert [member["sent"] for member in lines[1]["members"]] == [0, 0, 0]
        assert lines[0]["members"][0]["rates"] is None
        assert lines[1]["members"][0]["rates"]["sent"] == 0
        paused = nodes.processes["C"]
        os.kill(paused.pid, signal.SIGSTOP)
        try:
            found = ordercast("members", nodes.group, "--json")
        finally:
            os.kill(paused.pid, signal.SIGCONT)
        members = json.loads(found.out)["members"]
        assert [(member["name"], member["presence"]) for member in members] == [
            ("A", "present"),
            ("B", "present"),
            ("C", "silent"),
        ]
        address = members[2]["address"]
        found = ordercast("members", nodes.group, "--join", f"127.0.0.1:9, {address}")
        assert (found.status, found.out.count("present")) == (0, 3)
        assert all(status == 0 for status, _, _ in nodes.end().values())


def test_a_group_that_is_not_there_has_a_status_of_its_own(ordercast: Command) -> None:
    for arguments in ((), ("--join", "127.0.0.1:9", "--timeout", "0.1")):
        found = ordercast("members", "no such group", *arguments)
        assert found.status == 1
        assert found.out == ""
        assert "no such group" in found.sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--join", "127.0.0.1"], "--join: '127.0.0.1' is not an address"),
        (["--join", "127.0.0.1:9,"], "--join: '' is not an address"),
        (["--join", "0.0.0.0:9"], "others cannot send to 0.0.0.0:9"),
        (["--join", "10.0.0.1:7000"], "or add --insecure if nobody else can reach this network"),
        (["--timeout", "0"], "--timeout must be"),
        (["--join", "127.0.0.1:9", "--key", "/does/not/exist"], "/does/not/exist"),
        (["--key", "/does/not/exist"], "/does/not/exist"),
    ],
)
def test_wrong_arguments_are_refused(ordercast: Command, arguments: list[str], sentence: str) -> None:
    refused = ordercast("members", "orders", *arguments)
    assert refused.status == 2
    assert sentence in refused.sentence
