"""From folders to a verdict."""

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.audit.reference import add_missing_by_counters, audit, check_run
from ordercast.audit.run_rows import is_uniform, runs_by_name
from ordercast.audit.services import PROMISES
from ordercast.audit.verdict import MOST_WITNESSES, Finding, Verdict
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.trace.reader import read_runs
from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import CONFIG, EventField
from tests.audit.figures import Figure, Row, columns

BY_LETTER = ["a123 b123", "p123", "x123"]
TOTAL = ["a p b x"] * 3


def write(folder: Path, rows: list[Row], run: str = "r", **row: Any) -> Path:
    with TraceWriter(folder, run) as trace:
        trace.write([(*cells, None, None, None) for cells in rows])
        trace.finish({"protocol": "to", "nodes": 3, "complete": True, **row})
    return folder


def broken(folders: list[Path], service: Service | None = None) -> set[str]:
    return {name for name, finding in audit(folders, service).findings.items() if not finding.holds}


def test_a_good_run_holds_and_says_what_was_not_recorded(tmp_path: Path) -> None:
    write(tmp_path, Figure(BY_LETTER, TOTAL).rows)
    verdict = audit([tmp_path])
    assert verdict.holds
    assert json.loads(json.dumps(verdict.as_document())) == {
        "holds": True,
        "runs": 1,
        "deliveries": 12,
        "by_protocol": {"to": {"runs": 1, "deliveries": 12, "violations": {}}},
        "properties": {
            name: {"holds": True, "violations": 0, "witnesses": [], "runs": 1, "counts": "exact"}
            for name in ("sender_order_kept", "complete", "same_order", "no_cycle")
        },
        "not_recorded": {
            "accepted_truthfully": 1,
            "preacknowledged_truthfully": 1,
            "acknowledged_truthfully": 1,
            "delivered_truthfully": 1,
        },
    }


def test_a_violation_comes_with_its_witness(tmp_path: Path) -> None:
    write(tmp_path, Figure(BY_LETTER, ["a p b x", "p a b x", "a p b x"]).rows)
    document: Any = audit([tmp_path]).as_document()
    assert document["holds"] is False
    found = document["properties"]["same_order"]
    assert (found["holds"], found["violations"]) == (False, 2)
    assert found["witnesses"][0] == {
        "run": "r",
        "sentence": "E1 delivered E1#0 before E2#0, E2 in the opposite order",
        "messages": [[0, 0], [1, 0]],
        "nodes": [0, 1],
        "places": [0, 1, 1, 0],
    }


def test_all_violations_are_counted_and_a_few_are_shown(tmp_path: Path) -> None:
    figure = Figure(BY_LETTER, ["", "", ""])
    write(tmp_path / "1", figure.rows, "one")
    write(tmp_path / "2", figure.rows, "two")
    verdict = audit([tmp_path / "1", tmp_path / "2"])
    finding = verdict.findings["complete"]
    assert (verdict.runs, finding.runs, finding.violations) == (2, 2, 24)
    assert len(finding.witnesses) == MOST_WITNESSES
    assert {witness.run for witness in finding.witnesses} == {"one"}


@pytest.mark.parametrize(
    ("service", "sent", "received", "breaks"),
    [
        ("spo", ["a23 b3", "p1", ""], ["p", "a", "b a"], {"sender_order_kept"}),
        ("spo", ["a23 b3", "p1", ""], ["p", "a", "a"], {"complete"}),
        ("spo", ["a12", "p12", ""], ["a p", "p a", ""], set()),
        ("st", ["a12", "p12", ""], ["a p", "p a", ""], {"same_order", "no_cycle"}),
        ("st", ["g13", "y12", "w23"], ["g y", "y w", "w g"], {"no_cycle"}),
        ("st", ["a12", "p12", ""], ["a p", "a p", ""], set()),
        ("to", ["a12", "p12", ""], ["a p", "a p", ""], {"complete"}),  # everything is for everybody
        ("to", ["a123", "p123", ""], ["a p", "p a", "a p"], {"same_order", "no_cycle"}),
        ("po", ["a123", "p123", ""], ["a p", "p a", "a p"], set()),
        ("po", ["a123 b123", "p123", ""], ["a b p", "p b a", "a p b"], {"sender_order_kept"}),
        ("sequencer", ["a123", "p123", ""], ["a p", "p a", "a p"], {"same_order", "no_cycle"}),
        ("sequencer", ["a123", "p123", ""], ["a p"] * 3, set()),
        ("prio", ["a123", "p123", ""], ["p a", "p a", "p a"], set()),
        ("prio", ["a123", "p123", ""], ["p a", "a p", "p a"], {"same_runs"}),
        ("prito", ["a123 b123", "p123", ""], ["b p a", "b p a", "b p a"], set()),
        ("prito", ["a123", "x123", "p123"], ["p a x", "p x a", "p a x"], {"same_order", "no_cycle"}),
        ("prito", ["a123 x123", "p123", ""], ["x p a"] * 3, {"sender_order_kept_by_priority"}),
        ("to", ["a12", "p123", ""], ["a p"] * 3, {"complete"}),  # a was not sent to E3
        ("sequencer", ["a12", "p123", ""], ["a p"] * 3, {"complete"}),
    ],
)
def test_each_service_promises_its_own(
    tmp_path: Path, service: str, sent: list[str], received: list[str], breaks: set[str]
) -> None:
    priorities = {"a": 1, "x": 1, "p": 2, "b": 3} if service.startswith("pri") else None
    rows = Figure(sent, received, priorities).rows
    assert broken([write(tmp_path / "own", rows, protocol=service)]) == breaks
    other = write(tmp_path / "asked", rows, protocol="unheard-of")
    assert broken([other], Service(service)) == breaks


def test_every_service_has_promises() -> None:
    assert set(PROMISES) == set(Service)
    for promises in PROMISES.values():
        assert "complete" in {promise.__name__ for promise in promises}


def test_levels_are_judged_where_they_were_recorded(tmp_path: Path) -> None:
    figure = Figure(["a12", "", ""], ["a", "a", ""])
    figure.add(0, "accept", "a")
    write(tmp_path, figure.rows, protocol="spo")
    verdict = audit([tmp_path])
    assert not verdict.not_recorded
    assert broken([tmp_path]) == {"delivered_truthfully"}


def test_the_sequencer_delivers_whatever_it_knows_but_is_truthful_about_that(tmp_path: Path) -> None:
    figure = Figure(BY_LETTER, TOTAL)
    figure.add(0, "accept", "a")
    write(tmp_path / "accepted", figure.rows, protocol="sequencer")
    verdict = audit([tmp_path / "accepted"])
    assert verdict.holds
    assert not verdict.not_recorded
    figure.add(0, "preack", "a")
    assert broken([write(tmp_path / "claimed", figure.rows, protocol="sequencer")]) == {"preacknowledged_truthfully"}


@pytest.mark.parametrize(
    ("group", "uniform"),
    [
        ('{"rules": "sound", "sequencer": {"resilience": 1}}', True),
        ('{"rules": "sound", "sequencer": {"resilience": 0}}', False),
        ('{"rules": "paper", "sequencer": {"resilience": 1}}', False),
        ("{}", False),
        ("3", False),
    ],
)
def test_whether_a_runis_uniform_is_in_its_configuration(group: str, uniform: bool) -> None:
    assert is_uniform({CONFIG: f'{{"group": {group}}}'}) is uniform
    assert not is_uniform({CONFIG: None})
    assert not is_uniform({CONFIG: "nonsense"})


def test_members_of_one_group_are_judged_together(tmp_path: Path) -> None:
    rows = Figure(BY_LETTER, TOTAL).rows
    folders = [
        write(tmp_path / str(node), [row for row in rows if row[EventField.NODE] == node], "live") for node in range(3)
    ]
    assert audit(folders).as_document()["runs"] == 1
    assert broken(folders) == set()
    assert "complete" in broken(folders[:2])


def test_a_group_that_was_given_up_owes_nothing_more(tmp_path: Path) -> None:
    rows = Figure(BY_LETTER, ["a p b x", "a", ""]).rows
    assert broken([write(tmp_path / "whole", rows, complete=False)]) == {"complete"}
    assert broken([write(tmp_path / "aborted", rows, complete=False, aborted=True)]) == set()


def test_one_member_tells_that_the_group_was_given_up(tmp_path: Path) -> None:
    rows = Figure(BY_LETTER, ["a p b x", "a", ""]).rows
    one = write(tmp_path / "1", [row for row in rows if row[EventField.NODE] == 0], complete=False)
    other = write(tmp_path / "2", [row for row in rows if row[EventField.NODE] > 0], complete=False, aborted=True)
    assert broken([one, other]) == set()


def test_who_gave_up_is_excused_and_nobody_else(tmp_path: Path) -> None:
    figure = Figure(BY_LETTER, ["a p b x", "a", ""])
    figure.add(2, "abort")
    write(tmp_path, figure.rows, complete=False, aborted=True)
    witnesses = audit([tmp_path]).findings["complete"].witnesses
    assert {witness.violation.nodes for witness in witnesses} == {(1,)}


def test_failed_runs_are_left_out_but_not_all(tmp_path: Path) -> None:
    write(tmp_path / "good", Figure(BY_LETTER, TOTAL).rows)
    write(tmp_path / "failed", [], run="f", complete=False, error="it stumbled")
    assert audit([tmp_path / "failed", tmp_path / "good"]).runs == 1
    with pytest.raises(TraceError, match=r"all runs failed.*the first error: it stumbled"):
        audit([tmp_path / "failed"])


def test_a_run_that_sent_nothing_holds(tmp_path: Path) -> None:
    write(tmp_path, [], sent=0)
    verdict = audit([tmp_path])
    assert (verdict.holds, verdict.runs, verdict.deliveries) == (True, 1, 0)


@pytest.mark.parametrize("sent", [5, None])
def test_a_run_without_its_events_is_not_called_innocent(tmp_path: Path, sent: int | None) -> None:
    write(tmp_path, [], sent=sent)
    with pytest.raises(TraceError, match="run r was recorded without its events"):
        audit([tmp_path])


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    rows = Figure(BY_LETTER, TOTAL).rows
    one = write(tmp_path / "one", rows)
    with pytest.raises(TraceError, match="give no two folders"):
        audit([one, one])
    other = write(tmp_path / "other", rows, nodes=4)
    with pytest.raises(TraceError, match="recorded with nodes 3 and with 4"):
        audit([one, other])
    strange = write(tmp_path / "strange", rows, protocol="telepathy")
    with pytest.raises(TraceError, match=r"protocol 'telepathy'.*spo, st"):
        audit([strange])
    empty = write(tmp_path / "empty", rows, nodes=0)
    with pytest.raises(TraceError, match="has 0 nodes"):
        audit([empty])


def test_what_one_member_sent_is_missed_though_another_sent_nothing(tmp_path: Path) -> None:
    folders = [write(tmp_path / str(sent), [], sent=sent) for sent in (0, 5)]
    with pytest.raises(TraceError, match="run r was recorded without its events"):
        audit(folders)


def test_what_a_run_counted_and_its_record_lacks_is_told(tmp_path: Path) -> None:
    write(tmp_path, Figure(BY_LETTER, TOTAL).rows, sent=5, delivered=12)
    finding = audit([tmp_path]).findings["complete"]
    assert finding.violations == 1
    sentences = [witness.violation.sentence for witness in finding.witnesses]
    assert sentences == ["the run counted 5 messages sent, and its record has 4"]


def test_what_a_run_counted_is_not_held_against_what_is_known_to_be_missing(tmp_path: Path) -> None:
    write(tmp_path, Figure(BY_LETTER, ["a p b x", "a p b x", "a p b"]).rows, sent=5, delivered=12)
    (witness,) = audit([tmp_path]).findings["complete"].witnesses
    assert witness.violation.messages == ((2, 0),), "x, at E3"


def test_of_one_run_as_of_several_a_few_are_shown() -> None:
    verdict = Verdict()
    row = {"run": "r", "protocol": "to", "nodes": 3, "aborted": False, CONFIG: None}
    for _ in range(2):
        check_run(row, [columns(Figure(BY_LETTER, ["", "", ""]).rows)], None, verdict)
    finding = verdict.findings["complete"]
    assert (finding.violations, len(finding.witnesses)) == (24, MOST_WITNESSES)


def test_of_what_records_lack_all_is_counted_and_a_few_are_shown() -> None:
    finding = Finding()
    for number in range(12):
        add_missing_by_counters({"run": f"r{number}", "sent": 5}, 4, 0, Verdict(findings={"complete": finding}))
    assert (finding.violations, len(finding.witnesses)) == (12, MOST_WITNESSES)


def test_a_group_has_as_many_nodes_as_can_be_judged(tmp_path: Path) -> None:
    write(tmp_path / "1", [], sent=0, nodes=1 << 16)
    [row] = read_runs([tmp_path / "1"])
    for nodes in (1, 1 << 16):
        assert runs_by_name([{**row, "nodes": nodes}])["r"]["nodes"] == nodes
    with pytest.raises(TraceError, match="has 65,537 nodes"):
        runs_by_name([{**row, "nodes": (1 << 16) + 1}])


def test_events_without_a_runs_row_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "1", Figure(BY_LETTER, TOTAL).rows, "known")
    write(tmp_path / "2", Figure(BY_LETTER, TOTAL).rows, "unknown")
    (tmp_path / "2/events/unknown.parquet").rename(tmp_path / "1/events/unknown.parquet")
    with pytest.raises(TraceError, match="run unknown has events but no row"):
        audit([tmp_path / "1"])
