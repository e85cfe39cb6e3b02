"""Violations: what an audit finds."""

from collections.abc import Iterator
from dataclasses import dataclass

from ordercast.model.nodes import name_of

Message = tuple[int, int]
"""A message of a run: its source and that source's number for it."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a property in a run."""

    breaks: str
    """The name of the property."""
    sentence: str
    """What happened, as a sentence."""
    messages: tuple[Message, ...] = ()
    nodes: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    """Positions, from 0, of the messages in the receipt logs of the nodes, where the property is about positions."""

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "sentence": self.sentence,
            "messages": [list(message) for message in self.messages],
            "nodes": list(self.nodes),
            "places": list(self.places),
        }


Violations = Iterator[Violation]
"""Found one at a time: a bad run may have millions, of which only a few are reported."""


def message_name(message: Message) -> str:
    """The name of a message in sentences: E1#4 is the fifth that E1 sent."""
    source, seq = message
    return f"{name_of(source)}#{seq}"
