"""PriTO: total order broadcast by priority: one order at all nodes, urgent packets first, no packet starves.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", sections 3 to 5. It is the
machine of `to` with another delivery policy (`delivery`). What is delivered is a function of the common sequence that
all nodes pre-acknowledge, evaluated unit by unit, and of nothing else: not of when a unit arrived, and not of a clock.
So what any two nodes have delivered are prefixes of one log, whatever was lost.

Departures from the paper:
 1. Packets are sorted in when they are pre-acknowledged, not when they are accepted: acceptance differs between nodes
    until a loss is repaired (F2).
 2. The first packet is looked at after *every* unit of the sequence: if several units are taken at once, an urgent one
    among them overtakes what was due before it (F4), and how many are taken at once depends on losses.
 3. No node stops to end a run, and a clock decides only when a marker is *sent* (F6: stopping when a timer fires gives
    different runs even without loss). Markers replace the printed three rounds, which block forever if a unit is lost.
 4. The marker names one position in the common sequence instead of a number for each source: acknowledgment follows the
    sequence, so the packets that have waited longest are a prefix of it.
 5. A node that gives the group up delivers nothing more: a node that knows more of the sequence may have delivered
    something more urgent first.

Not here: membership, as in `to`.
"""

from ordercast.model.config import GroupConfig
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.to.machine import TotalOrderBroadcast


class Prito(TotalOrderBroadcast):
    """PriTO at one node: delivery by priority."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config, PriorityOrder)
