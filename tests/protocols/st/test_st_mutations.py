"""Every rule of ST is tested: whatever is broken, one at a time, is noticed by a short battery."""

import pytest

from tests.protocols.st.battery import noticed_by
from tests.protocols.st.mutations import MUTATIONS, compiled


def test_what_is_not_broken_gets_by() -> None:
    assert noticed_by(compiled()) == ""


@pytest.mark.parametrize("place", range(len(MUTATIONS)), ids=[mutation.name for mutation in MUTATIONS])
def test_what_is_broken_is_noticed(place: int) -> None:
    assert noticed_by(MUTATIONS[place].machine())


def test_every_breakage_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
