"""Which destinations a submission may have."""

import pytest

from ordercast.model.errors import LocalProtocolError
from ordercast.protocols.shared.destinations import check_broadcast, check_subset

NODES = 3


@pytest.mark.parametrize("destinations", range(1, 1 << NODES))
def test_any_nodes_of_the_group_are_a_subset(destinations: int) -> None:
    check_subset(destinations, NODES)


@pytest.mark.parametrize(("destinations", "given"), [(0, "0"), (-1, "-1"), (0b1000, "{E4}"), (0b1001, "{E1,E4}")])
def test_no_nodes_and_nodes_of_no_group_are_refused(destinations: int, given: str) -> None:
    with pytest.raises(LocalProtocolError) as refused:
        check_subset(destinations, NODES)
    rule = "name at least one of the 3 nodes of the group, and no others"
    assert str(refused.value) == f"invalid destinations {given}: {rule}"


def test_a_broadcast_goes_to_all() -> None:
    check_broadcast(0b111, NODES)


@pytest.mark.parametrize(
    ("destinations", "given"),
    [(0, "0"), (-1, "-1"), (0b011, "{E1,E2}"), (0b110, "{E2,E3}"), (0b1111, "{E1,E2,E3,E4}"), (0b1000, "{E4}")],
)
def test_fewer_and_others_are_refused(destinations: int, given: str) -> None:
    with pytest.raises(LocalProtocolError) as refused:
        check_broadcast(destinations, NODES)
    assert str(refused.value) == f"invalid destinations {given}: a broadcast goes to all 3 nodes, the sender included"
