"""A schedule opened step by step: what happens, what follows from it, and what differs in the machines' states."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ordercast.explorer.execution import Execution
from ordercast.explorer.node_state import NodeState
from ordercast.explorer.notation import format_effects, format_step, item_name
from ordercast.explorer.scenario import unit_name
from ordercast.explorer.state_space import StateSpace
from ordercast.explorer.state_values import state_values
from ordercast.explorer.variable_notes import variable_notes
from ordercast.model.units import Packet, Unit

Values = dict[str, str]
"""Variables as text."""
_NOTES = {"timers": "Its timers that run.", "crashed": "It does nothing any more."}
"""Of what is shown beside the machine's own variables."""


@dataclass(frozen=True)
class Change:
    """A variable of a node that differs from the step before; None: it was not there, or is not there any more."""

    node: int
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Step:
    """One step of a schedule."""

    node: int
    words: str
    effects: tuple[str, ...]
    changes: tuple[Change, ...]


def first_states(space: StateSpace) -> list[Values]:
    """The variables of each node before the first step."""
    state = space.initial_state()
    return [_values(space, space.nodes.states[state[node]]) for node in range(space.size)]


def notes_of(space: StateSpace) -> Values:
    """What the machines' variables mean, by their names."""
    first = space.nodes.states[space.initial_state()[0]]
    machine: Any = space.nodes.machine(first.node, first.snapshot)
    return {**variable_notes(machine), **_NOTES}


def steps_of(space: StateSpace, schedule: Iterable[int]) -> list[Step]:
    """The steps of a schedule, from the initial state on, up to the one that breaks a promise."""
    execution, known, found = Execution(space), first_states(space), []
    for step in schedule:
        words = format_step(execution, step)
        executed = execution.take(step)
        effects = tuple(format_effects(space, executed))
        broken = bool(executed.problem)
        # A step that breaks a promise has no state behind it.
        after = known[executed.node] if broken else _values(space, _state(execution, executed.node))
        changes = tuple(_changes(executed.node, known[executed.node], after))
        known[executed.node] = after
        found.append(Step(executed.node, words, effects, changes))
        if broken:
            break
    return found


def _state(execution: Execution, node: int) -> NodeState:
    return execution.space.nodes.states[execution.state[node]]


def _changes(node: int, before: Values, after: Values) -> list[Change]:
    names = [*after, *(name for name in before if name not in after)]
    values = ((name, before.get(name), after.get(name)) for name in names)
    return [Change(node, name, old, new) for name, old, new in values if old != new]


def _values(space: StateSpace, state: NodeState) -> Values:
    if state.crashed:
        return {"crashed": "yes"}

    def named(value: Packet | Unit) -> str:
        return item_name(space, value) if isinstance(value, Packet) else unit_name(value)

    machine: Any = space.nodes.machine(state.node, state.snapshot)
    timers = {"timers": ", ".join(state.timers) or "none"}
    return {**state_values(machine, named), **timers}
