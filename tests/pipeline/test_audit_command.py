"""`ordercast audit` by each of its means: the same verdict, and sentences for what does not go together."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ordercast.audit import reference
from ordercast.pipeline import session
from ordercast.pipeline.audit import engine
from tests.cli.conftest import Command
from tests.pipeline.traces import random_runs, write


@pytest.fixture
def open_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one session of the tests instead of one more."""

    @contextmanager
    def lend(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "session", lend)


@pytest.mark.usefixtures("open_session")
def test_all_means_end_in_the_same_document(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "trace", random_runs("means", 40), runs_in_a_file=9)
    documents: list[Any] = []
    for size, option in ((10**9, ""), (0, ""), (0, "--processes 2"), (10**9, "--spark")):
        monkeypatch.setattr(engine, "VECTORISED_FROM", size)
        done = ordercast(f"audit {option}", folder, "--json", tmp_path / "verdict.json")
        assert done.status == 1
        assert done.err == ""
        documents.append(json.loads((tmp_path / "verdict.json").read_text()))
    assert documents[0]["runs"] == 40
    assert documents[1:] == documents[:1] * 3


def test_following_ends_with_an_audit_of_the_whole_and_needs_no_spark(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = random_runs("followed", 30)
    one = next(name for name, run in runs.items() if run.service.value == "to")
    for log in runs[one].logs:  # what is lacking is found at the end only
        deliveries = [place for place, what in enumerate(log) if what[1] == "deliver"]
        del log[deliveries[-1]]
    folder = write(tmp_path, {one: runs[one]})
    monkeypatch.setattr(session, "session", lambda *_: pytest.fail("Spark was started"))
    done = ordercast("audit --follow --until-idle 1.5", folder)
    assert done.status == 1
    assert "lacks" in done.out
    assert (folder / "_audit").is_dir()


def test_what_following_finds_is_written_as_a_verdict(ordercast: Command, tmp_path: Path) -> None:
    runs = random_runs("followed", 30)
    one = next(name for name, run in runs.items() if run.service.value == "to")
    log = runs[one].logs[1]
    first, second, *_ = [place for place, what in enumerate(log) if what[1] == "deliver"]
    log[first], log[second] = log[second], log[first]
    done = ordercast("audit --follow", write(tmp_path / "t", {one: runs[one]}), "--json", tmp_path / "verdict.json")
    assert done.status == 1
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert not verdict["holds"]
    assert verdict["properties"]["same_order"]["witnesses"][0]["run"] == one
    assert verdict["properties"]["same_order"]["counts"] == "at least"
    assert "up to the first violation" in verdict["incomplete_records"][0]


def test_an_internal_error_is_no_verdict(ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, random_runs("internal error", 1))

    def fail(*_: object) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(reference, "audit", fail)
    done = ordercast("audit", folder)
    assert done.status == 70
    assert "KeyError: 'a mistake of ours'" in done.err


def test_what_is_no_trace_is_told_before_spark_starts(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "session", lambda *_: pytest.fail("Spark was started"))
    done = ordercast("audit --spark", tmp_path)
    assert done.status == 2
    assert "is not a trace" in done.sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--until-idle 3", "--until-idle and --checkpoint have no effect without --follow"),
        ("--follow another", "--follow takes one folder, not 2; follow each by itself"),
        ("--follow --until-idle=-1", "--until-idle must be a positive number of seconds, not -1.0"),
        ("--master local --no-spark", "--master and --no-spark contradict each other; give one"),
    ],
)
def test_options_that_do_not_go_together(ordercast: Command, tmp_path: Path, options: str, sentence: str) -> None:
    done = ordercast(f"audit {options}", tmp_path)
    assert done.status == 2
    assert done.sentence == sentence


def test_the_audit_after_following_is_on_the_master_that_was_named(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = [tmp_path / "trace"]
    ordercast("simulate", "spo", "--out", str(folder))
    asked: list[tuple[Any, ...]] = []

    def audited(folders: list[Path], service: Any, opened: Any, processes: int | None) -> Any:
        asked.append((opened and opened.args, processes))
        return reference.audit(folders, service)

    monkeypatch.setattr("ordercast.cli.audit._follow", lambda *_: [])
    monkeypatch.setattr("ordercast.cli.audit._audited", audited)
    assert ordercast("audit", "--follow", str(folder), "--until-idle", "1", "--master", "spark://a:7077").status == 0
    assert ordercast("audit", "--follow", str(folder), "--until-idle", "1").status == 0
    assert asked == [(("spark://a:7077", None), None), (None, None)]
