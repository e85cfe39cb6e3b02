"""What a fair continuation must reach: who owes what to whom, with views and without."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import pytest

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Promise
from ordercast.explorer.state_space import StateSpace, StepKind, decode
from ordercast.model.config import GroupConfig, Rules
from ordercast.model.machine import (
    Abort,
    Deliver,
    Level,
    LogSizes,
    Numbered,
    Output,
    Reached,
    Send,
    SetTimer,
    Submit,
)
from ordercast.model.units import Packet
from ordercast.protocols.registry import MachineClass
from ordercast.protocols.spo.units import Data, Status
from tests.explorer import toys
from tests.explorer.test_explore_toys import a_scenario, accepted, preacknowledged
from tests.explorer.test_state_space import excludes_second

Claim = Callable[[Packet], Output]


def gives_up(_: Packet) -> Output:
    return Abort("alone", without_quorum=True)


def acknowledged(packet: Packet) -> Output:
    return Reached(Level.ACKNOWLEDGED, packet)


def says(at_sender: Sequence[Claim], at_receiver: Sequence[Claim] = ()) -> MachineClass:
    """A machine that sends its message once, and says this about it when it sends or receives it."""

    class Says(toys.Flood):
        def hear(self, packet: Packet) -> list[Output]:
            return [claim(packet) for claim in (at_sender if packet.source == self.me else at_receiver)]

        def send(self, event: Submit) -> list[Output]:
            return super().send(event)[1:]  # without `Numbered`, which is one of its claims

    return Says


def failure(machine: MachineClass, *lines: str, uniform: bool = False, losses: int = 0, crashes: int = 0) -> str | None:
    """What the continuations of a schedule miss."""
    promise = Promise(ladder=False, views=True, uniform=uniform)
    space = StateSpace(a_scenario(machine, "a{1,2}", "", promise=promise, losses=losses, crashes=crashes))
    state = space.initial_state()
    for step in parse_schedule(space, lines):
        state, _ = space.successor(state, step)
    found = FairContinuations(space).failure_from(state)
    return None if found is None else found.sentence.partition(":")[0].partition(" (")[0]


ALL = (Numbered, excludes_second, accepted, preacknowledged, Deliver)
"""What E1 owes, once it is alone in its view."""


@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [
        (None, None),
        (Numbered, "E1 never sends all that was submitted to it"),
        (preacknowledged, "a{1,2} of E1 is never known as received by all at E1"),
        (Deliver, "a{1,2} of E1 is never delivered at E1"),
        (excludes_second, "a{1,2} of E1 is preacknowledged at E1, but not yet accepted at its destination E2"),
    ],
)
def test_what_a_survivor_owes(left_out: Claim | None, sentence: str | None) -> None:
    assert failure(says([claim for claim in ALL if claim is not left_out])) == sentence


def test_a_group_gives_up_only_if_a_node_crashed() -> None:
    machine = says([Numbered, gives_up], [gives_up])
    assert failure(machine) == "no node goes on, though none crashed"
    assert failure(machine, "E1 sends a{1,2}", "E1 crashes", crashes=1) is None
    assert failure(says([Numbered], [gives_up])) == "a{1,2} of E1 is never known as received by all at E1"


@pytest.mark.parametrize("delivers", [True, False])
@pytest.mark.parametrize("uniform", [True, False])
def test_survivors_owe_what_the_others_delivered_if_agreement_is_uniform(uniform: bool, delivers: bool) -> None:
    """E1 crashes, and what it sent is lost: E2, which goes on, cannot know of it."""
    machine = says([Numbered, Deliver] if delivers else [Numbered], [])
    lines = ("E1 sends a{1,2}", "E2 loses E1#0 a", "E1 crashes")
    found = failure(machine, *lines, uniform=uniform, losses=1, crashes=1)
    lacking = "a{1,2} of E1 is never known as received by all at E2"
    assert found == (lacking if uniform and delivers else None)


def test_who_sent_a_message_must_know_that_it_is_acknowledged_and_a_third_node_need_not() -> None:
    machine = says([Numbered], [accepted, preacknowledged, acknowledged, Deliver])

    class OnlyAddressed(machine):  # type: ignore[misc, valid-type]
        def hear(self, packet: Packet) -> list[Output]:
            return super().hear(packet) if self.me in {packet.source, 1} else []

    space = StateSpace(a_scenario(OnlyAddressed, "a{2}", "", "", promise=Promise()))
    found = FairContinuations(space).failure_from(space.initial_state())
    assert found is not None
    assert found.sentence.startswith("a{2} of E1 is never acknowledged at E1:")


@pytest.mark.parametrize(
    ("machine", "goal", "settles"),
    [
        (toys.Flood, Level.ACKNOWLEDGED, True),
        (toys.ServesAtOnce, Level.ACKNOWLEDGED, False),
        (toys.ServesAtOnce, None, True),  # nobody asks
        (says([Numbered, Numbered]), Level.ACKNOWLEDGED, True),  # the search finds the broken promise by itself
    ],
)
def test_receipts_come_to_an_end_or_nobody_asks(machine: MachineClass, goal: Level | None, settles: bool) -> None:
    space = StateSpace(a_scenario(machine, "a{2}", "", promise=Promise(ladder=False, liveness_goal=goal)))
    assert FairContinuations(space).settles(space.initial_state()) is settles


def test_a_continuation_that_breaks_a_promise_is_told_step_by_step() -> None:
    """E1 sends its message, and E2 delivers it twice: these two steps, and the second one breaks it."""
    machine = says([Numbered], [Deliver, Deliver])
    space = StateSpace(a_scenario(machine, "a{2}", "", promise=Promise(ladder=False)))
    continuations = FairContinuations(space)
    found = continuations.failure_from(space.initial_state())
    assert found is not None
    assert found == continuations.failure_from(space.initial_state()), "nothing is left of an earlier one"
    assert [decode(step)[0] for step in found.steps] == [StepKind.SUBMIT, StepKind.RECEIVE]
    assert not found.live


class Hurries(toys.Flood):
    """E1 says "go" when its timer fires; E2 delivers what it heard when its own fires, if it was told to by then."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.numbers = [0, 0]  # next own number, and whether "go" was heard

    def send(self, event: Submit) -> list[Output]:
        return [*super().send(event), SetTimer("go", 1)]

    def hear(self, packet: Packet) -> list[Output]:
        if packet.source == self.me:
            return []
        if packet.payload == b"go":
            self.numbers[1] = 1
            return []
        return [SetTimer("deliver", 1)]

    def fire(self, name: str) -> list[Output]:
        if name == "go":
            return [Send(Data(Packet(self.me, 0, 9, (), 9, (2,), b"go"), Status(9, ())))]
        return [Deliver(Packet(0, 0b10, 0, (), 0, (1,), b"a"))] if self.numbers[1] else []


def test_timers_that_fire_all_at_once_fire_before_anything_is_received() -> None:
    """If one fires after the other, E2 has heard what it waits for."""
    space = StateSpace(a_scenario(Hurries, "a{2}", "", promise=Promise(ladder=False)))
    found = FairContinuations(space).failure_from(space.initial_state())
    assert found is not None
    assert found.sentence == "a{2} of E1 is never delivered at E2: no node waits (all timers at once)"


def test_what_a_node_waits_for_is_told_in_its_own_words() -> None:
    class Waits(toys.Flood):
        def hear(self, packet: Packet) -> list[Output]:
            del packet
            return []

        def waits_for(self) -> tuple[str, ...]:
            return ("better times",) if self.me == 1 else ()

    space = StateSpace(a_scenario(Waits, "a{2}", "", promise=Promise(ladder=False)))
    found = FairContinuations(space).failure_from(space.initial_state())
    assert found is not None
    assert found.sentence == "a{2} of E1 is never delivered at E2: E2: better times (all timers at once)"


def keeps(machine: MachineClass) -> MachineClass:
    """The same, but E2 keeps two packets."""

    class Keeps(machine):  # type: ignore[misc, valid-type]
        def log_sizes(self) -> LogSizes:
            return LogSizes(2, 0, 0, 0, 0) if self.me == 1 else LogSizes(0, 0, 0, 0, 0)

    return Keeps


@pytest.mark.parametrize(
    ("goal", "rules", "is_noticed"),
    [
        (Level.ACKNOWLEDGED, Rules.SOUND, True),
        (Level.ACKNOWLEDGED, Rules.PAPER, False),  # the printed rules say nothing of it
        (Level.ACCEPTED, Rules.SOUND, False),  # it need not be known that all have it
    ],
)
def test_who_keeps_what_nobody_needs_is_noticed_where_all_is_acknowledged(
    goal: Level, rules: Rules, is_noticed: bool
) -> None:
    machine = keeps(says([Numbered], [accepted, Deliver]))
    scenario = a_scenario(machine, "a{2}", "", promise=Promise(ladder=False, liveness_goal=goal))
    space = StateSpace(replace(scenario, group=msgspec.structs.replace(scenario.group, rules=rules)))
    found = FairContinuations(space).failure_from(space.initial_state())
    assert (found is not None) is is_noticed
    if found is not None:
        assert found.sentence.startswith("E2 keeps 2 packets that nobody needs any more")


def test_the_dead_keep_nothing() -> None:
    machine = keeps(says(ALL))
    assert failure(machine) == "E2 keeps 2 packets that nobody needs any more"
    assert failure(machine, "E2 crashes", crashes=1) is None
