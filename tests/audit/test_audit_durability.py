"""Durable logs in traces: each property, and what breaks it."""

import pytest

from ordercast.audit.disk_rows import DiskLogs, DiskRow
from ordercast.audit.services import OF_LOGS
from tests.audit.changing_groups import FOUNDED, Script, audited, edited

# E3 is killed with c on its disk and in nobody's order; it comes back as E4, drops that, and is sent b.
LOGS: Script = {
    0: f"""{FOUNDED}; send a 0 1 2 3; send b 0 1 2 3; deliver a; durable a; deliver b; durable b
        view 1 = 0 1 3 heard 0 1; deliver d; durable d""",
    1: f"""{FOUNDED}; send d 0 1 2 3; deliver a; deliver b; durable a; durable b
        view 1 = 0 1 3 heard 0 1; deliver d; durable d""",
    2: f"{FOUNDED}; send c 0 1 2 3; deliver a; durable a; durable c; crash",
    3: "restart 2 2; durable a; durable c; view 1 = 0 1 3 heard 0 1; drop 1; durable b; deliver d; durable d",
}
STAYING_LOGS: Script = {
    0: f"{FOUNDED}; send a 0 1 2; send b 0 1 2; deliver a; durable a; deliver b; durable b",
    1: f"{FOUNDED}; deliver a; deliver b; durable a; durable b",
    2: f"{FOUNDED}; deliver a; deliver b; durable a",
}
BROKEN_LOGS: dict[str, tuple[Script, str, str]] = {
    "something is missing after a restart": (
        edited(LOGS, 3, ("restart 2 2; durable a; durable c", "restart 2 1; durable a")),
        "durable_survives",
        "E4, which is E3 started again, has nothing at position 1 of its log, where E3#0 was on its disk",
    ),
    "something else is there after a restart": (
        edited(LOGS, 3, ("durable a; durable c", "durable a; durable b")),
        "durable_survives",
        "E4, which is E3 started again, has E1#1 at position 1 of its log, where E3#0 was on its disk",
    ),
    "it does not name what it found": (
        edited(LOGS, 3, ("durable a; durable c; view", "durable a; view")),
        "durable_survives",
        "E4, which is E3 started again, says that 1 more messages are in its log than it names",
    ),
    "what was never agreed on is not dropped": (
        edited(LOGS, 3, ("drop 1;", "")),
        "one_log",
        "at position 1 of its log",
    ),
    "two logs have another order": (
        edited(LOGS, 1, ("durable a; durable b", "durable b; durable a")),
        "one_log",
        "E2 has E1#1 at position 0 of its log, E1 has E1#0 there",
    ),
    "one that joined lacks what a majority had before": (
        edited(LOGS, 3, ("durable b; deliver d; durable d", "deliver d")),
        "majority_survives",
        "E1#1 was at position 1 on the disks of a majority of view 0, and E4 has nothing there",
    ),
    "logs of a group that stays differ": (
        edited(STAYING_LOGS, 1, ("durable a; durable b", "durable b; durable a")),
        "one_log",
        "E2 has E1#1 at position 0 of its log",
    ),
}


@pytest.mark.parametrize("script", [LOGS, STAYING_LOGS], ids=["restarted", "staying"])
def test_logs_that_agree_have_all_properties(script: Script) -> None:
    verdict = audited(script)
    assert {name: each.witnesses for name, each in verdict.findings.items() if not each.holds} == {}
    assert verdict.findings.keys() >= {promise.__name__ for promise in OF_LOGS}


def test_without_logs_nothing_is_asked_of_them() -> None:
    script = {node: text.replace("durable", "accept") for node, text in STAYING_LOGS.items()}
    assert not audited(script).findings.keys() & {promise.__name__ for promise in OF_LOGS}


@pytest.mark.parametrize("name", BROKEN_LOGS)
def test_each_way_to_break_a_log_is_named(name: str) -> None:
    script, promise, sentence = BROKEN_LOGS[name]
    finding = audited(script).findings[promise]
    assert any(sentence in witness.violation.sentence for witness in finding.witnesses), finding.witnesses


def test_a_minority_may_lose_what_it_had() -> None:
    """Nobody was told that it is durable: E2 never had b on its disk, and all begin anew without it."""
    script = {
        0: f"{FOUNDED}; send a 0 1 2; deliver a; durable a; send b 0 1 2; deliver b; durable b; crash",
        1: f"{FOUNDED}; deliver a; durable a; crash",
        2: f"{FOUNDED}; deliver a; durable a; crash",
        3: "restart 1 1; durable a; view 1 = 3 4 heard 1 2",
        4: "restart 2 1; durable a; view 1 = 3 4 heard 1 2",
    }
    found = audited(script).findings
    assert all(found[promise.__name__].holds for promise in OF_LOGS)
    more = edited(script, 1, ("durable a; crash", "durable a; deliver b; durable b; crash"))
    lost = audited(more).findings
    assert not lost["durable_survives"].holds
    assert not lost["majority_survives"].holds


def test_what_nobody_but_one_had_is_not_what_a_majority_had() -> None:
    """Two of three have something else at a place than the log that goes on, and not the same."""
    script = {
        0: f"{FOUNDED}; send a 0 1 2; send b 0 1 2; durable a; durable b; view 1 = 0 1 heard 0 1; drop 1; durable d",
        1: f"{FOUNDED}; send c 0 1 2; send d 0 1 2; durable a; durable c; view 1 = 0 1 heard 0 1; drop 1; durable d",
        2: f"{FOUNDED}; durable a; exclude 1",
    }
    assert audited(script).findings["majority_survives"].holds
    same = edited(script, 1, ("durable c", "durable b"))
    (witness,) = audited(edited(same, 1, ("drop 1; durable d", ""))).findings["majority_survives"].witnesses
    assert witness.violation.nodes == (0,)
    assert witness.violation.sentence == (
        "E1#1 was at position 1 on the disks of a majority of view 0, and E1 has E2#1 there"
    )


def test_what_a_majority_had_at_the_same_place_as_the_others_is_not_lost() -> None:
    """Before it they differ, each from all others."""
    script = {
        0: f"{FOUNDED}; send a 0 1 2; send b 0 1 2; durable b; durable a; view 1 = 0 1 heard 0 1; drop 0; durable d"
        "; durable a",
        1: f"{FOUNDED}; send c 0 1 2; send d 0 1 2; durable c; durable a; view 1 = 0 1 heard 0 1; drop 0; durable d"
        "; durable a",
        2: f"{FOUNDED}; exclude 1",
    }
    assert audited(script).findings["majority_survives"].holds


def test_a_log_before_a_step_is_without_the_row_of_that_step() -> None:
    rows = [DiskRow(3, "durable", 0, 0), DiskRow(5, "durable", 0, 1), DiskRow(7, "drop", None, 1)]
    logs = DiskLogs({0: rows})
    assert [logs.of(0, step) for step in (3, 5, 7, 8)] == [[], [(0, 0)], [(0, 0), (0, 1)], [(0, 0)]]
    assert logs.of(0) == [(0, 0)]
    assert logs.of(1) == []


def test_a_log_may_be_behind_where_a_run_was_cut_off() -> None:
    script, promise, _ = BROKEN_LOGS["one that joined lacks what a majority had before"]
    assert not audited(script).findings[promise].holds
    assert audited(script, complete=False).findings[promise].holds


def test_logs_of_groups_whose_views_have_no_numbers_are_compared() -> None:
    script = {node: text.replace(FOUNDED, "") for node, text in STAYING_LOGS.items()}
    assert all(audited(script).findings[promise.__name__].holds for promise in OF_LOGS)
    swapped = edited(script, 1, ("durable a; durable b", "durable b; durable a"))
    found = audited(swapped).findings
    assert [promise.__name__ for promise in OF_LOGS if not found[promise.__name__].holds] == ["one_log"]
