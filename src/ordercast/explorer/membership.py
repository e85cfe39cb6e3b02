"""Members of a group whose membership changes, as the explorer runs them: hasty, so that few timers lead far."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec.structs import replace

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    CancelTimer,
    Depart,
    Departed,
    Drained,
    Enter,
    ExcludedFrom,
    Input,
    Machine,
    MembershipInput,
    Output,
)
from ordercast.protocols.membership.by_node import SETTINGS, ByNode, by_node
from ordercast.protocols.membership.events import Excluded, LeaveGroup, LeftGroup

HASTY = replace(SETTINGS, patience=1, suspected_patience=0)
"""A coordinator does not wait for members that are suspected, and one round for the others."""


@dataclass(frozen=True)
class MemberMachine:
    """Makes the members of a group of a protocol; the first nodes, `founders` of them, found it, the others join."""

    protocol: str
    founders: int

    def __call__(self, node: int, group: GroupConfig) -> Machine:
        """The member at a node."""
        return member_class(self.protocol, self.founders)(node, group)


@cache
def member_class(protocol: str, founders: int) -> type[ByNode]:
    """The class of these members."""
    base: Any = by_node(protocol, founders, HASTY)

    class Member(base):  # type: ignore[misc]
        def handle(self, event: Input | MembershipInput) -> list[Output]:
            if isinstance(event, Enter):
                event = Drained()
            if not isinstance(event, Depart):
                did: list[Output] = super().handle(event)
                return did
            out: list[Output] = []
            self._give(LeaveGroup(), out)
            self._beat_if_needed(out)
            return out

        def _end(self, output: Excluded | LeftGroup, out: list[Output]) -> None:
            out += [CancelTimer(name) for name in sorted(self.timers)]
            self.timers.clear()
            out.append(
                ExcludedFrom(output.number, output.why) if isinstance(output, Excluded) else Departed(drained=True)
            )

    return Member
