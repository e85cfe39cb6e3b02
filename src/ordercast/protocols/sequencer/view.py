"""The current view of one node: who is a member, who is the sequencer, and whether this node still takes part."""

from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState, Derived
from ordercast.model.machine import Abort, Output
from ordercast.model.nodes import everybody, members
from ordercast.protocols.sequencer.units import NextView


class CurrentView(DeclaredState):
    """The installed view. Every part of the machine reads it; only the machine installs another one."""

    me: Final[int]
    my_bit: Final[int]
    max_resilience: Final[int]  # as configured

    installed: NextView  # its number, members and sequencer, as they were agreed on
    closed: bool  # excluded from the group, or the group is aborted: nothing is processed any more

    derived_from: Derived[NextView | None]  # the view that the rest was computed from
    number: Derived[int]
    members: Derived[int]
    sequencer: Derived[int]
    is_sequencer: Derived[bool]
    others: Derived[tuple[int, ...]]
    resilience: Derived[int]  # r: nodes besides the sequencer that must hold a broadcast before it is delivered
    acknowledges_at_once: Derived[bool]  # one of the r nodes whose acknowledgments commit a broadcast

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.my_bit = me, 1 << me
        self.max_resilience = config.sequencer.resilience
        self.closed = False
        self.derived_from = None
        self.enter(NextView(0, everybody(config.nodes), config.sequencer.node, 0, ""))

    def enter(self, view: NextView) -> None:
        """Makes a view the current one."""
        self.installed = view
        self.derive()

    def derive(self) -> None:
        """Computes what follows from the installed view."""
        view = self.installed
        if view is self.derived_from:  # as it nearly always is when a state is restored
            return
        self.derived_from = view
        self.number, self.members, self.sequencer = view.number, view.members, view.sequencer
        self.is_sequencer = view.sequencer == self.me
        nodes = members(view.members)
        self.others = tuple([node for node in nodes if node != self.me])
        self.resilience = min(self.max_resilience, view.members.bit_count() - 1)
        followers = [node for node in nodes if node != view.sequencer]
        self.acknowledges_at_once = self.me in followers[: self.resilience]

    def abort(self, why: str, out: list[Output], *, without_quorum: bool = False) -> None:
        """Gives the group up."""
        self.closed = True
        out.append(Abort(why, without_quorum))
