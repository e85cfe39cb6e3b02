"""Members of a group whose membership changes, as the explorer runs them: hasty, so that few timers lead far."""

from dataclasses import dataclass

from msgspec.structs import replace

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Machine
from ordercast.protocols.membership.by_node import SETTINGS, by_node
from ordercast.protocols.membership.silence import BEATS
from ordercast.protocols.restart.durable_node import durable_node
from ordercast.protocols.restart.machine import Patience

HASTY = replace(SETTINGS, patience=1, suspected_patience=0)
"""A coordinator does not wait for members that are suspected, and one round for the others."""

_RESTART = Patience(forget=4, silent=6, grace=2, plan=12)
"""In ticks, of which few are needed when nothing is lost."""
_BEATS = BEATS + 1  # with so many, failures are also noticed while somebody asks to join


@dataclass(frozen=True)
class MemberMachine:
    """Makes the members of a group of a protocol; the first nodes, `founders` of them, found it, the others join.

    `returns`: nodes that are new incarnations of others, and of which. `logs`: they have durable logs.
    """

    protocol: str
    founders: int
    returns: tuple[tuple[int, int], ...] = ()
    logs: bool = False

    def __call__(self, node: int, group: GroupConfig) -> Machine:
        """The member at a node."""
        if self.logs:
            return durable_node(self.protocol, self.founders, HASTY, self.returns, beats=_BEATS, patience=_RESTART)(
                node, group
            )
        return by_node(self.protocol, self.founders, HASTY, self.returns, beats=_BEATS)(node, group)
