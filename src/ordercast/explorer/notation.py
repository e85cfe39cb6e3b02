"""The notation of schedules as text, one line for each step, to read, write and execute again.

    E1 sends x{2,3}
    E2 receives E1#0 x
    E3 loses E1#0 x
    E2 timer status fires
    E2 will receive again later E1#1 copy x
    E1 crashes
    E1 suspects E2
    E1 suspects E2, E3
    E3 leaves
    E3 gives the group up
    E4 joins
    E5 returns as E2
    E1 syncs its log
    E2 crashes, and its disk has 1 of 2 writes

E1#0 is the first transmission of E1 in this schedule, and the words after it say what it carries. So a line does not
depend on how states, units and timers are numbered, and can be parsed: it is the enabled step that has this text.
"""

from collections.abc import Iterable, Sequence

from ordercast.explorer.execution import ExecutedStep, Execution, Transmission
from ordercast.explorer.node_state import JOINS
from ordercast.explorer.node_states import format_suspicion
from ordercast.explorer.scenario import format_packet, unit_name
from ordercast.explorer.state_space import StateSpace, StepKind, decode, fire_step
from ordercast.model.config import require
from ordercast.model.machine import (
    Abort,
    Deliver,
    Departed,
    Discard,
    ExcludedFrom,
    Level,
    Reached,
    Resumed,
    Send,
    Stopped,
    ViewInstalled,
)
from ordercast.model.nodes import name_of, names_of
from ordercast.model.units import Packet

_SHOWN = 8  # enabled steps that an error lists
_LEVELS = {Level.ACCEPTED: "accepts", Level.PREACKNOWLEDGED: "pre-acknowledges", Level.ACKNOWLEDGED: "acknowledges"}
_VERBS = {
    StepKind.RECEIVE: "receives",
    StepKind.LOSE: "loses",
    StepKind.TWICE: "will receive twice in a row",
    StepKind.LATER: "will receive again later",
}


def format_transmission(transmission: Transmission) -> str:
    """Its sender, its number and its content: a message by its name, anything else by its kind."""
    copy = "copy " if transmission.again else ""
    return f"{name_of(transmission.sender)}#{transmission.count} {copy}{unit_name(transmission.unit)}"


def format_step(execution: Execution, step: int) -> str:
    """The text of a step that is enabled now."""
    space = execution.space
    kind, place, timer = decode(step)
    if kind in _VERBS:
        receiver = name_of(space.links.receivers[place - space.first_link])
        return f"{receiver} {_VERBS[kind]} {format_transmission(execution.transmission(step))}"
    name, here = name_of(place), space.nodes.states[execution.state[place]]
    match kind:
        case StepKind.CRASH:
            left = here.disk.describe_crash(timer) if here.disk is not None else ""
            what = f"crashes, {left}" if left else "crashes"
        case StepKind.SYNC:
            what = "syncs its log"
        case StepKind.FIRE:
            what = f"timer {space.nodes.timer_names[timer]} fires"
        case StepKind.DRAIN:
            what = "is drained"
        case StepKind.SUSPECT:
            return format_suspicion(place, timer)
        case StepKind.LEAVE:
            what = "leaves"
        case StepKind.GIVE_UP:
            what = "gives the group up"
        case _ if here.submitted == JOINS:
            old = space.scenario.returning.get(place)
            what = "joins" if old is None else f"returns as {name_of(old)}"
        case _:
            mine = [item for item in space.scenario.items if item.source == place]
            what = f"sends {mine[here.submitted]}"
    return f"{name} {what}"


def format_effects(space: StateSpace, executed: ExecutedStep) -> list[str]:
    """The effects of a step at its node, in their order."""
    effects = []
    sent = iter(executed.sent)
    for output in executed.outputs:
        match output:
            case Send():
                effects.append(f"transmits {format_transmission(next(sent))}")
            case Reached(level=level, packet=packet):
                effects.append(f"{_LEVELS[level]} {item_name(space, packet)}")
            case Deliver(packet=packet):
                effects.append(f"delivers {item_name(space, packet)}")
            case Discard(unit=unit, why=why):
                effects.append(f"discards {unit_name(unit)} ({why})")
            case Stopped(why=why):
                effects.append(f"stops ({why})")
            case Resumed():
                effects.append("goes on")
            case ViewInstalled(number=number, members=members):
                effects.append(f"is in view {number} with {names_of(members)}")
            case ExcludedFrom(number=number):
                effects.append(f"is excluded from view {number}")
            case Departed():
                effects.append("has left the group")
            case Abort(why=why):
                effects.append(f"aborts the group ({why})")
            case _:
                pass
    return effects


def item_name(space: StateSpace, packet: Packet) -> str:
    """The name of a packet in the script, whatever it carries now."""
    item = next(
        (item for item in space.scenario.items if (item.source, item.first) == (packet.source, packet.first)), None
    )
    return item.submission.payload.decode() if item else format_packet(packet)


def format_schedule(space: StateSpace, steps: Iterable[int]) -> list[str]:
    """One line for each step from the initial state on."""
    execution, lines = Execution(space), []
    for step in steps:
        lines.append(format_step(execution, step))
        execution.take(step)
    return lines


def parse_schedule(space: StateSpace, lines: Sequence[str]) -> list[int]:
    """The steps of these lines. Raises `ConfigError` at the first that is not enabled where it stands."""
    execution, steps = Execution(space), []
    for number, line in enumerate(lines, start=1):
        enabled = {format_step(execution, step): step for step in _enabled(execution)}
        shown = ", ".join(f"{words!r}" for words in list(enabled)[:_SHOWN]) or "nothing"
        more = ", …" if len(enabled) > _SHOWN else ""
        require(line in enabled, f"step {number}, {line!r}, is not enabled there; enabled: {shown}{more}")
        steps.append(enabled[line])
        broken = execution.take(enabled[line]).problem
        require(
            not broken or number == len(lines),
            f"step {number}, {line!r}, already breaks a promise ({broken}); remove the steps after it",
        )
    return steps


def _enabled(execution: Execution) -> list[int]:
    """All enabled steps, and timers even beyond their budget, as in a continuation."""
    space, state = execution.space, execution.state
    timers = [fire_step(node, timer) for node in range(space.size) for timer in space.nodes.timers[state[node]]]
    return [*space.steps(state), *(step for step in timers if space.is_enabled(state, step))]
