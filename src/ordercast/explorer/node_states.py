"""The states of single nodes, each a number, and their transitions.

The same node state takes the same input in very many global states. Its effect is computed once, on a machine restored
from a snapshot, and every promise that involves one node only is checked then.
"""

from itertools import combinations
from typing import Any

from msgspec.structs import replace

from ordercast.explorer.links import Links
from ordercast.explorer.node_disk import NodeDisk
from ordercast.explorer.node_state import JOINS, Logged, NodeState
from ordercast.explorer.promise_checker import PromiseBroken, PromiseChecker
from ordercast.explorer.scenario import Scenario
from ordercast.model.declared_state import Snapshot
from ordercast.model.machine import (
    Depart,
    Drained,
    Enter,
    GiveUp,
    Input,
    Level,
    Machine,
    MembershipInput,
    Output,
    Receive,
    Suspect,
    TimerFired,
)
from ordercast.model.nodes import everybody, mask_of, members, name_of
from ordercast.model.units import Unit
from ordercast.protocols.restart.node_log import Recovered, Synced

SUBMIT, DRAINED, LEAVE, SYNCED, GIVE_UP = 2, 3, 7, 11, 15
"""Inputs as numbers; a receipt is 4 * unit, a timer 4 * name + 1. The first submission of a node that joins is that."""
_RECOVERED = 19  # and above, in fours: with what a disk has
_SAMPLE = 16  # one snapshot in so many is restored into a new machine and compared


def suspicion_code(suspects: int) -> int:
    """The input that these members, a bit mask, are suspected, as a number."""
    return suspects << 2 | 2


NodeInput = Input | MembershipInput | Synced | Recovered
_WITHOUT_VALUES: dict[int, NodeInput] = {DRAINED: Drained(), LEAVE: Depart(), GIVE_UP: GiveUp("the host gives up")}


class Effect:
    """The effect of an input at a node."""

    __slots__ = ("delivers", "enters", "is_seen", "next", "problem", "risen", "sends")

    def __init__(self) -> None:
        self.next = -1
        self.sends: tuple[tuple[int, tuple[int, ...]], ...] = ()
        """Units by number, and the links that each is put into."""
        self.risen: tuple[tuple[int, int, int], ...] = ()
        """Levels above the first, the items that reached them, and their destinations: claims about other nodes."""
        self.delivers = False
        self.enters = False
        """It enters a view, or leaves the group, in a group with membership; or more is in its log, or on its disk."""
        self.problem = ""
        """The promise that it breaks, as far as it involves this node only; empty if none."""
        self.is_seen = True
        """A promise that involves several nodes may depend on it, or it breaks one by itself."""


def outputs_of(machine: Any, event: NodeInput) -> list[Output]:
    """What a machine answers. A process that was started again has its log, and then takes part."""
    outputs: list[Output] = machine.handle(event)
    return [*outputs, *machine.handle(Enter())] if isinstance(event, Recovered) else outputs


def format_suspicion(node: int, suspects: int) -> str:
    """The text of a suspicion; `suspects`: a bit mask."""
    return f"{name_of(node)} suspects {', '.join(map(name_of, members(suspects)))}"


class NodeStates:
    """All node states found so far, and the transitions between them."""

    def __init__(self, scenario: Scenario, links: Links) -> None:
        self._scenario, self._links = scenario, links
        self._numbers: dict[NodeState, int] = {}
        self.known_effects: list[dict[int, Effect]] = []
        """By state, then by input: the effects that are known."""
        self._machines = [self.machine(node) for node in range(scenario.group.nodes)]
        self._units: dict[Unit, int] = {}
        self._timers: dict[str, int] = {}
        self._disks: dict[Recovered, int] = {}
        self._recovered: list[Recovered] = []
        self.states: list[NodeState] = []
        self.units: list[Unit] = []
        self.timer_names: list[str] = []
        self.timers: list[tuple[int, ...]] = []
        """By state: the active timers, by number."""
        self.early_timers: list[tuple[int, ...]] = []
        """By state: those that may fire during the search."""
        self.reached: list[tuple[int, int, int, int]] = []
        """By state: the items that reached each level; a copy for speed."""
        self.can_submit: list[bool] = []
        self.is_deaf: list[bool] = []
        """By state: the node has crashed, or has not joined yet: what is sent to it is lost."""
        self.records: list[int] = []
        """With membership, by state: a number for what the node delivered and acknowledged, and in which views."""
        self._records: dict[object, int] = {}
        self.can_sync: list[bool] = []
        """With logs, by state: something that was written is not known to be on the disk."""

    def start(self, node: int) -> int:
        """The initial state of a node. With membership, founders are in the first view; the others have not joined."""
        founders, here = self._scenario.founders(), NodeState(node, self.machine(node).snapshot())
        if self._scenario.logs:
            here = replace(here, disk=NodeDisk(), logged=Logged())
        if not self._scenario.group.views:
            return self._number(here)
        if node >= founders:
            return self._number(replace(here, submitted=JOINS))
        begun = self._compute(here, Enter())
        assert not begun.problem, begun.problem
        assert not begun.sends, "a founder begins silently"
        if self._scenario.logs:  # before it is a member
            begun = self.transition(begun.next, SYNCED)
            assert not begun.problem, begun.problem
        return begun.next

    def machine(self, node: int, snapshot: Snapshot | None = None) -> Machine:
        """A new machine, in the state of a snapshot if one is given."""
        made = self._scenario.machine(node, self._scenario.group)
        if snapshot is not None:
            made.restore(snapshot)
        return made

    def event(self, state: int, code: int) -> NodeInput:
        """The input that a code stands for."""
        if code == SUBMIT:
            here = self.states[state]
            return Enter() if here.submitted == JOINS else self._scenario.scripts[here.node][here.submitted]
        if code in _WITHOUT_VALUES:
            return _WITHOUT_VALUES[code]
        if code == SYNCED:
            return Synced(_disk(self.states[state]).writes)
        if code & 3 == 3:
            return self._recovered[(code - _RECOVERED) >> 2]
        if code & 3 == 2:
            return Suspect(code >> 2)
        return TimerFired(self.timer_names[code >> 2]) if code & 1 else Receive(self.units[code >> 2])

    def crashed(self, state: int, left: int) -> int:
        """The state of the same node after a crash. `left`: with logs, what is on its disk (see `NodeDisk.crash`)."""
        here = self.states[state]
        submitted = len(self._scenario.scripts[here.node])
        disk = None if here.disk is None else here.disk.crash(left)
        return self._number(replace(here, snapshot=(), timers=(), submitted=submitted, crashed=True, disk=disk))

    def recovery_of(self, state: int) -> int:
        """The input that a process gets that is started again with the disk of this node, as a number."""
        found = _disk(self.states[state]).recovered()
        number = self._disks.get(found)
        if number is None:
            number = self._disks[found] = len(self._recovered)
            self._recovered.append(found)
        return _RECOVERED + (number << 2)

    def can_suspect(self, state: int) -> tuple[int, ...]:
        """Whom a node may suspect, each a bit mask: others of its view, one, or several at once."""
        here = self.states[state]
        if here.crashed or here.left or not (here.views or not self._scenario.group.views):
            return ()
        group = mask_of(here.views[-1].members) if here.views else here.view[1] & everybody(self._scenario.group.nodes)
        others = [node for node in members(group) if node != here.node]
        most, allowed = self._scenario.at_once, self._scenario.suspects
        found = (mask_of(each) for count in range(1, most + 1) for each in combinations(others, count))
        return tuple(each for each in found if not allowed or format_suspicion(here.node, each) in allowed)

    def can_give_up(self, state: int) -> bool:
        """True if a node takes part: its host may give the group up."""
        here = self.states[state]
        return not (here.crashed or here.left) and (bool(here.views) or not self._scenario.group.views)

    def can_leave(self, state: int) -> bool:
        """True if a node is a member, and has not left the group yet."""
        here = self.states[state]
        return bool(here.views) and not (here.crashed or here.left or here.leaves)

    def transition(self, state: int, code: int) -> Effect:
        """The effect of an input in a state."""
        effect = self.known_effects[state].get(code)
        if effect is None:
            effect = self.known_effects[state][code] = self._compute(self.states[state], self.event(state, code))
        return effect

    def _number(self, state: NodeState) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
            self.known_effects.append({})
            self.timers.append(tuple(self._timers[name] for name in state.timers))
            fires = self._scenario.fires or state.timers
            self.early_timers.append(tuple(self._timers[name] for name in state.timers if name in fires))
            self.reached.append(state.reached)
            self.can_submit.append(state.submitted < len(self._scenario.scripts[state.node]))
            self.is_deaf.append(state.crashed or state.submitted == JOINS)
            disk = None if state.crashed else state.disk
            self.can_sync.append(disk is not None and disk.told < disk.writes)
            if self._scenario.group.views:
                acknowledged = state.reached[Level.ACKNOWLEDGED]
                record = (
                    state.node,
                    state.views,
                    state.log,
                    state.delivered,
                    acknowledged,
                    state.departed,
                    state.logged,
                )
                self.records.append(self._records.setdefault(record, len(self._records)))
        return number

    def _compute(self, before: NodeState, event: NodeInput) -> Effect:
        effect = Effect()
        machine: Any = self._machines[before.node]
        machine.restore(before.snapshot)
        vectors = self._vectors(machine)
        try:
            outputs = outputs_of(machine, event)
            checker = PromiseChecker(self._scenario, before, event)
            for output in outputs:
                checker.take(output)
            for name, old, new in zip(self._scenario.promise.never_less, vectors, self._vectors(machine), strict=True):
                checker.never_less(name, old, new)
            after = checker.after(machine)
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
            effect.next = self._number(after)
            if not effect.next % _SAMPLE and self.machine(after.node, after.snapshot).snapshot() != after.snapshot:
                effect.problem = f"a snapshot of {name_of(after.node)} does not survive being restored"
            effect.risen, effect.delivers = tuple(checker.risen), checker.delivered != before.delivered
            effect.enters = (after.views, after.departed, after.logged) != (
                before.views,
                before.departed,
                before.logged,
            )
            effect.sends = tuple(
                (self._unit(send.unit), self._links.reached(before.node, send.to)) for send in checker.sends
            )
            counts_units = bool(effect.sends) and self._scenario.promise.most_under_way > 0
            effect.is_seen = bool(effect.problem or effect.risen or effect.delivers or effect.enters or counts_units)
        return effect

    def _vectors(self, machine: Any) -> list[tuple[int, ...]]:
        return [tuple(getattr(machine, name)) for name in self._scenario.promise.never_less]

    def _unit(self, unit: Unit) -> int:
        number = self._units.get(unit)
        if number is None:
            number = self._units[unit] = len(self.units)
            self.units.append(unit)
        return number


def _disk(here: NodeState) -> NodeDisk:
    assert here.disk is not None, "only nodes with logs have disks"
    return here.disk
