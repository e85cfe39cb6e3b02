"""SPO in small runs: what every breakage that breaks a promise is held against."""

import msgspec
import pytest

from ordercast.model.config import SECOND
from ordercast.swarm.draw import draw_config
from tests.swarm.audited_runs import failures, run_and_audit


@pytest.mark.parametrize("number", range(60))
def test_a_small_run(number: int) -> None:
    """One in three is larger, so that windows close and quotas fill."""
    config = draw_config(number, most_nodes=4 if number % 2 else 6, receipts=80 if number % 3 else 300)
    result, verdict = run_and_audit(msgspec.structs.replace(config, stall_timeout=3 * SECOND))
    assert failures(result, verdict) == []
    assert not result.stalled
