"""`ordercast audit --history`: whether histories are linearizable."""

import json
from pathlib import Path

from ordercast.model.history import Operation
from ordercast.trace.history import write_history
from tests.cli.conftest import Command

PUT = Operation("A", "register", "store", "k", "put", ("1",), "null", 0, 1)


def test_a_history_is_judged_by_key(ordercast: Command, tmp_path: Path) -> None:
    right = Operation("B", "register", "store", "k", "get", (), "1", 2, 3)
    write_history(tmp_path / "a.parquet", [PUT, right])
    done = ordercast("audit", "--history", str(tmp_path / "a.parquet"))
    assert (done.status, done.out) == (0, "1 key, 2 operations: linearizable\n")


def test_what_cannot_follow_is_shown(ordercast: Command, tmp_path: Path) -> None:
    stale = Operation("B", "register", "store", "k", "get", (), "null", 2, 3)
    write_history(tmp_path / "a.parquet", [PUT])
    write_history(tmp_path / "b.parquet", [stale])
    done = ordercast("audit", "--history", str(tmp_path), "--json", str(tmp_path / "verdict.json"))
    assert done.status == 1
    assert done.out.splitlines() == [
        "1 key, 2 operations: 1 key not linearizable",
        "  register store k: after 1 of 2 operations none of these can follow:",
        "    B: get() = null",
    ]
    [verdict] = json.loads((tmp_path / "verdict.json").read_text())
    assert (verdict["key"], verdict["linearizable"], verdict["ordered"]) == ("k", False, 1)


def test_what_is_no_history_is_refused(ordercast: Command, tmp_path: Path) -> None:
    assert ordercast("audit", "--history", str(tmp_path)).status == 2
    assert ordercast("audit", "--history", "--follow", str(tmp_path)).status == 2
