"""Units that nobody in their senses would send, among those of an honest group: no machine breaks.

It may discard a unit, or take it for what it says, or give the group up with a sentence. It raises nothing, keeps its
snapshot whole, says only what is well-formed, and does nothing more once it has given up. What the group delivers then
is another matter: who believes a liar may be deceived.
"""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.config import GroupConfig, PriorityConfig, RecoveryPolicy, SequencerConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Drained,
    Input,
    Machine,
    Output,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.units import Unit
from ordercast.protocols.registry import make_machine
from tests.harness.scenarios import GROUPS
from tests.harness.test_schedules import FEW
from tests.harness.units import units_of

SELECTIVE = {"spo", "st", "st go-back-n", "st place"}


class Group:
    """Machines and what is under way to each, moved by chance: it wanders until a stray unit comes, and then on."""

    def __init__(self, group: str, nodes: int, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.group, self.nodes = group, nodes
        self.config = GroupConfig(
            nodes=nodes,
            window=chance.choice([1, 2, 8]),
            quota=chance.choice([1, 2, 8]),
            log_limit=chance.choice([1, 4, 400]),
            infer_losses=chance.random() < 0.5,
            polls_to_abort=5,
            recovery=RecoveryPolicy(group.removeprefix("st ") if group.startswith("st ") else "selective"),
            priority=PriorityConfig(synchronises=chance.random() < 0.8),
            sequencer=SequencerConfig(
                history=chance.choice([1, 4]), resilience=int("r=1" in group), suspect_after=1, direct_from=1
            ),
        )
        self.machines: list[Machine] = [self.fresh(me) for me in range(nodes)]
        self.timers: list[dict[str, None]] = [{} for _ in range(nodes)]
        self.mail: list[list[Unit]] = [[] for _ in range(nodes)]
        self.given_up: set[int] = set()

    def fresh(self, me: int) -> Machine:
        return make_machine(self.group.split()[0], me, self.config)

    def random_walk(self, steps: int) -> None:
        for _ in range(steps):
            me = self.chance.randrange(self.nodes)
            self.feed(me, self._draw(me))

    def _draw(self, me: int) -> Input:
        chance = self.chance
        if self.mail[me] and chance.random() < 0.6:
            unit = self.mail[me].pop(0)
            return Receive(unit) if chance.random() < 0.9 else Drained()
        if self.timers[me] and chance.random() < 0.5:
            name = chance.choice(list(self.timers[me]))
            del self.timers[me][name]
            return TimerFired(name)
        if chance.random() < 0.4:
            to = chance.randint(1, everybody(self.nodes)) if self.group in SELECTIVE else everybody(self.nodes)
            return Submit(to, (1,), b"x", chance.randrange(3))
        return Drained()

    def feed(self, me: int, event: Input) -> list[Output]:
        """One input, and all that a machine owes its host."""
        machine = self.machines[me]
        before = machine.snapshot()
        out = machine.handle(event)
        twin = self.fresh(me)
        twin.restore(before)
        assert twin.handle(event) == out, "equal states and inputs give equal outputs"
        assert twin.snapshot() == machine.snapshot()
        hash(machine.snapshot())
        machine.waits_for()
        machine.log_sizes()
        assert not (out and me in self.given_up), "it has given the group up"
        for output in out:
            self._carry_out(me, output)
        assert not out or me not in self.given_up or isinstance(out[-1], Abort), "nothing follows giving up"
        return out

    def _carry_out(self, me: int, output: Output) -> None:
        if isinstance(output, Send):
            assert output.unit.source == me
            assert output.unit.size() > 0
            for receiver in range(self.nodes):
                if output.to in {None, receiver}:
                    self.mail[receiver].append(output.unit)
        elif isinstance(output, SetTimer):
            assert output.after > 0
            self.timers[me][output.name] = None
        elif isinstance(output, CancelTimer):
            self.timers[me].pop(output.name, None)
        elif isinstance(output, Abort):
            assert output.why
            self.given_up.add(me)


@st.composite
def stories(draw: st.DrawFn, group: str) -> tuple[int, int, list[tuple[int, Unit]]]:
    """A group, its seed, and strays: when each comes, in steps after the one before, and at which node."""
    nodes = draw(st.integers(2, 5))
    strays = st.lists(st.tuples(st.integers(0, 12), units_of(group, nodes)), min_size=1, max_size=12)
    return nodes, draw(st.integers(0, 999)), draw(strays)


def play(group: str, story: Any) -> None:
    nodes, seed, strays = story
    played = Group(group, nodes, seed)
    for pause, unit in strays:
        played.random_walk(pause)
        for me in range(nodes):
            if me not in played.given_up:
                played.feed(me, Receive(unit))
    played.random_walk(60)


@pytest.mark.parametrize("group", GROUPS)
def test_no_well_formed_unit_brings_it_down(group: str) -> None:
    settings(FEW)(given(stories(group))(lambda story: play(group, story)))()


@pytest.mark.soak
@pytest.mark.parametrize("group", GROUPS)
def test_none_of_many_does(group: str) -> None:
    settings(FEW, derandomize=False, max_examples=5_000)(given(stories(group))(lambda story: play(group, story)))()
