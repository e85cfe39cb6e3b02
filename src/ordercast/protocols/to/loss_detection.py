"""Loss detection of TO: when does a node know that it lacks a unit.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", section 4.2, and the test
of ACK. Everything goes to all nodes, so every unit may show a loss:

 1. a **gap**: a unit of the source has a number above the one expected;
 2. a **loss inferred from peers**: a unit acknowledges a sequenced unit that this node has not accepted.

A detected loss stops the node, and the group goes back to what all have accepted: see `recovery`.
"""

from ordercast.model.machine import Discard, Output
from ordercast.protocols.shared.reasons import GAP, INFERRED_LOSS
from ordercast.protocols.to.units import Heading, Sequenced, UnorderedReady


def detect_loss(unit: Sequenced | UnorderedReady, heading: Heading, expected: list[int], out: list[Output]) -> str:
    """The evidence of a loss that a unit gives, if it is not the next one or acknowledges what is not accepted here.

    Empty for a unit that was received before; a sequenced one is then discarded.
    """
    seq, next_seq = heading.seq, expected[heading.source]
    if seq < next_seq:
        if type(unit) is not UnorderedReady:
            out.append(Discard(unit, "duplicate"))
        return ""
    return GAP if seq > next_seq else INFERRED_LOSS
