"""What happens to a packet of a node that is alone in its group: everything, at once."""

from ordercast.model.machine import Deliver, Level, Output, Reached
from ordercast.model.units import Packet


def alone(packet: Packet) -> list[Output]:
    """All levels, and delivery: every destination has it, and knows that."""
    return [
        Reached(Level.ACCEPTED, packet),
        Reached(Level.PREACKNOWLEDGED, packet),
        Reached(Level.ACKNOWLEDGED, packet),
        Deliver(packet),
    ]
