"""PriO: everything to everybody, urgent packets first, in priority runs that are the same everywhere.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", section 3. The service asks
for less than PriTO: packets of one priority and different senders may come in a different order at each node.

On one channel that freedom is empty, and PriO is the machine of PriTO. Suppose that of two packets of one priority, p
before q in the common sequence, q might be delivered first somewhere. It must be acknowledged by then, and p not yet:
otherwise p, which stands before it, can go first at no cost. But acknowledgment follows the sequence (`to_normal`):
whoever acknowledges q had accepted p before it. So q never has anything to gain by passing p. Nor is there anything to
gain before that: *which* packets form a run must be the same everywhere, and that is decided by where each packet
stands among those of *other* priorities, hence by their places in one sequence, which all must therefore know alike.
The tests ask this of every delivery, and that PriO and PriTO do the same in every run.
"""

from ordercast.protocols.prito.machine import Prito


class Prio(Prito):
    """The protocol at one node: that of PriTO, held to less."""
