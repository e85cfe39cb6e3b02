"""Which destinations a submission may have, and the error if it has others."""

from ordercast.model.errors import LocalProtocolError
from ordercast.model.nodes import everybody, names_of


def check_subset(destinations: int, nodes: int) -> None:
    """Raises LocalProtocolError unless the bit mask has at least one of the nodes of the group, and no others."""
    if not destinations or destinations & ~everybody(nodes):
        raise _invalid(destinations, f"name at least one of the {nodes} nodes of the group, and no others")


def check_broadcast(destinations: int, nodes: int) -> None:
    """Raises LocalProtocolError unless the bit mask has all nodes of the group."""
    if destinations != everybody(nodes):
        raise _invalid(destinations, f"a broadcast goes to all {nodes} nodes, the sender included")


def _invalid(destinations: int, rule: str) -> LocalProtocolError:
    given = names_of(destinations) if destinations > 0 else destinations
    return LocalProtocolError(f"invalid destinations {given}: {rule}")
