"""Records the effects of faults on units as scripted faults that reproduce them."""

from ordercast.model.faults import Miss, Scripted, Twice, UnitKind
from ordercast.simulator.fault_rules import DUPLICATED, Flight, UnitCounts


class FaultRecorder:
    """Observes one run: every loss and duplicate, whatever its cause, becomes a scripted fault."""

    def __init__(self) -> None:
        self.found: list[Scripted] = []
        self._counts = UnitCounts()
        self._names: dict[int, tuple[int, UnitKind, int]] = {}  # by number of transmission

    def transmitted(self, flight: Flight) -> None:
        """A unit was put on the channel."""
        *_, self._names[flight.number] = self._counts.names_of(flight)  # the narrowest kind

    def affected(self, transmission: int, receiver: int, what: str) -> None:
        """It was lost on its way to a receiver, or duplicated."""
        source, kind, nth = self._names[transmission]
        fault = Twice if what == DUPLICATED else Miss
        self.found.append(fault(node=receiver, source=source, nth=nth, kind=kind))
