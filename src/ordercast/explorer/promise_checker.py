"""Promises that involve one node only: checked once for each transition of a node."""

from collections.abc import Mapping
from typing import Any

from ordercast.explorer.node_disk import NodeDisk
from ordercast.explorer.node_state import JOINS, Logged, NodeState, OwnView
from ordercast.explorer.scenario import Item, Scenario, format_packet, unit_name
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Depart,
    Departed,
    Discard,
    Enter,
    ExcludedFrom,
    GiveUp,
    Input,
    Level,
    MembershipInput,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of, members, name_of, names_of
from ordercast.model.units import Packet
from ordercast.protocols.membership.view import is_quorum
from ordercast.protocols.restart.durable_node import ANEW
from ordercast.protocols.restart.node_log import DropLog, NodeLog, Recovered, Synced, WriteNote, WritePacket

_ENDS_RUN = "marker"  # the label of units that end a priority run


class PromiseBroken(Exception):  # noqa: N818 - a finding, not an error
    """A promise is broken; the message says which."""


class PromiseChecker:
    """Checks the outputs of one transition against the promises that involve one node only."""

    def __init__(
        self, scenario: Scenario, before: NodeState, event: Input | MembershipInput | Synced | Recovered
    ) -> None:
        self._scenario, self._before, self._event = scenario, before, event
        self._node, self._name = before.node, name_of(before.node)
        self.timers = set(before.timers)
        if isinstance(event, TimerFired):
            self.timers.discard(event.name)
        self.numbered, self.delivered, self.log = before.numbered, before.delivered, before.log
        self.reached = list(before.reached)
        self.view, self.left = before.view, before.left
        self.views, self.departed = before.views, before.departed
        self.disk = before.disk
        if self.disk is not None and isinstance(event, Synced):
            self.disk = self.disk.sync()
        elif isinstance(event, Recovered):
            self.disk = NodeDisk(event.packets, event.note)
        self.risen: list[tuple[int, int, int]] = []
        self.sends: list[Send] = []
        self._may_end_run, self._overtakes = before.may_end_run, False
        if scenario.promise.urgent_first and isinstance(event, Receive) and event.unit.label() == _ENDS_RUN:
            self._may_end_run = True

    def take(self, output: Output) -> None:
        """Takes one output; raises `PromiseBroken` if it breaks a promise."""
        if self._before.gave_up:
            raise PromiseBroken(f"{self._name} goes on after it gave the group up")
        match output:
            case Send():
                self.sends.append(output)
            case SetTimer(name=name):
                self.timers.add(name)
            case CancelTimer(name=name):
                self.timers.discard(name)
            case Numbered(packet=packet):
                self._numbers(self._item(packet))
            case Reached(level=level, packet=packet):
                item = self._item(packet)
                self._reaches(level, item)
                # What is in the cut of a view is a claim about those that enter the next one, when they do.
                if level > Level.ACCEPTED and not isinstance(output, ReachedByView):
                    self.risen.append((level, item.number, packet.destinations))
            case Deliver(packet=packet):
                self._delivers(self._item(packet))
            case Discard(unit=unit, why=why) if why in self._scenario.promise.never_discards:
                raise PromiseBroken(f"{self._name} discards {unit_name(unit)} of {name_of(unit.source)} ({why})")
            case ViewInstalled() | ExcludedFrom() | Departed() | Abort():
                self._changes_group(output)
            case WritePacket() | WriteNote() | DropLog():
                assert self.disk is not None, "only nodes with logs write"
                self.disk = self.disk.drop(output) if isinstance(output, DropLog) else self.disk.write(output)
            case _:
                pass

    def _changes_group(self, output: ViewInstalled | ExcludedFrom | Departed | Abort) -> None:
        """It enters a view, or takes part no more."""
        has_membership = self._scenario.group.views
        match output:
            case ViewInstalled() if has_membership:
                self._enters(output)
            case ViewInstalled(number=number, members=group):
                self.view, self.left = (number, group), not group >> self._node & 1
            case ExcludedFrom():
                self.left = True
            case Departed(drained=drained):
                self._departs(drained=drained)
            case Abort() if isinstance(self._event, GiveUp):
                self.left = True
            case Abort(without_quorum=True) if self._scenario.promise.views:
                self.left = True  # a group with views may end so; any other abort is a broken promise
            case Abort() if has_membership and not self.views:
                self.left = True  # it was refused: allowed if it is a member that departed
            case Abort(why=why):
                raise PromiseBroken(f"{self._name} aborts the group: {why}")

    def after(self, machine: Any) -> NodeState:
        """The state after the transition, which the machine is in."""
        levels = (0, self.reached[1], self.reached[2], self.reached[3])
        leaves = self._leaves()
        submitted = self._before.submitted + isinstance(self._event, Submit)
        if leaves:  # and so sends nothing more
            submitted = len(self._scenario.scripts[self._node])
        elif self._before.submitted == JOINS and isinstance(self._event, Enter | Recovered):
            submitted = 0
        timers = tuple(sorted(self.timers))
        return NodeState(
            node=self._node,
            snapshot=machine.snapshot(),
            timers=() if self.left else timers,
            submitted=submitted,
            numbered=self.numbered,
            reached=levels,
            delivered=self.delivered,
            log=self.log,
            view=self.view,
            left=self.left,
            views=self.views,
            leaves=leaves,
            gave_up=self._before.gave_up or isinstance(self._event, GiveUp),
            departed=self.departed,
            may_end_run=self._may_end_run and not self._overtakes,
            disk=self.disk,
            logged=None if self.disk is None else self._logged(self.disk, machine.log, machine.positions),
        )

    def _logged(self, disk: NodeDisk, log: NodeLog, positions: Mapping[int, int]) -> Logged:
        """What it says of its log must be what its disk has."""
        if tuple(log.packets) != disk.all_packets():
            raise PromiseBroken(f"{self._name} has other packets in its log than it has written")
        if log.durable > len(disk.packets):
            told = f"{len(disk.packets)} are on its disk"
            raise PromiseBroken(f"{self._name} takes {log.durable} packets of its log for durable, and {told}")
        items = tuple(self._item(packet).number for packet in log.packets)
        begins = tuple((view, [0, *(end for end, _ in log.ends)].index(at)) for view, at in sorted(positions.items()))
        return Logged(items, log.durable, begins)

    def never_less(self, name: str, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        """Checks that a vector does not decrease."""
        if old == new:
            return
        for place, (was, now) in enumerate(zip(old, new, strict=True)):
            if now < was:
                raise PromiseBroken(f"{name} of {self._name} for {name_of(place)} goes down from {was} to {now}")

    def _enters(self, view: ViewInstalled) -> None:
        """A view must follow the one before: decided by a quorum of it, all of which that stay were heard."""
        what = f"view {view.number} of {self._name}"
        if not view.members >> self._node & 1:  # it is told that it is excluded
            self.left = True
            return
        if self.views:
            before, heard = self.views[-1], view.heard or 0
            if view.number != before.number + 1:
                raise PromiseBroken(f"{what} follows view {before.number}")
            if not is_quorum(
                mask_of(at for at, node in enumerate(before.members) if heard >> node & 1), len(before.members)
            ):
                raise PromiseBroken(f"{what} was decided by {names_of(heard)}, no quorum of view {before.number}")
            stay = view.members & mask_of(before.members)
            if stay & ~heard:
                raise PromiseBroken(f"{what} has {names_of(stay & ~heard)}, whose report was not heard")
        self.view = (view.number, view.members)
        places = view.places or members(view.members)
        self.views = (
            *self.views,
            OwnView(
                *(view.number, tuple(places), self.delivered, self.reached[Level.ACKNOWLEDGED]),
                durable=0 if self._before.logged is None else self._before.logged.durable,
                anew=view.heard or 0 if view.why == ANEW else 0,
            ),
        )

    def _departs(self, *, drained: bool) -> None:
        """A node leaves when its own messages are where they belong."""
        if not self._leaves() or not drained:
            raise PromiseBroken(
                f"{self._name} leaves the group, though {'its messages' if self._leaves() else 'it'} should stay"
            )
        self.left = self.departed = True

    def _leaves(self) -> bool:
        """Its host asked it to leave, before or now: who is alone in its view has left at once."""
        return self._before.leaves or isinstance(self._event, Depart)

    def _item(self, packet: Packet) -> Item:
        item = self._scenario.item_of(packet)
        if item is None:
            raise PromiseBroken(f"{self._name} outputs {format_packet(packet)}, which no node submitted")
        return item

    def _numbers(self, item: Item) -> None:
        mine = [other for other in self._scenario.items if other.source == self._node]
        at = mine.index(item) if item in mine else -1
        # With membership, what has no destination any more is not sent.
        if at < self.numbered or (at > self.numbered and not self._scenario.group.views):
            raise PromiseBroken(f"{self._name} numbers {item.describe()} out of turn")
        self.numbered = at + 1

    def _reaches(self, level: Level, item: Item) -> None:
        what = f"{item.describe()} at {self._name}"
        for_me = self._node in item.destinations
        bit = 1 << item.number
        if self.reached[level] & bit:
            raise PromiseBroken(f"{what} is {level.name.lower()} a second time")
        if not for_me and (item.source != self._node or level is Level.ACCEPTED):
            raise PromiseBroken(f"{what} is {level.name.lower()}, but it is not addressed to it")
        if level > (Level.ACCEPTED if for_me else Level.PREACKNOWLEDGED) and not self.reached[level - 1] & bit:
            raise PromiseBroken(f"{what} is {level.name.lower()} before it was {Level(level - 1).name.lower()}")
        if for_me and self._scenario.promise.sender_order:
            self._in_order(what, level.name.lower(), self._earlier(item, self._has_reached(level)))
        self.reached[level] |= bit

    def _has_reached(self, level: Level) -> int:
        """What is at this level: where nothing is told above stable, but at the end of a view, that is all above it."""
        reached = self.reached[level]
        if level is Level.ACKNOWLEDGED and not self._scenario.promise.ladder:
            reached |= self.reached[Level.PREACKNOWLEDGED]
        return reached

    def _delivers(self, item: Item) -> None:
        what = f"{item.describe()} at {self._name}"
        bit = 1 << item.number
        if self.delivered & bit:
            raise PromiseBroken(f"{what} is delivered a second time")
        if self._node not in item.destinations:
            raise PromiseBroken(f"{what} is delivered, but it is not addressed to it")
        level = self._scenario.promise.delivers_at
        if isinstance(self._event, GiveUp):  # what is certain: every destination has it
            level = min(level, Level.PREACKNOWLEDGED)
        if self._scenario.promise.ladder and not self.reached[level] & bit:
            told = "acknowledged" if level is Level.ACKNOWLEDGED else "pre-acknowledged"
            raise PromiseBroken(f"{what} is delivered before it was {told}")
        if self._scenario.promise.sender_order:
            alike = self._scenario.of_priority[item.submission.priority] if self._scenario.promise.urgent_first else -1
            self._in_order(what, "delivered", self._earlier(item, self.delivered) & alike)
        if self._scenario.promise.urgent_first and not self._scenario.group.views:  # a view ends all runs
            self._urgent_first(item, what)
        self.delivered |= bit
        if self._scenario.promise.one_order:
            self.log = (*self.log, item.number)

    def _urgent_first(self, item: Item, what: str) -> None:
        """Nothing of a higher priority that is pre-acknowledged waits, unless a marker ends the run."""
        waiting = self.reached[Level.PREACKNOWLEDGED] & ~self.delivered
        priority = item.submission.priority
        for urgent in self._scenario.items:
            if waiting >> urgent.number & 1 and urgent.submission.priority > priority:
                if not self._may_end_run:
                    raise PromiseBroken(f"{what} is delivered before {urgent.describe()}, which is more urgent")
                self._overtakes = True

    def _earlier(self, item: Item, done: int) -> int:
        """Earlier items of the same source that are not done; of a node that joined, none before the first that is."""
        earlier = item.earlier_to[self._node]
        if self._node >= self._scenario.founders():
            first = earlier & done
            earlier &= -(first & -first)  # from the lowest bit on; nothing, if there is none
        return earlier & ~done

    def _in_order(self, what: str, verb: str, lacking: int) -> None:
        if lacking:
            earlier = self._scenario.items[lacking.bit_length() - 1]
            raise PromiseBroken(f"{what} is {verb} before {earlier}, which was sent before it")
