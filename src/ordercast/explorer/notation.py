"""Schedules in words that people can follow, act out and write down: one line for each step.

    E1 sends x{2,3}
    E2 receives E1#0 x
    E3 loses E1#0 x
    E2 timer status fires
    E2 will receive again later E1#1 copy x
    E1 crashes

E1#0 is the first transmission of E1 in this schedule, and the words behind it say what that is. So a line means the
same however states, units and timers are numbered inside, and can be read back: a step is whatever possible step has
these words.
"""

from collections.abc import Iterable, Sequence

from ordercast.explorer.execution import ExecutedStep, Execution, Transmission
from ordercast.explorer.scenario import packet_in_words, unit_name
from ordercast.explorer.state_space import StateSpace, StepKind, decode, fire_step
from ordercast.model.config import require
from ordercast.model.machine import Abort, Deliver, Discard, Level, Reached, Resumed, Send, Stopped, View
from ordercast.model.nodes import name_of, names_of
from ordercast.model.units import Packet

_SHOWN = 8  # possible steps that are listed beside an impossible one
_LEVELS = {Level.ACCEPTED: "accepts", Level.PREACKNOWLEDGED: "pre-acknowledges", Level.ACKNOWLEDGED: "acknowledges"}
_VERBS = {
    StepKind.RECEIVE: "receives",
    StepKind.LOSE: "loses",
    StepKind.TWICE: "will receive twice in a row",
    StepKind.LATER: "will receive again later",
}


def transmission_in_words(transmission: Transmission) -> str:
    """Whose it is and which, and what: a message by its name, anything else by its kind."""
    copy = "copy " if transmission.again else ""
    return f"{name_of(transmission.sender)}#{transmission.count} {copy}{unit_name(transmission.unit)}"


def format_step(replay: Execution, step: int) -> str:
    """What a step is that is possible now."""
    space = replay.space
    kind, place, timer = decode(step)
    if kind in _VERBS:
        receiver = name_of(space.links.receivers[place - space.first_link])
        return f"{receiver} {_VERBS[kind]} {transmission_in_words(replay.transmission(step))}"
    name, here = name_of(place), space.nodes.states[replay.state[place]]
    if kind is StepKind.CRASH:
        return f"{name} crashes"
    if kind is StepKind.FIRE:
        return f"{name} timer {space.nodes.timer_names[timer]} fires"
    if kind is StepKind.DRAIN:
        return f"{name} is drained"
    mine = [item for item in space.scenario.items if item.source == place]
    return f"{name} sends {mine[here.submitted]}"


def format_effects(space: StateSpace, executed: ExecutedStep) -> list[str]:
    """What follows from a step at its node, in the order in which it does."""
    said = []
    sent = iter(executed.sent)
    for output in executed.outputs:
        match output:
            case Send():
                said.append(f"transmits {transmission_in_words(next(sent))}")
            case Reached(level=level, packet=packet):
                said.append(f"{_LEVELS[level]} {_name(space, packet)}")
            case Deliver(packet=packet):
                said.append(f"delivers {_name(space, packet)}")
            case Discard(unit=unit, why=why):
                said.append(f"throws {unit_name(unit)} away ({why})")
            case Stopped(why=why):
                said.append(f"stops ({why})")
            case Resumed():
                said.append("goes on")
            case View(number=number, members=members):
                said.append(f"is in view {number} with {names_of(members)}")
            case Abort(why=why):
                said.append(f"gives the group up ({why})")
            case _:
                pass
    return said


def _name(space: StateSpace, packet: Packet) -> str:
    """What the script calls a packet, whatever it carries now."""
    item = next(
        (item for item in space.scenario.items if (item.source, item.first) == (packet.source, packet.first)), None
    )
    return item.submission.payload.decode() if item else packet_in_words(packet)


def format_schedule(space: StateSpace, steps: Iterable[int]) -> list[str]:
    """One line for each step from the start on."""
    replay, lines = Execution(space), []
    for step in steps:
        lines.append(format_step(replay, step))
        replay.take(step)
    return lines


def parse_schedule(space: StateSpace, lines: Sequence[str]) -> list[int]:
    """The steps that these lines are; refused at the first one that cannot happen where it stands."""
    replay, steps = Execution(space), []
    for number, line in enumerate(lines, start=1):
        possible = {format_step(replay, step): step for step in _possible(replay)}
        shown = ", ".join(f"{words!r}" for words in list(possible)[:_SHOWN]) or "nothing any more"
        more = ", …" if len(possible) > _SHOWN else ""
        require(line in possible, f"step {number}, {line!r}, cannot happen there; what can: {shown}{more}")
        steps.append(possible[line])
        broken = replay.take(possible[line]).problem
        require(
            not broken or number == len(lines),
            f"step {number}, {line!r}, breaks a promise already ({broken}); leave out what follows it",
        )
    return steps


def _possible(replay: Execution) -> list[int]:
    """All that may happen, and timers even without leave, as in a continuation."""
    space, state = replay.space, replay.state
    timers = [fire_step(node, timer) for node in range(space.size) for timer in space.nodes.timers[state[node]]]
    return [*space.steps(state), *(step for step in timers if space.is_enabled(state, step))]
