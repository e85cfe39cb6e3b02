"""What rows amount to, and what they must not say."""

import random

import pytest

from ordercast.audit.logs import Moment, logs_of
from ordercast.model.errors import TraceError
from tests.audit.figures import Figure, Row, columns, logs_from

SEND: Row = (0, 0, 5, "send", 0, 0, (0, 1), 7)


def test_a_sending_log_keeps_destinations_priority_and_place() -> None:
    logs = logs_from(2, [SEND, (0, 1, 6, "send", 0, 1, (), None)])
    first, second = logs.sent.values()
    assert (first.message, first.place, first.destinations, first.priority, first.moment) == (
        (0, 0),
        0,
        0b11,
        7,
        Moment(step=0, time=5),
    )
    assert (second.message, second.place, second.destinations, second.priority) == ((0, 1), 1, 0, 0)


def test_rows_may_come_in_any_order_and_in_any_parts() -> None:
    figure = Figure(["a12 b12 c12", "p12"], ["a b p c", "p a b c"])
    for kind in ("receive", "accept", "preack", "ack"):
        for letter in "cab":
            figure.add(1, kind, letter, time=3)
    expected = figure.logs()
    shuffled = list(figure.rows)
    random.Random(4).shuffle(shuffled)
    logs = logs_of("r", 2, [columns(shuffled[:7]), columns(shuffled[7:])])
    assert logs == expected
    assert list(logs.sent) == list(expected.sent)
    for kind, by_node in expected.first.items():
        assert [list(moments) for moments in logs.first[kind]] == [list(moments) for moments in by_node]


def test_the_first_time_of_a_level_counts() -> None:
    rows: list[Row] = [SEND, (1, 9, 90, "accept", 0, 0, None, None), (1, 3, 30, "accept", 0, 0, None, None)]
    assert logs_from(2, rows).first["accept"][1] == {(0, 0): Moment(step=3, time=30)}


def test_crashes_and_aborts_stop_a_node() -> None:
    rows: list[Row] = [(1, 0, 0, "crash", None, None, None, None), (2, 0, 0, "abort", None, None, None, None)]
    logs = logs_from(3, rows)
    assert logs.stopped == {1, 2}
    assert logs.aborted_at == {2: Moment(step=0, time=0)}


def test_events_of_unknown_kinds_are_passed_over() -> None:
    assert logs_from(2, [(0, 0, 0, "yawn", None, None, None, None)]).stopped == frozenset()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(2, 0, 0, "deliver", 0, 0, None, None)], "at node 2, but the nodes are 0 to 1"),
        ([(-1, 0, 0, "crash", None, None, None, None)], "at node -1"),
        ([(0, 4, 0, "deliver", 0, None, None, None)], "step 4 of E1, of the kind deliver, has no"),
        ([(0, 4, 0, "accept", None, 0, None, None)], "step 4 of E1, of the kind accept, has no"),
        ([(1, 0, 0, "send", 0, 0, (1,), None)], "E1#0 was sent at E2"),
        ([(0, 0, 0, "send", 0, 0, None, None)], "E1#0 is addressed to None"),
        ([(0, 0, 0, "send", 0, 0, (1, 2), None)], r"addressed to \(1, 2\)"),
        ([(0, 0, 0, "send", 0, 0, (0, None), None)], r"E1#0 is addressed to \(0, None\)"),
        (
            [(1, 0, 0, "view", None, None, (0, -1), None)],
            r"E2 is of \(0, -1\); destinations are some of 0 to 1",
        ),
        ([(1, 0, 0, "view", None, None, (None,), None)], r"a view of E2 is of \(None,\)"),
        ([SEND, (1, 3, 0, "deliver", 0, 0, None, None), (1, 3, 0, "deliver", 0, 1, None, None)], "E2 have the step 3"),
        ([SEND, SEND], "give no two folders that hold the same node"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(rows: list[Row], words: str) -> None:
    with pytest.raises(TraceError, match=words) as caught:
        logs_from(2, rows)
    assert "run r" in str(caught.value)


def test_only_a_view_that_names_its_members_changes_the_group() -> None:
    """Rows from elsewhere: a view that does not say of whom, and a crash that names somebody."""
    logs = logs_from(3, [(0, 0, 0, "view", None, None, None, None), (1, 0, 0, "crash", None, None, (1,), None)])
    assert (logs.views, set(logs.stopped)) == ((), {1})
