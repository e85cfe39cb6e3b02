"""Runs as files: what is written is read back, the test fails as long as the run does, and mistakes are told."""

import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Miss
from ordercast.model.runs import Channel, Network, RunConfig, ScriptedSend, Workload
from ordercast.swarm.draw import draw_config
from ordercast.swarm.failing_runs import FailingRun, failing_run_text, pytest_text, read_failing_run, write_failing_run
from ordercast.swarm.reductions import explicit
from ordercast.swarm.run_audit import Failure, failures_of
from ordercast.swarm.soak import EVERY_PROTOCOL, soak_config

BROKEN = RunConfig(
    protocol="spo",
    group=GroupConfig(nodes=2, rules=Rules.PAPER),
    network=Network(channel=Channel.MANY, jitter=0),
    workload=Workload(script=(ScriptedSend(node=0, to=(1,)),)),
    faults=(Miss(node=1, source=0, nth=1),),
).with_default_timeouts()


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_what_is_written_is_read_back(protocol: str, tmp_path: Path) -> None:
    path = tmp_path / "story.toml"
    for number in range(25):
        config = draw_config(number, protocol=protocol, most_nodes=4, receipts=20)
        for told in (config, explicit(config)):
            story = FailingRun(told, Failure("same_order", 'E1 and E2 differ about "x" \\ {E1}'), "line\nand line")
            path.write_text(failing_run_text(story))
            assert read_failing_run(path) == story


def test_a_file_is_short_and_speaks_as_the_command_line() -> None:
    [failure] = failures_of(BROKEN)
    text = failing_run_text(FailingRun(BROKEN, failure, "lost"))
    assert text.startswith('version = 1\nkind = "simulation"\nabout = "lost"\n\n[expected]\nkind = "incomplete"\n')
    assert 'sends = [\n    "node=E1 to=E2",\n]\nfaults = [\n    "miss node=E2 source=E1 nth=1",\n]\n' in text
    assert '[group]\nnodes = 2\nrules = "paper"\n' in text
    assert "quota" not in text, "what is as usual is not said"


def test_the_test_fails_as_long_as_the_run_does(tmp_path: Path) -> None:
    [failure] = failures_of(BROKEN)
    write_failing_run(tmp_path, "broken-7", FailingRun(BROKEN, failure, "lost"))
    mended = FailingRun(draw_config(0, most_nodes=3, receipts=9), failure, 'it was "\\" before')
    (tmp_path / "test_mended.py").write_text(pytest_text(mended))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603
    assert "test_broken_7.py::test_spo_incomplete" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert f"'{failure}'" in done.stdout, "whole, and not as pytest shortens a list of objects"


GOOD = failing_run_text(FailingRun(BROKEN, Failure("incomplete", "x")))
MISTAKES = [
    ('kind = "simulation"', 'kind = "schedule"', 'begins with version = 1 and kind = "simulation"'),
    ("version = 1", "version = 2", "begins with version = 1"),
    ("version = 1", "version = ", "Invalid value"),
    ("[group]", "[groups]", "unknown field `groups`; see docs/swarm.md"),
    ("[run]", "[[run]]", "Expected `object`, got `array` - at `run`"),
    ('"node=E1 to=E2"', "5", "Expected `str`, got `int` - at `run.sends[0]`"),
    ('"miss node=E2 source=E1 nth=1"', "5", "Expected `str`, got `int` - at `run.faults[0]`"),
    ("[expected]", "[[expected]]", "Expected `object`, got `array` - at `expected`"),
    ("version = 1", "version = 1\nabout = 7", "Expected `str`, got `int` - at `about`"),
    ("nth=1", "nth=0", "counts units from 1"),
    ("nth=1", "n=1", "'n' is not a field of the fault 'miss'"),
    ("to=E2", "to=E7", "names E7, but the group's nodes are E1 to E2"),
    ("to=E2", "towards=E2", "'towards' is not a field of a scripted send; write: node=… to=…"),
    ('rules = "paper"', 'rules = "new"', "Invalid enum value"),
    ('protocol = "spo"', 'protocol = "spa"', "unknown protocol 'spa'"),
    ("nodes = 2", "nodes = 1", "a group has 2 to 1024 nodes"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_mistakes_are_told(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert GOOD.count(old) >= 1
    path = tmp_path / "story.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError) as told:
        read_failing_run(path)
    assert sentence in str(told.value)
    assert str(path) in str(told.value)


def test_runs_of_a_soak_can_be_written_too(tmp_path: Path) -> None:
    for number in range(40):
        story = FailingRun(soak_config(number), Failure("complete", "E1 delivered E2#0 twice"))
        path, _ = write_failing_run(tmp_path, str(number), story)
        assert read_failing_run(path) == story


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="choose another place"):
        write_failing_run(tmp_path / "file", "x", FailingRun(BROKEN, Failure("incomplete", "x")))
