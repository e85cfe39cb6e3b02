"""`ordercast simulate prito|prio`: priorities are drawn, waited for and shown."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Command

SMALL = "--nodes 3 --messages 12 --loss 0.05 --seed 4"


@pytest.mark.parametrize("protocol", ["prito", "prio"])
def test_three_priorities_are_drawn_unless_said_otherwise(ordercast: Command, tmp_path: Path, protocol: str) -> None:
    done = ordercast(f"simulate {protocol} {SMALL} --out", tmp_path / "t")
    assert done.status == 0
    table = pq.read_table(tmp_path / "t" / "events", columns=["event", "priority"]).to_pylist()
    assert {row["priority"] for row in table if row["event"] == "send"} == {1, 2, 3}


def test_waiting_is_shown_by_priority_the_highest_first(ordercast: Command) -> None:
    done = ordercast(f"simulate prito {SMALL} --priorities 2")
    head, high, low = [line.split() for line in done.out.splitlines() if line.startswith(("priority", "2 ", "1 "))]
    assert head == ["priority", "deliveries", "p50", "p99", "most"]
    assert (high[0], low[0]) == ("2", "1")
    assert int(high[1]) + int(low[1]) == 3 * 3 * 12


def test_scripts_get_it_too(ordercast: Command) -> None:
    document = json.loads(ordercast(f"simulate prio {SMALL} --priorities 4 --json").out)
    waiting = document["waiting"]
    assert list(waiting) == ["1", "2", "3", "4"]
    assert sum(times["count"] for times in waiting.values()) == 3 * 3 * 12
    assert all(0 < times["p50"] <= times["p99"] for times in waiting.values())


def test_the_share_of_the_most_urgent_can_be_said(ordercast: Command) -> None:
    line = "simulate prito --nodes 2 --messages 400 --priorities 3 --json --record none"
    few, many = (json.loads(ordercast(f"{line} --urgent {share}").out)["waiting"] for share in (0.05, 0.9))
    assert few["3"]["count"] < 0.1 * 1600 < few["1"]["count"]
    assert many["3"]["count"] > 0.8 * 1600


def test_without_priorities_nothing_is_said_of_them(ordercast: Command) -> None:
    done = ordercast(f"simulate to {SMALL}")
    assert done.status == 0
    assert "priority" not in done.out


def test_run_synchronisation_can_be_switched_off(ordercast: Command) -> None:
    document = json.loads(ordercast(f"simulate prito {SMALL} --no-synchronise --json").out)
    assert document["config"]["group"]["priority"] == {"synchronises": False}


@pytest.mark.parametrize(
    ("options", "told"),
    [("--priorities 0", "1 to 255 priorities"), ("--priorities 256", "1 to 255"), ("--urgent 1", "below 1")],
)
def test_impossible_priorities_are_refused(ordercast: Command, options: str, told: str) -> None:
    done = ordercast(f"simulate prito {options}")
    assert done.status == 2
    assert told in done.err


def test_broadcasts_go_to_everybody_whatever_the_spread(ordercast: Command, tmp_path: Path) -> None:
    assert ordercast("simulate to --nodes 4 --messages 3 --spread 0.5 --out", tmp_path / "t").status == 0
    table = pq.read_table(tmp_path / "t" / "events", columns=["event", "destinations"]).to_pylist()
    assert {tuple(row["destinations"]) for row in table if row["event"] == "send"} == {(0, 1, 2, 3)}
