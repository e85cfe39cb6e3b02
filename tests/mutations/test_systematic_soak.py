"""Every systematic mutant of every suite is noticed by some test: what `make mutants` tries, as a test of the soak."""

import pytest

from tests.mutations.suites import SUITES, Suite
from tests.mutations.systematic import Spot, spots_of
from tests.mutations.trials import Controls, outcomes


@pytest.mark.soak
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_systematic_mutant_is_noticed(suite: Suite) -> None:
    spots: list[Spot] = [spot for module in suite.code for spot in spots_of(module)]
    controls = Controls()
    found = [controls.believed(outcome) for outcome in outcomes(suite.trials(spots))]
    assert len(found) == len(spots)
    assert [outcome.trial.mutation.name for outcome in found if outcome.noticed is None] == []
    assert controls.failed == {}
