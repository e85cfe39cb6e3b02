"""The sequencer's broadcast in small runs in which much goes wrong: what every breakage is held against."""

import pytest

from ordercast.swarm.draw import draw_config
from tests.swarm.audited_runs import failures, run_and_audit


@pytest.mark.parametrize("number", range(40))
def test_a_small_run(number: int) -> None:
    config = draw_config(number, protocol="sequencer", most_nodes=6, receipts=120)
    assert failures(*run_and_audit(config)) == []
