"""What opening a session leaves behind, however it ends."""

import io
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ordercast.cli.shared.spark_session import spark_session
from ordercast.model.errors import ConfigError, PipelineError
from ordercast.pipeline import session
from ordercast.pipeline.settings import settings_of, users_settings


@pytest.mark.parametrize(("ends_by", "kept"), [(KeyboardInterrupt, 0), (ConfigError, 1)])
def test_what_spark_said_is_kept_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_by: type[BaseException], kept: int
) -> None:
    def started(*_: object) -> SparkSession:
        raise ends_by

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(session, "set_up_environment", lambda: None)
    monkeypatch.setattr(session, "open_session", started)
    with pytest.raises(ends_by), session.session():
        pass
    assert len(list(tmp_path.iterdir())) == kept


def test_what_packages_say_while_spark_starts_goes_to_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status line on a terminal takes the place of `sys.stderr`, and would show the stack trace of an interrupt."""
    screen, log = io.StringIO(), tmp_path / "spark.log"
    monkeypatch.setattr(sys, "stderr", screen)
    with session.stderr_to(log):
        logging.StreamHandler().emit(logging.makeLogRecord({"msg": "interrupted"}))  # as packages do
    assert (log.read_text(), screen.getvalue()) == ("interrupted\n", "")
    assert sys.stderr is screen


@pytest.mark.parametrize("master", ["nonsense", "local[many]", "spark://", "http://there:7077", ""])
def test_what_is_no_master_is_refused_before_a_java_is_asked(master: str) -> None:
    with pytest.raises(ConfigError, match=r"invalid master URL .*; use local\[4\], spark://"), session.session(master):
        pass


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local[2,3]", "yarn", "k8s://https://there:443"])
def test_every_way_to_name_a_master_of_spark_is_handed_on(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    asked = []

    def started(named: str, *_: object) -> SparkSession:
        asked.append(named)
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "set_up_environment", lambda: None)
    monkeypatch.setattr(session, "open_session", started)
    with pytest.raises(KeyboardInterrupt), session.session(master):
        pass
    assert asked == [master]


class Spark:
    """A session whose Java ends by itself, or stays, and which cannot be stopped any more."""

    def __init__(self, seconds: float) -> None:
        process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])  # noqa: S603
        self.sparkContext = SimpleNamespace(_gateway=SimpleNamespace(proc=process), _accumulatorServer=None)

    def stop(self) -> None:
        raise ConnectionRefusedError


@pytest.mark.parametrize(
    ("seconds", "raised", "told"),
    [
        (0, ConnectionRefusedError("refused"), "Java process ended: it was killed, or had no memory left"),
        (0, PipelineError("Spark failed"), "Java process ended: it was killed, or had no memory left"),
        (0, KeyboardInterrupt(), "^$"),
        (9, PipelineError("Spark failed"), "^Spark failed; Spark's log is "),
        (9, ConnectionRefusedError("refused"), "^refused$"),
    ],
)
def test_a_java_that_is_gone_is_told_and_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, raised: BaseException, told: str
) -> None:
    spark: Any = Spark(seconds)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(session, "set_up_environment", lambda: None)
    monkeypatch.setattr(session, "open_session", lambda *_: spark)
    expected = PipelineError if "Java" in told or "log is" in told else type(raised)
    try:
        with pytest.raises(expected, match=told), session.session():
            raise raised
    finally:
        spark.sparkContext._gateway.proc.kill()
        spark.sparkContext._gateway.proc.wait()
    assert len(list(tmp_path.iterdir())) == ("log is" in told or "Java" in told)


def test_what_the_user_sets_goes_before_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the embedded Spark all of ours are there but what the user set; on a cluster only what tables need."""
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    embedded = settings_of("local[*]", {})
    assert (embedded["spark.ui.enabled"], embedded["spark.driver.memory"]) == ("false", "1g")
    for name in ("spark.ui.enabled", "spark.driver.memory", "spark.sql.shuffle.partitions"):
        assert name not in settings_of("spark://there:7077", {})
        assert name not in settings_of("yarn", {})
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.ui.enabled   true\nspark.driver.memory=8g\nspark.sql.session.timeZone : CET\n\nspark.app.note"
    )
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.sql.shuffle.partitions=7 -c spark.x='a b' pyspark-shell")
    assert users_settings(os.environ) == {
        "spark.ui.enabled": "true",
        "spark.driver.memory": "8g",
        "spark.sql.session.timeZone": "CET",
        "spark.sql.shuffle.partitions": "7",
        "spark.x": "a b",
    }
    left = settings_of("local[2]", {"spark.driver.memory": "2g", "spark.y": "1"})
    assert set(left) == {
        "spark.ui.showConsoleProgress",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.driver.memory",
        "spark.y",
    }
    assert left["spark.driver.memory"] == "2g"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "")
    assert users_settings(os.environ) == {}


def test_settings_of_the_command_line_reach_the_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[object] = []

    def started(_: str, __: Path, conf: object) -> SparkSession:
        asked.append(conf)
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "set_up_environment", lambda: None)
    monkeypatch.setattr(session, "open_session", started)
    with pytest.raises(KeyboardInterrupt), spark_session("local[2]", ["spark.a=b=c", "spark.d="]):
        pass
    assert asked == [{"spark.a": "b=c", "spark.d": ""}]
    with pytest.raises(ConfigError, match=r"--conf takes spark.NAME=VALUE, not 'a=b'"), spark_session(None, ["a=b"]):
        pass
