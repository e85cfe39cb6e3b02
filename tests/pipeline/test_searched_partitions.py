"""Which partitions are searched for violations, what is told of it, and which counts are exact."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from ordercast.audit.reference import audit as audit_by_reference
from ordercast.audit.verdict import Verdict
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import partition_results
from tests.pipeline.random_runs import Happening, Message, RandomRun, long_enough, random_run
from tests.pipeline.test_partitioned import audited, make_partitions_small
from tests.pipeline.traces import write


def delivered_last(log: list[Happening], place: int) -> list[Happening]:
    moved = [*log[:place], *log[place + 1 :], log[place]]
    return [(was[0], *what[1:]) for was, what in zip(log, moved, strict=True)]


def deliveries_of_first(log: list[Happening]) -> list[int]:
    """Where the messages of E1 are delivered."""
    return [place for place, what in enumerate(log) if what[1] == "deliver" and what[2] and what[2][0] == 0]


def audited_without_merging(
    folder: Path, monkeypatch: pytest.MonkeyPatch, order: list[Message], notes: list[str]
) -> Verdict | None:
    """Of a run of two nodes that deliver in this order; a partition has two messages of each, and nothing is merged."""
    monkeypatch.setattr(partition_results, "_MOST_ROWS_MERGED", 0)
    monkeypatch.setattr(partitioned, "cut_points", lambda *_, **__: [np.full(2, below) for below in (2, 4, 6)])
    run = RandomRun(Service.TOTAL, 2, [])
    for node in range(2):
        sends: list[Happening] = [(0, "send", message, (0, 1), None) for message in sorted(order) if message[0] == node]
        run.logs.append([*sends, *[(1, "deliver", message, None, None) for message in order]])
    return audited(write(folder, {"r": run}), notes)


def test_two_partitions_too_large_to_be_one_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both nodes deliver the third message of E1 before its second, which is in the partition before.

    Each partition passes by itself. Since two of the three are searched, no count is known to be that of the run.
    """
    order = [(0, number) for number in (0, 2, 1, 3, 4, 5)]
    notes: list[str] = []
    verdict = audited_without_merging(tmp_path, monkeypatch, order, notes)
    assert verdict is not None
    assert {name: found.violations for name, found in verdict.findings.items() if not found.holds} == {
        "sender_order_kept": 2,  # one at each node
    }
    assert all(finding.at_least for finding in verdict.findings.values())
    assert notes == ["run r: searched 2 of 3 partitions; violations are counted in these"]


def test_two_partitions_too_large_to_be_one_may_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages of E2 come after all of E1: a good order, in which all three partitions overlap."""
    order = [(source, number) for source in range(2) for number in range(6)]
    notes: list[str] = []
    assert audited_without_merging(tmp_path, monkeypatch, order, notes) is None
    assert notes == ["run r: falling back to a single-task audit: its order has no closed cut points"]


def test_an_order_that_is_violated_across_partitions_is_not_counted_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One node delivers a message at its very end: only the first overlap is searched.

    Nothing is missing, and what is missing shows in its own partition: that count is exact.
    """
    make_partitions_small(monkeypatch)
    run = long_enough("order")
    run.service = Service.PARTIAL
    log = run.logs[1]
    exact: set[bool] = set()
    for late in deliveries_of_first(log)[:-1:4]:
        run.logs[1] = delivered_last(log, late)
        folder = write(tmp_path / str(late), {"r": run}, rows_in_a_group=20)
        verdict, whole = audited(folder, []), audit_by_reference([folder])
        assert verdict is not None
        found, expected = (one.findings["sender_order_kept"].violations for one in (verdict, whole))
        exact.add(not verdict.findings["sender_order_kept"].at_least)
        assert found <= expected if verdict.findings["sender_order_kept"].at_least else found == expected
        assert not verdict.findings["complete"].at_least
    assert False in exact


def test_orders_by_priority_are_not_counted_in_partitions_that_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delivery is missing, which shows in its own partition. The partitions are not closed under PriTO: a cycle may
    leave them, so that no order was searched in the whole run.
    """
    make_partitions_small(monkeypatch)
    run = random_run(chance := Random("by priority"), Service.PRIORITY_TOTAL, levels=False, messages=120)
    while run.nodes < 3 or len(run.logs[1]) < 120:
        run = random_run(chance, Service.PRIORITY_TOTAL, levels=False, messages=120)
    del run.logs[1][next(place for place, what in enumerate(run.logs[1]) if what[1] == "deliver")]
    verdict = audited(write(tmp_path, {"r": run}, rows_in_a_group=20), [])
    assert verdict is not None
    assert (verdict.findings["complete"].violations, verdict.findings["complete"].at_least) == (1, False)
    others = {name: finding for name, finding in verdict.findings.items() if name != "complete"}
    assert others
    assert all(finding.at_least for finding in others.values())
