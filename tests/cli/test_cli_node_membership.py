"""`ordercast node` while members come and go."""

import json
from pathlib import Path

import pytest

from ordercast.audit.reference import audit
from tests.cli.conftest import Command
from tests.cli.nodes import Nodes

ORDERS = ["total", *(pytest.param(order, marks=pytest.mark.soak) for order in ("partial", "priority", "sequenced"))]


@pytest.mark.parametrize("order", ORDERS)
def test_one_that_leaves_at_the_end_of_its_input_lets_the_others_go_on(order: str, tmp_path: Path) -> None:
    with Nodes("--order", order, "--record", str(tmp_path), own={"B": ["--leave"]}) as nodes:
        nodes.opened()
        process = nodes.processes["B"]
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.close()
        process.stdin = None
        status, out, said = nodes.outcome("B")
        assert (status, out, said) == (0, b"B\tone\nB\ttwo\n", "")
        del nodes.processes["B"]
        assert nodes.hear("C", 2) == [b"B\tone\n", b"B\ttwo\n"]
        assert nodes.error("C") == b"ordercast: B left\n"
        assert nodes.error("C") == b"view 1: A, C\n"
        nodes.say("A", b"still here\n")
        assert nodes.hear("C", 1) == [b"A\tstill here\n"]
        outcomes = nodes.end()
    assert {status for status, _, _ in outcomes.values()} == {0}
    verdict = audit([tmp_path])
    assert verdict.holds, verdict.findings


def test_the_end_of_input_does_not_wait_for_a_member_that_died() -> None:
    with Nodes("--failure-timeout", "0.5") as nodes:
        nodes.opened()
        nodes.say("C", b"last words\n")
        assert nodes.hear("A", 1) == [b"C\tlast words\n"]
        nodes.kill("C")
        outcomes = nodes.end(b"bye\n")
    for status, _, said in outcomes.values():
        assert (status, said) == (0, "ordercast: C did not answer\nview 1: A, B\n")


def read_until(nodes: Nodes, name: str, wanted: bytes) -> list[bytes]:
    """What a member says on standard error up to this line."""
    lines = [nodes.error(name)]
    while lines[-1] != wanted:
        assert lines[-1], lines
        lines.append(nodes.error(name))
    return lines


@pytest.mark.parametrize("order", ORDERS)
def test_one_joins_by_the_name_of_the_group_and_counts_at_the_end(order: str, tmp_path: Path) -> None:
    with Nodes("--order", order, "--record", str(tmp_path)) as nodes:
        nodes.opened()
        nodes.say("A", b"before\n")
        assert nodes.hear("C", 1) == [b"A\tbefore\n"]
        nodes.start("node", nodes.group, "--name", "D", "--join", "local", "--record", str(tmp_path), called="D")
        assert nodes.error("D") == f"ordercast: D is in the group {nodes.group} with A, B, C\n".encode()
        assert read_until(nodes, "D", b"view 1: A, B, C, D\n")
        assert read_until(nodes, "A", b"view 1: A, B, C, D\n") == [b"ordercast: D joined\n", b"view 1: A, B, C, D\n"]
        nodes.say("B", b"after\n")
        assert nodes.hear("D", 1) == [b"B\tafter\n"]
        for name in "ABC":
            pipe = nodes.processes[name].stdin
            assert pipe is not None
            pipe.close()
            nodes.processes[name].stdin = None
        nodes.say("D", b"the others wait for this\n")
        assert nodes.hear("A", 3)[2] == b"D\tthe others wait for this\n"
        assert nodes.processes["A"].poll() is None
        pipe = nodes.processes["D"].stdin
        assert pipe is not None
        pipe.close()
        nodes.processes["D"].stdin = None
        assert {name: nodes.outcome(name)[0] for name in "ABCD"} == dict.fromkeys("ABCD", 0)
    verdict = audit([tmp_path])
    assert verdict.holds, verdict.findings


def test_one_that_was_killed_and_is_started_again_joins_the_group(tmp_path: Path) -> None:
    with Nodes("--record", str(tmp_path)) as nodes:
        nodes.opened()
        nodes.kill("B")
        nodes.start("node", nodes.group, "--name", "B", "--members", "A,B,C", "--record", str(tmp_path), called="B")
        assert nodes.error("B") == f"ordercast: B is in the group {nodes.group} with A, C\n".encode()
        nodes.say("B", b"back again\n")
        assert nodes.hear("A", 1) == [b"B\tback again\n"]
        outcomes = nodes.end()
    assert {status for status, _, _ in outcomes.values()} == {0}
    verdict = audit([tmp_path])
    assert verdict.holds, verdict.findings


def test_joiners_that_do_not_fit_are_told_why_and_nobody_is_disturbed(ordercast: Command) -> None:
    with Nodes() as nodes:
        nodes.opened()
        found = ordercast("members", nodes.group, "--json")
        address = json.loads(found.out)["members"][1]["address"]
        for arguments, why in (
            (["--name", "A"], "the name A is in use"),
            (["--name", "D", "--order", "sequenced"], 'the group has order="total", D has order="sequenced"'),
            (["--name", "D", "--failure-timeout", "7"], "failure_timeout"),
        ):
            failed = ordercast("node", nodes.group, "--join", f"127.0.0.1:9,{address}", *arguments)
            assert (failed.status, failed.out) == (1, "")
            assert why in failed.sentence
        assert all((status, said) == (0, "") for status, _, said in nodes.end().values())


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        ("g --join local", 2, "--join needs the name of this member: give --name"),
        ("g --join local --members A,B --name A", 2, "--members and --join exclude each other"),
        ("g --join local --size 3 --name A", 2, "--size and --join exclude each other"),
        ("g --join here --name A", 2, "--join: 'here' is not an address"),
        ("g --join 10.0.0.1:7000 --name A --insecure", 2, "needs the address of this member: give --bind"),
        ("g --join 10.0.0.1:7000 --name A --bind 10.0.0.2:0", 2, "add --insecure"),
        ("g --join local --name A,B", 2, "'A,B' is not a valid member name"),
    ],
)
def test_what_makes_no_sense_together_is_refused(ordercast: Command, arguments: str, status: int, why: str) -> None:
    refused = ordercast(f"node {arguments}")
    assert refused.status == status
    assert why in refused.sentence


def test_a_group_that_is_not_there_cannot_be_joined(ordercast: Command) -> None:
    for contacts in ("local", "127.0.0.1:9"):
        failed = ordercast(f"node 'no such group' --name D --timeout 0.5 --join {contacts}")
        assert failed.status == 1
        assert "no member of the group no such group" in failed.sentence
