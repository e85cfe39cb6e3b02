"""Benchmarks are run by people: asked for help, each says what it measures, and measures nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
PROGRAMS = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text()]


def test_there_are_benchmarks() -> None:
    assert len(PROGRAMS) > 10


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_help_says_what_is_measured(path: Path) -> None:
    command = [sys.executable, str(path), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    described = ast.get_docstring(ast.parse(path.read_text()))
    assert described is not None
    assert shown.stdout.startswith(f"usage: {path.name}")
    assert described.splitlines()[0] in shown.stdout
