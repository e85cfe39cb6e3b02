"""A coordinator decides a view without itself, all that was said of it is lost, and it closes: the others go on.

That happened to the agreement that the sequencer had in live groups before there was a membership protocol: a single
`Install` was lost, and two of the three members that could have gone on gave up.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.links import EMPTY
from ordercast.explorer.node_state import NodeState
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import KIND_BITS, State, StateSpace, StepKind
from ordercast.protocols.membership.machine import MembershipMachine
from tests.explorer.test_explore_inputs import changing

MOST = 12_000


def decided_alone(space: StateSpace) -> Iterator[tuple[State, int]]:
    """States in which a node has just decided a view without itself, and nobody else has entered that view."""
    seen = {space.initial_state()}
    queue = list(seen)
    for state in queue:
        for step in space.steps(state):
            after, _ = space.successor(state, step)
            if after in seen or len(seen) >= MOST:
                continue
            seen.add(after)
            queue.append(after)
            before, now = ([space.nodes.states[number] for number in each[: space.size]] for each in (state, after))
            for node in range(space.size):
                if now[node].left and not before[node].left and are_in_one_view(now):
                    yield after, node


def are_in_one_view(nodes: list[NodeState]) -> bool:
    """Nobody has entered a view that another one has not, and nobody has crashed."""
    return len({here.views[-1].number for here in nodes}) == 1 and not any(here.crashed for here in nodes)


def when_it_closes(space: StateSpace, state: State, node: int) -> State:
    """It is gone, and all that was under way is lost: also what others said of the view to each other."""
    after = list(state)
    after[space.first_link : space.past_links] = [EMPTY] * (space.past_links - space.first_link)
    closed, _ = space.successor(tuple(after), int(StepKind.CRASH) | node << KIND_BITS)
    return closed


def problems(scene: Scenario) -> tuple[int, set[str]]:
    """How many such states there are, and what goes wrong from them on."""
    space = StateSpace(scene)
    continuations = FairContinuations(space)
    found = {when_it_closes(space, state, node) for state, node in decided_alone(space)}
    failures = [continuations.failure_from(state) for state in sorted(found)]
    return len(found), {failure.sentence for failure in failures if failure is not None}


SUSPECTED: dict[str, Any] = {"suspicions": 2, "suspects": ("E2 suspects E1", "E1 suspects E2"), "crashes": 1}
CASES = {protocol: changing(protocol, "", "a", "", **SUSPECTED) for protocol in ("spo", "po", "sequencer")}


@pytest.mark.parametrize("name", CASES)
def test_the_others_go_on_when_a_view_was_decided_without_its_coordinator(name: str) -> None:
    count, wrong = problems(CASES[name])
    assert count >= 1
    assert not wrong


def test_others_whose_rounds_do_nothing_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged = MembershipMachine._fire

    def fire(self: MembershipMachine, name: str, out: Any) -> None:
        if name != "round":
            unchanged(self, name, out)

    monkeypatch.setattr(MembershipMachine, "_fire", fire)
    count, wrong = problems(CASES["spo"])
    assert count >= 1
    assert wrong
