"""What the stories of where the printed sequencer fails have in common."""

from typing import Any

from tests.audit.figures import golden

GOLDEN: dict[str, Any] = {
    flaw["id"]: flaw for flaw in golden("golden-prito-seq.json")["sequencer"]["printed_code_flaws"]
}
RUNS: dict[str, Any] = {"first_id": 1}
"""Without this nothing runs at all (S1)."""
QUIET = 99
"""A number of messages after which a dummy comes that no story reaches."""
PURGES: dict[str, Any] = RUNS | {"acknowledges_last": True, "advances_own_row": True}
"""The history is purged of what everybody has, and of nothing else (S2)."""


def broadcast_to(node: int, letter: str) -> Any:
    """The broadcast of a letter on its way to a node."""
    return lambda flight: flight.is_broadcast and (flight.to, flight.letter) == (node, letter)
