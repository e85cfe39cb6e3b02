"""TO, sound rules, while nothing is missing: who speaks when, and when nobody does."""

import pytest

from ordercast.model.nodes import mask_of
from ordercast.protocols.to.units import OrderedReady, OrderedStatus
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Peer


def test_data_are_answered_in_sequence_and_only_once() -> None:
    node, peer = Node(E1), Peer(E2)
    node.hears(peer.sends("x"))
    (unit,) = node.fires("status").units
    assert isinstance(unit, OrderedReady)
    assert node.hears(unit).units == []
    assert "status" not in node.running


def test_own_data_answer_too() -> None:
    node, peer = Node(E1), Peer(E2)
    node.hears(peer.sends("x"))
    node.submits("a")
    assert node.fires("status").units == []
    node.hears(peer.sends("y"))
    assert len(node.fires("status").of(OrderedReady)) == 1


def test_ready_units_are_not_answered() -> None:
    node, peer = Node(E1), Peer(E2)
    assert node.hears(peer.ready(), peer.standing()) == []
    assert node.running == {}


def test_what_is_preacknowledged_is_told_outside_the_sequence() -> None:
    node, two = Node(E1, 2), Peer(E2, 2)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 1).ready())
    assert node.did.preacknowledged == ["x"]
    (unit,) = node.fires("status").units
    assert isinstance(unit, OrderedStatus)
    assert unit.heading.expects == (1, 2)
    assert unit.heading.seq == node.machine.transmission.next_seq


def test_a_marker_is_answered_outside_the_sequence() -> None:
    node, two = Node(E1, 2, priorities=True), Peer(E2, 2)
    node.hears(two.marker(0))
    (unit,) = node.fires("status").units
    assert isinstance(unit, OrderedStatus)
    assert node.hears(unit, two.expecting(0, 1).standing()).timers == []
    assert not node.machine.unfinished()


def test_who_is_wanted_answers() -> None:
    node, peer = Node(E1), Peer(E2)
    assert node.hears(peer.standing(E3)).timers == []
    node.hears(peer.standing(E1, E3))
    (unit,) = node.fires("status").units
    assert isinstance(unit, OrderedStatus)
    assert unit.heading.wants == 0, "or answers would be answered"


def test_when_half_a_window_is_unsaid_it_is_said_at_once() -> None:
    node, peer = Node(E1, window=4), Peer(E2)
    assert node.hears(peer.sends("x")).units == []
    assert len(node.hears(peer.sends("y")).of(OrderedReady)) == 1
    assert node.hears(peer.sends("z")).units == []


def test_what_is_owed_is_said_when_nothing_more_waits() -> None:
    node, peer = Node(E1), Peer(E2)
    assert node.drained() == []
    node.hears(peer.sends("x"))
    assert len(node.drained().of(OrderedReady)) == 1
    assert node.drained().units == []


def test_who_waits_in_vain_asks_those_it_waits_for() -> None:
    node, two = Node(E1), Peer(E2)
    node.hears_itself(node.submits("a"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 0, 0).standing())
    (unit,) = node.fires("poll").units
    assert isinstance(unit, OrderedStatus)
    assert unit.heading.wants == mask_of((E3,))
    assert "poll" in node.running


def test_who_has_missed_its_own_data_shows_it_to_itself() -> None:
    node = Node(E1)
    node.submits("a")
    (unit,) = node.fires("poll").units
    assert isinstance(unit, OrderedStatus)
    assert unit.heading.wants == mask_of((E2, E3)), "nobody else is known to have it either"
    assert node.hears(unit).stops == ["gap"]


@pytest.mark.parametrize("priorities", [False, True])
def test_nobody_polls_while_something_is_acknowledged(priorities: bool) -> None:
    node, two = Node(E1, 2, priorities=priorities), Peer(E2, 2)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 1).ready())
    assert node.did.preacknowledged == ["x"]
    assert node.fires("poll").units == []
    node.hears(two.sends("y"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 2).standing())
    assert (node.did.acknowledged, node.did.preacknowledged) == (["x"], ["x"])
    assert node.fires("poll").units == []
    assert len(node.fires("poll").units) == 1


def test_who_waits_for_a_place_asks_those_who_have_delivered_less() -> None:
    node, two, three = Node(E1, quota=1), Peer(E2), Peer(E3)
    node.hears_itself(node.submits("a", "b"))
    node.machine.transmission.sent.clear()
    node.machine.reception.accepted.entries.clear()
    node.machine.deliveries.count = two.delivered = 1  # as if a had been delivered here and at E2
    node.hears(two.standing(), three.standing())
    (_, standing) = node.fires("poll").units
    assert isinstance(standing, OrderedStatus)
    assert standing.heading.wants == mask_of((E3,))


def test_nobody_polls_while_the_end_of_a_run_gets_through() -> None:
    node, two = Node(E1, 2, priorities=True), Peer(E2, 2)
    node.hears(two.marker(0))
    node.hears_itself(node.submits("a"))
    node.hears(two.expecting(0, 1).standing())
    assert node.fires("poll").units == []
    assert len(node.fires("poll").units) > 0


def test_a_poll_says_in_sequence_what_must_be_and_asks_besides() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    node.hears(peer.sends("x"))
    ready, standing = node.fires("poll").units
    assert isinstance(ready, OrderedReady)
    assert isinstance(standing, OrderedStatus)
    assert standing.heading.wants == mask_of((E2,))


def test_timers_differ_between_nodes_and_from_time_to_time() -> None:
    waits = set()
    for me in range(3):
        node, peer = Node(me), Peer((me + 1) % 3)
        for word in "xyz":
            node.hears(peer.sends(word))
            waits.add(node.running["status"])
            node.fires("status")
    assert len(waits) == 9
    status = node.machine.config.timing.status
    assert all(status <= wait < 2 * status for wait in waits)


def test_polls_back_off_and_start_again_when_something_moves() -> None:
    node, two = Node(E1, 2), Peer(E2, 2)
    poll = node.machine.config.timing.poll
    node.hears_itself(node.submits("a"))
    node.hears_itself(node.fires("status"))
    first = node.running["poll"]
    waits = [node.fires("poll") and node.running["poll"] for _ in range(4)]
    assert poll <= first < 2 * poll
    assert 2 * poll <= waits[0] < 4 * poll <= waits[1] < 8 * poll
    assert 4 * poll <= waits[3] < 8 * poll, "at most four times"
    node.hears(two.expecting(1, 0).standing())
    assert node.fires("poll").units == [], "something has moved"
    assert poll <= node.running["poll"] < 2 * poll


def test_what_was_finished_before_does_not_count_as_progress() -> None:
    group = Group(2)
    group.submit(E1, "a")
    group.settle()
    node = group.nodes[E1]
    assert "poll" not in node.running
    assert node.machine.backoff.progress, "a has been acknowledged since the last poll"
    node.submits("b")  # lost
    assert len(node.fires("poll").units) == 1


def test_two_rounds_deliver_and_then_nobody_speaks() -> None:
    group = Group(3)
    group.submit(E1, "a")
    for _ in range(2):
        group.exhaust()
        group.fire("status")
    group.exhaust()
    assert group.delivered() == ["a", "a", "a"]
    assert [len(node.did.units) for node in group.nodes] == [3, 2, 2]
    assert group.fire("poll").units == []
    assert all(node.running == {} for node in group.nodes)


def test_a_node_that_never_answers_is_given_up() -> None:
    node, two = Node(E1, polls_to_abort=3), Peer(E2)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))
    for _ in range(3):
        node.hears(two.expecting(1, 1, 0).standing())
        assert node.fires("poll").aborts == []
    assert node.fires("poll").aborts == ["E3 left 3 polls in a row unanswered"]
    assert node.submits("b") == []
    assert node.hears(two.sends("y"), two.vector(0, 0, 0)) == []


def test_who_answers_is_not_given_up() -> None:
    node, three = Node(E1, polls_to_abort=2), Peer(E3)
    node.hears_itself(node.submits("a"))
    for _ in range(10):
        node.hears(three.standing())
        node.machine.backoff.unanswered[E2] = 0
        assert node.fires("poll").aborts == []


def test_who_gives_up_delivers_what_everybody_has_in_its_place() -> None:
    node, two, three = Node(E1, polls_to_abort=1), Peer(E2), Peer(E3)
    node.hears(two.sends("x"), three.sends("y"))
    node.hears_itself(node.fires("status"))
    node.hears(three.expecting(1, 1, 1).standing(), two.expecting(1, 1, 0).standing())
    assert node.did.preacknowledged == ["x"]
    while not node.did.aborts:
        node.fires("poll")
    assert node.did.delivered == ["x"]


def test_units_of_another_policy_are_strays() -> None:
    node = Node(E1, 2)
    before = node.machine.snapshot()
    assert node.hears(Peer(E2, 2).marker(0)).discards == ["stray"]
    assert node.machine.snapshot() == before
