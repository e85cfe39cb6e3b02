"""One PO machine on the table: that of SPO's tests, which plays PO here."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ordercast.model.units import Data
from ordercast.protocols.po import Po
from tests.protocols.spo import driver
from tests.protocols.spo.driver import E1, E2, E3, Outputs, Peer

__all__ = ["ALL", "E1", "E2", "E3", "Node", "Outputs", "Peer", "played_by", "sent_by"]

ALL = (E1, E2, E3)

_machine: ContextVar[type[Po]] = ContextVar("machine", default=Po)


@contextmanager
def played_by(machine: type[Po]) -> Iterator[None]:
    """Within, every `Node` runs this machine: a broken one, to see who notices."""
    token = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(token)


class Node(driver.Node):
    """The machine under test, in a group of three."""

    def __init__(self, me: int, **config: Any) -> None:
        with driver.played_by(_machine.get()):
            super().__init__(me, **config)


def sent_by(peer: Peer, count: int) -> list[Data]:
    """Its next packets, all to everybody."""
    return [peer.sends(*ALL) for _ in range(count)]
