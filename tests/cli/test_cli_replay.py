"""`ordercast replay`: a schedule that was kept is told, judged and drawn."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ordercast.explorer.paper_counterexamples import under_sound_rules
from ordercast.explorer.schedule_files import read_schedule, schedule_text
from tests.cli.conftest import Command

STORIES = Path(__file__).parents[2] / "examples/counterexamples"
C3 = STORIES / "spo-c3.toml"


def test_it_tells_step_by_step_what_happens_and_what_breaks(ordercast: Command) -> None:
    done = ordercast("replay", STORIES / "spo-c0.toml")
    assert done.status == 1
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[2:7] == [
        "1 E1 sends a{2,3} transmits E1#0 a",
        "2 E2 receives E1#0 a accepts a",
        "3 E2 sends b{3} transmits E2#0 b",
        "4 E3 receives E2#0 b discards b (hearsay)",
        "from here on nothing is lost",
    ]
    broken = lines.index("broken: b{3} of E2 is never accepted at E3:")
    waiting = [line.partition(":")[0] for line in lines[broken + 1 :]]  # each by a line of its own
    assert waiting == ["E1", "E2", "E2", "E3", "E3"]


def test_names_with_brackets_are_told_as_they_are(ordercast: Command) -> None:
    assert "E2 sends z[5]{1,2}" in ordercast("replay", STORIES / "prito-f2.toml").out


def test_what_goes_on_for_ever_is_not_told_for_ever(ordercast: Command) -> None:
    done = ordercast("replay", STORIES / "st-s10.toml")
    assert " more steps" in done.out
    assert len(done.out.splitlines()) < 40


def test_the_same_schedule_breaks_nothing_under_the_sound_rules(ordercast: Command, tmp_path: Path) -> None:
    printed = C3.read_text()
    assert 'rules = "paper"' in printed
    (tmp_path / "sound.toml").write_text(printed.replace('rules = "paper"', 'rules = "sound"'))
    assert (
        read_schedule(tmp_path / "sound.toml").scenario.machine is under_sound_rules(read_schedule(C3).scenario).machine
    )
    done = ordercast("replay", tmp_path / "sound.toml")
    assert (done.status, done.err) == (0, "")
    assert "no promise is broken" in done.out
    assert "the file expects: a{2} of E1 is never accepted at E2" in done.out


def test_its_bounds_are_searched_anew_by_either_rules(ordercast: Command) -> None:
    done = ordercast("replay --search", C3)
    assert done.status == 1
    assert "so far" in done.out
    steps = [f"{number:>5}  {step}" for number, step in enumerate(read_schedule(C3).schedule, start=1)]
    lines = done.out.splitlines()
    assert lines[lines.index("broken") + 1 :][: len(steps)] == steps
    assert lines[-1] == "the rules of the file break a promise within the bounds of the file"
    done = ordercast("replay --sound", C3)
    assert done.status == 0
    assert "(exhaustive)" in done.out
    assert done.out.splitlines()[-1].startswith("no promise is broken: exhaustive search with the sound rules")
    done = ordercast("replay --sound --max-states 2", C3)
    assert done.status == 0
    assert "(cut off)" in done.out
    assert done.out.splitlines()[-1].endswith("raise --max-states to search on")
    assert "--search and --sound draw nothing" in ordercast("replay --search --draw", C3).sentence


def test_it_is_drawn_here_and_there(ordercast: Command, tmp_path: Path) -> None:
    done = ordercast("replay --draw", C3, "--svg", tmp_path / "c3.svg")
    assert done.status == 1
    assert "■ a→{2}" in done.out
    texts = [element.text for element in ET.parse(tmp_path / "c3.svg").iter() if element.tag.endswith("text")]  # noqa: S314
    assert {"E1", "E2", "a→{2}", "step"} <= set(texts)


@pytest.mark.parametrize(
    ("was", "becomes", "sentence"),
    [
        ('kind = "schedule"\n', "", "has no `kind`; `ordercast replay` reads: schedule, simulation"),
        ('kind = "schedule"', 'kind = "tale"', "has the kind 'tale'; `ordercast replay` reads: schedule, simulation"),
        ("E2 loses E1#0 a", "E2 loses E1#7 a", "step 2, 'E2 loses E1#7 a', is not enabled there; enabled: "),
        ("losses = 1", "losses = -1", "`scenario.losses` must not be negative: -1"),
    ],
)
def test_a_bad_file_is_refused(ordercast: Command, tmp_path: Path, was: str, becomes: str, sentence: str) -> None:
    text = schedule_text(read_schedule(C3))
    assert was in text
    (tmp_path / "bad.toml").write_text(text.replace(was, becomes))
    done = ordercast("replay", tmp_path / "bad.toml")
    assert done.status == 2
    assert sentence in done.sentence


def test_a_picture_that_cannot_be_written_is_told(ordercast: Command, tmp_path: Path) -> None:
    done = ordercast("replay", C3, "--svg", tmp_path / "nowhere/c3.svg")
    assert done.status == 2
    assert "choose another path" in done.sentence
