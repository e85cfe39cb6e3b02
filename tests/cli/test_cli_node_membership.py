"""`ordercast node` while members come and go."""

from pathlib import Path

import pytest

from ordercast.audit.reference import audit
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
