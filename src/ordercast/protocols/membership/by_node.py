"""A member behind the ordinary contract of machines, so that the simulator and the explorer run it like any protocol.

Nodes are numbers: the first ones found the group, the others join it. A node's address is its number. Every unit is
wrapped with its view's tag; those of other views are not received. What a member does is translated (`node_outputs`),
and failures are detected in the simplest way (`silence`).
"""

from collections import deque
from functools import cache
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig, Rules, Timing
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Abort,
    Depart,
    Discard,
    Drained,
    Echo,
    GiveUp,
    Input,
    LogSizes,
    MembershipInput,
    NotSent,
    Output,
    Receive,
    Submit,
    Suspect,
    TimerFired,
)
from ordercast.model.nodes import everybody, mask_of, name_of, renamed
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.protocols.membership.events import (
    Begin,
    InstallView,
    LeaveGroup,
    LeftGroup,
    MemberInput,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
)
from ordercast.protocols.membership.joiner import Joined, Joiner, Refused
from ordercast.protocols.membership.machine import MembershipMachine, Phase
from ordercast.protocols.membership.node_outputs import NodeOutputs
from ordercast.protocols.membership.node_packets import NodePackets, nodes_of
from ordercast.protocols.membership.order import Order, order_of
from ordercast.protocols.membership.silence import BEATS, SilenceDetector
from ordercast.protocols.membership.units import CONTROL_UNITS, OUTSIDE_UNITS, Find, Probe
from ordercast.protocols.membership.view import Incarnation, MembershipConfig, founding_view
from ordercast.protocols.membership.wrapped_units import OutsideView, ViewData, ViewUnit
from ordercast.protocols.registry import machine_class
from ordercast.protocols.shared.destinations import check_broadcast, check_subset

SETTINGS = MembershipConfig(
    repeat=2 * MILLISECOND,
    failure_timeout=40 * MILLISECOND,
    gather=2 * MILLISECOND,
    guard=2 * MILLISECOND,
    blocked_repeat=40 * MILLISECOND,
    has_state=False,
)


def settings_for(timing: Timing) -> MembershipConfig:
    """The settings for a network with these timeouts: those above, or longer ones on a slow network."""
    factor = max(1, -(-5 * timing.poll // (2 * SETTINGS.repeat)))
    times = ("repeat", "failure_timeout", "gather", "guard", "blocked_repeat")
    return replace(SETTINGS, **{name: factor * getattr(SETTINGS, name) for name in times})


class ByNode(DeclaredState):
    """A member, or one that wants to become one, as a machine. `by_node` makes the class for an order."""

    order: ClassVar[Order]
    founders: ClassVar[int | tuple[int, ...] | None]
    """The nodes that found the group, or how many of the first ones do; None: all."""
    returns: ClassVar[tuple[tuple[int, int], ...]]
    """Nodes that are new incarnations of others, and which these are."""
    beats: ClassVar[int]
    """Of the failure detector."""
    settings: ClassVar[MembershipConfig]
    echo: ClassVar[Echo]
    needs: ClassVar[Channel]
    has_views: ClassVar[bool] = True

    me: Final[int]
    config: Final[GroupConfig]
    person: Final[Incarnation]

    member: MembershipMachine
    joiner: Joiner
    is_member: bool  # otherwise it joins
    outputs: NodeOutputs
    detector: SilenceDetector
    begun: bool  # it has received its first input
    aborted: bool  # it has given the group up
    early: deque[Submit]  # submitted before it was a member
    departs: bool  # the application leaves: it submits nothing any more

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.config = me, config
        founders = self.founders
        if not isinstance(founders, tuple):
            founders = tuple(range(config.nodes if founders is None else min(founders, config.nodes)))
        self.person = self._person(me)
        self.is_member = me in founders
        view = founding_view(tuple(map(self._person, founders)) if self.is_member else (self.person,), b"founding")
        self.member = MembershipMachine(
            self.person, view, self.order, config, self.settings, contacts=_addresses(config, me)
        )
        self.joiner = Joiner(self.person, "", _addresses(config, me), me << 32, self.settings)
        packets = NodePackets(view, config.nodes if self.order.to_all else None)
        self.outputs = NodeOutputs(me, packets, self.member.current.place)
        self.detector = SilenceDetector(self.settings.failure_timeout, self.beats)
        self.begun = self.aborted = self.departs = False
        self.early = deque()

    def _person(self, node: int) -> Incarnation:
        """Whoever returns has its old name, and a new number and address."""
        named, olds = node, dict(self.returns)
        while named in olds:
            named = olds[named]
        return Incarnation(name_of(named), node, str(node))

    # --- inputs ---

    def handle(self, event: Input | MembershipInput) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        if isinstance(event, Submit):
            self._check(event)
        if not self.begun and not isinstance(event, TimerFired):
            self.begun = True
            self._carry_out(self.member.handle(Begin()) if self.is_member else self.joiner.begin(), out)
        if isinstance(event, GiveUp):
            self._give_up(event, out)
        elif isinstance(event, Receive):
            self._receive(event.unit, out)
        elif isinstance(event, TimerFired):
            self._fire(event, out)
        elif isinstance(event, Depart):
            self._depart(out)
        elif self.is_member:
            self._give_translated(event, out)
        elif isinstance(event, Submit):
            self.early.append(event)
        if self.is_member:
            self.detector.begin_if_needed(self.member, out)
        return out

    def _give_up(self, event: GiveUp, out: list[Output]) -> None:
        """What is certain in this view is delivered, unless the next one is being agreed on."""
        if self.is_member:
            self._give(event, out)
        self.aborted = True
        out[:] = [output for output in out if not isinstance(output, Abort)] + [Abort(event.why)]

    def _give_translated(self, event: Input | MembershipInput, out: list[Output]) -> None:
        """To the member, in places."""
        if isinstance(event, Submit):
            self._submit(event, out)
        elif isinstance(event, Suspect):
            self._give(Suspect(self._places(event.members)), out)
        elif isinstance(event, Drained):
            self._give(event, out)

    def _check(self, event: Submit) -> None:
        if self.order.to_all:
            check_broadcast(event.destinations, self.config.nodes)
        else:
            check_subset(event.destinations, self.config.nodes)

    def _submit(self, event: Submit, out: list[Output]) -> None:
        """To those of the destinations that are members; if there are none, it is not sent."""
        to_all = event.destinations == everybody(self.config.nodes)
        to = self._places(event.destinations)
        if self._has_ended() or self.departs:
            return
        if to:
            self._give(replace(event, destinations=to, to_all=to_all), out)
        else:
            out.append(NotSent(len(event.lengths)))

    def _depart(self, out: list[Output]) -> None:
        """A member leaves when its messages have arrived; one that has not joined yet gives it up."""
        if self.is_member:
            self.departs = True
            self._give(LeaveGroup(), out)
        else:
            self.aborted = True
            out.append(Abort("it leaves before it has joined the group"))

    def _give(self, event: MemberInput, out: list[Output]) -> None:
        self._carry_out(self.member.handle(event), out)

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        if isinstance(unit, OutsideView) and isinstance(unit.unit, OUTSIDE_UNITS):
            inner: Any = unit.unit
            if isinstance(inner, Find):
                self.detector.asked()
            outside = ReceiveOutside(inner, str(unit.source))
            self._carry_out(self.member.handle(outside) if self.is_member else self.joiner.handle(outside), out)
        elif isinstance(unit, ViewUnit | ViewData) and self.is_member:
            self._receive_in_view(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_in_view(self, unit: ViewUnit | ViewData, out: list[Output]) -> None:
        current = self.member.current
        inner: Any = unit.unit
        is_control = isinstance(inner, CONTROL_UNITS)
        if unit.view_tag == current.view.tag:
            self.detector.heard(unit.place)
            self._give(ReceiveControl(inner) if is_control else Receive(inner), out)
        elif current.previous is not None and unit.view_tag == current.previous.tag:
            self._give(ReceiveControl(inner) if is_control else OtherView(unit.place), out)
        else:
            out.append(Discard(unit, "old"))

    def _fire(self, event: TimerFired, out: list[Output]) -> None:
        if event.name == "view.beat":
            self._beat(out)
        elif event.name.startswith("join."):
            self._carry_out(self.joiner.handle(event), out)
        elif event.name.startswith("view.") or event.name in self.outputs.timers:
            self.outputs.timers.discard(event.name)
            self._give(event, out)

    def _beat(self, out: list[Output]) -> None:
        probed, suspects = self.detector.due(self.member if self.is_member else None, out)
        current = self.member.current
        for place in probed:
            self.outputs.send_control(Probe(current.view.number, current.place), place, current, out)
        if suspects:
            self._give(Suspect(suspects), out)

    def _carry_out(self, outputs: list[Any], out: list[Output]) -> None:
        """Of the member or the joiner."""
        # What is reached before a view is told is reached because the view before ends.
        ends = max((at for at, output in enumerate(outputs) if isinstance(output, InstallView | LeftGroup)), default=0)
        for at, output in enumerate(outputs):
            if isinstance(output, Joined):
                self._join(output, out)
            elif isinstance(output, Refused):
                self.aborted = True
                out.append(Abort(output.why))
            else:
                if isinstance(output, InstallView):
                    self.detector.silent = {}
                self.outputs.tell(output, self.member, out, by_view=at < ends)

    # --- members ---

    def _places(self, nodes: int) -> int:
        found = enumerate(nodes_of(self.member.current.view))
        return mask_of(place for place, node in found if nodes >> node & 1)

    def _has_ended(self) -> bool:
        """It has left or was excluded."""
        return self.member.phase is not Phase.MEMBER

    def _join(self, output: Joined, out: list[Output]) -> None:
        self.member = MembershipMachine.joins(
            *(self.person, output.welcome, self.order, self.config, self.settings),
            contacts=_addresses(self.config, self.me),
        )
        self.is_member = True
        self._give(Begin(), out)
        early, self.early = self.early, deque()
        for event in early:
            self._submit(event, out)

    # --- what a host asks ---

    def waits_for(self) -> tuple[str, ...]:
        """What the epoch waits for, or the next view."""
        if not self.is_member:
            return ("it has not joined the group",) if self.begun and not self.aborted else ()
        if self._has_ended() or self.aborted:
            return ()
        if self.member.stopped:
            return (f"the view after {self.member.current.view.number} is being agreed on",)
        nodes = nodes_of(self.member.current.view)  # the order's machine names places
        return tuple(renamed(line, nodes) for line in self.member.machine.waits_for())

    def log_sizes(self) -> LogSizes:
        """Those of the epoch; what waits for the next view or for joining is waiting, too."""
        if self._has_ended() or self.aborted:
            return LogSizes(0, 0, 0, 0, 0)
        sizes = self.member.machine.log_sizes()
        waiting = sizes.waiting + len(self.member.waiting) + len(self.early)
        return LogSizes(waiting, sizes.sent, sizes.held, sizes.accepted, sizes.preacknowledged)


def _addresses(config: GroupConfig, me: int) -> tuple[str, ...]:
    return tuple(str(node) for node in range(config.nodes) if node != me)


@cache
def by_node(
    protocol: str,
    founders: int | tuple[int, ...] | None = None,
    settings: MembershipConfig = SETTINGS,
    returns: tuple[tuple[int, int], ...] = (),
    *,
    beats: int = BEATS,
) -> type[ByNode]:
    """The class for the order of a protocol. `founders`: nodes, or how many of the first; None: all.

    `returns`: nodes that are new incarnations, and of which nodes. `beats`: of the failure detector.
    """
    order = order_of(protocol)
    machine: Any = machine_class(protocol, Rules.SOUND)
    fields = {
        "order": order,
        "founders": founders,
        "returns": returns,
        "beats": beats,
        "settings": settings,
        "echo": machine.echo,
        "needs": machine.needs,
        "__module__": __name__,
    }
    return type(f"{machine.__name__}ByNode", (ByNode,), fields)
