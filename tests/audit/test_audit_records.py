"""Several members of one group, each with a record of its own, of which some are lacking or end early."""

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.audit.names import merged_names
from ordercast.audit.records import members_join
from ordercast.audit.reference import audit
from ordercast.audit.run_rows import delivers_stable, runs_by_name
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import TraceError
from ordercast.model.nodes import with_names
from ordercast.pipeline.audit.vectorised import audit_vectorised
from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.trace.schema import CONFIG, EventField
from tests.audit.changing_groups import rows_of
from tests.audit.figures import Figure, Row
from tests.audit.test_audit_changing_groups import GOOD as CHANGING

NAMES = ["ada", "bob", "cy"]


def config(*, one_clock: bool = True) -> str:
    return json.dumps({"group": {}, "live": {"members": NAMES, "one_clock": one_clock}})


def keep(folder: Path, rows: list[Row], node: int, **row: Any) -> Path:
    """What one member recorded, as a live member does it."""
    told = {"protocol": "to", "nodes": 3, "node": node, "config": config(), "complete": True, "sent": 1, **row}
    trace = IncrementalTraceWriter(folder, f"s-{node}", "g-s")
    trace.begin({**told, "complete": False, "sent": None})
    trace.append([(*cells, None, None, None) for cells in rows if cells[0] == node])
    trace.describe(told)
    return folder


def by_all_means(folders: list[Path]) -> Verdict:
    """The verdict, which is the same however it is come by."""
    verdict = audit(folders)
    assert audit_vectorised(folders) == verdict
    return verdict


def broken(folders: list[Path]) -> set[str]:
    return {name for name, finding in by_all_means(folders).findings.items() if not finding.holds}


GOOD = Figure(["a123 b123", "p123", "x123"], ["a p b x"] * 3)


def test_records_of_all_members_are_one_run(tmp_path: Path) -> None:
    folders = [keep(tmp_path / name, GOOD.rows, node) for node, name in enumerate(NAMES)]
    verdict = by_all_means(folders)
    assert verdict.holds
    assert (verdict.runs, verdict.deliveries, verdict.incomplete_records) == (1, 12, [])


def test_members_may_share_a_folder(tmp_path: Path) -> None:
    for node in range(3):
        keep(tmp_path, GOOD.rows, node)
    assert by_all_means([tmp_path]).deliveries == 12


@pytest.mark.parametrize("lacking", range(3))
def test_a_lacking_record_is_told_of_and_the_others_are_judged(tmp_path: Path, lacking: int) -> None:
    folders = [keep(tmp_path / NAMES[node], GOOD.rows, node) for node in range(3) if node != lacking]
    verdict = by_all_means(folders)
    assert verdict.holds, "what it sent is known from the others"
    assert verdict.deliveries == 8
    assert len(verdict.incomplete_records) == 1
    assert f": {NAMES[lacking]} has no record;" in verdict.incomplete_records[0]


def test_what_the_others_disagree_about_is_found_without_the_lacking_record(tmp_path: Path) -> None:
    figure = Figure(["a123 b123", "p123 q123", "x123"], ["a p b x q", "a p b x q", "a b p x q"])
    assert broken([keep(tmp_path / NAMES[node], figure.rows, node) for node in (0, 2)]) == {"same_order", "no_cycle"}
    figure = Figure(["a123", "p123 q123", "x123"], ["a p q x", "", "a q p x"])
    assert "sender_order_kept" in broken([keep(tmp_path / f"swapped{node}", figure.rows, node) for node in (0, 2)])
    figure = Figure(["a123", "p123", "x123"], ["a p x", "", "a x"])
    assert "complete" in broken([keep(tmp_path / f"lacking{node}", figure.rows, node) for node in (0, 2)])


def test_what_nobody_unseen_sent_is_still_a_surprise(tmp_path: Path) -> None:
    figure = Figure(["a123", "p123", "x123"], ["a p x", "", "a p x"])
    rows = [row for row in figure.rows if row[EventField.EVENT] != "send" or row[EventField.NODE] != 0]
    assert broken([keep(tmp_path / NAMES[node], rows, node) for node in (0, 2)]) == {"complete"}


def test_a_record_that_ends_early_is_one_of_a_member_that_stopped(tmp_path: Path) -> None:
    figure = Figure(["a123", "p123 q123", "x123"], ["a p q x"] * 3)
    cut = [
        row for row in figure.rows if row[EventField.NODE] != 1 or row[EventField.STEP] < 3
    ]  # bob: both sends, and its first delivery
    folders = [keep(tmp_path / NAMES[node], cut, node, complete=node != 1) for node in range(3)]
    verdict = by_all_means(folders)
    assert verdict.holds
    assert verdict.deliveries == 9
    assert "bob" in verdict.incomplete_records[0]
    whole = [keep(tmp_path / f"whole{node}", cut, node) for node in range(3)]
    assert broken(whole) == {"complete"}, "the same, if bob had come to its end"


def test_sends_that_were_not_written_any_more_are_taken_from_those_that_got_them(tmp_path: Path) -> None:
    cut = [row for row in GOOD.rows if row[EventField.NODE] != 1]  # bob was killed before anything was written
    folders = [keep(tmp_path / NAMES[node], cut, node, complete=node != 1, sent=None) for node in range(3)]
    assert by_all_means(folders).holds
    assert by_all_means(folders).deliveries == 8


def test_nothing_is_concluded_from_levels_that_were_not_recorded(tmp_path: Path) -> None:
    figure = Figure(["a123", "", ""], ["", "", ""])
    for event, time in (("accept", 1), ("preack", 2), ("ack", 3), ("deliver", 4)):
        for node in range(3):
            figure.add(node, event, "a", time=time)
    folders = [keep(tmp_path / NAMES[node], figure.rows, node) for node in (0, 1)]
    assert by_all_means(folders).holds
    late = [
        (*row[:2], 9, *row[3:]) if row[EventField.NODE] == 1 and row[EventField.EVENT] == "accept" else row
        for row in figure.rows
    ]
    folders = [keep(tmp_path / f"late{node}", late, node) for node in (0, 1)]
    assert broken(folders) == {"preacknowledged_truthfully"}


def test_clocks_of_several_machines_are_not_compared(tmp_path: Path) -> None:
    figure = Figure(["a123", "", ""], ["", "", ""])
    for event, time in (("accept", 1), ("preack", 2), ("ack", 3), ("deliver", 4)):
        for node, behind in enumerate((0, 0, 100)):
            figure.add(node, event, "a", time=time + behind)
    one = [keep(tmp_path / f"one{node}", figure.rows, node) for node in range(3)]
    assert broken(one) == {"preacknowledged_truthfully", "acknowledged_truthfully"}
    many = [keep(tmp_path / f"many{node}", figure.rows, node, config=config(one_clock=False)) for node in range(3)]
    assert broken(many) == set()
    never = [row for row in figure.rows if row[EventField.NODE] != 2 or row[EventField.EVENT] != "preack"]
    many = [keep(tmp_path / f"never{node}", never, node, config=config(one_clock=False)) for node in range(3)]
    assert "acknowledged_truthfully" in broken(many), "that something never happened needs no clock"


def test_priorities_of_what_an_unseen_member_sent_are_not_known(tmp_path: Path) -> None:
    figure = Figure(["a123", "p123", "x123"], ["p a x"] * 3, {"a": 1, "p": 2, "x": 1})
    folders = [keep(tmp_path / NAMES[node], figure.rows, node, protocol="prito") for node in (0, 2)]
    verdict = by_all_means(folders)
    assert verdict.holds
    assert verdict.not_recorded["same_runs"] == 1


def test_a_node_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    folders = [keep(tmp_path / name, GOOD.rows, 0) for name in ("one", "two")]
    with pytest.raises(TraceError, match="give no two folders that hold the same node"):
        audit(folders)


def test_silence_is_believed_only_if_somebody_came_to_the_end(tmp_path: Path) -> None:
    assert audit([keep(tmp_path / "ended", [], 0, sent=0)]).holds
    with pytest.raises(TraceError, match="recorded without its events"):
        audit([keep(tmp_path / "killed", [], 0, sent=None, complete=False)])


def test_what_an_unseen_node_sent_to_some_is_owed_to_nobody_else(tmp_path: Path) -> None:
    """p of bob went to ada alone, which is known of nobody but ada."""
    figure = Figure(["a3", "p1", ""], ["p", "", "a"])
    folders = [keep(tmp_path / NAMES[node], figure.rows, node, protocol="spo") for node in (0, 2)]
    assert broken(folders) == set()


def test_what_is_known_from_others_was_sent_after_what_was_recorded(tmp_path: Path) -> None:
    """Of bob only the send of p was written, and q, which has the higher number, is known from the others."""
    figure = Figure(["", "p123 q123", ""], ["q p", "", "q p"])
    cut = [row for row in figure.rows if row[0] != 1 or row[1] < 1]
    folders = [keep(tmp_path / NAMES[node], cut, node, complete=node != 1) for node in range(3)]
    assert broken(folders) == {"sender_order_kept"}


def test_a_lacking_record_is_told_of_by_name_also_if_others_joined_later(tmp_path: Path) -> None:
    """A record has the names of those that were there when it began."""
    names = json.dumps({"group": {}, "live": {"members": ["ada", "bob"]}})
    folders = [keep(tmp_path / NAMES[node], GOOD.rows, node, config=names) for node in (0,)]
    assert ": bob, E3 have no record;" in by_all_means(folders).incomplete_records[0]


@pytest.mark.parametrize("members", [["ada"], ["ada", "bob", "cy", "dan"], "ada, bob, cy", None])
def test_a_lacking_record_without_usable_names_is_told_of_by_number(tmp_path: Path, members: Any) -> None:
    names = json.dumps({"group": {}, "live": {"members": members}})
    folders = [keep(tmp_path / NAMES[node], GOOD.rows, node, config=names) for node in (1, 2)]
    assert ": E1 has no record;" in by_all_means(folders).incomplete_records[0]


@pytest.mark.parametrize(
    ("some", "others", "merged"),
    [
        (("ada", "E2", "cy"), ("E1", "bob"), ("ada", "bob", "cy")),
        (("ada",), ("ada", "bob"), ("ada", "bob")),
        (("ada", "E2", "E3"), ("ada", "bob"), ("ada", "bob", "E3")),
        ((), ("ada", "bob"), ("ada", "bob")),
        ((), (), ()),
    ],
)
def test_a_name_that_any_record_has_is_known(
    some: tuple[str, ...], others: tuple[str, ...], merged: tuple[str, ...]
) -> None:
    assert merged_names(some, others) == merged


def test_sentences_take_the_names_of_members() -> None:
    sentence = "E1 delivered E2#0 before E3#12, E12 in the opposite order; sent to {E1,E3}"
    named = "ada delivered bob#0 before cy#12, E12 in the opposite order; sent to {ada,cy}"
    assert with_names(sentence, NAMES) == named
    assert with_names(sentence, ()) == sentence
    assert with_names("PE1 E0 E01 E1x", NAMES) == "PE1 E0 E01 E1x"


# --- groups that others may join ---


def joining(folder: Path, node: int, nodes: int, **row: Any) -> Path:
    """What one member of a changing group recorded; it knows of the nodes that there were when it ended."""
    config = json.dumps({"group": {"views": True}, "live": {"one_clock": True}})
    told = {"protocol": "to", "nodes": nodes, "node": node, "config": config, "complete": True, "sent": 1, **row}
    trace = IncrementalTraceWriter(folder, f"s-{node}", "g-s")
    trace.begin({**told, "complete": False, "sent": None})
    trace.append([(*cells[:8], None, cells[8], None) for cells in rows_of(CHANGING) if cells[0] == node])
    trace.describe(told)
    return folder


def test_members_of_a_changing_group_know_of_different_numbers_of_nodes(tmp_path: Path) -> None:
    nodes = {0: 4, 1: 4, 2: 3, 3: 4}
    for node, known in nodes.items():
        joining(tmp_path, node, known)
    verdict = by_all_means([tmp_path])
    assert {name: finding.witnesses for name, finding in verdict.findings.items() if not finding.holds} == {}
    assert "same_set" in verdict.findings
    assert verdict.incomplete_records == []


def test_one_that_was_killed_is_named(tmp_path: Path) -> None:
    for node, known in {0: 4, 1: 4, 3: 4}.items():
        joining(tmp_path, node, known)
    joining(tmp_path, 2, 3, complete=False)
    verdict = by_all_means([tmp_path])
    assert verdict.holds
    assert "the record of E3 is incomplete" in verdict.incomplete_records[0]


@pytest.mark.parametrize(
    ("node", "group", "may_join"),
    [(1, {"views": True}, True), (1, {"views": False}, False), (1, {}, False), (None, {"views": True}, False)],
)
def test_others_may_join_a_member_whose_group_has_views(
    node: int | None, group: dict[str, bool], may_join: bool
) -> None:
    assert members_join({"node": node, "config": json.dumps({"group": group})}) is may_join


@pytest.mark.parametrize("order", [1, -1])
def test_only_records_of_which_both_are_of_a_changing_group_may_know_of_different_nodes(order: int) -> None:
    def row(node: int, nodes: int, *, views: bool) -> dict[str, Any]:
        config = json.dumps({"group": {"views": views}})
        told = {"run": "g", "protocol": "to", "nodes": nodes, "node": node, "config": config, "sent": 1}
        return {**told, "error": None, "aborted": False, "complete": True}

    assert runs_by_name([row(0, 4, views=True), row(1, 3, views=True)][::order])["g"]["nodes"] == 4
    with pytest.raises(TraceError, match="run g is recorded with nodes"):
        runs_by_name([row(0, 4, views=True), row(1, 3, views=False)][::order])
    killed = {**row(0, 4, views=True), "complete": False}
    assert runs_by_name([killed, row(1, 3, views=True)][::order])["g"]["complete"], "one has seen the end"
    assert not runs_by_name([killed, {**killed, "node": 1}])["g"]["complete"]


def test_whether_a_run_delivered_what_was_stable_is_in_its_configuration() -> None:
    told = [{"group": {"delivers_stable": True}}, {"group": {"delivers_stable": False}}, {"group": {}}]
    assert [delivers_stable({CONFIG: json.dumps(config)}) for config in told] == [True, False, False]
    assert not delivers_stable({CONFIG: ""})
