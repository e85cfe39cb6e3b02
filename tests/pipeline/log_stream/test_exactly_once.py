"""Every position once: in Parquet files, in a table with transactions, and in another group; whatever is killed.

Spark is started by `tests.pipeline.sparks`, so that these tests share a worker with all others that need it. Each takes
a minute more than SOAK_SECONDS says: members leave, a new Java starts and reads what is left. A Java takes 5 to 10 s to
start, and its queries 5 to 15 s to begin, so in two minutes some four are killed.
"""

import os
import time
from pathlib import Path

import pytest

from tests.pipeline.log_stream.campaign import Campaign

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))


@pytest.mark.soak
@pytest.mark.cluster
@pytest.mark.parametrize("spark", [True, False], ids=["spark", "alone"])
def test_every_position_arrives_once_whatever_is_killed(spark: bool, tmp_path: Path) -> None:
    seed = int(time.time())
    campaign = Campaign(tmp_path, seed, pause=0.01, spark=spark)
    try:
        campaign.run(SECONDS, lambda chance: chance.uniform(1, 6) if spark else chance.uniform(1, 8))
    finally:
        campaign.stop()
    order = campaign.order()
    assert [position for position, _, _ in order] == list(range(len(order)))
    print(f"seed {seed}: {len(order)} messages; {campaign.counts}")  # noqa: T201 (`make soak` shows it)
    for name, rows in campaign.found().items():
        assert rows == order, f"seed {seed}: {name} has {len(rows)} rows of {len(order)}"
