"""What nodes with logs send each other besides the units of their group, in simulator and explorer.

They are never on a wire: live members have a handshake and connections for the same.
"""

from typing import ClassVar

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, Packet, Unit
from ordercast.protocols.restart.assessment import Here

LogPlace = tuple[int, bytes]
"""The position of a next message, and the running hash there."""
_HASH_SIZE = 16


class _LogUnit(Unit, frozen=True, gc=False, tag=0):
    name: ClassVar[str]

    def label(self) -> str:
        """The kind."""
        return self.name


class Restarting(_LogUnit, frozen=True, gc=False, tag=93):
    """I was started again, and have this."""

    name: ClassVar[str] = "restarting"

    source: int
    here: Here

    def size(self) -> int:
        """About as encoded."""
        return FIXED_SIZE + len(self.here.note) + _HASH_SIZE


class AskLog(_LogUnit, frozen=True, gc=False, tag=94):
    """Send what I lack."""

    name: ClassVar[str] = "ask-log"

    source: int
    view: int
    """Up to the beginning of this view,"""
    end: LogPlace | None
    """or up to this place of the receiver's log."""
    places: tuple[LogPlace, ...]
    """Those that the sender has, the last one first."""

    def size(self) -> int:
        """About as encoded."""
        return FIXED_SIZE + (_HASH_SIZE + NUMBER_SIZE) * (1 + len(self.places))


class LogPart(_LogUnit, frozen=True, gc=False, tag=95):
    """The answer."""

    name: ClassVar[str] = "log-part"

    source: int
    view: int
    end: LogPlace
    start: LogPlace
    """The last place that both have."""
    packets: tuple[Packet, ...]

    def size(self) -> int:
        """About as encoded."""
        return FIXED_SIZE + 2 * _HASH_SIZE + sum(packet.body_size() for packet in self.packets)


LOG_UNITS: tuple[type[Unit], ...] = (Restarting, AskLog, LogPart)
