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

from ordercast.explorer.replay import Happening, Replay, Transmission
from ordercast.explorer.scenario import packet_in_words, word_of
from ordercast.explorer.world import Kind, World, decode, fire_step
from ordercast.model.config import require
from ordercast.model.machine import Abort, Deliver, Discard, Level, Reached, Resumed, Send, Stopped, View
from ordercast.model.nodes import name_of, names_of
from ordercast.model.units import Packet

_SHOWN = 8  # possible steps that are listed beside an impossible one
_LEVELS = {Level.ACCEPTED: "accepts", Level.PREACKNOWLEDGED: "pre-acknowledges", Level.ACKNOWLEDGED: "acknowledges"}
_VERBS = {
    Kind.RECEIVE: "receives",
    Kind.LOSE: "loses",
    Kind.TWICE: "will receive twice in a row",
    Kind.LATER: "will receive again later",
}


def transmission_in_words(transmission: Transmission) -> str:
    """Whose it is and which, and what: a message by its name, anything else by its kind."""
    copy = "copy " if transmission.again else ""
    return f"{name_of(transmission.sender)}#{transmission.count} {copy}{word_of(transmission.unit)}"


def step_in_words(replay: Replay, step: int) -> str:
    """What a step is that is possible now."""
    world = replay.world
    kind, place, timer = decode(step)
    if kind in _VERBS:
        receiver = name_of(world.links.receivers[place - world.first_link])
        return f"{receiver} {_VERBS[kind]} {transmission_in_words(replay.transmission(step))}"
    name, here = name_of(place), world.nodes.states[replay.state[place]]
    if kind is Kind.CRASH:
        return f"{name} crashes"
    if kind is Kind.FIRE:
        return f"{name} timer {world.nodes.timer_names[timer]} fires"
    if kind is Kind.DRAIN:
        return f"{name} is drained"
    mine = [item for item in world.scenario.items if item.source == place]
    return f"{name} sends {mine[here.submitted]}"


def happening_in_words(world: World, happening: Happening) -> list[str]:
    """What follows from a step at its node, in the order in which it does."""
    said = []
    sent = iter(happening.sent)
    for output in happening.outputs:
        match output:
            case Send():
                said.append(f"transmits {transmission_in_words(next(sent))}")
            case Reached(level=level, packet=packet):
                said.append(f"{_LEVELS[level]} {_name(world, packet)}")
            case Deliver(packet=packet):
                said.append(f"delivers {_name(world, packet)}")
            case Discard(unit=unit, why=why):
                said.append(f"throws {word_of(unit)} away ({why})")
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


def _name(world: World, packet: Packet) -> str:
    """What the script calls a packet, whatever it carries now."""
    item = next(
        (item for item in world.scenario.items if (item.source, item.first) == (packet.source, packet.first)), None
    )
    return item.submission.payload.decode() if item else packet_in_words(packet)


def schedule_in_words(world: World, steps: Iterable[int]) -> list[str]:
    """One line for each step from the start on."""
    replay, lines = Replay(world), []
    for step in steps:
        lines.append(step_in_words(replay, step))
        replay.take(step)
    return lines


def schedule_from_words(world: World, lines: Sequence[str]) -> list[int]:
    """The steps that these lines are; refused at the first one that cannot happen where it stands."""
    replay, steps = Replay(world), []
    for number, line in enumerate(lines, start=1):
        possible = {step_in_words(replay, step): step for step in _possible(replay)}
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


def _possible(replay: Replay) -> list[int]:
    """All that may happen, and timers even without leave, as in a continuation."""
    world, state = replay.world, replay.state
    timers = [fire_step(node, timer) for node in range(world.size) for timer in world.nodes.timers[state[node]]]
    return [*world.steps(state), *(step for step in timers if world.may(state, step))]
