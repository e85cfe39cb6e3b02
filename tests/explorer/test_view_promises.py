"""What is promised of views: each promise broken by hand, and kept by hand."""

from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.explorer.node_state import NodeState, OwnView
from ordercast.explorer.promise_checker import PromiseBroken, PromiseChecker
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import scenario
from ordercast.explorer.view_promises import ViewPromises
from ordercast.model.machine import (
    Abort,
    Depart,
    Departed,
    Drained,
    Enter,
    ExcludedFrom,
    Level,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    ViewInstalled,
)
from ordercast.model.units import Packet
from tests.explorer.toys import Still

A, B = 1, 2  # as sets of items: a is of E1, b of E2
FIRST = OwnView(0, (0, 1, 2), 0, 0)


def group(protocol: str = "to", *lines: str, **how: Any) -> Scenario:
    return scenario(protocol, lines or ("a", "b", ""), views=True, **how)


def node(number: int, delivered: int = 0, log: tuple[int, ...] = (), *views: OwnView, **how: Any) -> NodeState:
    levels = (0, delivered, delivered, how.pop("acknowledged", delivered))
    return NodeState(
        number, (), delivered=delivered, log=log, reached=levels, views=(FIRST, *views), numbered=number < 2, **how
    )


def second(delivered: int, members: tuple[int, ...] = (0, 1, 2), acknowledged: int = 0) -> OwnView:
    return OwnView(1, members, delivered, acknowledged or delivered)


def problem(*nodes: NodeState, scene: Scenario | None = None) -> str:
    return ViewPromises(scene or group()).problem(nodes)


def test_members_that_did_the_same_broke_nothing() -> None:
    assert not problem(*(node(number, A | B, (0, 1), second(A)) for number in range(3)))


def test_views_of_one_number_are_the_same() -> None:
    found = problem(node(0, 0, (), second(0, (0, 1))), node(1, 0, (), second(0, (1, 2))), node(2))
    assert found == "view 1 has E1, E2 at E1, and E2, E3 at E2"


def test_a_view_has_one_incarnation_of_a_process() -> None:
    scene = group("to", "a", "b", "", returns=("E2",))  # E3 is its next incarnation
    founders = OwnView(0, (0, 1), 0, 0)
    alone, both, gone = (
        replace(node(0), views=(founders, second(0, places))) for places in ((0, 2), (0, 1, 2), (0, 1))
    )
    returned = replace(node(2), views=(second(0, (0, 2)),))
    crashed = replace(node(1), views=(founders,), crashed=True)
    assert not problem(alone, crashed, returned, scene=scene)
    assert not problem(gone, crashed, replace(node(2), views=()), scene=scene)
    found = problem(both, crashed, replace(node(2), views=(second(0),)), scene=scene)
    assert found == "view 1 has two incarnations of E2: E1, E2, E3 at E1"


def test_who_has_not_crashed_need_not_return() -> None:
    promises = ViewPromises(group("spo", "", "", "", returns=("E2",)))
    founders = tuple(replace(node(number), views=(OwnView(0, (0, 1), 0, 0),)) for number in (0, 1))
    never = replace(node(2), views=())
    assert not promises.lacking((*founders, never))
    alone = replace(founders[0], views=(*founders[0].views, second(0, (0,))))
    crashed = replace(founders[1], crashed=True)
    assert promises.lacking((alone, crashed, never)) == "E3 never joins the group"


def test_the_source_of_a_message_is_a_member() -> None:
    found = problem(node(0, A, (0,), second(0, (0, 2))), node(1), node(2, B, (1,), second(0, (0, 2))))
    assert found == "b{1,2,3} of E2 is delivered in view 1 at E3, and its source is no member"


def test_who_ends_a_view_delivered_what_any_member_did() -> None:
    ahead, behind = node(0, A, (0,), crashed=True), node(1, 0, (), second(0))
    assert (
        problem(ahead, behind, node(2))
        == "a{1,2,3} of E1 is delivered in view 0 at E1, but E2 ended that view without it"
    )
    assert not problem(ahead, node(1), node(2)), "E2 may still deliver it"
    assert not problem(ahead, node(1, A, (0,), second(A)), node(2))
    left = node(1, 0, (), left=True, departed=True)
    assert "E2 ended that view" in problem(ahead, left, node(2))
    assert not problem(ahead, replace(left, departed=False), node(2)), "one that is excluded does not end it"


def test_without_resilience_only_those_that_go_on_deliver_the_same() -> None:
    ahead, behind = node(0, A, (0,), crashed=True), node(1, 0, (), second(0))
    both = (node(0, A, (0,), second(A)), behind, node(2))
    bare = group("sequencer")
    assert not problem(ahead, behind, node(2), scene=bare)
    assert "E2 ended that view" in problem(*both, scene=bare)
    assert "E2 ended that view" in problem(ahead, behind, node(2), scene=group("sequencer", resilience=1))


def test_what_is_acknowledged_because_of_a_view_is_with_all_that_enter_it() -> None:
    claims = node(0, 0, (), second(0, acknowledged=A), acknowledged=A)
    scene = group("spo", "a{2,3}", "", "")
    found = problem(claims, node(1, 0, (), second(0)), node(2), scene=scene)
    assert found == "a{2,3} of E1 is acknowledged in view 0 at E1, but E2 ended that view without it"
    assert not problem(claims, node(1), node(2), scene=scene)
    assert not problem(claims, node(1, A, (), second(A)), node(2), scene=scene)


def test_a_message_is_delivered_in_one_view() -> None:
    early, late = node(0, A, (0,)), node(1, A, (0,), second(0))
    assert "ended that view without it" in problem(early, late, node(2))
    only_late = group("spo", "a{1,2}", "", "")
    found = problem(node(0, A, (), crashed=True), node(1), node(2, A, (), second(0)), scene=only_late)
    assert found == "a{1,2} of E1 is delivered in view 0 at E1, and in view 1 at E3"


def test_in_one_view_all_deliver_one_order() -> None:
    found = problem(node(0, A | B, (0, 1)), node(1, A | B, (1, 0)), node(2))
    assert found == "view 0 has different logs: E1 <a{1,2,3} b{1,2,3}>, E2 <b{1,2,3} a{1,2,3}>"
    assert "different logs" in problem(node(0, A, (0,)), node(1, B, (1,)), node(2)), "nothing is left out"
    some, not_for_all = group("st", "a{1,2}", "b", ""), [node(0, A | B, (0, 1)), node(1, A | B, (0, 1))]
    assert not problem(*not_for_all, node(2, B, (1,)), scene=some), "a is not for E3"


def test_what_is_sent_to_selected_members_is_not_for_those_that_join_later() -> None:
    scene = group("spo", "a", "", "", joins=1)
    joined = replace(node(2, 0, ()), views=(OwnView(1, (0, 1, 2), 0, 0), OwnView(2, (0, 1, 2), 0, 0)))
    old = OwnView(0, (0, 1), 0, 0)
    sender = replace(node(0, A), views=(old, second(0), OwnView(2, (0, 1, 2), A, A)))
    receiver = replace(sender, node=1)
    assert not problem(sender, receiver, joined, scene=scene)
    assert "E3 ended that view" in problem(sender, receiver, joined, scene=group("po", "a", "", "", joins=1))


# --- what one node does ---


def checker(number: int = 0, before: NodeState | None = None, event: Any = None) -> PromiseChecker:
    return PromiseChecker(group(), before or node(number), event or Drained())


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (ViewInstalled(2, 0b111, "", heard=0b111), "view 2 of E1 follows view 0"),
        (ViewInstalled(1, 0b111, "", heard=0b001), "view 1 of E1 was decided by {E1}, no quorum of view 0"),
        (ViewInstalled(1, 0b111, "", heard=0b011), "view 1 of E1 has {E3}, whose report was not heard"),
        (Departed(drained=True), "E1 leaves the group, though it should stay"),
        (Abort("for no reason"), "E1 aborts the group: for no reason"),
    ],
)
def test_what_a_member_must_not_do(output: Output, sentence: str) -> None:
    with pytest.raises(PromiseBroken) as broken:
        checker().take(output)
    assert sentence in str(broken.value)


def test_a_view_is_entered_left_or_missed() -> None:
    enters = checker()
    enters.take(ViewInstalled(1, 0b011, "", heard=0b011))
    assert enters.after(Still()).views == (FIRST, OwnView(1, (0, 1), 0, 0))
    for output in (ViewInstalled(1, 0b110, "", heard=0b110), ExcludedFrom(1, "")):
        excluded = checker()
        excluded.take(output)
        assert (excluded.after(Still()).left, excluded.after(Still()).departed) == (True, False)
    leaves = checker(event=Depart()).after(Still())
    assert (leaves.leaves, leaves.submitted) == (True, 1), "it sends nothing more"
    gone = checker(before=leaves)
    gone.take(Departed(drained=True))
    assert (gone.after(Still()).left, gone.after(Still()).departed) == (True, True)
    with pytest.raises(PromiseBroken, match="its messages should stay"):
        checker(before=leaves).take(Departed(drained=False))


def test_who_is_alone_leaves_as_soon_as_it_is_asked_to() -> None:
    alone = checker(event=Depart())
    alone.take(Departed(drained=True))
    assert (alone.after(Still()).leaves, alone.after(Still()).departed) == (True, True)
    with pytest.raises(PromiseBroken, match="its messages should stay"):
        checker(event=Depart()).take(Departed(drained=False))


def test_who_joins_may_be_refused_and_begins_in_the_middle() -> None:
    outside = NodeState(2, (), submitted=-1)
    scene = group("to", "a b", "", "", joins=1)
    assert PromiseChecker(scene, outside, Enter()).after(Still()).submitted == 0
    assert PromiseChecker(scene, outside, Drained()).after(Still()) == outside, "it has not begun"
    refused = PromiseChecker(scene, outside, Drained())
    refused.take(Abort("take a new incarnation"))
    assert refused.after(Still()).left
    later = Packet(0, 0b111, 1, (), 1, (1,), b"b")
    PromiseChecker(scene, outside, Drained()).take(Reached(Level.ACCEPTED, later))
    with pytest.raises(PromiseBroken, match="is accepted before a"):
        PromiseChecker(scene, NodeState(1, ()), Drained()).take(Reached(Level.ACCEPTED, later))


def test_what_a_view_acknowledges_claims_nothing_about_others_yet() -> None:
    packet = Packet(0, 0b111, 0, (), 0, (1,), b"a")
    said, viewed = checker(), checker()
    for level in Level.ACCEPTED, Level.PREACKNOWLEDGED:
        said.take(Reached(level, packet))
        viewed.take(ReachedByView(level, packet))
    assert said.risen == [(Level.PREACKNOWLEDGED, 0, 0b111)]
    assert viewed.risen == []


@pytest.mark.parametrize(
    ("protocol", "level", "order_is_kept"),
    [
        ("to", Level.ACKNOWLEDGED, True),
        ("to", Level.PREACKNOWLEDGED, False),
        ("sequencer", Level.PREACKNOWLEDGED, True),  # it tells nothing above stable, but at the end of a view
        ("sequencer", Level.ACCEPTED, False),
    ],
)
def test_what_is_known_stable_is_known_of_all_that_was_sent_before(
    protocol: str, level: Level, order_is_kept: bool
) -> None:
    accepted, stable, known = (int(level >= step) for step in Level)  # a; and b is stable since just before
    before = replace(NodeState(0, ()), reached=(0, accepted | B, stable | B, known))
    ends = PromiseChecker(group(protocol, "a b", "", ""), before, Drained())
    later = ReachedByView(Level.ACKNOWLEDGED, Packet(0, 0b111, 1, (), 1, (1,), b"b"))
    if order_is_kept:
        ends.take(later)
        assert ends.reached[Level.ACKNOWLEDGED] & B
    else:
        with pytest.raises(PromiseBroken, match="is acknowledged before a"):
            ends.take(later)


def test_what_has_no_destination_any_more_is_not_numbered() -> None:
    scene = group("spo", "a{2} b{3}", "", "")
    numbers = PromiseChecker(scene, NodeState(0, ()), Drained())
    numbers.take(Numbered(Packet(0, 0b100, 1, (), 1, (1,), b"b")))
    assert numbers.numbered == 2
    with pytest.raises(PromiseBroken, match="out of turn"):
        numbers.take(Numbered(Packet(0, 0b010, 0, (), 0, (1,), b"a")))


# --- how it must end ---


def lacking(*nodes: NodeState, scene: Scenario | None = None) -> str:
    return ViewPromises(scene or group()).lacking(nodes)


def done(number: int, *views: OwnView, **how: Any) -> NodeState:
    return node(number, A | B, (0, 1), *views, **how)


def test_all_end_in_one_view_with_everything_delivered() -> None:
    assert not lacking(*map(done, range(3)))
    assert lacking(done(0, second(A)), done(1, second(A)), done(2)) == "E3 is in view 0, and {E1,E2,E3} in view 1"
    assert not lacking(done(0, second(A, (0, 1))), done(1, second(A, (0, 1))), done(2)), "E3 was excluded"
    assert lacking(done(0), done(1), node(2, A, (0,))) == "b{1,2,3} of E2 is never delivered at E3"
    assert (
        lacking(done(0), done(1), replace(done(2), reached=(0, 3, 3, 1)))
        == "b{1,2,3} of E2 is never known as stable at E3"
    )
    assert lacking(done(0), replace(done(1), numbered=0), done(2)) == "E2 never sends b{1,2,3}"
    assert lacking(done(0), replace(done(1), leaves=True), done(2)) == "E2 never leaves the group"
    gone = [replace(done(number), left=True) for number in range(3)]
    assert lacking(*gone) == "no node goes on, though none crashed"


def test_a_group_whose_last_member_left_is_over() -> None:
    excluded = replace(done(1), left=True)
    last = replace(done(0, second(A, (0,))), left=True, departed=True)
    assert not lacking(last, excluded, replace(excluded, node=2))
    assert "no node goes on" in lacking(replace(last, departed=False), excluded, replace(excluded, node=2))
    of_two = replace(done(0, second(A, (0, 1))), left=True, departed=True)
    assert "no node goes on" in lacking(of_two, excluded, replace(excluded, node=2)), "E2 is a member, and has not left"


def test_what_the_dead_sent_need_not_arrive_and_what_leavers_sent_must() -> None:
    crashed = replace(node(1, B, (1,)), crashed=True)
    assert not lacking(node(0, A, (0,)), crashed, node(2, A, (0,)))
    left = replace(crashed, crashed=False, left=True, departed=True)
    assert lacking(node(0, A, (0,)), left, node(2, A, (0,))) == "b{1,2,3} of E2 is never delivered at E1"
    assert lacking(node(0, A | B, (0, 1)), crashed, node(2, A, (0,))) == "b{1,2,3} of E2 is never delivered at E3"


def test_who_joins_ends_as_a_member_and_is_owed_what_comes_after() -> None:
    scene = group("po", "a", "", "", joins=1)
    old = OwnView(0, (0, 1), 0, 0)
    entered = second(0)
    members = [replace(node(number, A), views=(old, entered)) for number in range(2)]
    joined = replace(node(2), views=(entered,))
    outside = replace(joined, views=())
    assert lacking(*members, joined, scene=scene) == "a{1,2,3} of E1 is never delivered at E3"
    before = [replace(each, views=(old, second(A))) for each in members]
    assert not lacking(*before, joined, scene=scene)
    alone = [replace(each, views=(old,)) for each in members]
    assert lacking(*alone, outside, scene=scene) == "E3 never joins the group"
    assert lacking(*alone, replace(outside, left=True), scene=scene) == "E3 never joins the group"
    assert not lacking(*alone, replace(outside, crashed=True), scene=scene)


@pytest.mark.parametrize(
    ("crashed", "resilience", "blocked"),
    [((), 1, False), ((2,), 1, False), ((0,), 1, False), ((0, 1), 1, True), ((1, 2), 2, True), ((2,), 0, False)],
)
def test_a_group_without_a_quorum_may_wait(crashed: tuple[int, ...], resilience: int, blocked: bool) -> None:
    nodes = [replace(done(number), crashed=number in crashed) for number in range(3)]
    assert ViewPromises(group("sequencer", resilience=resilience)).has_no_quorum(nodes) is blocked


@pytest.mark.parametrize(
    ("crashed", "resilience", "blocked"), [(1, 1, False), (2, 1, True), (2, 2, False), (2, 0, False)]
)
def test_with_resilience_so_many_report_that_one_of_them_has_each_message(
    crashed: int, resilience: int, blocked: bool
) -> None:
    """Of five, three are a quorum. With resilience 1 two have each message, so that one of any four has it."""
    everybody = OwnView(0, tuple(range(5)), 0, 0)
    nodes = [replace(done(number), views=(everybody,), crashed=number >= 5 - crashed) for number in range(5)]
    scene = group("sequencer", "a", "b", "", "", "", resilience=resilience)
    assert ViewPromises(scene).has_no_quorum(nodes) is blocked


def test_half_of_a_view_with_its_first_member_is_a_quorum() -> None:
    first, other, third = (done(number, second(3, (0, 1))) for number in range(3))
    promises = ViewPromises(group())
    assert not promises.has_no_quorum([first, replace(other, crashed=True), replace(third, left=True)])
    assert promises.has_no_quorum([replace(first, crashed=True), other, replace(third, left=True)])
