"""Whether nodes say of what they send again that it is a copy: the network knows what it has carried."""

from typing import Any

from ordercast.model.machine import Send
from ordercast.model.units import DataUnit

_Sent = tuple[object, ...]


class Copies:
    """What each node has sent to whom."""

    def __init__(self, nodes: int) -> None:
        self.unsaid = [0] * nodes
        """By node: units that were sent before, and were not called copies."""
        self._everybody = (1 << nodes) - 1
        self._sent: dict[_Sent, int] = {}  # to whom

    def send(self, node: int, output: Send) -> None:
        """A machine sends a unit."""
        if not isinstance(output.unit, DataUnit) or output.to == node:
            return
        unit, to = _identity(node, output.unit), self._everybody if output.to is None else 1 << output.to
        before = self._sent.get(unit, 0)
        self.unsaid[node] += bool(before & to) and not output.again
        self._sent[unit] = before | to


def _identity(node: int, sent: Any) -> _Sent:
    """What two units have in common of which one is a copy: in another view it is none, and as another kind of unit."""
    packet, inner = sent.packet, getattr(sent, "unit", sent)
    views = getattr(sent, "view_tag", None), getattr(inner, "view", None)
    return node, packet.source, packet.first, type(inner), *views
