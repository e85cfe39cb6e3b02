"""Single states: which steps they allow, and what is promised of several nodes together."""

import dataclasses
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ordercast.explorer.explore import explore
from ordercast.explorer.node_state import NodeState
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.promise_checker import PromiseBroken, PromiseChecker
from ordercast.explorer.scenario import Promise, Scenario
from ordercast.explorer.state_space import StateSpace, StepKind, decode
from ordercast.model.machine import Abort, Deliver, Drained, Numbered, Output, Receive, Send, Submit, ViewInstalled
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.spo.units import Data, Status
from ordercast.protocols.to.units import Heading, UnorderedReady
from tests.explorer import toys
from tests.explorer.test_explore_toys import a_scenario, accepted, preacknowledged


def kinds_after(scenario: Scenario, *lines: str) -> Counter[StepKind]:
    """How many steps of each kind there are when these were taken."""
    space = StateSpace(scenario)
    state = space.initial_state()
    for step in parse_schedule(space, lines):
        state, _ = space.successor(state, step)
    return Counter(decode(step)[0] for step in space.steps(state))


def test_a_unit_alone_on_its_link_does_not_come_again_later() -> None:
    """After all that is in flight now, which is itself alone: it comes twice in a row, and that is a step already."""
    scenario = a_scenario(toys.Flood, "a{2} b{2}", "", duplicates=1)
    alone = kinds_after(scenario, "E1 sends a{2}")
    assert (alone[StepKind.TWICE], alone[StepKind.LATER]) == (1, 0)
    followed = kinds_after(scenario, "E1 sends a{2}", "E1 sends b{2}")
    assert (followed[StepKind.TWICE], followed[StepKind.LATER]) == (1, 1)


@pytest.mark.parametrize("in_pairs", [True, False])
def test_a_cycle_of_three_nodes_is_no_disagreement_of_two(in_pairs: bool) -> None:
    """Any two nodes have one message in common, so that no two can disagree; all three together have a cycle."""
    promise = Promise(ladder=False, one_order=True, in_pairs=in_pairs)
    report = explore(a_scenario(toys.ChannelFlood, "a{1,3}", "b{1,2}", "c{2,3}", promise=promise))
    assert report.exhausted is in_pairs
    if not in_pairs:
        assert report.counterexample is not None
        assert report.counterexample.sentence.startswith("the orders of delivery have a cycle")


def excludes_second(_: Packet) -> Output:
    return ViewInstalled(1, 0b01, "E2 is gone")


@pytest.mark.parametrize(
    ("promise", "claims", "is_broken"),
    [
        (Promise(ladder=True, liveness_goal=None), (preacknowledged,), True),
        (Promise(ladder=False, liveness_goal=None), (preacknowledged,), False),
        (Promise(ladder=False, liveness_goal=None, views=True), (preacknowledged,), True),
        (Promise(ladder=False, liveness_goal=None, views=True), (excludes_second, preacknowledged), False),
    ],
)
def test_who_must_have_accepted_what_is_preacknowledged(
    promise: Promise, claims: tuple[Callable[[Packet], Output], ...], is_broken: bool
) -> None:
    """E1 claims it before E2 has it: untrue if levels mean anything, unless E2 is not in the view of E1."""

    class Boasts(toys.Boaster):
        pass

    Boasts.claims = claims
    counterexample = explore(a_scenario(Boasts, "a{2}", "", promise=promise)).counterexample
    sentence = "a{2} of E1 is preacknowledged at E1, but not yet accepted at its destination E2"
    assert (counterexample and counterexample.sentence) == (sentence if is_broken else None)


@pytest.mark.parametrize(
    ("line", "urgent_first", "is_broken"),
    [("a{2} b[3]{2}", True, False), ("a{2} b[3]{2}", False, True), ("a[3]{2} b[3]{2}", True, True)],
)
def test_a_message_may_overtake_those_of_other_priorities_only(line: str, urgent_first: bool, is_broken: bool) -> None:
    """On a channel without order b may come first; where priorities count, that is so if it has another one than a."""

    class Prioritised(toys.Flood):
        def send(self, event: Submit) -> list[Output]:
            packet = Packet(self.me, event.destinations, self.numbers[0], (), self.numbers[0], (1,), event.payload)
            packet = replace(packet, priority=event.priority)
            self.numbers[0] += 1
            return [Numbered(packet), Send(Data(packet, Status(self.numbers[0], ())))]

    promise = Promise(ladder=False, urgent_first=urgent_first)
    counterexample = explore(a_scenario(Prioritised, line, "", promise=promise, channel=Channel.ANY)).counterexample
    assert (counterexample is not None) is is_broken
    if counterexample is not None:
        assert "is delivered before a" in counterexample.sentence


@pytest.mark.parametrize("urgent_first", [True, False])
def test_a_run_ends_with_a_marker_and_nothing_else(urgent_first: bool) -> None:
    promise = Promise(ladder=False, urgent_first=urgent_first)
    scenario = a_scenario(toys.Flood, "a[1]{2}", "", promise=promise)
    heading = Heading(0, 0, 0, (0, 0), 0, 0)
    for unit, ends in ((RunMarker(heading, 1), urgent_first), (UnorderedReady(heading), False)):
        after = PromiseChecker(scenario, NodeState(1, (0,)), Receive(unit)).after(toys.Still(0))
        assert after.may_end_run is ends


@pytest.mark.parametrize(
    ("urgent_first", "views", "may_end_run", "is_broken"),
    [(True, False, False, True), (False, False, False, False), (True, True, False, False), (True, False, True, False)],
)
def test_what_is_more_urgent_waits_for_nothing_else_within_a_run(
    urgent_first: bool, views: bool, may_end_run: bool, is_broken: bool
) -> None:
    """All have both, and a comes first: rightly if priorities do not count, or a marker or a view ends the run."""
    scenario = a_scenario(toys.Flood, "a{2} b[3]{2}", "", promise=Promise(ladder=False, urgent_first=urgent_first))
    scenario = dataclasses.replace(scenario, group=replace(scenario.group, views=views))
    before = NodeState(1, (0,), reached=(0, 0b11, 0b11, 0), may_end_run=may_end_run)
    deliver = Deliver(Packet(0, 0b10, 0, (), 0, (1,), b"a"))
    checker = PromiseChecker(scenario, before, Drained())
    if is_broken:
        with pytest.raises(PromiseBroken, match=r"^a\{2\} of E1 at E2 is delivered before b.*, which is more urgent$"):
            checker.take(deliver)
    else:
        checker.take(deliver)
        assert checker.after(toys.Still(0)).delivered == 0b01
        assert not checker.after(toys.Still(0)).may_end_run, "a marker ends one run"


def test_the_most_urgent_may_come_first_and_ends_no_run() -> None:
    scenario = a_scenario(toys.Flood, "a{2} b[3]{2}", "", promise=Promise(ladder=False, urgent_first=True))
    checker = PromiseChecker(scenario, NodeState(1, (0,), reached=(0, 0b11, 0b11, 0), may_end_run=True), Drained())
    checker.take(Deliver(Packet(0, 0b10, 1, (), 1, (1,), b"b", priority=3)))
    assert (checker.after(toys.Still(0)).delivered, checker.after(toys.Still(0)).may_end_run) == (0b10, True)


@pytest.mark.parametrize("sender_order", [True, False])
def test_levels_are_reached_in_the_order_of_the_sender(sender_order: bool) -> None:
    """On a channel without order b may come first, and is accepted then."""

    class Accepts(toys.Flood):
        def hear(self, packet: Packet) -> list[Output]:
            return [accepted(packet)] if packet.destinations >> self.me & 1 else []

    promise = Promise(ladder=False, liveness_goal=None, sender_order=sender_order)
    report = explore(a_scenario(Accepts, "a{2} b{2}", "", promise=promise, channel=Channel.ANY))
    assert report.exhausted is not sender_order
    if report.counterexample is not None:
        assert report.counterexample.sentence == "b{2} of E1 at E2 is accepted before a{2}, which was sent before it"


@pytest.mark.parametrize(("views", "without_quorum"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_node_leaves_if_a_group_with_views_has_no_quorum(views: bool, without_quorum: bool) -> None:
    """Then its timers do not count any more. Any other abort is a broken promise."""
    scenario = a_scenario(toys.Flood, "a{2}", "", promise=Promise(ladder=False, views=views))
    checker = PromiseChecker(scenario, NodeState(0, (0,), timers=("t",)), Drained())
    abort = Abort("alone", without_quorum=without_quorum)
    if views and without_quorum:
        checker.take(abort)
        after = checker.after(toys.Still(0))
        assert (after.left, after.timers) == (True, ())
    else:
        with pytest.raises(PromiseBroken, match="E1 aborts the group: alone"):
            checker.take(abort)


def test_what_is_preacknowledged_need_not_be_so_at_its_destinations() -> None:
    """E1 claims it when nothing is under way any more, and so when E2 has accepted it, which claims nothing else."""

    class ClaimsLater(toys.Ticker):
        def hear(self, packet: Packet) -> list[Output]:
            return [accepted(packet)] if packet.source != self.me else []

        def fire(self, name: str) -> list[Output]:
            del name
            return [preacknowledged(Packet(0, 0b10, 0, (), 0, (1,), b"a"))]

    scenario = a_scenario(ClaimsLater, "a{2}", "", promise=Promise(liveness_goal=None), firings=1)
    assert explore(dataclasses.replace(scenario, patient=True)).exhausted
    assert explore(scenario).counterexample is not None


@pytest.mark.parametrize("uniform", [True, False])
def test_what_a_crashed_node_delivered_counts_if_agreement_is_uniform(uniform: bool) -> None:
    promise = Promise(ladder=False, views=True, one_order=True, uniform=uniform, liveness_goal=None)
    space = StateSpace(a_scenario(toys.Flood, "a{1}", "b{2}", promise=promise, crashes=1))
    state, effect = space.initial_state(), None
    for step in parse_schedule(space, ["E1 sends a{1}", "E1 crashes", "E2 sends b{2}"]):
        state, effect = space.successor(state, step)
    assert effect is not None
    told = "those that go on have different logs: E1 <a{1}>, E2 <b{2}>"
    assert space.problem(state, effect) == (told if uniform else "")


def test_nodes_that_go_on_may_be_told_that_nothing_is_waiting() -> None:
    scenario = a_scenario(toys.Flood, "a{2}", "", crashes=1, drained=True)
    assert kinds_after(scenario)[StepKind.DRAIN] == 2
    assert kinds_after(scenario, "E1 crashes")[StepKind.DRAIN] == 1
    assert kinds_after(dataclasses.replace(scenario, drained=False))[StepKind.DRAIN] == 0


def test_no_more_comes_twice_than_may() -> None:
    lines = ("E1 sends a{2}", "E2 will receive twice in a row E1#0 a")
    for duplicates in (1, 2):
        scenario = a_scenario(toys.Flood, "a{2}", "", duplicates=duplicates)
        assert kinds_after(scenario, *lines)[StepKind.TWICE] == duplicates - 1


def test_a_vector_that_goes_down_is_found() -> None:
    """The first machine counts three ticks and starts again, the second one does not start again."""
    promise = Promise(ladder=False, liveness_goal=None, never_less=("numbers",))
    scenario = a_scenario(toys.EndlessTicker, "a{2}", "", promise=promise, firings=3)
    counterexample = explore(scenario).counterexample
    assert counterexample is not None
    assert counterexample.sentence == "numbers of E1 for E2 goes down from 2 to 0"
    assert explore(dataclasses.replace(scenario, machine=toys.Ticker)).exhausted
