"""What the engine of mutations measures, keeps and believes."""

import json
import os
import signal
import sys
import threading
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.mutations import __main__, battery, measurement, mutation, results
from tests.mutations.awake import TICK, Awake
from tests.mutations.battery import Check, Failed, checks_of, first_failure
from tests.mutations.measurement import measured
from tests.mutations.results import Results
from tests.mutations.suites import Battery, Suite
from tests.mutations.systematic import Spot, every_spot
from tests.mutations.trials import Controls, Outcome, Trial, outcomes

GAPS, OTHER = "protocols.shared.gaps", "protocols.shared.destinations"
REAL = "test_what_is_held_may_come_in_any_order_and_as_keys"
SUITE = Suite("two", "spo", [GAPS, OTHER], Battery(["protocols.test_gaps", "protocols.test_destinations"]))


def always_fails() -> None:
    raise AssertionError("whatever the code does")


def waits_for_ever() -> None:
    threading.Event().wait()


def own(test: str) -> Check:
    return Check(__name__, test, (), 0.2)


def spot(part: str, module: str = GAPS) -> Spot:
    return next(each for each in every_spot(module) if part in each.name)


def tried(mutation: Spot, *checks: Check) -> Outcome:
    [outcome] = outcomes([Trial("two", mutation, checks, 60)])
    return outcome


@pytest.fixture(autouse=True)
def all_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "TRACED_BELOW", 1000)


def test_a_long_check_is_held_against_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "TRACED_BELOW", 0)
    known = measured(checks_of(["tests.protocols.test_gaps"]), [GAPS])
    assert all(each.runs(OTHER, [1]) for each in known)


def test_a_mutation_is_held_against_the_checks_that_run_its_lines_the_quickest_first() -> None:
    known = measured(checks_of(["tests.protocols.test_gaps", "tests.protocols.test_destinations"]), [GAPS, OTHER])
    ranges, other = SUITE.trials([spot("| >= -> >"), every_spot(OTHER)[0]])
    assert {check.module for check in ranges.checks} == {"tests.protocols.test_gaps"}
    assert {check.module for check in other.checks} == {"tests.protocols.test_destinations"}
    seconds = [it.seconds for it in SUITE.battery.measured(SUITE.code)]
    assert seconds == sorted(seconds)
    assert len(known) == len(seconds)


def test_a_line_that_no_check_runs_is_seen() -> None:
    """Where nothing is held back nothing is held by the line that ends the search for gaps early."""
    known = measured([Check("tests.protocols.test_gaps", "test_a_range_costs_nothing_by_its_length", ())], [GAPS])
    assert known[0].runs(GAPS, spot("ranges.append((start, number))").lines)
    [stop] = [each for each in every_spot(GAPS) if each.name.endswith("| >= -> >")]
    assert known[0].runs(GAPS, stop.lines)
    ends = stop.lines[-1] + 1  # `break`
    assert not known[0].runs(GAPS, [ends])


def test_the_lines_of_a_mutation_are_those_of_its_statement_without_what_is_inside() -> None:
    text = mutation.source_of(GAPS).splitlines()
    assert [text[line - 1].strip() for line in spot("| >= -> >").lines] == ["if number >= high:"]
    assert [text[line - 1].strip() for line in spot("ranges.append((start, high))").lines] == [
        "ranges.append((start, high))"
    ]


def test_what_was_measured_is_kept_until_a_test_or_the_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lines"
    checks = list(checks_of(["tests.protocols.test_gaps"]))
    before = measured(checks, [GAPS], file)
    ran: list[Check] = []

    def noted(check: Check, *_: object) -> measurement.Measured:
        ran.append(check)
        return before[0]

    monkeypatch.setattr(measurement, "_measure", noted)
    assert measured(checks, [GAPS], file) == before
    assert ran == []
    monkeypatch.setattr(measurement, "_text", lambda name: "changed" if name == f"ordercast.{GAPS}" else name)
    measured(checks, [GAPS], file)
    assert ran == checks


def test_a_check_that_fails_on_the_code_as_it_is_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="a check does not pass on the code as it is: AssertionError: whatever"):
        measured([own("always_fails")], [GAPS])


def test_what_fails_without_the_change_too_says_nothing_of_the_change() -> None:
    controls = Controls()
    for part, expected in (("| >= -> >", None), ("number + 1 -> number", f"test_gaps::{REAL}")):
        check = Check("tests.protocols.test_gaps", REAL, ())
        outcome = tried(spot(part), own("always_fails"), check)
        assert outcome.noticed is not None
        assert outcome.noticed.check == "test_engine::always_fails"
        noticed = controls.believed(outcome).noticed
        assert (noticed and noticed.check) == expected
    why = "AssertionError: whatever the code does"
    assert controls.failed == {(GAPS, "test_engine::always_fails"): why}


def test_what_passes_without_the_change_is_believed() -> None:
    outcome = tried(spot("number + 1 -> number"), Check("tests.protocols.test_gaps", REAL, ()))
    assert outcome.noticed is not None
    assert Controls().believed(outcome) == outcome


def test_a_check_that_waits_for_what_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "WAITING", 0.1)
    failed = first_failure([own("waits_for_ever")])
    assert failed is not None
    assert failed.check == "test_engine::waits_for_ever"
    assert failed.why == "no end after 0.3 s of waiting"


def sleeps() -> None:
    time.sleep(0.2)


def test_the_time_in_which_a_run_is_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "WAITING", 0.6)
    here, there = get_context("fork").Pipe(duplex=False)

    def checked() -> None:
        there.send("begins")
        there.send(first_failure([own("sleeps")]))

    process = get_context("fork").Process(target=checked)
    process.start()
    assert process.pid is not None
    assert here.recv() == "begins"
    awake = Awake(process.pid)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(1)
    assert awake.look() <= TICK
    os.kill(process.pid, signal.SIGCONT)
    assert here.recv() is None
    process.join()


def test_a_resumed_run_takes_over_what_still_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noticed: until the module changes. A survivor: until anything does."""
    file = tmp_path / "rows"
    noticed, survivor = spot("number + 1 -> number"), spot("| >= -> >")
    check = Check("tests.protocols.test_gaps", REAL, ())
    first = Results(file, resume=False)
    rows = [first.add(SUITE, tried(mutation, check)) for mutation in (noticed, survivor)]
    assert [row["noticed_by"] is None for row in rows] == [False, True]
    file.write_text(file.read_text() + '{"suite": "two", "fi')  # a run that was ended while it wrote
    again = Results(file, resume=True)
    assert [again.known(SUITE, mutation) for mutation in (noticed, survivor)] == rows
    monkeypatch.setattr(results, "digest_of_code", lambda: "other code")
    assert [again.known(SUITE, mutation) for mutation in (noticed, survivor)] == [rows[0], None]
    monkeypatch.setattr(results, "source_of", lambda module: f"another {module}")
    assert again.known(SUITE, noticed) is None
    Results(file, resume=False)
    assert not file.exists()
    assert json.loads(json.dumps(rows)) == rows


def test_a_row_of_a_mutant_written_by_hand_holds_until_it_is_written_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = SUITE.mutants()[0]
    rows = Results(tmp_path / "rows", resume=False)
    row = rows.add(SUITE, Outcome(Trial("two", mutant, [], 60), Failed("test_gaps::any", "so"), 0))
    again = Results(tmp_path / "rows", resume=True)
    assert again.known(SUITE, mutant) == row
    monkeypatch.setattr(results, "path_of", lambda _: Path(__file__))
    assert again.known(SUITE, mutant) is None


def test_a_suite_that_cannot_be_tried_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a check does not pass on the code as it is")

    broken = SUITE._replace(name="broken", battery=Battery([]))
    monkeypatch.setattr(broken.battery, "measured", fails)
    monkeypatch.setattr(__main__, "SUITES", [broken, SUITE._replace(code=[OTHER])])
    monkeypatch.setattr(sys, "argv", ["mutations", "--systematic"])
    assert __main__.main() == 1
    told = capsys.readouterr().out
    assert "broken was not tried to its end: a check does not pass on the code as it is" in told
    assert "protocols/shared/destinations.py" in told
