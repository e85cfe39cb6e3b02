"""Members are killed, stopped, and leave, while all send: all of their records together keep every promise.

A and B stay; C leaves; D is stopped for longer than the failure timeout; E is killed. All are in a group of each order.
"""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

import pyarrow.dataset as ds
import pytest

from ordercast.audit.reference import audit
from ordercast.audit.services import OF_VIEWS
from tests.live.groups import ORDERS, new_name
from tests.network.lab import Process

NAMES = ("A", "B", "C", "D", "E")
TIMEOUT = 1.5
SENT = {"A": 100, "B": 100, "C": 40, "D": 100, "E": 100}


class Ended:
    """Groups whose members have ended."""

    def __init__(self, group: str, folder: Path, processes: dict[str, Process]) -> None:
        self.group, self.folder, self.processes = group, folder, processes

    def report(self, name: str, order: str) -> dict[str, Any]:
        return self.processes[name].reports[f"{self.group} {order}"]

    def rows(self, order: str) -> list[tuple[str, str, int | None, str]]:
        """Of the views: members, events, numbers and details."""
        found = ds.dataset(self.folder / order / "events", partitioning=None).to_table(
            columns=["node", "step", "event", "seq", "detail"],
            filter=ds.field("event").isin(["view", "leave", "exclude"]),
        )
        table = found.sort_by([("node", "ascending"), ("step", "ascending")]).to_pylist()
        return [(NAMES[row["node"]], row["event"], row["seq"], row["detail"]) for row in table]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder, group = tmp_path_factory.mktemp("records"), new_name()
    processes = {name: _started(name, group, folder) for name in NAMES}
    try:
        for process in processes.values():
            process.wait_open(len(ORDERS))
        time.sleep(1.2)  # records are written each second: there is one of E
        processes["E"].signal(SIGKILL)
        processes["D"].signal(SIGSTOP)
        for name in ("A", "B", "C"):
            processes[name].wait(60)
        processes["D"].signal(SIGCONT)
        processes["D"].wait(60)
        yield Ended(group, folder, processes)
    finally:
        for process in processes.values():
            process.end()


def _started(name: str, group: str, folder: Path) -> Process:
    jobs = [
        {
            "group": f"{group} {order}",
            "name": name,
            "order": order,
            "messages": SENT[name],
            "gap": 0.03,
            "selective": order in {"partial", "total"},
            "leaves": name == "C",
            "members": NAMES,
            "record": str(folder / order),
            "options": {"failure_timeout": TIMEOUT, "rejoin": False},
        }
        for order in ORDERS
    ]
    return Process(name, [sys.executable, "-m", "tests.network.member", json.dumps(jobs)], "")


@pytest.mark.parametrize("order", ORDERS)
def test_the_records_of_a_group_whose_members_leave_and_fail_hold(ended: Ended, order: str) -> None:
    reports = {name: ended.report(name, order) for name in NAMES[:4]}
    assert {name: report["status"] for name, report in reports.items()} == {"A": 0, "B": 0, "C": 0, "D": 1}, reports
    for name in ("A", "B"):
        [*_, [_, last]] = reports[name]["views"]
        assert last == ["A", "B"], reports[name]
        sent = {other: reports[other]["sent"][name] for other in ("A", "B", "C")}
        assert {other: reports[name]["heard"][other] for other in sent} == sent
    verdict = audit([ended.folder / order])
    assert verdict.holds, verdict.as_document()
    assert {check.__name__ for check in OF_VIEWS} <= set(verdict.findings)
    assert "the record of E is incomplete" in verdict.incomplete_records[0]
    rows = ended.rows(order)
    founded = [row for row in rows if row[3] == "heard=; founded"]
    assert founded[:4] == [(name, "view", 0, "heard=; founded") for name in NAMES[:4]], "that of E may be lost"
    left, (name, event, number, why) = (row for row in rows if row[1] != "view")
    assert left == ("C", "leave", None, "drained")
    assert (name, event) == ("D", "exclude")
    assert re.match("D(, E)? did not answer(; C left)?$", why), "C may leave with the same view, and E before"
    others = {(row[0], row[3].partition("; ")[2]) for row in rows if row[1:3] == ("view", number)}
    assert {("A", why), ("B", why)} <= others, "who goes on knows the same reason"
