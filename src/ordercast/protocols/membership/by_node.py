"""A member behind the ordinary contract of machines, so that the simulator and the explorer run it like any protocol.

Nodes are numbers: the first ones found the group, the others join it. A node's address is its number. Every unit is
wrapped with its view's tag; those of other views are not received. Packets are translated: their sources and
destinations are nodes, and they are numbered by their messages, because an epoch counts its packets from 0. What
happens to a packet again in a later epoch is not told again.

The failure detector is the simplest that suffices here: while something is outstanding, or somebody looks for the
group, a member that is silent for some time is probed, and suspected if it does not answer. A group in which nothing is
outstanding is silent.
"""

from collections import deque
from functools import cache
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Drained,
    Echo,
    GiveUp,
    Input,
    Level,
    LogSizes,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Receive,
    Renumbered,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    Suspect,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import everybody, mask_of, members
from ordercast.model.runs import Channel
from ordercast.model.state import DeclaredState
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.membership.events import (
    TO_ALL,
    Begin,
    Excluded,
    InstallView,
    LeftGroup,
    MemberInput,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    SendControl,
    SendOutside,
)
from ordercast.protocols.membership.joiner import Joined, Joiner, Refused
from ordercast.protocols.membership.machine import Member, Phase
from ordercast.protocols.membership.order import Order, order_of
from ordercast.protocols.membership.units import CONTROL_UNITS, OUTSIDE_UNITS, Apply, ControlUnit, Find, Probe
from ordercast.protocols.membership.view import (
    GroupView,
    Incarnation,
    MembershipConfig,
    founding_view,
    heard_members,
    view_after,
)
from ordercast.protocols.membership.wrapped_units import OutsideView, ViewData, ViewUnit
from ordercast.protocols.shared.destinations import check_broadcast, check_subset

BEATS = 4
"""Beats without a word after which a member is suspected; after one it is probed."""
_SOUGHT = BEATS + 2  # enough to suspect one that does not answer
SETTINGS = MembershipConfig(
    repeat=2 * MILLISECOND,
    failure_timeout=40 * MILLISECOND,
    gather=2 * MILLISECOND,
    guard=2 * MILLISECOND,
    blocked_repeat=40 * MILLISECOND,
    has_state=False,
)


class ByNode(DeclaredState):
    """A member, or one that wants to become one, as a machine. `by_node` makes the class for an order."""

    order: ClassVar[Order]
    founders: ClassVar[int | None]
    """How many nodes found the group; None: all."""
    settings: ClassVar[MembershipConfig]
    echo: ClassVar[Echo]
    needs: ClassVar[Channel]
    has_views: ClassVar[bool] = True

    me: Final[int]
    config: Final[GroupConfig]
    person: Final[Incarnation]

    member: Member
    joiner: Joiner
    is_member: bool  # otherwise it joins
    view: GroupView  # told last; the outputs of one input may belong to two views
    place: int  # the own one in it
    begun: bool
    aborted: bool
    early: deque[Submit]  # submitted before it was a member
    timers: set[str]  # of the epoch, that run
    levels: dict[tuple[int, int], int]  # by source and first message: the level told of packets that are not delivered
    numbered_below: int  # own messages that were told to have a number
    beats: bool  # the failure detector's timer runs
    silent: dict[int, int]  # by place: beats without a word
    sought: int  # beats left since somebody outside asked for the group: who joins must reach all that live
    stopped: bool  # it was told that the node has stopped

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.config = me, config
        count = config.nodes if self.founders is None else min(self.founders, config.nodes)
        people = tuple(map(_person, range(config.nodes)))
        self.person = people[me]
        self.is_member = me < count
        view = founding_view(people[:count] if self.is_member else (self.person,), b"founding")
        self.member = Member(self.person, view, self.order, config, self.settings, contacts=_addresses(config, me))
        self.joiner = Joiner(self.person, "", _addresses(config, me), me << 32, self.settings)
        self.view, self.place = view, self.member.current.place
        self.begun = False
        self.aborted = self.beats = self.stopped = False
        self.early, self.timers, self.levels, self.silent = deque(), set(), {}, {}
        self.numbered_below = self.sought = 0

    # --- inputs ---

    def handle(self, event: Input) -> list[Output]:
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
            self.aborted = True
            out.append(Abort(event.why))
        elif isinstance(event, Receive):
            self._receive(event.unit, out)
        elif isinstance(event, TimerFired):
            self._fire(event, out)
        elif not self.is_member:
            if isinstance(event, Submit):
                self.early.append(event)
        elif isinstance(event, Submit):
            self._submit(event, out)
        elif isinstance(event, Suspect):
            self._give(Suspect(self._places(event.members)), out)
        else:
            self._give(Drained(), out)
        self._beat_if_needed(out)
        return out

    def _check(self, event: Submit) -> None:
        if self.order.to_all:
            check_broadcast(event.destinations, self.config.nodes)
        else:
            check_subset(event.destinations, self.config.nodes)

    def _submit(self, event: Submit, out: list[Output]) -> None:
        """To those of the destinations that are members; if there are none, it is not sent."""
        to = TO_ALL if self.order.to_all else self._places(event.destinations)
        if to and not self._has_ended():
            self._give(replace(event, destinations=to), out)

    def _give(self, event: MemberInput, out: list[Output]) -> None:
        self._carry_out(self.member.handle(event), out)

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        if isinstance(unit, OutsideView) and isinstance(unit.unit, OUTSIDE_UNITS):
            inner: Any = unit.unit
            outside = ReceiveOutside(inner, str(unit.source))
            self.sought = _SOUGHT if isinstance(inner, Find | Apply) else self.sought
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
            self.silent[unit.place] = 0
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
        elif event.name.startswith("view.") or event.name in self.timers:
            self.timers.discard(event.name)
            self._give(event, out)

    # --- outputs ---

    def _carry_out(self, outputs: list[Any], out: list[Output]) -> None:
        """Of the member or the joiner."""
        # What is reached before a view is told is reached because the view before ends.
        ends = max((at for at, output in enumerate(outputs) if isinstance(output, InstallView | LeftGroup)), default=0)
        for at, output in enumerate(outputs):
            if isinstance(output, Send):
                self._send(output, out)
            elif isinstance(output, Numbered | Reached | Deliver | Discard | Stopped | Resumed | Abort):
                self._tell(output, out, by_view=at < ends)
            elif isinstance(output, SendControl):
                self._send_control(output.unit, output.to, output.view, out)
            elif isinstance(output, SendOutside):
                to = int(output.address)
                out.append(Send(OutsideView(self.me, output.unit), to=to))
            elif isinstance(output, SetTimer | CancelTimer):
                self._set_timer(output, out)
            elif isinstance(output, InstallView):
                self._install(output, out)
            elif isinstance(output, Excluded | LeftGroup):
                self._end(output, out)
            elif isinstance(output, Joined):
                self._join(output, out)
            elif isinstance(output, Refused):
                self.aborted = True
                out.append(Abort(output.why))

    def _send(self, output: Send, out: list[Output]) -> None:
        view, place, unit = self.view, self.place, output.unit
        to = None if output.to is None else _node(view, output.to)
        if isinstance(unit, DataUnit):
            wrapped: Unit = ViewData(self._translated(unit.packet), self.me, view.tag, place, unit)
        else:
            wrapped = ViewUnit(self.me, view.tag, place, unit)
        out.append(Send(wrapped, again=output.again, to=to))

    def _send_control(self, unit: ControlUnit, to: int | None, number: int, out: list[Output]) -> None:
        current = self.member.current
        view, place = current.view, current.place
        if number != view.number:
            assert current.previous is not None, "units are sent in the current view and in the one before"
            assert current.previous_place is not None, "units are sent in views that this member was in"
            view, place = current.previous, current.previous_place
        node = None if to is None else _node(view, to)
        out.append(Send(ViewUnit(self.me, view.tag, place, unit), to=node))

    def _set_timer(self, output: SetTimer | CancelTimer, out: list[Output]) -> None:
        if not output.name.startswith(("view.", "join.")):
            (self.timers.add if isinstance(output, SetTimer) else self.timers.discard)(output.name)
        out.append(output)

    def _tell(self, output: Output, out: list[Output], *, by_view: bool) -> None:
        """What happens to packets, each thing once."""
        if isinstance(output, Numbered):
            packet = self._translated(output.packet)
            if packet.first >= self.numbered_below:
                self.numbered_below = packet.first + len(packet.lengths)
                out.append(Numbered(packet))
            else:
                out.append(Renumbered(packet, self.view.number))
        elif isinstance(output, Reached):
            self._tell_level(output.level, self._translated(output.packet), out, by_view=by_view)
        elif isinstance(output, Deliver):
            out.append(Deliver(self._translated(output.packet)))
        elif isinstance(output, Discard):
            unit = output.unit
            if not isinstance(unit, CONTROL_UNITS + OUTSIDE_UNITS):
                unit = ViewUnit(self.me, self.view.tag, self.place, unit)
            out.append(Discard(unit, output.why))
        else:
            self.stopped = self.stopped or isinstance(output, Stopped)
            out.append(output)

    def _tell_level(self, level: Level, packet: Packet, out: list[Output], *, by_view: bool) -> None:
        """A packet that is sent again in a new view reaches the lower levels again."""
        key = (packet.source, packet.first)
        if self.levels.get(key, 0) < level:
            self.levels[key] = level
            out.append(ReachedByView(level, packet) if by_view else Reached(level, packet))
        if level is Level.ACKNOWLEDGED:  # it is in the cut of this view
            del self.levels[key]

    def _translated(self, packet: Packet) -> Packet:
        """By nodes, numbered by messages. What is to all members is to all nodes, as it was submitted."""
        to = mask_of(_node(self.view, place) for place in members(packet.destinations))
        if self.order.to_all:
            to = everybody(self.config.nodes)
        return replace(packet, source=_node(self.view, packet.source), destinations=to, seq=packet.first, seq_to=())

    # --- views ---

    def _places(self, nodes: int) -> int:
        view = self.member.current.view
        return mask_of(place for place in range(len(view.members)) if nodes >> _node(view, place) & 1)

    def _install(self, output: InstallView, out: list[Output]) -> None:
        out += [CancelTimer(name) for name in sorted(self.timers)]
        self.view, self.place = output.view, output.place
        nodes = mask_of(_node(output.view, place) for place in range(len(output.view.members)))
        self.timers, self.silent = set(), {}
        self.levels = {key: level for key, level in self.levels.items() if nodes >> key[0] & 1}
        if self.stopped:
            self.stopped = False
            out.append(Resumed(0, 0, 0))
        heard = heard_members(output.view, output.value, self.member.current.departed)
        places = tuple(_node(output.view, place) for place in range(len(output.view.members)))
        out.append(ViewInstalled(output.view.number, nodes, output.why, mask_of(number for number, _ in heard), places))

    def _end(self, output: Excluded | LeftGroup, out: list[Output]) -> None:
        """It tells the view without this node, if that is known; it goes on answering."""
        out += [CancelTimer(name) for name in sorted(self.timers)]
        self.timers = set()
        last = self.member.last
        if last is None:
            assert isinstance(output, Excluded), "one that has left knows the view"
            out.append(Abort(f"excluded: {output.why}"))
        else:
            view = view_after(self.member.current.view, last)
            nodes = mask_of(_node(view, place) for place in range(len(view.members)))
            out.append(ViewInstalled(last.number, nodes, last.why, heard=0))

    def _has_ended(self) -> bool:
        """It has left or was excluded."""
        return self.member.phase is not Phase.MEMBER

    def _join(self, output: Joined, out: list[Output]) -> None:
        self.member = Member.joins(
            *(self.person, output.welcome, self.order, self.config, self.settings),
            contacts=_addresses(self.config, self.me),
        )
        self.is_member = True
        self._give(Begin(), out)
        early, self.early = self.early, deque()
        for event in early:
            self._submit(event, out)

    # --- the failure detector ---

    def _beat_if_needed(self, out: list[Output]) -> None:
        if not self.beats and self.is_member and self._waits():
            self.beats, self.silent = True, {}
            out.append(SetTimer("view.beat", self.settings.failure_timeout // BEATS))

    def _waits(self) -> bool:
        """The epoch has something outstanding; who has stopped is cared for by its coordinator."""
        if self.member.stopped or len(self.member.current.view.members) == 1:
            return False
        sizes = self.member.machine.log_sizes()
        return bool(self.sought or sizes.waiting or sizes.sent or sizes.held or sizes.accepted or sizes.preacknowledged)

    def _beat(self, out: list[Output]) -> None:
        """Probes who said nothing since the last beat; suspects who said nothing for several."""
        self.beats = False
        if not self.is_member or not self._waits():
            return
        self.sought = max(0, self.sought - 1)
        current, suspects = self.member.current, 0
        for place in members(current.others):
            count = self.silent.get(place, 0)
            self.silent[place] = count + 1
            if count >= BEATS:
                suspects |= 1 << place
            elif count:
                self._send_control(Probe(current.view.number, current.place), place, current.view.number, out)
        self.beats = True
        out.append(SetTimer("view.beat", self.settings.failure_timeout // BEATS))
        if suspects:
            self._give(Suspect(suspects), out)

    # --- what a host asks ---

    def waits_for(self) -> tuple[str, ...]:
        """What the epoch waits for, or the next view."""
        if not self.is_member:
            return ("it has not joined the group",) if self.begun else ()
        if self._has_ended():
            return ()
        if self.member.stopped:
            return (f"the view after {self.member.current.view.number} is being agreed on",)
        return self.member.machine.waits_for()

    def log_sizes(self) -> LogSizes:
        """Those of the epoch; what waits for the next view or for joining is waiting, too."""
        if self._has_ended():
            return LogSizes(0, 0, 0, 0, 0)
        sizes = self.member.machine.log_sizes()
        waiting = sizes.waiting + len(self.member.waiting) + len(self.early)
        return LogSizes(waiting, sizes.sent, sizes.held, sizes.accepted, sizes.preacknowledged)


def _person(node: int) -> Incarnation:
    return Incarnation(f"node {node}", node, str(node))


def _addresses(config: GroupConfig, me: int) -> tuple[str, ...]:
    return tuple(str(node) for node in range(config.nodes) if node != me)


def _node(view: GroupView, place: int) -> int:
    return view.members[place].number


@cache
def by_node(protocol: str, founders: int | None = None, settings: MembershipConfig = SETTINGS) -> type[ByNode]:
    """The class for the order of a protocol."""
    order = order_of(protocol)
    machine: Any = order.machine
    fields = {
        "order": order,
        "founders": founders,
        "settings": settings,
        "echo": machine.echo,
        "needs": machine.needs,
        "__module__": __name__,
    }
    return type(f"{machine.__name__}ByNode", (ByNode,), fields)
