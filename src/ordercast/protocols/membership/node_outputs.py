"""What a member does, as a node does it: nodes instead of places, and units wrapped with their view's tag."""

from typing import Any, Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    CutOff,
    Deliver,
    Departed,
    Discard,
    ExcludedFrom,
    NotSent,
    Numbered,
    Output,
    Reached,
    Reconnected,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of, members
from ordercast.model.units import DataUnit, Unit
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import (
    Blocked,
    Excluded,
    InstallView,
    LeftGroup,
    SendControl,
    SendOutside,
    Unblocked,
    Withdrawn,
)
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.node_packets import NodePackets, node_at, nodes_of
from ordercast.protocols.membership.units import CONTROL_UNITS, OUTSIDE_UNITS, ControlUnit
from ordercast.protocols.membership.view import heard_members, view_after
from ordercast.protocols.membership.wrapped_units import OutsideView, ViewData, ViewUnit


class NodeOutputs(DeclaredState):
    """The outputs of one node. Those of one input may belong to two views: the one told last counts."""

    me: Final[int]

    packets: NodePackets
    place: int  # the own one in the view told last
    timers: set[str]  # of the epoch, that run
    stopped: bool  # it was told that the node has stopped

    def __init__(self, me: int, packets: NodePackets, place: int) -> None:
        self.me, self.packets, self.place = me, packets, place
        self.timers, self.stopped = set(), False

    def tell(self, output: Any, member: MembershipMachine, out: list[Output], *, by_view: bool) -> None:
        """One output of the member, or of the joiner. `by_view`: what is reached is, because the view ends."""
        if isinstance(output, Send):
            self._send(output, out)
        elif isinstance(output, Numbered | Reached | Deliver):
            self.packets.tell(output, out, by_view=by_view)
        elif isinstance(output, Discard | Stopped | Resumed | Abort):
            self._tell_unchanged(output, out)
        elif isinstance(output, SendControl):
            self.send_control(output.unit, output.to, member.current, out, output.view)
        elif isinstance(output, SendOutside):
            out.append(Send(OutsideView(self.me, output.unit), to=int(output.address)))
        elif isinstance(output, SetTimer | CancelTimer):
            self._set_timer(output, out)
        elif isinstance(output, InstallView):
            self._install(output, member.current, out)
        elif isinstance(output, Excluded | LeftGroup):
            self._end(output, member, out)
        elif isinstance(output, Blocked):
            view = self.packets.view
            out.append(CutOff(mask_of(node_at(view, place) for place in members(output.lacks))))
        elif isinstance(output, Unblocked):
            out.append(Reconnected())
        elif isinstance(output, Withdrawn):
            is_numbered = output.first < self.packets.numbered_below
            out.append(NotSent(len(output.submit.lengths), output.first if is_numbered else None))

    # --- units and timers ---

    def _send(self, output: Send, out: list[Output]) -> None:
        view, place, unit = self.packets.view, self.place, output.unit
        to = None if output.to is None else node_at(view, output.to)
        if isinstance(unit, DataUnit):
            wrapped: Unit = ViewData(self.packets.translated(unit.packet), self.me, view.tag, place, unit)
        else:
            wrapped = ViewUnit(self.me, view.tag, place, unit)
        out.append(Send(wrapped, again=output.again, to=to))

    def send_control(
        self, unit: ControlUnit, to: int | None, current: Current, out: list[Output], number: int | None = None
    ) -> None:
        """Under the tag of the current view, or of the one before if that is the view of this number."""
        view, place = current.view, current.place
        if number not in {None, view.number}:
            assert current.previous is not None, "units are sent in the current view and in the one before"
            assert current.previous_place is not None, "units are sent in views that this member was in"
            view, place = current.previous, current.previous_place
        node = None if to is None else node_at(view, to)
        out.append(Send(ViewUnit(self.me, view.tag, place, unit), to=node))

    def _set_timer(self, output: SetTimer | CancelTimer, out: list[Output]) -> None:
        if not output.name.startswith(("view.", "join.")):
            (self.timers.add if isinstance(output, SetTimer) else self.timers.discard)(output.name)
        out.append(output)

    def _tell_unchanged(self, output: Discard | Stopped | Resumed | Abort, out: list[Output]) -> None:
        if isinstance(output, Discard):
            unit = output.unit
            if not isinstance(unit, CONTROL_UNITS + OUTSIDE_UNITS):
                unit = ViewUnit(self.me, self.packets.view.tag, self.place, unit)
            out.append(Discard(unit, output.why))
        else:
            self.stopped = self.stopped or isinstance(output, Stopped)
            out.append(output)

    # --- views ---

    def _install(self, output: InstallView, current: Current, out: list[Output]) -> None:
        self._cancel_timers(out)
        self.packets.start_view(output.view)
        self.place = output.place
        if self.stopped:
            self.stopped = False
            out.append(Resumed(0, 0, 0))
        heard = heard_members(output.view, output.value, current.departed)
        nodes, heard_nodes = nodes_of(output.view), mask_of(number for number, _ in heard)
        out.append(ViewInstalled(output.view.number, mask_of(nodes), output.why, heard_nodes, nodes))

    def _end(self, output: Excluded | LeftGroup, member: MembershipMachine, out: list[Output]) -> None:
        """It tells the view without this node, if that is known; it goes on answering."""
        self._cancel_timers(out)
        last = member.last
        if isinstance(output, LeftGroup):
            out.append(Departed(member.leaving.drains))
        elif last is None:
            out.append(ExcludedFrom(output.number, output.why))
        else:
            nodes = mask_of(nodes_of(view_after(member.current.view, last)))
            out.append(ViewInstalled(last.number, nodes, last.why, heard=0))

    def _cancel_timers(self, out: list[Output]) -> None:
        """Of the epoch, which is over."""
        out += [CancelTimer(name) for name in sorted(self.timers)]
        self.timers = set()
