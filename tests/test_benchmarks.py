"""Benchmarks are run by people: asked for help, each says what it measures, and measures nothing."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
PROGRAMS = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text()]


def test_there_are_benchmarks() -> None:
    assert len(PROGRAMS) > 10


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_help_says_what_is_measured(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.syspath_prepend(path.parent)  # as for a program
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    described = ast.get_docstring(ast.parse(path.read_text()))
    assert described is not None
    assert shown.startswith(f"usage: {path.name}")
    assert described.splitlines()[0] in shown
