"""The public face of the pipeline: one entry to the audit, whatever engine; names, documented, and nothing heavy."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_origin

import pytest

from ordercast import pipeline
from ordercast.audit import reference
from ordercast.model.errors import ConfigError, TraceError
from ordercast.pipeline import Engine, audit, choose_engine
from ordercast.pipeline.audit import engine, vectorised
from tests.pipeline.traces import random_runs, write


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (29_999, Engine.REFERENCE),
        (30_000, Engine.VECTORISED),
        (10**12, Engine.VECTORISED),
    ],
)
def test_the_size_decides(events: int, expected: Engine) -> None:
    assert choose_engine(events) is expected


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ({"pyspark"}, Engine.VECTORISED),
        ({"pyspark", "scipy"}, Engine.REFERENCE),
        ({"numpy"}, Engine.REFERENCE),
    ],
)
def test_what_is_not_installed_is_not_chosen(
    missing: set[str], expected: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda name: None if name in missing else object())
    assert choose_engine(10**9) is expected


def test_all_engines_in_this_process_give_the_same_verdict(tmp_path: Path) -> None:
    folder = write(tmp_path, random_runs("engines", 14), runs_in_a_file=5)
    documents = [audit([folder], engine=chosen).as_document() for chosen in (None, Engine.REFERENCE, Engine.VECTORISED)]
    assert documents[0]["runs"] == 14
    assert documents[1:] == documents[:1] * 2


def test_without_a_session_even_the_largest_trace_is_audited_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, random_runs("largest", 1))
    monkeypatch.setattr(engine, "VECTORISED_FROM", 0)
    monkeypatch.setattr(reference, "audit", lambda *_: pytest.fail("the reference is for small traces"))
    called: list[object] = []
    monkeypatch.setattr(vectorised, "audit_vectorised", lambda trace, *_, **__: called.append(trace.folders))
    audit([folder])
    assert called == [[folder]]


def test_an_audit_on_spark_needs_a_session(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a session"):
        audit([tmp_path], engine=Engine.SPARK)


def test_what_is_no_trace_is_refused_whoever_asks(tmp_path: Path) -> None:
    for chosen in (None, Engine.REFERENCE, Engine.VECTORISED):
        with pytest.raises(TraceError, match="is not a trace"):
            audit([tmp_path], engine=chosen)


def test_every_public_name_is_there_and_documented() -> None:
    assert pipeline.__all__ == sorted(pipeline.__all__, key=lambda name: (name[0].islower(), name))
    for name in pipeline.__all__:
        found = getattr(pipeline, name)
        if get_origin(found) is None:  # what is a type of functions or mappings has no docstring of its own
            assert inspect.isclass(found) or inspect.isfunction(found), f"{name} is a module"
            assert inspect.getdoc(found), name
    assert not hasattr(pipeline, "__getattr__"), "a misspelt name must fail under a type checker"


def test_importing_the_pipeline_imports_nothing_heavy() -> None:
    heavy = {"matplotlib", "pandas", "pyspark", "scipy"}  # NumPy comes with Arrow
    code = f"import sys, ordercast.pipeline; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"
