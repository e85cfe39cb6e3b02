"""How a view of PO ends: as one of SPO, whose machine it is made of."""

from ordercast.protocols.po.machine import Po
from ordercast.protocols.spo.flush import SpoFlush


class PoFlush(SpoFlush):
    """Ends an epoch of PO."""

    def __init__(self, machine: Po) -> None:
        super().__init__(machine.spo)
