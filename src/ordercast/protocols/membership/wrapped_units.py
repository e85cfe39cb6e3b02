"""Units of members as the simulator and the explorer carry them: with what a datagram has besides its unit.

They are never on a wire.
"""

from typing import Any

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit


class ViewUnit(Unit, frozen=True, gc=False, tag=90):
    """A unit under a view's tag."""

    source: int
    """The node that sent it."""
    view_tag: bytes
    place: int
    """Of the sender, in that view."""
    unit: Any

    def size(self) -> int:
        """Of the unit, and the tag."""
        size: int = self.unit.size() + 2 * NUMBER_SIZE
        return size

    def label(self) -> str:
        """As the unit's."""
        label: str = self.unit.label()
        return label

    def asks_for(self) -> str | None:
        """As the unit's."""
        asked: str | None = self.unit.asks_for()
        return asked


class ViewData(DataUnit, frozen=True, gc=False, tag=91):
    """The same for a unit that carries a packet, which is translated to nodes."""

    source: int
    view_tag: bytes
    place: int
    unit: Any

    def size(self) -> int:
        """Of the unit, and the tag."""
        size: int = self.unit.size() + 2 * NUMBER_SIZE
        return size


class OutsideView(Unit, frozen=True, gc=False, tag=92):
    """A unit under no view's tag."""

    source: int
    unit: Any

    def size(self) -> int:
        """Of the unit."""
        size: int = self.unit.size() + FIXED_SIZE
        return size

    def label(self) -> str:
        """As the unit's."""
        label: str = self.unit.label()
        return label
