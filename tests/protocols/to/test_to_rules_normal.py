"""TO, sound rules, while nothing is missing: sending, accepting, the two levels above, and who speaks when."""

from collections.abc import Callable

import pytest

from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Submit
from ordercast.model.nodes import mask_of
from ordercast.model.priority_units import OrderedData, OrderedReady, RunMarker, Standing
from ordercast.model.units import RetransmitRequest, Unit
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Peer

# --- sending ---


def test_packets_count_packets_and_units_count_whatever_is_in_sequence() -> None:
    node, peer = Node(E1), Peer(E2)
    first = node.submits("a")
    node.hears_itself(first)
    node.hears(peer.sends("x"))
    said = node.fires("status")
    second = node.submits("b")
    assert [(packet.seq, packet.first) for packet in first.numbered + second.numbered] == [(0, 0), (1, 1)]
    headings = [unit.heading for unit in [*first.of(OrderedData), *second.of(OrderedData)]]
    assert [heading.seq for heading in headings] == [0, 2]
    assert [unit.heading.seq for unit in said.of(OrderedReady)] == [1]


def test_messages_of_a_batch_are_counted_one_by_one() -> None:
    node = Node(E1, 2)
    out = [node.handle(Submit(3, (1, 1, 1), b"abc")), node.handle(Submit(3, (1,), b"d"))]
    assert [packet.first for found in out for packet in found.numbered] == [0, 3]


def test_first_numbers_are_those_agreed_on() -> None:
    node = Node(E2, 2, first_seq=(5, 7))
    (unit,) = node.submits("a").of(OrderedData)
    assert (unit.heading.seq, unit.packet.seq, unit.heading.expects) == (7, 7, (5, 7))
    assert node.hears(unit).accepted == ["a"]


@pytest.mark.parametrize("to", [(), (E1,), (E1, E2), (E2, E3), (E1, E2, E3, 3)])
def test_a_broadcast_goes_to_everybody_and_nobody_else(to: tuple[int, ...]) -> None:
    node = Node(E1)
    with pytest.raises(LocalProtocolError, match="a broadcast goes to all 3 nodes"):
        node.handle(Submit(mask_of(to), (1,), b"a"))
    assert node.submits("b").data == ["b"]


def test_what_is_sent_says_what_was_accepted() -> None:
    node = Node(E1)
    node.hears(Peer(E2).sends("x"), Peer(E3).ready())
    (unit,) = node.submits("a").of(OrderedData)
    assert unit.heading.expects == (0, 1, 1)


def test_own_units_are_accepted_when_the_channel_brings_them() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    out = node.submits("a")
    assert out.accepted == []
    node.hears(peer.sends("x"))
    assert node.hears_itself(out).accepted == ["a"]
    assert [unit.packet.payload for _, _, unit in node.machine.accepted.entries] == [b"x", b"a"]


# --- flow ---


def test_the_window_closes_and_opens() -> None:
    node, peer = Node(E1, 2, window=2), Peer(E2, 2)
    out = node.submits("a", "b", "c", "d")
    assert out.data == ["a", "b"]
    echo = node.hears_itself(out)
    assert echo.data == [], "until everybody is known to have it"
    own = echo.of(OrderedReady)
    assert node.hears(peer.expecting(1, 0).standing()).data == []
    assert node.hears(*own).data == ["c"], "one is accepted by all"
    assert node.hears(peer.expecting(2, 0).standing()).data == ["d"]


def test_a_quota_is_places_until_everybody_has_delivered() -> None:
    group = Group(2, quota=2, window=8)
    group.submit(E1, "a", "b", "c")
    assert group.nodes[E1].did.data == ["a", "b"]
    group.exhaust()
    group.fire("status")
    group.exhaust()
    assert group.nodes[E1].did.preacknowledged == ["a", "b"]
    assert group.nodes[E1].did.data == ["a", "b"]
    group.fire("status")
    group.exhaust()
    assert group.delivered() == ["a b", "a b"]
    assert group.nodes[E1].did.data == ["a", "b"], "E1 does not know that E2 has delivered"
    assert group.fire("poll", E1).units == [], "something has moved"
    group.fire("poll", E1)
    group.exhaust()
    group.fire("status", E2)
    group.exhaust()
    assert group.nodes[E1].did.data == ["a", "b", "c"]


def test_a_place_is_free_when_the_last_has_delivered() -> None:
    node, two, three = Node(E1, quota=1), Peer(E2), Peer(E3)
    node.submits("a", "b")
    node.machine.own_places.append(0)  # a is delivered here
    two.delivered = 1
    assert node.hears(two.standing(), three.standing()).data == []
    three.delivered = 1
    assert node.hears(three.standing()).data == ["b"]


def test_a_quota_counts_what_is_delivered_and_not_what_is_sent_again() -> None:
    group = Group(2, quota=1)
    group.submit(E1, "a", "b", "c")
    group.settle()
    assert group.delivered() == ["a b c", "a b c"]
    assert group.nodes[E1].machine.unsettled <= 1


# --- accepting ---


def test_what_comes_next_is_accepted() -> None:
    node, peer = Node(E1), Peer(E2)
    out = node.hears(peer.sends("x"), peer.ready(), peer.sends("y"))
    assert out.accepted == ["x", "y"]
    assert node.machine.expected == [0, 3, 0]


def test_duplicates_are_thrown_away() -> None:
    node, peer = Node(E1), Peer(E2)
    unit, ready = peer.sends("x"), peer.ready()
    node.hears(unit, ready)
    again = node.hears(unit, ready)
    assert (again.accepted, again.discards, again.stops) == ([], ["duplicate", "duplicate"], [])
    standing = peer.standing()
    assert node.hears(standing, standing, peer.sends("y"), standing).discards == []
    assert node.machine.expected[E2] == 3


@pytest.mark.parametrize("kind", ["data", "ready", "marker", "standing"])
def test_any_unit_shows_what_is_missing_before_it(kind: str) -> None:
    node, peer = Node(E1), Peer(E2)
    peer.sends("lost")
    units: dict[str, Callable[[], Unit]] = {
        "data": lambda: peer.sends("y"),
        "ready": peer.ready,
        "marker": lambda: peer.marker(0),
        "standing": peer.standing,
    }
    unit = units[kind]()
    out = node.hears(unit)
    assert (out.stops, out.accepted, out.discards) == (["gap"], [], ["gap"])
    assert node.machine.expected == [0, 0, 0]


@pytest.mark.parametrize("kind", ["data", "standing"])
def test_what_others_have_accepted_shows_what_is_missing(kind: str) -> None:
    node, peer = Node(E1), Peer(E2).expecting(0, 0, 1)
    out = node.hears(peer.sends("x") if kind == "data" else peer.standing())
    assert (out.stops, out.accepted, out.discards) == (["hearsay"], [], ["hearsay"])
    assert node.machine.expected == [0, 0, 0]


def test_one_may_miss_what_one_sent_oneself() -> None:
    node, peer = Node(E1), Peer(E2)
    node.submits("a")
    assert node.hears(peer.sends("x")).stops == []
    assert node.hears(peer.expecting(1, 1, 0).ready()).stops == ["hearsay"]


def test_strangers_are_thrown_away() -> None:
    node, peer = Node(E1), Peer(E2)
    peer.epoch = 1
    assert node.hears(RetransmitRequest(E2, (0, 0, 0)), peer.sends("x")).discards == ["stray", "early"]
    assert node.machine.expected == [0, 0, 0]


# --- the levels ---


def hears_all(node: Node, *peers: Peer, expects: tuple[int, ...]) -> None:
    """Everybody but the node says so, outside the sequence."""
    for peer in peers:
        node.hears(peer.expecting(*expects).standing())


def test_preacknowledged_is_what_all_are_known_to_have_oneself_too() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    assert node.hears(two.sends("x")).preacknowledged == []
    hears_all(node, two, three, expects=(0, 1, 0))
    assert node.did.preacknowledged == [], "the channel has not brought back that E1 has it"
    own = node.fires("status")
    assert node.hears_itself(own).preacknowledged == ["x"]


def test_the_first_holds_back_the_others() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.sends("x"), three.sends("y"))
    node.hears_itself(node.fires("status"))
    hears_all(node, two, three, expects=(1, 0, 1))
    assert node.did.preacknowledged == [], "y is known to all, but comes behind x"
    node.hears(two.expecting(1, 1, 1).standing())
    assert node.did.preacknowledged == []
    node.hears(three.expecting(1, 1, 1).standing())
    assert node.did.preacknowledged == ["x", "y"]


def test_acknowledged_is_what_units_in_sequence_acknowledge_that_all_have() -> None:
    node, two = Node(E1, 2), Peer(E2, 2)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))  # E1's ready, in sequence
    node.hears(two.expecting(1, 1).standing())
    assert node.did.preacknowledged == ["x"]
    node.hears_itself(node.fires("status"))  # E1 says to have its own ready
    assert node.did.acknowledged == [], "E2 has said it outside the sequence only"
    node.hears(two.ready())
    assert node.did.acknowledged == []
    node.hears(two.expecting(1, 2).standing())
    assert node.did.acknowledged == [], "E1 has not said to have E2's ready"
    node.machine.owes = True
    assert node.hears_itself(node.drained()).acknowledged == ["x"]
    assert node.did.delivered == ["x"]


def test_everything_is_delivered_to_everybody_in_the_order_of_the_channel() -> None:
    group = Group(3)
    for node, word in [(E1, "a"), (E3, "x"), (E2, "p"), (E1, "b"), (E3, "y")]:
        group.submit(node, word)
    group.settle()
    assert group.delivered() == ["a x p b y"] * 3
    assert all(node.machine.waits_for() == () for node in group.nodes)


# --- who speaks when ---


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
    assert isinstance(unit, Standing)
    assert unit.heading.expects == (1, 2)
    assert unit.heading.seq == node.machine.next_seq


def test_a_marker_is_answered_outside_the_sequence() -> None:
    node, two = Node(E1, 2), Peer(E2, 2)
    node.hears(two.marker(0))
    (unit,) = node.fires("status").units
    assert isinstance(unit, Standing)
    assert node.hears(unit, two.expecting(0, 1).standing()).timers == []
    assert not node.machine.unfinished()


def test_who_is_wanted_answers() -> None:
    node, peer = Node(E1), Peer(E2)
    assert node.hears(peer.standing(E3)).timers == []
    node.hears(peer.standing(E1, E3))
    (unit,) = node.fires("status").units
    assert isinstance(unit, Standing)
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
    assert isinstance(unit, Standing)
    assert unit.heading.wants == mask_of((E3,))
    assert "poll" in node.running


def test_who_has_missed_its_own_data_shows_it_to_itself() -> None:
    node = Node(E1)
    node.submits("a")
    (unit,) = node.fires("poll").units
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


def test_a_poll_says_in_sequence_what_must_be_and_asks_besides() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    node.hears(peer.sends("x"))
    ready, standing = node.fires("poll").units
    assert isinstance(ready, OrderedReady)
    assert isinstance(standing, Standing)
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
    assert node.fires("poll").aborts == ["E3 left 3 questions in a row unanswered"]
    assert node.submits("b") == []
    assert node.hears(two.sends("y"), two.vector(0, 0, 0)) == []


def test_who_answers_is_not_given_up() -> None:
    node, three = Node(E1, polls_to_abort=2), Peer(E3)
    node.hears_itself(node.submits("a"))
    for _ in range(10):
        node.hears(three.standing())
        node.machine.unanswered[E2] = 0
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


def test_markers_mean_nothing_to_it() -> None:
    group = Group(2)
    group.submit(E1, "a")
    peer = Peer(E2, 2)
    assert group.nodes[E1].hears(peer.marker(5)).delivered == []
    assert isinstance(group.nodes[E1].machine.accepted.entries[0][2], RunMarker)
