"""What tests share: one worker with Spark, which takes seconds and a gigabyte, and one group of each name."""

import fcntl
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent
SPARK = "spark"

# How long an example takes depends on what else the machine does: no test is timed.
settings.register_profile("ordercast", deadline=None)
settings.load_profile("ordercast")


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


@pytest.fixture(autouse=True, scope="session")
def groups_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Groups of other runs on this machine are not found here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        yield


@pytest.fixture
def names_of_the_documents() -> Iterator[None]:
    """A group on one machine is found by its name: what is in documents and examples can run only once at a time."""
    with (Path(tempfile.gettempdir()) / "ordercast-tests-documents.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
