"""Whenever a host gives a group up: what is certain is delivered, once and in order, and then nothing follows."""

from random import Random

import pytest

from ordercast.explorer.scenarios import scenario
from ordercast.explorer.state_space import StateSpace
from ordercast.model.machine import Abort, Deliver, GiveUp, Level
from ordercast.protocols.registry import PROTOCOLS

SOUND = [protocol for protocol in PROTOCOLS if protocol != "sequencer"]
NODES = 3


def states_of(protocol: str, seed: int) -> tuple[StateSpace, list[tuple[int, ...]]]:
    lines = ["a b c", "d e", "f"] if protocol not in {"prito", "prio"} else ["a[1] b[2] c[1]", "d[3] e[1]", "f[2]"]
    space = StateSpace(scenario(protocol, lines, losses=2, firings=40, drained=True))
    chance, state = Random(seed), space.initial_state()
    found = [state]
    for _ in range(250):
        possible = space.steps(state)
        if not possible:
            break
        state, _ = space.successor(state, chance.choice(possible))
        found.append(state)
    return space, found


@pytest.mark.parametrize("protocol", SOUND)
def test_what_is_delivered_in_the_end_everybody_has(protocol: str) -> None:
    given = 0
    for seed in range(6):
        space, states = states_of(protocol, seed)
        for state in states[:: 1 + seed]:
            for node in range(NODES):
                here = space.nodes.states[state[node]]
                *delivered, last = space.nodes.machine(node, here.snapshot).handle(GiveUp("it is over"))
                assert last == Abort("it is over")
                had = here.delivered
                for output in delivered:
                    assert isinstance(output, Deliver)
                    item = space.scenario.item_of(output.packet)
                    assert item is not None
                    assert not had >> item.number & 1, "twice"
                    had |= 1 << item.number
                    for other in item.destinations:
                        reached = space.nodes.reached[state[other]][Level.ACCEPTED]
                        assert reached >> item.number & 1, "not everybody has it"
                    given += 1
    if protocol in {"prito", "prio"}:
        assert not given, "what others may have overtaken is not certain"
    else:
        assert given, "no state was met in which there is anything to deliver"
