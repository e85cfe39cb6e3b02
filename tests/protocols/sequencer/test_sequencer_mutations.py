"""Every rule of the sequencer's broadcast is tested: whatever is broken is noticed by a short battery."""

import pytest

from tests.protocols.sequencer.battery import noticed_by
from tests.protocols.sequencer.mutations import compiled
from tests.protocols.sequencer.mutations_views import MUTATIONS


def test_what_is_not_broken_gets_by() -> None:
    assert noticed_by(compiled()) == ""


@pytest.mark.parametrize("place", range(len(MUTATIONS)), ids=[mutation.name for mutation in MUTATIONS])
def test_what_is_broken_is_noticed(place: int) -> None:
    assert noticed_by(MUTATIONS[place].machine())


def test_every_breakage_has_a_name_of_its_own() -> None:
    names = [(mutation.module, mutation.name) for mutation in MUTATIONS]
    assert len(set(names)) == len(names)
