"""All tests with Spark go to one of pytest's workers: a session takes seconds and a gigabyte."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent
SPARK = "spark"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return OneSpark(config, log)


class OneSpark(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out tests one by one, but those with Spark together, and these first, since they take longest.

    The mark `xdist_group` is meant for this, but xdist 3.8 writes it where pytest 9.2 looks no more.
    """

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if _has_spark(nodeid.partition("::")[0]) else nodeid


@cache
def _has_spark(file: str) -> bool:
    text = (ROOT / file).read_text()
    return "SparkSession" in text or "tests.pipeline.sparks" in text
