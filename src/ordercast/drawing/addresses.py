"""To whom messages go, in as few signs as it takes."""

from typing import NamedTuple


class Address(NamedTuple):
    """To whom a message was sent, and how urgent it is."""

    destinations: tuple[int, ...]
    priority: int | None

    def note(self, source: int, nodes: int) -> str:
        """In the shorter way: →{2,3}, or →others, or →all; and !3 for priority 3."""
        ways = [f"→{{{','.join(str(node + 1) for node in self.destinations)}}}"]
        if len(self.destinations) == nodes:
            ways.append("→all")
        elif len(self.destinations) == nodes - 1 and source not in self.destinations:
            ways.append("→others")
        return min(ways, key=len) + ("" if self.priority is None else f" !{self.priority}")
