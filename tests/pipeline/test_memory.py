"""A run that does not fit into memory is refused before, in a sentence, by each means."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit import memory
from ordercast.pipeline.audit.in_process import audit_in_process
from ordercast.pipeline.audit.memory import BY_KERNEL, BY_REFERENCE, free_memory, require_room
from ordercast.pipeline.audit.spark import audit_folders
from tests.pipeline.test_following import long_enough
from tests.pipeline.traces import random_runs, write


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_WORTH_ASKING", 1)
    monkeypatch.setattr(memory, "free_memory", lambda: 50 * BY_REFERENCE)


def test_room_is_told() -> None:
    free = free_memory()
    assert free is None or 2**20 < free < 2**50
    require_room("r", 1_000_000, BY_KERNEL)
    if free is not None:
        with pytest.raises(TraceError, match=r"run r has to be judged whole, which takes about .* GB are free here"):
            require_room("r", 10**12, BY_KERNEL)


def test_a_control_group_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory._free_in_group(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._free_in_group(tmp_path) is None


@pytest.mark.usefixtures("little")
def test_a_run_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, {"r": long_enough("much")})
    with pytest.raises(TraceError, match="has to be judged whole"):
        audit_in_process([folder], Service.TOTAL, pytest.fail)


@pytest.mark.usefixtures("little")
def test_a_good_run_fits_where_a_bad_one_does_not(tmp_path: Path) -> None:
    runs = random_runs("fits", 40)
    small = {name: run for name, run in runs.items() if 50 < len(run.rows()) < 50 * BY_REFERENCE // BY_KERNEL}
    found: set[bool | None] = set()
    for name, run in small.items():
        folder = write(tmp_path / name, {name: run})
        try:
            found.add(audit_in_process([folder], None, pytest.fail).holds)
        except TraceError:
            found.add(None)
    assert found == {True, None}


def test_spark_tells_it_too(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks ask where they run; so a run that says to have more events than there are shows it."""
    folder = write(tmp_path, {"r": long_enough("on Spark")})
    monkeypatch.setattr("ordercast.pipeline.audit.spark.LONG", 10**15)
    from ordercast.pipeline.audit import plan as dockets  # noqa: PLC0415
    from ordercast.pipeline.audit import spark as auditing  # noqa: PLC0415

    real = dockets.dockets_of

    def inflated(folders: list[Path]) -> list[dockets.Docket]:
        return [dockets.Docket(one.row, one.places, 10**12) for one in real(folders)]

    monkeypatch.setattr(auditing, "dockets_of", inflated)
    with pytest.raises(TraceError, match="has to be judged whole"):
        audit_folders(spark, [folder])
