"""The destinations of messages, in short notation."""

from typing import NamedTuple


class DestinationLabel(NamedTuple):
    """The destinations and the priority of a message."""

    destinations: tuple[int, ...]
    priority: int | None

    def note(self, source: int, nodes: int) -> str:
        """The shorter of →{2,3}, →others and →all; !3 is priority 3."""
        ways = [f"→{{{','.join(str(node + 1) for node in self.destinations)}}}"]
        if len(self.destinations) == nodes:
            ways.append("→all")
        elif len(self.destinations) == nodes - 1 and source not in self.destinations:
            ways.append("→others")
        return min(ways, key=len) + ("" if self.priority is None else f" !{self.priority}")
