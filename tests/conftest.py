"""What tests share: one worker with Spark, which takes seconds and a gigabyte, and one group of each name."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent
SPARK = "spark"
LONG = (
    "tests/live/test_view_records.py",
    *("tests/network/", "tests/explorer/", "tests/cli/", "tests/live/", "tests/harness/", "tests/simulator/"),
    *("tests/swarm/", "tests/evaluation/", "tests/protocols/membership/", "tests/test_"),
)
"""Where tests take seconds: those that wait most come first."""

# What is collected stays until the end. Nothing looks for garbage in it: not meanwhile, and not in any test.
gc.disable()

# How long an example takes depends on what else the machine does: no test is timed.
settings.register_profile("ordercast", deadline=None, max_examples=60)
settings.load_profile("ordercast")

# Our jobs on Spark are short: to compile their code thoroughly would take longer than to run it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell without job control starts what is in the background with SIGINT ignored, and programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Groups on this machine make a key of their user: tests have one of their own, workers and what they start the same.
_CONFIG = "ORDERCAST_TESTS_CONFIG"
if _CONFIG not in os.environ:
    os.environ[_CONFIG] = os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="ordercast-tests-")
    atexit.register(shutil.rmtree, os.environ[_CONFIG], ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return LongestFirst(config, log)


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out what takes long first, so that no worker is left with it at the end, and one test at a time.

    Those with Spark stay together, in one worker, and so do the tests of a file that share something, or take
    milliseconds each: to hand out thousands one by one takes longer than they do.
    The mark `xdist_group` is meant for this, but xdist 3.8 writes it where pytest 9.2 looks no more.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False  # it would begin with what has the most tests
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if _has_spark(file):
            return SPARK
        return nodeid if file.startswith(LONG) and not _shares(file) else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark, what takes long, the others; each as they were."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: _turn(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _turn(file: str) -> int:
    return -1 if _has_spark(file) else next((turn for turn, start in enumerate(LONG) if file.startswith(start)), 1000)


@cache
def _has_spark(file: str) -> bool:
    text = (ROOT / file).read_text()
    return "SparkSession" in text or "tests.pipeline.sparks" in text


@cache
def _shares(file: str) -> bool:
    return 'scope="module"' in (ROOT / file).read_text()
