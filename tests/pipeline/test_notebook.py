"""The notebook runs, cell by cell, on a session that is there, as in a managed notebook."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).parent.parent.parent / "examples/audit_a_log.ipynb"


def test_every_cell_runs(tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    with contextlib.chdir(tmp_path):
        for number, cell in enumerate(cells):
            exec(compile(cell["source"], f"cell {number}", "exec"), names)  # noqa: S102 - our own notebook
    assert names["spark"] is spark
    told = capsys.readouterr().out
    assert "shipping lacks orders[0]@77, sent to {billing,shipping}" in told
    assert "shipping delivered orders[1]@40 twice" in told
    assert names["verdict"].findings["all_delivered"].violations == 1
    assert all(cell["outputs"] == [] for cell in cells), "what it prints is not kept in the file"
