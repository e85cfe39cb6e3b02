"""What no partition shows by itself, and runs whose row groups are shared with others."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from ordercast.audit.reference import audit as audit_by_reference
from ordercast.audit.verdict import Verdict
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import cut_points
from ordercast.pipeline.audit.partitioned.audit import audit_partitioned
from ordercast.pipeline.audit.partitioned.log_comparison import ComparisonTask, compare
from ordercast.pipeline.audit.partitioned.row_groups import Ranges, RowGroups
from ordercast.pipeline.audit.partitioned.tasks import TaskKind, run_in_process
from ordercast.pipeline.audit.plan import audit_tasks
from tests.pipeline.random_runs import Happening, Message, RandomRun, long_enough, random_run
from tests.pipeline.test_partitioned import audited, make_partitions_small
from tests.pipeline.traces import write


def accepting_run() -> RandomRun:
    """A good run of a sequencer that recorded no level but the first."""
    run = random_run(chance := Random("accepted"), Service.SEQUENCED, levels=True, messages=60)
    while run.nodes < 3 or len(run.logs[1]) < 150:
        run = random_run(chance, Service.SEQUENCED, levels=True, messages=60)
    run.logs = [[what for what in log if what[1] in {"send", "accept", "deliver"}] for log in run.logs]
    return run


def acceptances(log: Sequence[Happening]) -> list[int]:
    """Where the messages of E1 are accepted."""
    return [place for place, what in enumerate(log) if what[1] == "accept" and what[2] and what[2][0] == 0]


def test_levels_that_hold_hold_in_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    verdict = audited(write(tmp_path, {"r": accepting_run()}, rows_in_a_group=20), [])
    assert verdict is not None
    assert verdict.holds


def test_what_is_accepted_too_early_is_found_across_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last message of a partition and the first of the next: each partition passes by itself."""
    make_partitions_small(monkeypatch)
    run = accepting_run()
    log = run.logs[1]
    for one, other in pairwise(acceptances(log)):
        run.logs[1] = list(log)
        run.logs[1][one], run.logs[1][other] = (log[one][0], *log[other][1:]), (log[other][0], *log[one][1:])
        found = audited(write(tmp_path / str(one), {"r": run}, rows_in_a_group=20), [])
        assert found is None or not found.findings["accepted_truthfully"].holds


def test_what_is_never_accepted_is_found_across_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the partition of the message shows that its node accepted a later one."""
    make_partitions_small(monkeypatch)
    run = accepting_run()
    log = run.logs[1]
    for place in acceptances(log)[:-1]:
        run.logs[1] = [*log[:place], *log[place + 1 :]]
        found = audited(write(tmp_path / str(place), {"r": run}, rows_in_a_group=20), [])
        assert found is None or not found.findings["accepted_truthfully"].holds


@pytest.mark.parametrize("unknown", [True, False])
def test_what_was_delivered_and_should_not_is_told_with_its_places_in_the_whole_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: bool
) -> None:
    """A message that nobody sent, and one that was delivered twice."""
    make_partitions_small(monkeypatch)
    run = long_enough("twice")
    log = run.logs[1]
    place = [place for place, what in enumerate(log) if what[1] == "deliver"][-5]
    log.insert(place, (log[place][0], "deliver", (0, 1_000_000), None, None) if unknown else log[place])
    folder = write(tmp_path, {"r": run}, rows_in_a_group=30)
    verdict = audited(folder, [])
    assert verdict is not None
    (witness,) = verdict.findings["complete"].witnesses
    assert audit_by_reference([folder]).findings["complete"].witnesses == [witness]
    assert min(witness.violation.places) > 20, "there are partitions before it"


def with_delivery_renamed(what: Happening, names: dict[Message, Message]) -> Happening:
    time, event, message, to, priority = what
    if message is not None and event == "deliver":
        message = names.get(message, message)
    return time, event, message, to, priority


def test_a_senders_order_by_priority_is_found_across_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes deliver two messages of one sender and one priority in the wrong order: their logs are equal."""
    make_partitions_small(monkeypatch)
    run = random_run(chance := Random("by priority"), Service.PRIORITY_TOTAL, levels=False, messages=120)
    while run.nodes != 3 or len(run.logs[1]) < 120:
        run = random_run(chance, Service.PRIORITY_TOTAL, levels=False, messages=120)
    priority = {what[2]: what[4] for log in run.logs for what in log if what[1] == "send"}
    logs = run.logs
    delivered = [what[2] for what in logs[0] if what[1] == "deliver"]
    chosen = [message for message in delivered if message and message[0] == 0 and priority[message] == 1]
    for one, other in pairwise(chosen):
        names = {one: other, other: one}
        run.logs = [[with_delivery_renamed(what, names) for what in log] for log in logs]
        found = audited(write(tmp_path / str(one), {"r": run}, rows_in_a_group=20), [])
        assert found is None or not found.holds


def test_runs_that_share_row_groups_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    runs = {name: long_enough(name) for name in ("q", "r", "s")}
    log = runs["r"].logs[0]
    log.remove(next(what for what in log if what[1] == "deliver"))
    folder = write(tmp_path, runs, runs_in_a_file=3, rows_in_a_group=70)
    tasks = audit_tasks([folder])
    assert all(location.shared for task in tasks for location in task.locations)
    whole = Verdict()
    for task in tasks:
        found = audit_partitioned(task, Service(task.row["protocol"]), run_in_process, pytest.fail)
        assert found is not None
        assert found.holds is (task.row["run"] != "r")
        whole.add_run(task.row, found)
    assert whole.as_document() == audit_by_reference([folder]).as_document()


@pytest.mark.parametrize("place", ["node", "view", "delivery", "source"])
def test_nodes_that_are_not_in_the_group_need_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The first number that is no node's: the reference audit says what is wrong with it."""
    make_partitions_small(monkeypatch)
    run = long_enough("outside")
    time, outside = run.logs[0][-1][0] + 1, run.nodes
    strange: dict[str, tuple[int, Happening]] = {
        "node": (outside, (time, "crash", None, None, None)),
        "view": (0, (time, "view", None, (0, outside), None)),
        "delivery": (outside, (time, "deliver", (0, 0), None, None)),
        "source": (0, (time, "deliver", (outside, 0), None, None)),
    }
    run.logs.append([])
    node, what = strange[place]
    run.logs[node].append(what)
    notes: list[str] = []
    assert audited(write(tmp_path, {"r": run}, rows_in_a_group=30), notes) is None
    assert notes == ["run r: falling back to a single-task audit: it names nodes that are not in the group"]


def test_a_message_behind_its_successors_is_found_across_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes deliver one message of E1 at their very end, and no cut point before that is closed."""
    make_partitions_small(monkeypatch)
    monkeypatch.setattr(cut_points, "_MOST_GROUPS", 0)
    run = long_enough("overlap")
    logs = run.logs
    for late in [what[2] for what in logs[0] if what[1] == "deliver" and what[2] and what[2][0] == 0][:-1]:
        run.logs = []
        for log in logs:
            place = next(place for place, what in enumerate(log) if what[1:3] == ("deliver", late))
            moved = [*log[:place], *log[place + 1 :], log[place]]
            run.logs.append([(was[0], *what[1:]) for was, what in zip(log, moved, strict=True)])
        verdict = audited(write(tmp_path / str(late), {"r": run}, rows_in_a_group=20), [])
        assert verdict is not None
        assert {name for name, finding in verdict.findings.items() if not finding.holds} == {"sender_order_kept"}


@pytest.mark.parametrize("service", [Service.SELECTIVE_TOTAL, Service.SELECTIVE_PARTIAL])
def test_partitions_that_overlap_are_audited_as_one_if_there_is_one_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service
) -> None:
    """E1 sends to itself and to E2 in turn; E2 is slow, and delivers something of E3 before each of these messages.

    What E1 delivered so far is above much of what E2 has still to deliver: no cut point is closed.
    """
    make_partitions_small(monkeypatch)
    monkeypatch.setattr(cut_points, "_MOST_GROUPS", 0)
    run = RandomRun(service, 3, [[] for _ in range(3)])
    for number in range(120):
        run.logs[0].append((number, "send", (0, number), (number % 2,), None))
    for number in range(60):
        run.logs[2].append((number, "send", (2, number), (1,), None))
        run.logs[0].append((200 + number, "deliver", (0, 2 * number), None, None))
        run.logs[1].append((200 + 4 * number, "deliver", (2, number), None, None))
        run.logs[1].append((202 + 4 * number, "deliver", (0, 2 * number + 1), None, None))
    (task,) = audit_tasks([write(tmp_path, {"r": run}, rows_in_a_group=20)])
    audits: list[int] = []

    def run_tasks(kind: TaskKind, tasks: Sequence[bytes]) -> list[bytes]:
        audits.extend([len(tasks)] * (kind is TaskKind.AUDIT))
        return run_in_process(kind, tasks)

    verdict = audit_partitioned(task, service, run_tasks, pytest.fail)
    assert verdict is not None
    assert verdict.holds
    assert audits[0] > 2
    again = {1} if service is Service.SELECTIVE_TOTAL else set()
    assert set(audits[1:]) == again, "what was merged is audited again, and nothing else"


def test_two_events_at_one_step_need_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are in one row group or in two: the reference audit says what is wrong with them."""
    make_partitions_small(monkeypatch)
    run = long_enough("steps")
    rows = run.rows()
    places = [place for place, row in enumerate(rows) if row[0] == 0 and row[3] == "deliver"]
    for before, place in list(pairwise(places))[::3]:
        changed = list(rows)
        changed[place] = (0, rows[before][1], *rows[place][2:])
        monkeypatch.setattr(run, "rows", lambda changed=changed: changed)
        notes: list[str] = []
        assert audited(write(tmp_path / str(place), {"r": run}, rows_in_a_group=20), notes) is None
        assert "the events of a node are not in the order of its steps in the files" in notes[0]


def test_incomplete_records_need_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    (task,) = audit_tasks([write(tmp_path, {"r": long_enough("live")}, rows_in_a_group=20)])
    notes: list[str] = []
    changed = msgspec.structs.replace(task, row={**task.row, "unrecorded": 0b10})
    assert audit_partitioned(changed, Service.TOTAL, run_in_process, notes.append) is None
    assert "some of its members left no complete record" in notes[0]
    assert audit_partitioned(task, Service.TOTAL, run_in_process, pytest.fail) is not None


def test_times_of_clocks_that_differ_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that E2 does is an hour before: with one clock it had everything before it was sent."""
    make_partitions_small(monkeypatch)
    run = long_enough("live")
    run.logs[1] = [(what[0] - 3_600_000_000_000, *what[1:]) for what in run.logs[1]]
    (task,) = audit_tasks([write(tmp_path, {"r": run}, rows_in_a_group=20)])
    for one_clock in (True, False):
        config = json.dumps({"live": {"one_clock": one_clock}})
        changed = msgspec.structs.replace(task, row={**task.row, "config": config})
        found = audit_partitioned(changed, Service.TOTAL, run_in_process, lambda _: None)
        assert found is not None
        assert found.holds is not one_clock


@pytest.mark.parametrize(("counter", "more"), [("sent", 0), ("sent", 1), ("delivered", 0), ("delivered", -1)])
def test_what_a_long_run_counted_is_in_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counter: str, more: int
) -> None:
    make_partitions_small(monkeypatch)
    run = long_enough("counted")
    (task,) = audit_tasks([write(tmp_path, {"r": run}, rows_in_a_group=20)])
    kind = "send" if counter == "sent" else "deliver"
    count = sum(what[1] == kind for log in run.logs for what in log)
    changed = msgspec.structs.replace(task, row={**task.row, counter: count + more})
    verdict = audit_partitioned(changed, Service.TOTAL, run_in_process, pytest.fail)
    assert verdict is not None
    assert verdict.findings["complete"].violations == (more != 0)


def test_events_that_no_audit_reads_may_name_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    run = long_enough("other kinds")
    time = run.logs[0][-1][0] + 1
    run.logs[0].append((time, "crash", None, None, None))
    run.logs.append([(time, "discard", None, None, None)])  # of a node that is not in the group
    verdict = audited(write(tmp_path, {"r": run}, rows_in_a_group=20), [])
    assert verdict is not None
    assert verdict.holds


def test_a_senders_order_is_found_across_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One node delivers a message at its very end: the last one of its sender in a partition that passes by itself."""
    make_partitions_small(monkeypatch)
    run = long_enough("order")
    run.service = Service.PARTIAL
    log = run.logs[1]
    for late in [place for place, what in enumerate(log) if what[1] == "deliver" and what[2] and what[2][0] == 0][:-1]:
        moved = [*log[:late], *log[late + 1 :], log[late]]
        run.logs[1] = [(was[0], *what[1:]) for was, what in zip(log, moved, strict=True)]
        verdict = audited(write(tmp_path / str(late), {"r": run}, rows_in_a_group=20), [])
        assert verdict is not None
        assert not verdict.findings["sender_order_kept"].holds


def test_all_violations_are_counted_in_as_many_partitions_as_may_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_partitions_small(monkeypatch)
    run = long_enough("searched")
    deliveries = [what for what in run.logs[1] if what[1] == "deliver"]
    for what in (deliveries[0], deliveries[-1]):
        run.logs[1].remove(what)
    folder = write(tmp_path, {"r": run}, rows_in_a_group=20)
    for most, told in (
        (2, []),
        (1, ["run r: searched 1 of 2 partitions that do not pass; violations are counted in these"]),
    ):
        monkeypatch.setattr(partitioned, "_MOST_SEARCHED", most)
        notes: list[str] = []
        verdict = audited(folder, notes)
        assert notes == told
        assert verdict is not None
        assert verdict.findings["complete"].violations == most
        assert verdict.findings["complete"].at_least is (most == 1)


def test_cells_of_large_groups_are_told_apart() -> None:
    """These two have the same number in 16 bits."""
    one, other = 5, 5 + (1 << 16)
    table = Ranges.over(1 << 17, np.array([one, other, one, other]), np.array([1, 2, 3, 4]))
    lowest, highest = table.tables()
    assert [(lowest[cell], highest[cell]) for cell in (one, other)] == [(1, 3), (2, 4)]


@pytest.mark.parametrize(("start", "below", "differing"), [(0, 3, 0), (0, 2, 0), (1, 3, 2), (2, 3, 2), (1, 2, None)])
def test_logs_are_compared_from_the_first_position_to_the_last(
    tmp_path: Path, start: int, below: int, differing: int | None
) -> None:
    """Two logs that differ at positions 0 and 2."""
    logs: list[list[Message]] = [[(0, 0), (0, 1), (1, 0)], [(1, 0), (0, 1), (0, 0)]]
    deliveries: list[list[Happening]] = [
        [(place, "deliver", message, None, None) for place, message in enumerate(log)] for log in logs
    ]
    write(tmp_path, {"r": RandomRun(Service.PRIORITY_TOTAL, 2, deliveries)}, rows_in_a_group=10)
    file = RowGroups(str(tmp_path / "events/part-0.parquet"), {}, (0,), None)
    found = compare(ComparisonTask(2, start, below, (file,), ((0, 0),)))
    assert found.differing == (() if differing is None else (logs[0][differing], logs[1][differing]))


def test_files_are_taken_in_their_own_order_where_times_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are in the order of steps, and each row group begins at any time."""
    make_partitions_small(monkeypatch)
    run = long_enough("times")
    rows = run.rows()
    (task,) = audit_tasks([write(tmp_path / "good", {"r": run}, rows_in_a_group=20)])
    chance = Random("times")
    monkeypatch.setattr(run, "rows", lambda: [(*row[:2], chance.randrange(10**6), *row[3:]) for row in rows])
    (mixed,) = audit_tasks([write(tmp_path / "mixed", {"r": run}, rows_in_a_group=20)])
    config = json.dumps({"log": {"one_clock": False}})
    for one in (task, mixed):
        changed = msgspec.structs.replace(one, row={**one.row, "config": config})
        found = audit_partitioned(changed, Service.TOTAL, run_in_process, pytest.fail)
        assert found is not None
        assert found.holds
