"""PriO: broadcast by priority, in priority runs that are the same at all nodes.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", section 3. The service asks
for less than PriTO: packets of one priority and different senders may be delivered in a different order at each node.

On one channel that freedom is empty, and PriO is PriTO's machine with PriTO's delivery policy. Suppose that of two
packets of one priority, p before q in the common sequence, q might be delivered first somewhere. It must be
acknowledged by then, and p not yet: otherwise p, which precedes it, can go first at no cost. But acknowledgment
follows the sequence (`to.reception`): who acknowledges q had accepted p before. So q gains nothing by passing p.
Nor is there anything to gain before that: *which* packets form a run must be the same at all nodes, and that is decided
by where each packet stands among those of *other* priorities, hence by positions in one sequence that all must know
alike.
The tests check this at every delivery, and that PriO and PriTO do the same in every run.
"""

from ordercast.model.config import GroupConfig
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.to.machine import TotalOrderBroadcast


class Prio(TotalOrderBroadcast):
    """PriO at one node: PriTO's policy, held to less."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config, PriorityOrder)
