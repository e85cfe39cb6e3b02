"""Timers that must run or end, refusals that must be told, and what a member knows of one view only."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    CancelTimer,
    CutOff,
    Depart,
    Discard,
    ExcludedFrom,
    LogSizes,
    NotSent,
    Receive,
    SetTimer,
    Stopped,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import mask_of
from ordercast.protocols.membership.applicants import PROBE_ROUNDS
from ordercast.protocols.membership.by_node import by_node
from ordercast.protocols.membership.events import (
    Blocked,
    Excluded,
    InstallView,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    Withdrawn,
)
from ordercast.protocols.membership.machine import MembershipMachine, Phase
from ordercast.protocols.membership.node_outputs import NodeOutputs
from ordercast.protocols.membership.node_packets import NodePackets
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.retirement import RETIRED_FOR
from ordercast.protocols.membership.silence import BEATS, SilenceDetector, waits
from ordercast.protocols.membership.units import Entered, Fetch, Find, Found, Install, Welcome, problem_of_outside
from ordercast.protocols.membership.view import MAX_ADDRESS, Incarnation, founding_view, view_after
from tests.protocols.membership.hand import SETTINGS, VALUE, VIEW, Hand, person, sent

TWIN = Incarnation("n1", 9, "address 9")
"""Applies with the name of member 1."""


def set_timers(outputs: list[Any]) -> list[tuple[str, int]]:
    return [(output.name, output.after) for output in outputs if isinstance(output, SetTimer)]


def is_spread(timer: tuple[str, int], name: str, duration: int) -> bool:
    """Timers of members are spread, so that these do not act all at once."""
    return timer[0] == name and duration <= timer[1] < 2 * duration


# --- those that apply ---


def test_applications_are_looked_after_while_there_are_any() -> None:
    hand = Hand(3)
    hand.apply(7, 0)
    for _ in range(3):
        [timer] = set_timers(hand.give(0, TimerFired("view.applicants")))
        assert is_spread(timer, "view.applicants", SETTINGS.repeat)


def test_who_has_left_enough_probes_unanswered_is_not_probed_any_more() -> None:
    hand = Hand(3)
    hand.apply(TWIN, 0)
    applicants = hand.members[0].applicants
    applicants.applications.clear()
    for round_number in range(1, PROBE_ROUNDS + 2):
        out: list[Any] = []
        is_silent = round_number >= PROBE_ROUNDS
        assert applicants.tick(out) == (0b010 if is_silent else 0)
        assert bool(set_timers(out)) != is_silent


def test_a_question_that_is_repeated_is_old_and_one_about_another_group_is_stray() -> None:
    hand = Hand(3)
    for group, why in (("g", []), ("g", ["old"]), ("h", ["stray"])):
        out = hand.give(0, ReceiveOutside(Find(group, "n7", 7, 1 if group == "g" else 2), "address 7"))
        assert [output.why for output in out if isinstance(output, Discard)] == why


def test_addresses_of_founders_have_a_longest() -> None:
    welcome = Welcome(7, 0, VALUE, view_after(VIEW, VALUE), (), None, founders=("a" * MAX_ADDRESS,))
    assert problem_of_outside(welcome) is None
    for address in ("a" * (MAX_ADDRESS + 1), ""):
        assert problem_of_outside(replace(welcome, founders=(address,))) == "malformed"


def test_names_in_answers_are_not_empty() -> None:
    found = Found("g", "n7", 7, 1, person(0), 0, 0, False, False, ("a",), 0, 0, (), 0, names=("n0",))
    assert problem_of_outside(found) is None
    assert problem_of_outside(replace(found, names=("",))) == "malformed"


# --- telling others the view ---


def test_answers_about_the_view_before_are_given_again_after_the_guard_time() -> None:
    hand = Hand(4)
    hand.flush(0, 1, 2, 3)
    hand.accept(0, 1, 2)
    [timer] = set_timers(hand.give(0, OtherView(2)))
    assert is_spread(timer, "view.answer", SETTINGS.guard)
    again = hand.give(0, OtherView(3))
    assert len(sent(again, Install)) == 1
    assert set_timers(again) == [], "it runs"


def test_the_view_is_not_repeated_when_those_that_lack_it_are_suspected() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    installer = hand.members[0].installer
    rounds = SETTINGS.failure_timeout // SETTINGS.repeat
    found = [installer.install_again([]) for _ in range(rounds)]
    assert found == [0] * (rounds - 1) + [0b110]
    assert installer.install_again([]) == 0, "once"


def test_what_is_lacking_is_asked_of_the_one_that_told_the_view_last() -> None:
    hand = Hand(4, order_of("sequencer"))
    hand.submit(0, "x")
    hand.flush(0, 1, 2, 3)
    late = hand.members[3]
    proposal = hand.members[0].acceptor.proposal
    assert proposal is not None
    value = proposal[1]
    assert value.cut.numbered_below == 1, "0 is the sequencer, and has a message that nobody else has"
    for source in (1, 2):
        hand.give(3, ReceiveControl(Install(0, source, value)))
    assert late.acceptor.decided == value
    assert late.current.view.number == 0, "the packet below the cut is lacking"
    assert [to for to, _ in sent(hand.give(3, TimerFired("view.fetch")), Fetch)] == [2]


# --- the end of a membership ---


def excluded() -> tuple[Hand, list[Any]]:
    """Member 2 is told a view without itself."""
    hand = Hand(3)
    hand.flush(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    hand.install(0, 2)
    return hand, hand.last


def test_who_is_excluded_answers_for_some_failure_timeouts() -> None:
    hand, out = excluded()
    assert any(isinstance(output, Excluded) for output in out)
    assert is_spread(set_timers(out)[-1], "view.retired", RETIRED_FOR * SETTINGS.failure_timeout)
    ended = [output.name for output in out if isinstance(output, CancelTimer)]
    assert {"view.round", "view.blocked", "view.fetch", "view.install", "view.leave"} <= set(ended)
    hand.give(2, TimerFired("view.retired"))
    assert hand.members[2].phase is Phase.CLOSED


def test_who_is_excluded_has_stopped_before() -> None:
    _, out = excluded()
    kinds = [type(output) for output in out]
    assert kinds.index(Stopped) < kinds.index(Excluded), "its order's machine is given nothing any more"


def test_what_comes_for_one_that_was_excluded_is_old() -> None:
    hand, _ = excluded()
    unit = Entered(0, 1, True, None)
    assert hand.give(2, ReceiveControl(unit)) == [Discard(unit, "old")]
    question = Find("g", "n7", 7, 1)
    assert hand.give(2, ReceiveOutside(question, "address 7")) == [Discard(question, "old")]


def test_data_that_come_while_the_next_view_is_agreed_on_are_told() -> None:
    hand = Hand(3)
    hand.flush(0, 1)
    status = hand.members[1].machine.status()  # type: ignore[attr-defined]
    assert hand.give(0, Receive(status)) == [Discard(status, "stopped")]


# --- silence ---


def alone() -> MembershipMachine:
    view = founding_view((person(0),), b"founding")
    return MembershipMachine(person(0), view, order_of("sequencer"), GroupConfig(nodes=1, views=True), SETTINGS)


def test_who_is_alone_watches_nobody() -> None:
    detector = SilenceDetector(SETTINGS.failure_timeout, beats=2 * BEATS)
    out: list[Any] = []
    detector.asked()
    detector.begin_if_needed(alone(), out)
    assert out == []
    detector.begin_if_needed(Hand(2).members[0], out)
    assert set_timers(out) == [("view.beat", SETTINGS.failure_timeout // (2 * BEATS))]


def test_who_says_nothing_for_all_beats_is_suspected() -> None:
    beats = 2 * BEATS
    detector, member = SilenceDetector(SETTINGS.failure_timeout, beats), Hand(3).members[0]
    found = []
    for _ in range(beats + 1):
        detector.asked()
        detector.heard(2)
        found.append(detector.due(member, []))
    assert [suspects for _, suspects in found] == [0] * beats + [0b010]


@pytest.mark.parametrize("kind", msgspec.structs.fields(LogSizes), ids=lambda field: field.name)
def test_any_kind_of_open_work_is_waited_for(kind: Any) -> None:
    sizes = LogSizes(*(int(field.name == kind.name) for field in msgspec.structs.fields(LogSizes)))
    member: Any = SimpleNamespace(
        stopped=False, current=Hand(2).members[0].current, machine=SimpleNamespace(log_sizes=lambda: sizes)
    )
    assert waits(member)
    sizes = LogSizes(0, 0, 0, 0, 0)
    assert not waits(member)


# --- by node ---


def outputs_of() -> tuple[NodeOutputs, MembershipMachine]:
    """Places and nodes differ: place 1 is node 4."""
    view = founding_view((person(2), person(4)), b"founding")
    member = MembershipMachine(person(2), view, order_of("sequencer"), GroupConfig(nodes=2, views=True), SETTINGS)
    return NodeOutputs(2, NodePackets(view, None), 0), member


def test_who_is_blocked_tells_which_nodes_it_lacks() -> None:
    outputs, member = outputs_of()
    out: list[Any] = []
    outputs.tell(Blocked(0b10), member, out, by_view=False)
    assert out == [CutOff(mask_of((4,)))]


def test_a_withdrawn_message_is_named_if_it_had_a_number() -> None:
    outputs, member = outputs_of()
    outputs.packets.numbered_below = 5
    submit = Submit(0b10, (1,), b"x")
    for first, named in ((4, 4), (5, None)):
        out: list[Any] = []
        outputs.tell(Withdrawn(submit, first), member, out, by_view=False)
        assert out == [NotSent(1, named)]


def test_one_that_does_not_know_the_next_view_tells_that_there_is_one() -> None:
    outputs, member = outputs_of()
    out: list[Any] = []
    outputs.tell(Excluded(3, "the others went on", None, 2), member, out, by_view=False)
    assert out == [ExcludedFrom(3, "the others went on")]


def test_who_leaves_submits_nothing_any_more() -> None:
    node = by_node("sequencer")(0, GroupConfig(nodes=2, views=True))
    node.handle(Submit(0b11, (1,), b"x"))
    node.handle(Depart())
    waiting = node.log_sizes().waiting
    assert node.handle(Submit(0b11, (1,), b"y")) == []
    assert node.log_sizes().waiting == waiting


def test_who_was_silent_is_watched_anew_in_the_next_view() -> None:
    node = by_node("sequencer")(0, GroupConfig(nodes=3, views=True))
    node.handle(Submit(0b111, (1,), b"x"))
    node.detector.silent = {1: 3, 2: 3}
    node._carry_out([InstallView(node.member.current.view, 0, (), (), "why", None, gives_state=False)], [])
    assert node.detector.silent == {}, "places count other members now"
