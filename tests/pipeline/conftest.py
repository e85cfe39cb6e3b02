"""One Spark for all tests that name it, in one worker of pytest: a session takes seconds and a gigabyte."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline.session import session
from tests.cli.conftest import ordercast

__all__ = ["ordercast", "spark"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]") as opened:
        yield opened
