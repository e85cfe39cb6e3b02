"""All that is addressed to a node, nothing else, nothing twice."""

import pytest

from ordercast.audit.completeness import PARTS, complete
from tests.audit.figures import Figure

SENT = ["a23 b3 c1", "p13", "x123"]
WHOLE = ["c p x", "a x", "a b p x"]


def found(figure: Figure) -> list[tuple[str, int]]:
    return [(figure.letters(violation), violation.nodes[0]) for violation in complete(figure.logs())]


def sentences(figure: Figure) -> str:
    return "; ".join(violation.sentence for violation in complete(figure.logs()))


def test_each_node_has_what_is_for_it() -> None:
    assert found(Figure(SENT, WHOLE)) == []
    assert found(Figure(SENT, ["x c p", "x a", "p x b a"])) == []


@pytest.mark.parametrize(
    ("received", "expected", "sentence"),
    [
        (["c p", "a x", "a b p x"], [("x", 0)], "E1 lacks E3#0, sent to {E1,E2,E3}"),
        (["", "a x", "a b p x"], [("c", 0), ("p", 0), ("x", 0)], "E1 lacks E1#2"),
        (["c p", "a", "a b p"], [("x", 0), ("x", 1), ("x", 2)], "E2 lacks E3#0"),
        (["c b p x", "a x", "a b p x"], [("b", 0)], "E1 delivered E1#1, which was sent to {E3} only"),
        (["c p x", "a x p", "a b p x"], [("p", 1)], "E2 delivered E2#0, which was sent to {E1,E3} only"),
        (["c p x", "a x a", "a b p x"], [("a", 1)], "E2 delivered E1#0 twice, as numbers 0 and 2 of its log"),
        (["c p x x x", "a x", "a b p x"], [("x", 0), ("x", 0)], "twice, as numbers 2 and 4"),
        (["c p x ?", "a x", "a b p x"], [("?", 0)], "which no node sent"),
        (["c p x", "a x", "b p x b"], [("a", 2), ("b", 2)], "E3 lacks E1#0"),
    ],
)
def test_each_way_of_breaking_it_is_told(received: list[str], expected: list[tuple[str, int]], sentence: str) -> None:
    figure = Figure(SENT, received)
    assert found(figure) == expected
    assert sentence in sentences(figure)


def test_a_name_given_twice_is_told() -> None:
    figure = Figure(SENT, WHOLE)
    figure.add(0, "send", "a", to=(1,))
    assert found(figure) == [("a", 0)]
    assert "E1 gave the name E1#0 to two messages" in sentences(figure)


def test_a_broadcast_heeds_no_destinations() -> None:
    figure = Figure(["a23", "", ""], ["", "a", "a"])
    assert found(figure) == []
    [violation] = complete(figure.logs().addressed_to_everybody())
    assert violation.nodes == (0,)


@pytest.mark.parametrize("ending", ["crash", "abort"])
def test_a_node_that_stopped_may_lack_anything_but_have_nothing_else(ending: str) -> None:
    figure = Figure(SENT, ["c p x", "x", "a b p x"])
    figure.add(1, ending)
    assert found(figure) == []
    figure.add(1, "deliver", "p")
    figure.add(1, "deliver", "x")
    assert found(figure) == [("p", 1), ("x", 1)]


def test_what_a_stopped_node_sent_goes_to_all_who_go_on_or_to_none() -> None:
    nobody = Figure(["a123 b2", "", "c12"], ["a", "", ""])
    nobody.add(0, "crash")
    assert found(nobody) == [("c", 1)]  # its sender goes on, and so does the one that lacks it
    somebody = Figure(["a123", "", ""], ["", "a", ""])
    somebody.add(0, "crash")
    assert found(somebody) == [("a", 2)]


@pytest.mark.parametrize("level", ["accept", "preack", "ack", "send"])
def test_who_has_crashed_does_nothing_more(level: str) -> None:
    did = {"accept": "accepted", "preack": "pre-acknowledged", "ack": "acknowledged", "send": "sent"}[level]
    figure = Figure(["a12", ""], ["a", "a"])
    crashed = Figure(["a12", ""], ["a", "a"])
    for each, order in ((figure, (level, "crash")), (crashed, ("crash", level))):
        for kind in order:
            if kind == "send":
                each.names["b"] = (0, 1)
                each.add(0, kind, "b", to=(0,))
            else:
                each.add(0, kind, None if kind == "crash" else "a")
    assert list(complete(figure.logs())) == []
    [violation] = complete(crashed.logs())
    assert violation.sentence == f"E1 {did} E1#{int(level == 'send')} after it had crashed"
    assert violation.nodes == (0,)


def broken_parts(figure: Figure) -> set[str]:
    """The parts of `complete` that are broken; each names itself."""
    logs = figure.logs()
    broken = {part.__name__: list(part(logs)) for part in PARTS}
    assert all(violation.breaks == name for name, violations in broken.items() for violation in violations)
    return {name for name, violations in broken.items() if violations}


def test_each_part_finds_what_it_is_named_after_and_nothing_else() -> None:
    whole = Figure(SENT, WHOLE)
    assert broken_parts(whole) == set()
    whole.add(0, "send", "a", to=(1,))
    assert broken_parts(whole) == {"nothing_extra"}
    before = Figure(["a12", ""], ["a", "a"])
    before.rows = [(row[0], 9 if row[3] == "send" else row[1], *row[2:]) for row in before.rows]
    assert broken_parts(before) == {"sent_first"}


@pytest.mark.parametrize("event", ["send", "deliver", "accept"])
def test_what_is_done_after_a_crash_is_a_part_of_its_own(event: str) -> None:
    figure = Figure(["a12 b12", ""], ["a b", "a b"] if event != "deliver" else ["a b", "a"])
    assert broken_parts(figure) == ({"all_delivered"} if event == "deliver" else set())
    node = 0 if event == "send" else 1
    figure.names["c"] = (0, 2)
    figure.add(node, "crash")
    assert broken_parts(figure) == set()
    figure.add(node, event, "c" if event == "send" else "b", to=(0,) if event == "send" else None)
    assert broken_parts(figure) == {"nothing_after_crash"}
