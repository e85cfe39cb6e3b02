"""Opens the Spark session that the commands hand to the pipeline: embedded by default, a cluster by its address.

Only the command line opens sessions; everything else in this room takes one as an argument. What Spark and its Java
have to say goes to a file, which errors name and which is removed if there were none.
"""

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from tempfile import mkstemp
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from ordercast.model.errors import ConfigError, PipelineError, reason_of
from ordercast.pipeline.java import set_up_environment

EMBEDDED = "local[*]"
"""Spark inside this process's own Java, on all cores."""

_REACH_WITHIN = 5.0  # seconds to answer a knock; Spark itself would try for a minute and then speak of other things
_MASTERS = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|yarn|(spark|sc|k8s)://.+")
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
}


@contextmanager
def session(master: str | None = None) -> Iterator[SparkSession]:
    """A session on an embedded Spark, on a cluster (`spark://…`) or through Spark Connect (`sc://…`).

    Raises `ConfigError` if there is no Java, or nobody at the address.
    """
    if master is not None and _MASTERS.fullmatch(master) is None:
        raise ConfigError(f"{master!r} is no master; write local[4], spark://HOST:PORT or sc://HOST:PORT")
    if master is not None and master.startswith(("spark://", "sc://")):
        _require_answer(master)
    if master is not None and master.startswith("sc://"):
        with _open_client(master) as spark:
            yield spark
        return
    set_up_environment()
    descriptor, name = mkstemp(prefix="ordercast-spark-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    try:
        spark = _open(master or EMBEDDED, log)
    except KeyboardInterrupt:
        log.unlink(missing_ok=True)
        raise
    try:
        yield spark
    except PipelineError as error:
        raise PipelineError(f"{error}; what Spark said is in {log}") from error
    except BaseException:
        log.unlink(missing_ok=True)
        raise
    else:
        log.unlink(missing_ok=True)
    finally:
        spark.stop()


def _open(master: str, log: Path) -> SparkSession:
    builder = SparkSession.builder.appName("ordercast").master(master)
    if master.startswith("local"):  # nobody else is to reach an embedded Spark
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    try:
        with _noise_to(log):
            spark = builder.getOrCreate()
    except Exception as error:  # of Spark, of its Java or of the way between them
        raise ConfigError(f"Spark did not start: {_first_line(error)}; what it said is in {log}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _open_client(master: str) -> Iterator[SparkSession]:
    try:
        spark = SparkSession.builder.appName("ordercast").remote(master).getOrCreate()
    except Exception as error:  # of Spark, or of the network
        raise ConfigError(f"no session at {master}: {_first_line(error)}") from error
    try:
        yield spark
    finally:
        spark.stop()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _require_answer(master: str) -> None:
    """Knocks at each address of a cluster, so that a wrong one is told within seconds."""
    scheme, _, places = master.partition("://")
    failed: list[str] = []
    for place in places.split(",") if scheme == "spark" else [places]:
        try:
            address = urlsplit(f"//{place}")
            port = address.port or (15002 if scheme == "sc" else 7077)
            with socket.create_connection((address.hostname or "", port), timeout=_REACH_WITHIN):
                return
        except (OSError, ValueError) as error:
            failed.append(f"{place} ({reason_of(error)})")
    raise ConfigError(
        f"no Spark answers at {', '.join(failed)}; check the address after --master and that the cluster is up"
    )


@contextmanager
def _noise_to(log: Path) -> Iterator[None]:
    """Lets a Java that is started within write its standard error to a file, for as long as it lives.

    So do Python's packages, whatever stands in for `sys.stderr`: who interrupts the start reads no stack trace.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        with redirect_stderr(sys.__stderr__):
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
