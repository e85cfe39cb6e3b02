"""One PO machine under test, with the peers of SPO's tests around it."""

from ordercast.protocols.po.machine import Po
from ordercast.protocols.spo.units import Data
from tests.protocols.spo.driver import E1, E2, E3, AnyNode, Outputs, Peer

__all__ = ["ALL", "E1", "E2", "E3", "Node", "Outputs", "Peer", "sent_by"]

ALL = (E1, E2, E3)


class Node(AnyNode):
    """PO under test, in a group of three."""

    kind = Po
    machine: Po


def sent_by(peer: Peer, count: int) -> list[Data]:
    """Its next packets, all to everybody."""
    return [peer.sends(*ALL) for _ in range(count)]
