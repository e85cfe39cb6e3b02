"""Schedules as files: what is written is read back, and what cannot be read is refused with its line and a way out."""

import errno
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ordercast.explorer import schedule_files
from ordercast.explorer.explore import explore
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.outcome import outcome_of
from ordercast.explorer.scenario import Promise, Scenario
from ordercast.explorer.schedule_files import ScheduleFile, read_schedule, schedule_text, write_schedule
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import LossInference, PaperRules
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level
from ordercast.model.runs import Channel
from tests.explorer.broken import GoesBack
from tests.explorer.groups import broadcasts, priority_total, selective_total, spo, spo_as_printed

BY_CONDITION_2 = PaperRules(condition_2=LossInference.OTHERS)
WRITTEN = {
    "spo": spo(
        "a{2} b{2,3}", "", "c{1}", window=3, losses=1, loses=("a at E2",), duplicates=2, firings=3, patient=True
    ),
    "spo-printed": spo_as_printed("a{2}", "", liveness_goal=Level.ACCEPTED, paper=BY_CONDITION_2, losses=1),
    "spo-one": spo("a{2}", "", channel=Channel.ONE, drained=True, first_seq=(5, 0), rounds=7),
    "st": selective_total("a{2}", "", losses=1, log_limit=3),
    "st-stable": selective_total("a{2}", "", losses=1, delivers_stable=True),
    "prito": priority_total("p1 h5", "q2", synchronises=False),
    "sequencer": broadcasts("a", "b", "", history=1, resilience=1, crashes=1),
}


@pytest.mark.parametrize("scenario", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_is_read_back(scenario: Scenario, tmp_path: Path) -> None:
    first = f"E1 sends {scenario.items[0]}"
    file = ScheduleFile(
        scenario=scenario, schedule=(first,), about='It "breaks"\nall.', sentence="é is never", live=True, begins=1
    )
    write_schedule(tmp_path / "it.toml", file)
    assert read_schedule(tmp_path / "it.toml") == file


def test_on_a_full_disk_a_schedule_that_was_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full when a part of the new one is written."""
    file, write = tmp_path / "it.toml", Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        write(path, content[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    content = ScheduleFile(scenario=spo("a{2}", ""), schedule=())
    with pytest.raises(
        ConfigError, match=r"cannot write the schedule .*it.toml: No space left .*; choose another path"
    ):
        write_schedule(file, content)
    assert list(tmp_path.iterdir()) == []
    file.write_text("mine")
    with pytest.raises(ConfigError):
        write_schedule(file, content)
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


def test_every_field_of_a_scenario_and_of_a_promise_has_its_key() -> None:
    named = {"machine", "group", "promise", "scripts", "channel"}
    assert {field.name for field in fields(Scenario)} - named == set(schedule_files._BOUNDS)
    assert {field.name for field in fields(Promise)} == set(schedule_files._Promise.__struct_fields__)


def test_a_violation_that_was_found_is_found_in_its_file_again(tmp_path: Path) -> None:
    scenario = spo_as_printed("a{2}", "", liveness_goal=Level.ACCEPTED, losses=1)
    found = explore(scenario).counterexample
    assert found is not None
    path = tmp_path / "c3.toml"
    write_schedule(
        path, ScheduleFile(scenario=scenario, schedule=found.schedule, sentence=found.sentence, live=found.live)
    )
    read = read_schedule(path)
    space = StateSpace(read.scenario)
    outcome = outcome_of(space, parse_schedule(space, read.schedule))
    assert outcome.sentence == read.sentence
    assert len(outcome.steps) == 2


GOOD = schedule_text(
    ScheduleFile(scenario=spo("a{2}", "", losses=1), schedule=("E1 sends a{2}", "E2 loses E1#0 a"), sentence="x")
)
BAD: list[tuple[str, str, Any]] = [
    ('kind = "schedule"', 'kind = "simulation"', 'needs version = 1 and kind = "schedule"'),
    ("version = 1", "version = 2", "needs version = 1"),
    ("losses = 1", 'losses = "one"', r"line 16: Expected `int`, got `str` - at `scenario.losses`; see docs"),
    ("losses = 1", "loses_much = 1", r"contains unknown field `loses_much`"),
    (
        '"E2 loses E1#0 a"',
        '"E2 loses E1#1 a"',
        r"line 5: step 2, 'E2 loses E1#1 a', is not enabled there; enabled: 'E2",
    ),
    ('"spo"', '"spu"', "line 12: unknown protocol 'spu'; choose one of: po"),
    ('"a{2}", ""', '"a{5}", ""', r"line 15: 'a\{5\}' goes to a node that is not one of E1 to E2"),
    ("[promise]", '[promise]\nliveness_goal = "known"', "liveness_goal is one of nothing, accepted, .*not 'known'"),
    ("[promise]", "[group]\nwindow = 0\n[promise]", "the window must be at least 1, not 0"),
    (
        "[promise]",
        "[search]\nbegins = 3\n[promise]",
        "line .*: `search.begins` must be 0 to 2, the number of steps, not 3",
    ),
    ("schedule = [", "schedule = ", "invalid TOML: .*line 3"),
]


@pytest.mark.parametrize(("was", "becomes", "sentence"), BAD)
def test_a_bad_file_is_refused_in_a_sentence(was: str, becomes: str, sentence: str, tmp_path: Path) -> None:
    assert was in GOOD
    (tmp_path / "bad.toml").write_text(GOOD.replace(was, becomes))
    with pytest.raises(ConfigError, match=sentence) as refused:
        read_schedule(tmp_path / "bad.toml")
    assert "bad.toml" in str(refused.value)


def test_a_machine_that_has_no_name_is_not_written() -> None:
    with pytest.raises(ConfigError, match="is not a machine of the protocols"):
        schedule_text(ScheduleFile(scenario=spo("a{2}", "", machine=GoesBack), schedule=()))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*no\.toml: No such file"):
        read_schedule(tmp_path / "no.toml")
