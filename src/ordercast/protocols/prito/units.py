"""The unit that PriTO and PriO add to those of TO."""

from ordercast.model.units import NUMBER_SIZE
from ordercast.protocols.to.units import PolicyUnit


class RunMarker(PolicyUnit, frozen=True, gc=False, tag=22):
    """RUNSYNC: ends a priority run, at its position in the common sequence and so at all nodes alike."""

    covered_below: int
    """TOSEQ, as one number: the packets at positions below this have waited too long."""

    def size(self) -> int:
        """One number more than the heading."""
        return super().size() + NUMBER_SIZE

    def label(self) -> str:
        """Its kind in traces."""
        return "marker"
