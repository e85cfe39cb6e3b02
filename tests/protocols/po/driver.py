"""One PO machine on the table: that of SPO's tests, which plays PO here."""

from ordercast.protocols.po.machine import Po
from ordercast.protocols.spo.units import Data
from tests.protocols.spo import driver
from tests.protocols.spo.driver import E1, E2, E3, Outputs, Peer

__all__ = ["ALL", "E1", "E2", "E3", "Node", "Outputs", "Peer", "sent_by"]

ALL = (E1, E2, E3)


class Node(driver.Node):
    """The machine under test, in a group of three."""

    kind = Po


def sent_by(peer: Peer, count: int) -> list[Data]:
    """Its next packets, all to everybody."""
    return [peer.sends(*ALL) for _ in range(count)]
