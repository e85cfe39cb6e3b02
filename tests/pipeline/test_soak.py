"""Soaks on Spark: one that was stopped and gone on with tells what one tells that was not; failures are kept, small."""

import fcntl
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.pipeline import session
from ordercast.pipeline.soak import soak as soaking
from ordercast.pipeline.soak.soak import MANIFEST, ROUNDS, Limits, Round, Soak, soak
from ordercast.swarm.draw import draw_config
from ordercast.swarm.run_audit import failures_of
from ordercast.swarm.soak import EVERY_PROTOCOL, Tally
from tests.cli.conftest import Command
from tests.pipeline.sparks import ordercast as begun
from tests.pipeline.sparks import outcome, wait_for

PER_ROUND = 5
FAILING = 6


def small(number: int, protocols: Sequence[str] = EVERY_PROTOCOL, **groups: bool) -> RunConfig:
    """Small runs of all protocols, but for number 6, whose rules are the printed ones."""
    assert not any(groups.values()), "no soak here asks for groups with views or logs"
    if number != FAILING:
        return draw_config(number, protocol=protocols[number % len(protocols)], most_nodes=4, receipts=40)
    network, work = Network(channel=Channel.ONE), Workload(messages=20, spread=0.5)
    group = GroupConfig(nodes=4, rules=Rules.PAPER)
    faults = (Loss(rate=0.1),)
    return RunConfig(protocol="st", group=group, network=network, workload=work, faults=faults).with_default_timeouts()


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """What is drawn is drawn here, whoever runs it."""
    if "cluster" not in request.keywords:
        monkeypatch.setattr(soaking, "soak_config", small)
        monkeypatch.setattr(soaking, "round_size", lambda _: PER_ROUND)


@pytest.fixture
def open_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one session of the tests instead of one more."""

    @contextmanager
    def lend(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "session", lend)


class Stopped(Exception):  # noqa: N818 - what somebody did, not what went wrong
    """Somebody had enough."""


def test_a_soak_that_is_stopped_and_gone_on_with_tells_the_same(spark: SparkSession, tmp_path: Path) -> None:
    whole = Soak(tmp_path / "whole", EVERY_PROTOCOL)
    assert soak(spark, whole, Limits(runs=8)).keys() == {FAILING}
    assert [(done.first, done.end) for done in whole.rounds] == [(0, 5), (5, 8)]
    assert whole.tally.runs == 8
    assert sum(runs for runs, _ in whole.tally.protocols.values()) == 8
    assert whole.tally.deliveries == sum(deliveries for _, deliveries in whole.tally.protocols.values()) > 100

    def stop(_: Soak) -> None:
        raise Stopped

    stopped = Soak(tmp_path / "stopped", EVERY_PROTOCOL)
    with pytest.raises(Stopped):
        soak(spark, stopped, Limits(runs=8), note=stop)
    (tmp_path / "stopped" / ROUNDS / "_000000005.json.1.unfinished").write_text("half of it")
    resumed = Soak(tmp_path / "stopped", EVERY_PROTOCOL, resume=True)
    assert resumed.next_number == 5
    with resumed.held():
        soak(spark, resumed, Limits(runs=8))
    assert resumed.tally == whole.tally
    assert not list((tmp_path / "stopped").rglob("_*")), "what was half-written is gone"
    again = Soak(tmp_path / "stopped", EVERY_PROTOCOL, resume=True)
    assert again.tally == whole.tally
    with again.held(), pytest.raises(ConfigError, match="another soak is writing"):
        soak(spark, Soak(tmp_path / "stopped", EVERY_PROTOCOL, resume=True), Limits(runs=9))
    soak(spark, again, Limits(deliveries=again.tally.deliveries))
    assert again.tally == whole.tally, "it was enough before"


@pytest.mark.usefixtures("open_session")
def test_what_fails_is_kept_small_with_a_test_and_can_be_acted_out(ordercast: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = ordercast("soak --runs 8 --resume --out", out)
    assert done.status == 1
    assert done.err.startswith(f"soak: {out} has nothing to resume: starting a new soak\n")
    assert done.out.startswith("8 runs, ")
    assert "number 6: acknowledged_truthfully: " in done.out
    kept = out / "failures" / "st-6.toml"
    assert f"ordercast replay {kept} --draw" in done.out
    whole = RunConfig.from_json(kept.with_suffix(".json").read_text())
    assert whole == small(FAILING)
    assert failures_of(whole)
    assert (out / "failures" / "test_st_6.py").exists()
    replayed = ordercast("replay --draw", kept)
    assert replayed.status == 1
    assert "broken: acknowledged_truthfully: " in replayed.out
    told = ordercast("soak --runs 8 --resume --json --out", out)
    assert told.status == 1
    assert "a new soak" not in told.err
    document = json.loads(told.out)
    assert (document["runs"], document["failed"]) == (8, 1)
    assert document["failures"]["6"][0]["kind"] == "acknowledged_truthfully"
    assert document["deliveries"] > 0
    assert {"units were lost", "data was retransmitted"} <= set(document["states"])


@pytest.mark.usefixtures("open_session")
def test_a_failure_that_does_not_come_back_is_kept_whole(ordercast: Command, tmp_path: Path) -> None:
    """A run may have taken too long there; what is advised must work with what is kept."""
    out = tmp_path / "out"
    work = Soak(out, EVERY_PROTOCOL)
    with work.held():
        work.keep(Round(0, 1, 1.0, Tally(runs=1, failed=1), {0: (("incomplete", "it goes on after 300 s of work"),)}))
    done = ordercast("soak --runs 1 --resume --out", out)
    assert done.status == 1
    assert done.out.startswith("1 run, 0 deliveries audited (0 with levels), 1 run failed; ")
    assert "soak: number 0 failed; shrinking it" in done.err
    [kept] = (out / "failures").iterdir()
    assert f"  it did not fail in this process; try again: ordercast shrink {kept}\n" in done.out
    assert ordercast("shrink", kept).status == 0


def test_a_folder_belongs_to_one_soak(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = Soak(out, ("spo",))
    with first.held():
        soak(spark, first, Limits(runs=1))
        with pytest.raises(ConfigError, match="another soak is writing"), Soak(out, ("spo",), resume=True).held():
            pass
    with pytest.raises(ConfigError, match="continue it with --resume"):
        Soak(out, ("spo",))
    with pytest.raises(ConfigError, match="is a soak of spo; resume with the same --protocols"):
        Soak(out, ("st",), resume=True)
    manifest = out / MANIFEST
    manifest.write_bytes(msgspec.json.encode({"version": "0.0", "protocols": ["spo"]}))
    with pytest.raises(ConfigError, match=r"begun by ordercast 0\.0"):
        Soak(out, ("spo",), resume=True)
    manifest.write_text("{}")
    with pytest.raises(TraceError, match="is not the manifest of a soak"):
        Soak(out, ("spo",), resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ConfigError, match="is not empty and holds no soak"):
        Soak(tmp_path / "other", ("spo",))


def test_a_soak_may_begin_with_any_number(spark: SparkSession, tmp_path: Path) -> None:
    work = Soak(tmp_path / "out", EVERY_PROTOCOL, first=40)
    with work.held():
        soak(spark, work, Limits(runs=7))
    assert [(done.first, done.end) for done in work.rounds] == [(40, 45), (45, 47)]
    for first in (None, 40):
        assert Soak(tmp_path / "out", EVERY_PROTOCOL, first=first, resume=True).next_number == 47
    with pytest.raises(ConfigError, match="began with number 40; resume without --first"):
        Soak(tmp_path / "out", EVERY_PROTOCOL, first=47, resume=True)


def test_time_ends_a_soak_after_the_round_that_it_is_in(spark: SparkSession, tmp_path: Path) -> None:
    work = Soak(tmp_path / "out", ("spo",))
    with work.held():
        for _ in range(2):
            soak(spark, work, Limits(seconds=0.05))
    assert work.tally.runs == 2 * PER_ROUND


REFUSED = [
    ("soak --out OUT", "give a limit: --seconds, --deliveries or --runs"),
    ("soak --out OUT --runs -1", "--runs must be positive"),
    ("soak --out OUT --seconds 0.0 --runs 1", "--seconds must be positive"),
    ("soak --out OUT --runs 1 --first -1", "--first must not be negative"),
    ("soak --out OUT --runs 1 --protocols spo,spa", "unknown protocol 'spa'"),
]


@pytest.mark.parametrize(("line", "sentence"), REFUSED)
def test_bad_arguments_are_told_before_spark_starts(
    ordercast: Command, tmp_path: Path, line: str, sentence: str
) -> None:
    refused = ordercast(line.replace("OUT", str(tmp_path / "out")))
    assert refused.status == 2
    assert sentence in refused.sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.cluster
def test_a_soak_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """A Spark of its own, killed without a chance to say good-bye."""
    out = tmp_path / "out"
    arguments = ("soak", "--out", out, "--protocols", "sequencer,spo", "--master", "local[2]")
    killed = begun(*arguments, "--runs", 96)
    wait_for(lambda: len(list((out / ROUNDS).glob("*.json"))) >= 1, "the first round")
    time.sleep(1)  # in the midst of the second
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    for pipe in (killed.stdout, killed.stderr):
        if pipe is not None:
            pipe.close()
    done = len(list((out / ROUNDS).glob("*.json")))
    with (out / MANIFEST).open("rb") as file:
        wait_for(lambda: _is_free(file.fileno()), "its workers to notice")
    status, told, _ = outcome(begun(*arguments, "--runs", 32 * (done + 1), "--resume", "--json"))
    assert status == 0
    document = json.loads(told)
    assert document["runs"] == 32 * (done + 1)
    firsts = sorted(int(path.stem) for path in (out / ROUNDS).glob("*.json"))
    assert firsts == [32 * place for place in range(done + 1)], "no number was run twice, and none was left out"


def _is_free(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return True
