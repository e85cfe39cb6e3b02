"""The rows that tell of views, and the epochs that follow from them."""

from dataclasses import replace

import pytest

from ordercast.audit.excused import excused_by_abort
from ordercast.audit.logs import logs_of
from ordercast.audit.view_epochs import Epochs
from ordercast.model.errors import TraceError
from ordercast.trace.view_rows import heard_in, view_detail
from tests.audit.changing_groups import Row, Script, audited, broken, columns_of, edited, rows_of
from tests.audit.test_audit_changing_groups import GOOD, SENT_AGAIN


def test_views_with_and_without_numbers_are_not_mixed() -> None:
    rows = [*rows_of(GOOD), (2, 90, 90, "view", None, None, (0, 1), None, "1: {E1,E2}; why")]
    with pytest.raises(TraceError, match="some of its views have numbers, and some have none"):
        logs_of("r", 4, [columns_of(rows)])


def test_views_without_numbers_are_those_of_earlier_traces() -> None:
    rows: list[Row] = [
        (1, 0, 0, "view", None, None, (0, 1), None, "1: {E1,E2}; E3 is silent"),
        (2, 0, 0, "leave", None, None, None, None, None),
    ]
    logs = logs_of("r", 3, [columns_of(rows)])
    assert logs.epochs is None
    assert logs.stopped == {2}


def test_a_row_that_names_nobody_sends_nothing_again() -> None:
    rows: list[Row] = [*rows_of(SENT_AGAIN), (0, 90, 90, "renumber", 0, 0, None, None, "2")]
    assert logs_of("r", 3, [columns_of(rows)]).sent == logs_of("r", 3, [columns_of(rows[:-1])]).sent


def test_a_verdict_says_who_is_excused() -> None:
    assert audited(GOOD).excused == [], "views with numbers are audited themselves"
    script = {0: "send a 0 1; deliver a", 1: "crash"}
    assert audited(script).excused == ["run r: what these lack is no violation: E2 (crashed)"]
    unknown = audited({**script, 1: ""}, aborted=True)
    assert unknown.holds
    assert unknown.excused_runs == 1
    assert unknown.excused == [f"run r: {excused_by_abort()}"]
    assert not audited({**script, 1: ""}).holds


def test_a_state_names_its_donor_and_its_view() -> None:
    rows = [*rows_of(GOOD), (2, 90, 90, "state", None, 1, None, None, None)]
    with pytest.raises(TraceError, match="of the kind state, has no source or no seq"):
        logs_of("r", 4, [columns_of(rows)])


@pytest.mark.parametrize(
    ("detail", "heard"),
    [
        ("heard=0,3,4; E2 is silent", (0, 3, 4)),
        ("heard=; founded", ()),
        ("heard=7", (7,)),
        ("1: {E1}; why", None),
        ("heard=a; b", None),
        (None, None),
        ("heard=1,; b", None),
    ],
)
def test_the_detail_of_a_view(detail: str | None, heard: tuple[int, ...] | None) -> None:
    assert heard_in(detail) == heard


def test_a_detail_is_read_as_it_was_written() -> None:
    assert heard_in(view_detail((0, 12), "why; heard=3")) == (0, 12)


def epochs_of(script: Script) -> Epochs:
    epochs = logs_of("r", len(script), [columns_of(rows_of(script))]).epochs
    assert epochs is not None
    return epochs


def test_epochs() -> None:
    epochs = epochs_of(GOOD)
    assert [[epoch.number for epoch in mine] for mine in epochs.by_node] == [[0, 1, 2], [0, 1], [0], [1, 2]]
    assert [[epoch.closed for epoch in mine] for mine in epochs.by_node] == [
        [True, True, False],
        [True, True],
        [False],
        [True, False],
    ]
    assert epochs.stopped() == {1, 2}
    assert epochs.at(3, 0) is None
    assert replace(epochs, by_view=frozenset()) == epochs


def test_the_order_of_rows_in_a_trace_does_not_matter() -> None:
    backwards = logs_of("r", 4, [columns_of(rows_of(GOOD)[::-1])]).epochs
    assert backwards == epochs_of(GOOD)


def test_an_epoch_ends_with_the_next_view_or_with_the_membership() -> None:
    """The numbers of the views that follow; and where the rows are, which have the time of their places."""
    epochs = epochs_of(GOOD)
    ends = [[epochs.closing(epoch) for epoch in mine] for mine in epochs.by_node]
    assert [[end and end[1] for end in mine] for mine in ends] == [[1, 2, None], [1, 2], [1], [2, None]]
    lines = [[line.strip() for line in GOOD[node].replace(";", "\n").splitlines()] for node in (1, 2)]
    view = lines[0].index("view 1 = 0 1 3 heard 0 1")
    assert [end and end[0] for end in ends[1]] == [view, lines[0].index("leave drained")]
    assert [end and end[0] for end in ends[2]] == [lines[1].index("exclude 1")]


def test_who_is_always_a_member_is_so_from_the_first_of_these_views_to_the_last() -> None:
    epochs = epochs_of(GOOD)
    assert [[epochs.is_always_in(node, first) for first in range(3)] for node in range(4)] == [
        [True, True, True],
        [False, False, False],
        [False, False, False],
        [False, True, True],
    ]


def test_who_leaves_at_once_keeps_nothing() -> None:
    """Others need not deliver what it sent last; they must, if it left when all was acknowledged."""
    for leaving, broken_by in (("leave", set()), ("leave drained", {"kept"})):
        script = edited(GOOD, 1, ("leave drained", f"send n 0 1 2 3; {leaving}"))
        assert set(broken(script)) == broken_by


def test_a_donor_is_no_joiner_of_the_same_view() -> None:
    script = {
        0: "view 0 = 0 heard; view 1 = 0 1 2 heard 0",
        1: "view 1 = 0 1 2 heard 0; state 0 1",
        2: "view 1 = 0 1 2 heard 0; state 1 1",
    }
    assert broken(script) == {
        "state_complete": "E3 joined with the state of view 1 from E2, which was not in views 0 and 1"
    }
    assert broken(edited(script, 2, ("state 1", "state 0"))) == {}


def test_only_the_end_of_a_complete_run_closes_the_latest_view() -> None:
    script = {0: "view 0 = 0 1 heard; send a 0 1; deliver a", 1: "view 0 = 0 1 heard"}
    assert set(broken(script)) == {"same_set", "kept"}
    assert broken(script, complete=False) == {}, "it may come"
    behind = edited(script, 0, ("deliver a", "deliver a; view 1 = 0 1 heard 0 1"))
    assert set(broken(behind)) == {"kept"}, "E2 is not known to have gone on to view 1"
