"""The states of single nodes, each a number, and their transitions.

The same node state takes the same input in very many global states. Its effect is computed once, on a machine restored
from a snapshot, and every promise that involves one node only is checked then.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ordercast.explorer.links import Links
from ordercast.explorer.scenario import Item, Scenario, format_packet, unit_name
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Depart,
    Departed,
    Discard,
    Drained,
    Enter,
    ExcludedFrom,
    Input,
    Level,
    Machine,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Receive,
    Send,
    SetTimer,
    Submit,
    Suspect,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of, members, name_of, names_of
from ordercast.model.state import Snapshot
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.view import is_quorum

JOINS = -1
"""Submissions of a node that has yet to join the group: joining is its first one."""
SUBMIT, DRAINED, LEAVE = 2, 3, 7
"""Inputs as numbers; a receipt is 4 * unit, a timer 4 * name + 1. The first submission of a node that joins is that."""


def suspicion_code(member: int) -> int:
    """The input that this member is suspected, as a number."""
    return (member + 1) << 2 | 2



_SAMPLE = 16  # one snapshot in so many is restored into a new machine and compared


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node between two inputs: its machine, its timers, its application, and what it has claimed so far.

    Claims are sets of items (bit masks), which the promises are checked with; the machine does not know them.
    """

    node: int
    snapshot: Snapshot
    timers: tuple[str, ...] = ()
    submitted: int = 0
    numbered: int = 0
    reached: tuple[int, int, int, int] = (0, 0, 0, 0)
    """By level: the items that reached it; level 0 is not used."""
    delivered: int = 0
    log: tuple[int, ...] = ()
    """The order of delivery; recorded only if the service promises one order."""
    view: tuple[int, int] = (0, -1)
    """The number of its latest view, and its members; -1 is all nodes."""
    crashed: bool = False
    left: bool = False
    """It aborted, was excluded from the view, or has left the group."""
    views: tuple["OwnView", ...] = ()
    """In a group with membership: all its views. Empty: it has not joined yet."""
    leaves: bool = False
    """Its application has left the group."""
    departed: bool = False
    """It has left the group, and finished its last view with the others."""


class OwnView(NamedTuple):
    """A view of a group with membership, as a node entered it."""

    number: int
    members: tuple[int, ...]
    """In their places."""
    delivered: int
    """What the node had delivered before."""
    acknowledged: int
    """What the node knew as acknowledged before."""


class Effect:
    """The effect of an input at a node."""

    __slots__ = ("delivers", "enters", "next", "problem", "risen", "sends")

    def __init__(self) -> None:
        self.next = -1
        self.sends: tuple[tuple[int, tuple[int, ...]], ...] = ()
        """Units by number, and the links that each is put into."""
        self.risen: tuple[tuple[int, int], ...] = ()
        """Levels above the first, and the items that reached them: claims about other nodes."""
        self.delivers = False
        self.enters = False
        """It enters a view, or leaves the group, in a group with membership."""
        self.problem = ""
        """The promise that it breaks, as far as it involves this node only; empty if none."""


class PromiseBroken(Exception):  # noqa: N818 - a finding, not an error
    """A promise is broken; the message says which."""


class NodeStates:
    """All node states found so far, and the transitions between them."""

    def __init__(self, scenario: Scenario, links: Links) -> None:
        self._scenario, self._links = scenario, links
        self._numbers: dict[NodeState, int] = {}
        self._moves: list[dict[int, Effect]] = []
        self._machines = [self.machine(node) for node in range(scenario.group.nodes)]
        self._units: dict[Unit, int] = {}
        self._timers: dict[str, int] = {}
        self.states: list[NodeState] = []
        self.units: list[Unit] = []
        self.timer_names: list[str] = []
        self.timers: list[tuple[int, ...]] = []
        """By state: the active timers, by number."""
        self.reached: list[tuple[int, int, int, int]] = []
        """By state: the items that reached each level; a copy for speed."""
        self.can_submit: list[bool] = []
        self.records: list[int] = []
        """With membership, by state: a number for what the node delivered and acknowledged, and in which views."""
        self._records: dict[object, int] = {}

    def start(self, node: int) -> int:
        """The initial state of a node. With membership, founders are in the first view; the others have not joined."""
        founders, here = self._scenario.founders(), NodeState(node, self.machine(node).snapshot())
        if not self._scenario.group.views:
            return self._number(here)
        if node >= founders:
            return self._number(replace(here, submitted=JOINS))
        begun = self._compute(here, Enter())
        assert not begun.problem and not begun.sends, f"{name_of(node)} begins with {begun.problem or 'units'}"
        return begun.next

    def machine(self, node: int, snapshot: Snapshot | None = None) -> Machine:
        """A new machine, in the state of a snapshot if one is given."""
        made = self._scenario.machine(node, self._scenario.group)
        if snapshot is not None:
            made.restore(snapshot)
        return made

    def event(self, state: int, code: int) -> Input:
        """The input that a code stands for."""
        if code == SUBMIT:
            here = self.states[state]
            return Enter() if here.submitted == JOINS else self._scenario.scripts[here.node][here.submitted]
        if code == DRAINED:
            return Drained()
        if code == LEAVE:
            return Depart()
        if code & 3 == 2:
            return Suspect(1 << (code >> 2) - 1)
        return TimerFired(self.timer_names[code >> 2]) if code & 1 else Receive(self.units[code >> 2])

    def crashed(self, state: int) -> int:
        """The state of the same node after a crash."""
        here = self.states[state]
        submitted = len(self._scenario.scripts[here.node])
        return self._number(replace(here, snapshot=(), timers=(), submitted=submitted, crashed=True))

    def can_suspect(self, state: int) -> tuple[int, ...]:
        """The members that a node may suspect: the others of its view."""
        here = self.states[state]
        if here.crashed or here.left or not here.views:
            return ()
        return tuple(node for node in here.views[-1].members if node != here.node)

    def can_leave(self, state: int) -> bool:
        """True if a node is a member, and has not left the group yet."""
        here = self.states[state]
        return bool(here.views) and not (here.crashed or here.left or here.leaves)

    def transition(self, state: int, code: int) -> Effect:
        """The effect of an input in a state."""
        effect = self._moves[state].get(code)
        if effect is None:
            effect = self._moves[state][code] = self._compute(self.states[state], self.event(state, code))
        return effect

    def _number(self, state: NodeState) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
            self._moves.append({})
            self.timers.append(tuple(self._timers[name] for name in state.timers))
            self.reached.append(state.reached)
            self.can_submit.append(state.submitted < len(self._scenario.scripts[state.node]))
            if self._scenario.group.views:
                acknowledged = state.reached[Level.ACKNOWLEDGED]
                record = (state.node, state.views, state.log, state.delivered, acknowledged, state.departed)
                self.records.append(self._records.setdefault(record, len(self._records)))
        return number

    def _compute(self, before: NodeState, event: Input) -> Effect:
        effect = Effect()
        machine = self._machines[before.node]
        machine.restore(before.snapshot)
        vectors = self._vectors(machine)
        try:
            outputs = machine.handle(event)
            checker = PromiseChecker(self._scenario, before, event)
            for output in outputs:
                checker.take(output)
            for name, old, new in zip(self._scenario.promise.never_less, vectors, self._vectors(machine), strict=True):
                checker.never_less(name, old, new)
        except PromiseBroken as wrong:
            effect.problem = str(wrong)
        except MemoryError:  # it is not the machine's fault
            raise
        except Exception as error:  # an exception of a machine is a counterexample
            effect.problem = f"{name_of(before.node)} raises {error!r}"
        else:
            for name in checker.timers:
                if name not in self._timers:
                    self._timers[name] = len(self.timer_names)
                    self.timer_names.append(name)
            after = checker.after(machine.snapshot())
            effect.next = self._number(after)
            if not effect.next % _SAMPLE and self.machine(after.node, after.snapshot).snapshot() != after.snapshot:
                effect.problem = f"a snapshot of {name_of(after.node)} does not survive being restored"
            effect.risen, effect.delivers = tuple(checker.risen), checker.delivered != before.delivered
            effect.enters = (after.views, after.departed) != (before.views, before.departed)
            effect.sends = tuple(
                (self._unit(send.unit), self._links.reached(before.node, send.to)) for send in checker.sends
            )
        return effect

    def _vectors(self, machine: Any) -> list[tuple[int, ...]]:
        return [tuple(getattr(machine, name)) for name in self._scenario.promise.never_less]

    def _unit(self, unit: Unit) -> int:
        number = self._units.get(unit)
        if number is None:
            number = self._units[unit] = len(self.units)
            self.units.append(unit)
        return number


class PromiseChecker:
    """Checks the outputs of one transition against the promises that involve one node only."""

    def __init__(self, scenario: Scenario, before: NodeState, event: Input) -> None:
        self._scenario, self._before, self._event = scenario, before, event
        self._node, self._name = before.node, name_of(before.node)
        self.timers = set(before.timers)
        if isinstance(event, TimerFired):
            self.timers.discard(event.name)
        self.numbered, self.delivered, self.log = before.numbered, before.delivered, before.log
        self.reached = list(before.reached)
        self.view, self.left = before.view, before.left
        self.views, self.departed = before.views, before.departed
        self.risen: list[tuple[int, int]] = []
        self.sends: list[Send] = []

    def take(self, output: Output) -> None:
        """Takes one output; raises `PromiseBroken` if it breaks a promise."""
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
                self._reaches(level, self._item(packet), by_view=isinstance(output, ReachedByView))
            case Deliver(packet=packet):
                self._delivers(self._item(packet))
            case Discard(unit=unit, why=why) if why in self._scenario.promise.never_discards:
                raise PromiseBroken(f"{self._name} discards {unit_name(unit)} of {name_of(unit.source)} ({why})")
            case ViewInstalled() if self._scenario.group.views:
                self._enters(output)
            case ViewInstalled(number=number, members=members):
                self.view, self.left = (number, members), not members >> self._node & 1
            case ExcludedFrom():
                self.left = True
            case Departed(drained=drained):
                self._departs(drained=drained)
            case Abort(without_quorum=True) if self._scenario.promise.views:
                self.left = True  # a group with views may end so; any other abort is a broken promise
            case Abort() if self._scenario.group.views and not self.views:
                self.left = True  # it was refused: allowed if it is a member that departed
            case Abort(why=why):
                raise PromiseBroken(f"{self._name} aborts the group: {why}")
            case _:
                pass

    def after(self, snapshot: Snapshot) -> NodeState:
        """The state after the transition."""
        levels = (0, self.reached[1], self.reached[2], self.reached[3])
        leaves = self._before.leaves or isinstance(self._event, Depart)
        submitted = self._before.submitted + isinstance(self._event, Submit)
        if leaves:  # and so sends nothing more
            submitted = len(self._scenario.scripts[self._node])
        elif self._before.submitted == JOINS and isinstance(self._event, Enter):
            submitted = 0
        timers = tuple(sorted(self.timers))
        return NodeState(
            node=self._node,
            snapshot=snapshot,
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
            departed=self.departed,
        )

    def never_less(self, name: str, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        """Checks that a vector does not decrease."""
        for place, (was, now) in enumerate(zip(old, new, strict=True)):
            if now < was:
                raise PromiseBroken(f"{name} of {self._name} for {name_of(place)} goes down from {was} to {now}")

    def _enters(self, view: ViewInstalled) -> None:
        """A view must follow the one before: decided by a quorum of it, all of which that stay were heard."""
        what = f"view {view.number} of {self._name}"
        if not view.members >> self._node & 1:
            raise PromiseBroken(f"{what} is without it")
        if self.views:
            before, heard = self.views[-1], view.heard or 0
            if view.number != before.number + 1:
                raise PromiseBroken(f"{what} follows view {before.number}")
            if not is_quorum(mask_of(at for at, node in enumerate(before.members) if heard >> node & 1), len(before.members)):
                raise PromiseBroken(f"{what} was decided by {names_of(heard)}, no quorum of view {before.number}")
            stay = view.members & mask_of(before.members)
            if stay & ~heard:
                raise PromiseBroken(f"{what} has {names_of(stay & ~heard)}, whose report was not heard")
        self.view = (view.number, view.members)
        places = view.places or members(view.members)
        self.views = (*self.views, OwnView(view.number, tuple(places), self.delivered, self.reached[Level.ACKNOWLEDGED]))

    def _departs(self, *, drained: bool) -> None:
        """A node leaves when its own messages are where they belong."""
        if not self._before.leaves or not drained:
            raise PromiseBroken(f"{self._name} leaves the group, though {'its messages' if self._before.leaves else 'it'} should stay")
        self.left = self.departed = True

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

    def _reaches(self, level: Level, item: Item, *, by_view: bool) -> None:
        """`by_view`: it is in the cut of a view. That is a claim about those that enter the next view, when they do."""
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
            self._in_order(what, level.name.lower(), self._earlier(item, self.reached[level]))
        self.reached[level] |= bit
        if level > Level.ACCEPTED and not by_view:
            self.risen.append((level, item.number))

    def _delivers(self, item: Item) -> None:
        what = f"{item.describe()} at {self._name}"
        bit = 1 << item.number
        if self.delivered & bit:
            raise PromiseBroken(f"{what} is delivered a second time")
        if self._node not in item.destinations:
            raise PromiseBroken(f"{what} is delivered, but it is not addressed to it")
        if self._scenario.promise.ladder and not self.reached[Level.ACKNOWLEDGED] & bit:
            raise PromiseBroken(f"{what} is delivered before it was acknowledged")
        if self._scenario.promise.sender_order:
            alike = self._scenario.of_priority[item.submission.priority] if self._scenario.promise.urgent_first else -1
            self._in_order(what, "delivered", self._earlier(item, self.delivered) & alike)
        self.delivered |= bit
        if self._scenario.promise.one_order:
            self.log = (*self.log, item.number)

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
