"""Opens Spark sessions for the commands: embedded by default, or on a cluster.

All other functions of the pipeline take a session as an argument. The output of Spark and its Java goes to a log file,
which errors name, and which is removed if there were none.
"""

import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from tempfile import mkstemp
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from ordercast.model.errors import ConfigError, PipelineError, reason_of
from ordercast.pipeline.java import set_up_environment
from ordercast.pipeline.jobs import first_line
from ordercast.pipeline.settings import settings_of

EMBEDDED = "local[*]"
"""Spark in a Java process of our own, on all cores."""

_CONNECT_TIMEOUT = 5.0  # seconds; Spark itself would try for a minute and then report something else
_DYING = 0.5  # seconds
_MASTERS = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|yarn|(spark|sc|k8s)://.+")


@contextmanager
def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session on an embedded Spark, on a cluster (`spark://…`) or through Spark Connect (`sc://…`).

    `conf`: settings of Spark; with those of the user's `spark-defaults.conf` they go before ours.
    Raises `ConfigError` if the URL is invalid, there is no Java, or the address cannot be reached.
    """
    if master is not None and _MASTERS.fullmatch(master) is None:
        raise ConfigError(f"invalid master URL {master!r}; use local[4], spark://HOST:PORT or sc://HOST:PORT")
    if master is not None and master.startswith(("spark://", "sc://")):
        _require_reachable(master)
    if master is not None and master.startswith("sc://"):
        with _open_client(master, conf or {}) as spark:
            yield spark
        return
    set_up_environment()
    descriptor, name = mkstemp(prefix="ordercast-spark-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    try:
        spark = open_session(master or EMBEDDED, log, conf or {})
    except KeyboardInterrupt:
        log.unlink(missing_ok=True)
        raise
    _keep_quiet(spark)
    try:
        yield spark
    except Exception as error:
        if _has_died(spark):
            raise PipelineError(
                "Spark's Java process ended: it was killed, or had no memory left; what was written stays. "
                f"Spark's log is {log}"
            ) from error
        if isinstance(error, PipelineError):
            raise PipelineError(f"{error}; Spark's log is {log}") from error
        log.unlink(missing_ok=True)
        raise
    except BaseException:
        log.unlink(missing_ok=True)
        raise
    else:
        log.unlink(missing_ok=True)
    finally:
        with suppress(Exception):  # its Java may be gone, which must not hide why
            spark.stop()


def _has_died(spark: SparkSession) -> bool:
    """Whether the Java process that we started has ended."""
    process = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001, nothing public tells it
    if process is None:  # somebody else's
        return False
    try:
        process.wait(_DYING)  # its connections break a moment before it is gone
    except subprocess.TimeoutExpired:
        return False
    return True


def _keep_quiet(spark: SparkSession) -> None:
    """If Java ends first, threads of PySpark print stack traces; what happened is reported as an error of ours."""
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    logging.getLogger().addHandler(logging.NullHandler())  # py4j 0.10.9 logs some to the root
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def open_session(master: str, log: Path, conf: Mapping[str, str]) -> SparkSession:
    """Starts Spark in this process, or connects to a cluster; its output goes to the log."""
    builder = SparkSession.builder.appName("ordercast").master(master)
    if master.startswith("local"):  # an embedded Spark must not be reachable from other machines
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in settings_of(master, conf).items():
        builder = builder.config(name, value)
    try:
        with stderr_to(log):
            spark = builder.getOrCreate()
    except Exception as error:  # of Spark, of its Java or of the connection between them
        raise ConfigError(f"Spark did not start: {first_line(error)}; its log is {log}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _open_client(master: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    builder = SparkSession.builder.appName("ordercast").remote(master)
    for name, value in conf.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # of Spark, or of the network
        raise ConfigError(f"cannot open a session at {master}: {first_line(error)}") from error
    try:
        yield spark
    finally:
        spark.stop()


def _require_reachable(master: str) -> None:
    """Connects to the addresses of a cluster, so that a wrong one is reported within seconds."""
    scheme, _, places = master.partition("://")
    failed: list[str] = []
    for place in places.split(",") if scheme == "spark" else [places]:
        try:
            address = urlsplit(f"//{place}")
            port = address.port or (15002 if scheme == "sc" else 7077)
            with socket.create_connection((address.hostname or "", port), timeout=_CONNECT_TIMEOUT):
                return
        except (OSError, ValueError) as error:
            failed.append(f"{place} ({reason_of(error)})")
    raise ConfigError(f"cannot connect to Spark at {', '.join(failed)}; check --master, and that the cluster is up")


@contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Redirects standard error to a file, also that of a Java process that is started within, until it ends.

    Python's `sys.stderr` is redirected as well, even if it was replaced: an interrupt while Spark starts prints no
    stack trace.
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
