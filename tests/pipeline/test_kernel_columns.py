"""Which events become arrays, and which are left to the reference audit: bounds, and every inconsistency."""

from typing import Any

import pytest

from ordercast.pipeline.audit.kernel import columns as kernel_columns
from ordercast.pipeline.audit.kernel.columns import MOST_NODES, NotVectorisableError, columns_of
from ordercast.trace.schema import EventKind
from tests.audit.figures import Row
from tests.pipeline.random_runs import batch_of

GOOD: tuple[Row, ...] = (
    (0, 0, 0, "send", 0, 0, (0, 1), None),
    (0, 1, 1, "send", 0, 1, (0, 1), None),
    (0, 2, 2, "deliver", 0, 0, None, None),
    (0, 3, 3, "deliver", 0, 1, None, None),
    (1, 0, 2, "deliver", 0, 0, None, None),
    (1, 1, 3, "deliver", 0, 1, None, None),
    (1, 2, 4, "view", None, None, (0, 1), None),
    (1, 3, 5, "crash", None, None, None, None),
)
NODE, STEP, SOURCE, SEQ, DESTINATIONS = 0, 1, 4, 5, 6


def changed(place: int, column: int, value: Any) -> list[Row]:
    rows = [list(row) for row in GOOD]
    rows[place][column] = value
    return [tuple(row) for row in rows]  # type: ignore[misc]


def test_what_is_consistent_becomes_arrays() -> None:
    run = columns_of(2, [batch_of(list(GOOD))])
    assert run.sends.seq.tolist() == [0, 1]
    assert run.events[EventKind.DELIVER].message.tolist() == [0, 1, 0, 1]
    assert run.events[EventKind.DELIVER].node.tolist() == [0, 0, 1, 1]
    assert run.stopped == frozenset({1})
    assert run.aborted_at == {}
    assert run.views == {1: [(2, 0b11)]}


def test_events_that_no_audit_reads_are_left_out() -> None:
    """Whatever they name: the reference audit does not look at them either."""
    other: Row = (9, 0, 0, "discard", None, None, (9,), None)
    assert columns_of(2, [batch_of([*GOOD, other])]).views == {1: [(2, 0b11)]}


def test_views_are_in_the_order_of_their_steps() -> None:
    rows: list[Row] = [(0, 5, 5, "view", None, None, (0,), None), (0, 3, 3, "view", None, None, (0, 1), None)]
    assert columns_of(2, [batch_of([row]) for row in rows]).views == {0: [(3, 0b11), (5, 0b01)]}


def test_a_view_is_one_that_names_its_members() -> None:
    """One that does not is ignored, as the reference audit does; and what a crash names is no view."""
    for place, members in ((6, None), (7, (0,))):
        run = columns_of(2, [batch_of(changed(place, DESTINATIONS, members))])
        assert run.stopped == frozenset({1})
        assert run.views == ({} if place == 6 else {1: [(2, 0b11)]})


@pytest.mark.parametrize(
    ("place", "column", "value"),
    [
        *((0, NODE, node) for node in (-1, 1, 2)),  # a message is sent at its source
        *(
            (2, NODE, node) for node in (-1, 2, MOST_NODES, 1 << 14, 1 << 16, -(1 << 16))
        ),  # the last two are 0 in 16 bits
        *((place, column, None) for place in (0, 2) for column in (SOURCE, SEQ)),
        *((0, DESTINATIONS, wrong) for wrong in (None, (0, 2), (-1,), (0, None))),
        (1, SEQ, 0),  # one name for two messages
        (1, STEP, 0),  # two events of a log at one step
        (3, STEP, 2),
        (2, STEP, 1),
        *((place, NODE, node) for place in (6, 7) for node in (-1, 2)),
        *((6, DESTINATIONS, wrong) for wrong in ((0, 2), (-1, 0), (0, None))),
    ],
)
def test_what_is_inconsistent_does_not(place: int, column: int, value: Any) -> None:
    with pytest.raises(NotVectorisableError):
        columns_of(2, [batch_of(changed(place, column, value))])


def test_the_parts_of_a_run_may_come_in_any_order() -> None:
    """Also if a node's numbers do not follow each other, or do not rise as it sends."""
    for other in (GOOD[1], (0, 1, 1, "send", 0, 7, (0, 1), None)):
        rows = [GOOD[0], other, *((*row[:5], other[5], *row[6:]) if row[5] == 1 else row for row in GOOD[2:])]
        whole = columns_of(2, [batch_of(rows)])
        for parts in ([rows[4:], rows[:4]], [rows[::-1]], [[row] for row in rows]):
            run = columns_of(2, [batch_of(list(part)) for part in parts])
            assert run.sends.seq.tolist() == whole.sends.seq.tolist()
            assert run.sends.addressed.tolist() == whole.sends.addressed.tolist()
            for kind, events in whole.events.items():
                assert run.events[kind].message.tolist() == events.message.tolist()
                assert run.events[kind].step.tolist() == events.step.tolist()


@pytest.mark.parametrize(("seqs", "expected"), [((4, 5), [0, 1]), ((4, 9), [0, 1]), ((9, 4), [1, 0])])
def test_what_nobody_sent_is_unknown(seqs: tuple[int, int], expected: list[int]) -> None:
    sends: list[Row] = [(0, step, 0, "send", 0, seq, (0,), None) for step, seq in enumerate(seqs)]
    asked = [(0, min(seqs)), (0, max(seqs)), (0, 3), (0, 10), (0, 7), (1, 4), (2, 4), (-1, 4)]
    deliveries: list[Row] = [
        (1, step, 1, "deliver", source, seq, None, None) for step, (source, seq) in enumerate(asked)
    ]
    run = columns_of(2, [batch_of([*sends, *deliveries])])
    assert run.events[EventKind.DELIVER].message.tolist() == [*expected, *[-1] * 6]


def test_as_many_nodes_as_there_may_be() -> None:
    assert columns_of(MOST_NODES, []).nodes == MOST_NODES
    with pytest.raises(NotVectorisableError):
        columns_of(MOST_NODES + 1, [])


def test_a_table_over_nodes_and_messages_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_columns, "MOST_CELLS", 6)
    sends: list[Row] = [(0, step, 0, "send", 0, step, (0,), None) for step in range(3)]
    assert columns_of(2, [batch_of(sends)]).sends.seq.size == 3
    with pytest.raises(NotVectorisableError):
        columns_of(3, [batch_of(sends)])
