"""Opens the Spark session that the commands hand to the pipeline: embedded by default, a cluster by its address.

Only the command line opens sessions; everything else in this room takes one as an argument. What Spark and its Java
have to say goes to a file, which errors name.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ordercast.model.errors import ConfigError
from ordercast.pipeline.java import set_up_environment

EMBEDDED = "local[*]"
"""Spark inside this process's own Java, on all cores."""

_REACH_WITHIN = 5.0  # seconds to answer a knock; Spark itself would try for a minute and then speak of other things
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
    spark = _open(master)
    try:
        yield spark
    finally:
        spark.stop()


def _open(master: str | None) -> SparkSession:
    builder = SparkSession.builder.appName("ordercast")
    if master is not None and master.startswith("sc://"):
        _require_answer(master)
        return builder.remote(master).getOrCreate()
    if master is not None and master.startswith("spark://"):
        _require_answer(master)
    set_up_environment()
    builder = builder.master(master or EMBEDDED)
    if master is None or master.startswith("local"):  # nobody else is to reach an embedded Spark
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    log = Path(gettempdir()) / f"ordercast-spark-{os.getpid()}.log"
    try:
        with _noise_to(log):
            spark = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"Spark did not start: {reason}; what it said is in {log}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


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
            failed.append(f"{place} ({error})")
    raise ConfigError(
        f"no Spark answers at {', '.join(failed)}; check the address after --master and that the cluster is up"
    )


@contextmanager
def _noise_to(log: Path) -> Iterator[None]:
    """Lets a Java that is started within write its standard error to a file, for as long as it lives."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
