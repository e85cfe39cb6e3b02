"""`ordercast shrink` and `ordercast replay` of its files, as scripts see them."""

import json
import re
import sys
from pathlib import Path

import pytest

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.swarm.draw import draw_config
from ordercast.swarm.failing_runs import read_failing_run
from ordercast.swarm.run_audit import Attempt, Failure, failures_of
from ordercast.trace.chunk_writer import ChunkWriter
from ordercast.trace.run_writer import TraceWriter
from tests.cli.conftest import Command


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    """The configuration of a run that fails."""
    network, work = Network(channel=Channel.ONE), Workload(messages=20, spread=0.5)
    group = GroupConfig(nodes=4, rules=Rules.PAPER)
    faults = (Loss(rate=0.1),)
    config = RunConfig(
        protocol="st", group=group, network=network, workload=work, faults=faults
    ).with_default_timeouts()
    path = tmp_path / "printed.json"
    path.write_text(config.to_json())
    return path


def test_a_configuration_becomes_a_file_a_test_and_a_picture(ordercast: Command, printed: Path, tmp_path: Path) -> None:
    out, svg = tmp_path / "small", tmp_path / "small.svg"
    done = ordercast("shrink", printed, "--out", out, "--draw", "--svg", svg)
    assert done.status == 1
    first, *_ = done.out.splitlines()
    assert re.match(r"4 nodes, 80 messages, 1 fault → [23] nodes, [123] messages?, [12] faults?, \d+ runs, ", first)
    assert "broken: acknowledged_truthfully: " in done.out
    assert "E1  " in done.out, "the picture"
    assert svg.read_text().startswith("<svg")
    story = read_failing_run(out / "printed.toml")
    assert story.failure in failures_of(story.config)
    assert "shrunk from 4 nodes, 80 messages" in story.about
    assert "def test_st_acknowledged_truthfully()" in (out / "test_printed.py").read_text()
    replayed = ordercast("replay", out / "printed.toml")
    assert replayed.status == 1
    assert f"broken: {story.failure}" in replayed.out
    again = ordercast("shrink", out / "printed.toml", "--out", tmp_path / "again", "--json")
    assert again.status == 1
    document = json.loads(again.out)
    assert document["before"] == document["after"], "there is nothing left to take away"
    assert document["minimal"]
    assert RunConfig.from_json(json.dumps(document["config"])) == story.config


def test_a_file_whose_mistake_is_gone_says_so(ordercast: Command, printed: Path, tmp_path: Path) -> None:
    ordercast("shrink", printed, "--out", tmp_path, "--kind", "incomplete")
    path = tmp_path / "printed.toml"
    path.write_text(path.read_text().replace('rules = "paper"\n', ""))
    mended = ordercast("replay", path)
    assert mended.status == 0
    assert "no promise is broken" in mended.out
    assert "the file expects: incomplete: " in mended.out


def test_a_run_of_a_trace_is_made_small(ordercast: Command, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for rules in ("sound", "paper"):
        ordercast(f"simulate st --rules {rules} --nodes 3 --messages 10 --loss 0.1 --seed 3 --out", trace / rules)
    good = ordercast("shrink", trace / "sound")
    assert good.status == 0
    assert "does not fail" in good.sentence
    done = ordercast("shrink", trace / "paper", "--kind", "incomplete", "--out", tmp_path / "small", "--json")
    assert done.status == 1
    [scenario] = (tmp_path / "small").glob("st-n3-s3-*.toml")
    assert json.loads(done.out)["scenario"] == str(scenario)
    assert read_failing_run(scenario).failure.kind == "incomplete"
    lacking = ordercast("shrink", trace / "paper", "--run", "another")
    assert (lacking.status, lacking.sentence) == (2, f"{trace / 'paper'} has no run 'another'")


def test_a_number_of_the_swarm_holds(ordercast: Command) -> None:
    done = ordercast("shrink 4 --protocol sequencer")
    assert done.status == 0
    assert done.sentence.startswith("sequencer-4: this run does not fail")


REFUSED = [
    ("shrink 4 --protocol spa", "unknown protocol 'spa'"),
    ("shrink nothing", "nothing is not a number, a configuration or a trace"),
    ("shrink nothing.toml", "cannot read nothing.toml"),
    ("shrink 4 --seconds 0", "--seconds must be positive"),
    ("shrink 4 --json --draw", "both write to standard output"),
    ("shrink ²", "² is not a number, a configuration or a trace"),
    ("shrink 4 --run spo-4", "--run has no effect for 4, only for the folder of a trace"),
    ("shrink run.json --protocol st", "--protocol has no effect for run.json, only for a number of the swarm"),
]


@pytest.mark.parametrize(("line", "sentence"), REFUSED)
def test_bad_arguments_are_told(ordercast: Command, line: str, sentence: str) -> None:
    refused = ordercast(line)
    assert refused.status == 2
    assert sentence in refused.sentence


def test_what_is_no_configuration_is_told(ordercast: Command, printed: Path, tmp_path: Path) -> None:
    whole = printed.read_text()
    for text in (whole.replace("protocol", "protocols"), whole[:-1], ""):
        printed.write_text(text)
        refused = ordercast("shrink", printed)
        assert refused.status == 2
        assert refused.sentence.startswith(f"{printed}: invalid run configuration: ")


def test_a_trace_that_cannot_be_run_again_is_told(ordercast: Command, tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "theirs", "topic-1") as trace:
        trace.finish({"protocol": "to", "nodes": 3, "complete": True})
    refused = ordercast("shrink", tmp_path / "theirs")
    assert refused.status == 2
    assert refused.sentence.startswith(
        f"run topic-1 of {tmp_path / 'theirs'} is not a simulation, and only simulations can be"
    )


def test_of_a_folder_the_first_run_that_fails_so_is_taken(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails in another way is passed over, and told if there is no other."""
    config = draw_config(4, most_nodes=3, receipts=9)
    folder = tmp_path / "sweep"
    with ChunkWriter(folder, "chunk") as chunk:
        for name in ("one", "two"):
            chunk.keep({"run": name, "protocol": "spo", "nodes": 3, "complete": False, "config": config.to_json()})
        chunk.finish()
    failures = iter(["incomplete", "same_order"])
    attempted = sys.modules["ordercast.swarm.shrink"]  # the package has a function of that name
    monkeypatch.setattr(attempted, "attempt", lambda *_: Attempt([], [Failure(next(failures, "incomplete"), "so")]))
    found = ordercast("shrink", folder, "--kind", "same_order", "--out", tmp_path / "small")
    assert (found.status, found.err) == (1, "")
    assert (tmp_path / "small" / "two.toml").exists()
    otherwise = ordercast("shrink", folder, "--kind", "same_order", "--out", tmp_path / "none")
    assert otherwise.status == 2
    assert otherwise.sentence == "one: this run does not fail by same_order; it fails by: incomplete"
