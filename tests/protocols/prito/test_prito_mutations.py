"""Every rule of PriTO is tested: whatever is broken, one at a time, is noticed by a short battery."""

import pytest

from tests.protocols.prito.mutations import MUTATIONS
from tests.protocols.to.battery import noticed_by


@pytest.mark.parametrize("place", range(len(MUTATIONS)), ids=[mutation.name for mutation in MUTATIONS])
def test_what_is_broken_is_noticed(place: int) -> None:
    assert noticed_by(MUTATIONS[place].machines())


def test_every_breakage_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
