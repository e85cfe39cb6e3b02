"""What every engine must find: deliveries to others than the destinations, before the send, and after a crash."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.audit import reference
from ordercast.audit.verdict import Verdict
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit import vectorised
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.pipeline.audit.verdict_table import rows_of, verdict_of
from ordercast.trace.arrow_schema import RUNS
from tests.audit.figures import Row
from tests.pipeline.random_runs import batch_of

NODES = 3
MESSAGES = 40


def good_rows() -> list[Row]:
    """E1 sends to everybody, and everything is delivered at once, a step for each."""
    rows: list[Row] = []
    for seq in range(MESSAGES):
        rows.append((0, 2 * seq, 10 * seq, "send", 0, seq, tuple(range(NODES)), 0))
        rows += [(node, 2 * seq + 1, 10 * seq, "deliver", 0, seq, None, None) for node in range(NODES)]
    return rows


def sent_to_e1_only(rows: list[Row]) -> list[Row]:
    return [(*row[:6], (0,), 0) if row[3] == "send" and row[5] == 7 else row for row in rows]


def sent_later_than_delivered(rows: list[Row]) -> list[Row]:
    return [(*row[:2], row[2] + 5, *row[3:]) if row[3] == "send" and row[5] == 7 else row for row in rows]


def delivered_at_its_source_before_its_send(rows: list[Row]) -> list[Row]:
    steps = {"send": 15, "deliver": 14}
    return [(row[0], steps[row[3]], *row[2:]) if row[0] == 0 and row[5] == 7 else row for row in rows]


def carries_on_after_a_crash(rows: list[Row]) -> list[Row]:
    return [*rows, (1, 2 * MESSAGES - 4, 10 * MESSAGES, "crash", None, None, None, None)]


def stops_at_its_crash(rows: list[Row]) -> list[Row]:
    return [*rows, (1, 2 * MESSAGES + 4, 10 * MESSAGES, "crash", None, None, None, None)]


Spoil = Callable[[list[Row]], list[Row]]
SPOILT: list[tuple[Spoil, str, int]] = [
    (sent_to_e1_only, "E2 delivered E1#7, which was sent to {E1} only", 2),
    (sent_later_than_delivered, "E2 delivered E1#7 before E1 sent it", 2),
    (delivered_at_its_source_before_its_send, "E1 delivered E1#7 before E1 sent it", 1),
    (carries_on_after_a_crash, "E2 delivered E1#38 after it had crashed", 2),
]
NAMES = [spoil.__name__ for spoil, *_ in SPOILT]


def write(folder: Path, rows: list[Row], service: Service, config: str | None = None) -> Path:
    for part in ("events", "runs"):
        (folder / part).mkdir(parents=True)
    rows = sorted(rows, key=lambda row: (row[1], row[0]))
    pq.write_table(pa.Table.from_batches([batch_of(rows)]), folder / "events/0.parquet", row_group_size=20)
    row = {"run": "r", "protocol": service.value, "nodes": NODES, "complete": True, "config": config}
    pq.write_table(pa.Table.from_pylist([row], schema=RUNS), folder / "runs/0.parquet")
    return folder


def judged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """By the reference, by arrays, and in partitions."""
    verdicts = [reference.audit([folder]), vectorised.audit_vectorised([folder])]
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 40)
    return [*verdicts, vectorised.audit_vectorised([folder])]


@pytest.mark.parametrize("service", Service)
@pytest.mark.parametrize(("spoil", "sentence", "count"), SPOILT, ids=NAMES)
def test_no_engine_acquits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Spoil, sentence: str, count: int, service: Service
) -> None:
    for verdict in judged(write(tmp_path, spoil(good_rows()), service), monkeypatch):
        finding = verdict.findings["complete"]
        assert finding.violations == count
        assert finding.witnesses[0].violation.sentence == sentence


@pytest.mark.parametrize("service", Service)
@pytest.mark.parametrize(("spoil", "sentence", "count"), SPOILT, ids=NAMES)
def test_whoever_follows_a_trace_is_told(spoil: Spoil, sentence: str, count: int, service: Service) -> None:
    found = Prefix("r").grow(batch_of(spoil(good_rows())), service, uniform=False)
    assert next(one.sentence for one in found if one.breaks == "complete") == sentence
    assert len(found) == count


@pytest.mark.parametrize("service", Service)
def test_what_is_right_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    rows = stops_at_its_crash(good_rows())
    assert all(verdict.holds for verdict in judged(write(tmp_path, rows, service), monkeypatch))
    assert Prefix("r").grow(batch_of(rows), service, uniform=False) == []


def test_times_are_not_compared_where_clocks_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sent_later_than_delivered(good_rows())
    folder = write(tmp_path, rows, Service.TOTAL, '{"live": {"one_clock": false}}')
    assert all(verdict.holds for verdict in judged(folder, monkeypatch))
    assert Prefix("r").grow(batch_of(rows), Service.TOTAL, uniform=False, one_clock=False) == []


def test_what_is_sent_to_some_is_lacking_elsewhere_in_a_broadcast(tmp_path: Path) -> None:
    rows = [row for row in sent_to_e1_only(good_rows()) if row[0] == 0 or row[5] != 7]
    for service in Service:
        verdict = reference.audit([write(tmp_path / service.value, rows, service)])
        assert verdict.findings["complete"].holds == (service in SELECTIVE)


def excluded_by_a_view(rows: list[Row]) -> list[Row]:
    """A view of E1 alone, and nobody else delivers anything."""
    return [
        *(row for row in rows if row[0] == 0),
        (0, 2 * MESSAGES + 4, 10 * MESSAGES, "view", None, None, (0,), None),
        (1, 0, 0, "crash", None, None, None, None),
    ]


@pytest.mark.parametrize("service", [Service.SELECTIVE_PARTIAL, Service.TOTAL, Service.SEQUENCED])
def test_a_verdict_says_who_was_excused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    for verdict in judged(write(tmp_path, excluded_by_a_view(good_rows()), service), monkeypatch):
        sentence = "run r: what these lack is no violation: E2 (crashed), E3 (not in a view of E1)"
        assert verdict.as_document()["excused"] == {"runs": 1, "sentences": [sentence]}
        table = verdict_of(rows_of(0, "r", verdict), {0: {"run": "r", "protocol": "to"}})
        assert table.excused == [sentence]


def test_nobody_is_excused_in_a_run_without_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for verdict in judged(write(tmp_path, good_rows(), Service.TOTAL), monkeypatch):
        assert "excused" not in verdict.as_document()


def view_of(node: int, *members: int) -> Row:
    return (node, 2 * MESSAGES + 4, 10 * MESSAGES, "view", None, None, members, None)


def without_those_of(node: int) -> list[Row]:
    """E1 sends to everybody, and one node delivers nothing."""
    return [row for row in good_rows() if row[0] != node]


VIEWS: list[tuple[list[Row], str, str]] = [
    ([view_of(0, 0)], "primary", "E1 installed a view of {E1}, no majority of {E1,E2,E3}"),
    ([view_of(0, 0, 1)], "same_views", "E1 installed a view of {E1,E2}, and E2 did not"),
    (
        [view_of(0, 0, 1), view_of(1, 1, 2)],
        "same_views",
        "E1 installed a view of {E1,E2}, E2 one of {E2,E3}: neither has all members of the other",
    ),
    ([view_of(0, 0, 1), view_of(1, 0, 1)], "", ""),
]


@pytest.mark.parametrize(
    "service", [Service.SELECTIVE_PARTIAL, Service.TOTAL, Service.PRIORITY_TOTAL, Service.SEQUENCED]
)
@pytest.mark.parametrize(("views", "breaks", "sentence"), VIEWS)
def test_who_is_in_no_view_is_excused_by_a_view_that_can_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    views: list[Row],
    breaks: str,
    sentence: str,
    service: Service,
) -> None:
    for verdict in judged(write(tmp_path, [*without_those_of(2), *views], service), monkeypatch):
        assert verdict.holds == (not breaks)
        assert {"same_views", "primary"} <= verdict.findings.keys()
        if breaks:
            assert verdict.findings[breaks].witnesses[0].violation.sentence == sentence


def test_a_member_of_the_last_view_may_install_it_later_in_a_run_that_was_cut_off(tmp_path: Path) -> None:
    folder = write(tmp_path, [*without_those_of(2), view_of(0, 0, 1)], Service.SEQUENCED)
    path = folder / "runs/0.parquet"
    row = pq.read_table(path).to_pylist()[0]
    pq.write_table(pa.Table.from_pylist([{**row, "complete": False}], schema=RUNS), path)
    assert reference.audit([folder]).findings["same_views"].holds


def test_whoever_follows_a_trace_is_told_of_views_that_cannot_be() -> None:
    for views, breaks, sentence in VIEWS:
        rows = sorted([*without_those_of(2), *views], key=lambda row: (row[0], row[1]))
        found = [one.sentence for one in Prefix("r").grow(batch_of(rows), Service.SEQUENCED, uniform=False)]
        in_a_prefix = breaks and "did not" not in sentence  # that one may come yet
        assert (sentence in found) if in_a_prefix else not found
