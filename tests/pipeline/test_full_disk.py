"""A disk that is really full: a sentence, and everything that was there stays. A small one is mounted for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.model.errors import ConfigError, TraceError
from ordercast.pipeline import sweep
from tests.cli.conftest import Command
from tests.pipeline.runs import bytes_in, some_runs
from tests.pipeline.test_worker import swept
from tests.pipeline.traces import random_runs, write
from tests.small_disk import fill, mount, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as place:
        yield place


@pytest.mark.soak
def test_a_sweep_tells_it_and_is_gone_on_with_when_there_is_room(
    spark: SparkSession, tmp_path: Path, disk: Path
) -> None:
    runs = some_runs(24, messages=60)
    with pytest.raises(TraceError, match=r"No space left on device.*finished runs are kept, and --resume continues"):
        sweep(spark, runs, disk / "sweep")
    landed = {name: content for name, content in bytes_in(disk / "sweep").items() if name != "sweep.json"}
    assert all("/chunk-" in name for name in landed), "nothing half-written is left"
    assert mount("-o", "remount,size=30m", "tmpfs", disk)
    result = sweep(spark, runs, disk / "sweep", resume=True)
    assert result.runs == result.complete == 24
    there = bytes_in(disk / "sweep")
    assert landed.items() <= there.items(), "what was there stays"
    swept(runs, tmp_path / "reference")
    del there["sweep.json"]
    assert there == bytes_in(tmp_path / "reference")


def test_a_sweep_into_a_full_disk_says_so(spark: SparkSession, disk: Path) -> None:
    fill(disk)
    with pytest.raises((TraceError, ConfigError), match="No space left"):
        sweep(spark, some_runs(2), disk / "sweep")


def test_an_audit_keeps_the_verdict_that_was_there(ordercast: Command, tmp_path: Path, disk: Path) -> None:
    folder = write(tmp_path / "trace", random_runs("full disk", 7))
    verdict = disk / "verdict.json"
    verdict.write_text("the one before")
    fill(disk)
    done = ordercast("audit", folder, "--json", verdict)
    assert done.status == 2
    assert done.sentence == f"cannot write the verdict {verdict}: No space left on device; choose another path"
    assert verdict.read_text() == "the one before"
    assert {path.name for path in disk.iterdir()} == {"verdict.json", "filler"}
