"""Schedules in words that people can follow, and act out."""

from collections.abc import Iterable

from ordercast.explorer.world import Kind, World, decode
from ordercast.model.nodes import name_of, names_of
from ordercast.model.units import Data, Ready, Unit


def unit_in_words(unit: Unit) -> str:
    """A unit by its source and number: E1#0 is a packet, E1.r3 the source's third transmission, which has no data."""
    source = name_of(unit.source)
    if isinstance(unit, Data):
        packet = unit.packet
        return f"{source}#{packet.seq} {packet.payload.decode()}"
    if not isinstance(unit, Ready):
        return f"{source}'s {unit}"
    words = [f"{source}.r{unit.status.stamp}", f"expects {unit.status.expects}"]
    if unit.status.preacknowledged_below:
        words.append(f"preacknowledged {unit.status.preacknowledged_below}")
    if unit.wants:
        words.append(f"wants {names_of(unit.wants)}")
    for asked, ranges in unit.missing:
        words.append(f"misses {ranges} of {name_of(asked)}")
    return ", ".join(words)


def schedule_in_words(world: World, steps: Iterable[int]) -> list[str]:
    """One line for each step from the start on."""
    state, lines = world.start(), []
    for step in steps:
        kind, place, timer = decode(step)
        if kind is Kind.CRASH:
            lines.append(f"{name_of(place)} crashes")
        elif kind in {Kind.SUBMIT, Kind.FIRE, Kind.DRAIN}:
            name, here = name_of(place), world.nodes.states[state[place]]
            if kind is Kind.SUBMIT:
                mine = [item for item in world.scenario.items if item.source == place]
                lines.append(f"{name} sends {mine[here.submitted]}")
            elif kind is Kind.FIRE:
                lines.append(f"{name} timer {world.nodes.timer_names[timer]} fires")
            else:
                lines.append(f"{name} is drained")
        else:
            receiver = name_of(world.links.receivers[place - world.first_link])
            unit = unit_in_words(world.nodes.units[world.queues.contents[state[place]][timer]])
            verb = {
                Kind.RECEIVE: "receives",
                Kind.LOSE: "loses",
                Kind.TWICE: "will receive twice in a row",
                Kind.LATER: "will receive again later",
            }[kind]
            lines.append(f"{receiver} {verb} {unit}")
        state, _ = world.take(state, step)
    return lines
