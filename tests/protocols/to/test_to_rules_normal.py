"""TO, sound rules, while nothing is missing: sending, accepting, the two levels above, and who speaks when."""

from collections.abc import Callable

import pytest

from ordercast.model.machine import Submit
from ordercast.model.units import Unit
from ordercast.protocols.spo.units import RetransmitRequest
from ordercast.protocols.to.units import OrderedData, OrderedReady
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
    assert [unit.packet.payload for _, _, unit in node.machine.reception.accepted.entries] == [b"x", b"a"]


@pytest.mark.parametrize(
    ("sooner", "later"), [(((1, 0), 0), ((1, 1), 0)), (((0, 0), 0), ((1, 0), 0)), (((1, 0), 0), ((1, 0), 1))]
)
def test_what_was_said_before_and_comes_again_takes_nothing_back(
    sooner: tuple[tuple[int, int], int], later: tuple[tuple[int, int], int]
) -> None:
    """Words without data have no number: a copy that is late is told by what it says."""
    node, peer = Node(E1, 2), Peer(E2, 2)
    node.hears_itself(node.submits("a"))
    node.hears(peer.sends("x"))
    said = []
    for expects, delivered in (sooner, later):
        peer.expecting(*expects).delivered = delivered
        said.append(peer.standing(E1))
        node.hears(said[-1])
    node.fires("status")
    assert not node.machine.reception.pending, "both were answered"
    known = node.machine.snapshot()
    assert node.hears(said[0]).units == []
    assert node.machine.snapshot() == known
    node.hears(said[1])
    assert node.machine.reception.pending, "who asks once more in the same words is answered"


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
    node.machine.deliveries.own_positions.append(0)  # a is delivered here
    two.delivered = 1
    assert node.hears(two.standing(), three.standing()).data == []
    three.delivered = 1
    assert node.hears(three.standing()).data == ["b"]


def test_a_quota_counts_what_is_delivered_and_not_what_is_sent_again() -> None:
    group = Group(2, quota=1)
    group.submit(E1, "a", "b", "c")
    group.settle()
    assert group.delivered() == ["a b c", "a b c"]
    assert group.nodes[E1].machine.deliveries.own_undelivered <= 1


# --- accepting ---


def test_what_comes_next_is_accepted() -> None:
    node, peer = Node(E1), Peer(E2)
    out = node.hears(peer.sends("x"), peer.ready(), peer.sends("y"))
    assert out.accepted == ["x", "y"]
    assert node.machine.reception.expected == [0, 3, 0]


def test_duplicates_are_thrown_away() -> None:
    node, peer = Node(E1), Peer(E2)
    unit, ready = peer.sends("x"), peer.ready()
    node.hears(unit, ready)
    again = node.hears(unit, ready)
    assert (again.accepted, again.discards, again.stops) == ([], ["duplicate", "duplicate"], [])
    standing = peer.standing()
    assert node.hears(standing, standing, peer.sends("y"), standing).discards == []
    assert node.machine.reception.expected[E2] == 3


@pytest.mark.parametrize("kind", ["data", "ready", "marker", "standing"])
def test_any_unit_shows_what_is_missing_before_it(kind: str) -> None:
    node, peer = Node(E1, priorities=kind == "marker"), Peer(E2)
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
    assert node.machine.reception.expected == [0, 0, 0]


@pytest.mark.parametrize("kind", ["data", "standing"])
def test_what_others_have_accepted_shows_what_is_missing(kind: str) -> None:
    node, peer = Node(E1), Peer(E2).expecting(0, 0, 1)
    out = node.hears(peer.sends("x") if kind == "data" else peer.standing())
    assert (out.stops, out.accepted, out.discards) == (["hearsay"], [], ["hearsay"])
    assert node.machine.reception.expected == [0, 0, 0]


def test_one_may_miss_what_one_sent_oneself() -> None:
    node, peer = Node(E1), Peer(E2)
    node.submits("a")
    assert node.hears(peer.sends("x")).stops == []
    assert node.hears(peer.expecting(1, 1, 0).ready()).stops == ["hearsay"]


def test_strangers_are_thrown_away() -> None:
    node, peer = Node(E1), Peer(E2)
    peer.epoch = 1
    assert node.hears(RetransmitRequest(E2, (0, 0, 0)), peer.sends("x")).discards == ["stray", "early"]
    assert node.machine.reception.expected == [0, 0, 0]


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
    node.machine.reception.pending = True
    assert node.hears_itself(node.drained()).acknowledged == ["x"]
    assert node.did.delivered == ["x"]


def test_what_claims_to_be_mine_and_was_never_sent_is_thrown_away() -> None:
    node = Node(E1, 2, priorities=True)
    for unit in (Peer(E1, 2).sends("x"), Peer(E1, 2).ready(), Peer(E1, 2).marker(0)):
        before = node.machine.snapshot()
        assert node.hears(unit).discards == ["impossible"]
        assert node.machine.snapshot() == before
    assert node.hears(Peer(E1, 2).standing(E1)).discards == [], "the number of a standing is that of what comes next"
    mine = node.submits("a")
    assert node.hears_itself(mine).accepted == ["a"]


def test_data_in_the_place_of_my_status_are_not_taken_for_what_i_sent() -> None:
    node, two, liar = Node(E1, 2), Peer(E2, 2), Peer(E1, 2)
    node.hears(two.sends("x"))
    assert node.fires("status").of(OrderedReady), "number 0 is mine, and no data"
    node.hears(liar.expecting(0, 1).sends("y"), liar.expecting(1, 1).standing())
    assert node.hears(two.expecting(1, 1).standing()).preacknowledged == ["x", "y"]
    assert node.submits("a").data == ["a"], "and it goes on"


def test_everything_is_delivered_to_everybody_in_the_order_of_the_channel() -> None:
    group = Group(3)
    for node, word in [(E1, "a"), (E3, "x"), (E2, "p"), (E1, "b"), (E3, "y")]:
        group.submit(node, word)
    group.settle()
    assert group.delivered() == ["a x p b y"] * 3
    assert all(node.machine.waits_for() == () for node in group.nodes)
