"""TO, sound rules, after a loss: what travels with a vector."""

from ordercast.model.machine import Resumed
from ordercast.protocols.to.units import CarryingVector, EpochVector, OrderedData, OrderedReady, OrderedStatus
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Outputs, Peer
from tests.protocols.to.test_to_rules_back import installed


def thrown_away_once(nodes: int = 2) -> tuple[Node, Peer, Outputs]:
    """E1's a was thrown away once, and was sent again in epoch 1."""
    node, peer = Node(E1, nodes), Peer(E2, nodes)
    node.submits("a", "b")
    node.hears(peer.vector(0, 0))
    out = node.hears(peer.vector(0, 0, installed=True))
    peer.goes_on(0)
    return node, peer, out


def test_what_is_thrown_away_for_the_first_time_does_not_travel() -> None:
    node, _, out = thrown_away_once()
    assert node.did.of(CarryingVector) == []
    assert out.copies == ["a", "b"]


def test_what_was_thrown_away_before_travels_with_the_vector() -> None:
    node, peer, sent = thrown_away_once()
    node.hears(*sent.of(OrderedData))
    out = node.hears(peer.vector(0, 0))
    (unit,) = out.of(CarryingVector)[:1]
    assert (unit.packet.payload, unit.seq, unit.vector) == (
        b"a",
        0,
        EpochVector(E1, 2, (2, 0), installed=False, wants=0),
    )
    assert out.copies == ["a", "a"], "with the vector, and when all is known"
    out = node.hears(peer.vector(0, 0, installed=True))
    assert out.resumes == [Resumed(0, 1, 0)]
    assert [(unit.heading.seq, unit.packet.payload) for unit in out.of(OrderedData)] == [(1, b"b")]
    assert node.machine.reception.expected == [1, 0]


def test_what_waits_to_be_sent_again_travels_too() -> None:
    node, two, _ = installed()
    assert [packet.payload for packet in node.machine.transmission.resend] == [b"a"]
    two.goes_on(0)
    (unit,) = node.hears(two.vector(0, 0, 0)).of(CarryingVector)
    assert (unit.packet.payload, unit.seq) == (b"a", 0)


def test_what_travelled_is_accepted_with_the_vectors_and_rises_like_any_other() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    unit = peer.sends("x")
    out = node.hears(peer.carries(unit, 0, 0))
    assert (out.accepted, out.preacknowledged) == (["x"], [])
    assert node.machine.reception.expected == [0, 1]
    node.hears(peer.carries(unit, 0, 0, installed=True))
    (said,) = node.fires("status").units
    assert isinstance(said, OrderedReady), "it is acknowledged in sequence"
    assert said.heading.expects == (0, 1)
    peer.goes_on(1)
    node.hears(said)
    assert node.did.preacknowledged == []
    node.hears(peer.expecting(1, 1).ready())
    assert node.did.preacknowledged == ["x"]
    node.hears_itself(node.fires("status"))
    assert node.hears(peer.expecting(1, 2).standing()).delivered == ["x"]


def test_what_travelled_comes_behind_what_is_kept_in_the_order_of_sources() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    units = three.sends("u"), two.sends("x")
    node.hears(units[0], units[1], three.sends("v"))
    node.hears(three.carries(units[0], 0, 1, 0), two.carries(units[1], 0, 0, 2))
    out = node.hears(two.carries(units[1], 0, 0, 2, installed=True), three.carries(units[0], 0, 1, 0, installed=True))
    assert [entry[2].packet.payload for entry in node.machine.reception.accepted.entries] == [b"x", b"u"]
    assert out.resumes == [Resumed(0, 2, 0)]
    assert node.machine.reception.expected == [0, 1, 1]


def test_what_travelled_and_is_kept_is_taken_once() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    unit = peer.sends("x")
    node.hears(unit)
    out = node.hears(peer.carries(unit, 0, 1), peer.carries(unit, 0, 1, installed=True))
    assert (out.preacknowledged, out.delivered) == (["x"], ["x"])
    assert node.machine.reception.expected == [0, 1]


def test_however_much_is_lost_each_going_back_brings_something() -> None:
    """E2 misses all that is in sequence, always."""
    group = Group(2)
    group.submit(E1, "a", "b")
    for _ in range(300):
        for node in (E1, E2):
            while group.queues[node]:
                if node == E2 and not isinstance(group.queues[E2][0], EpochVector | CarryingVector | OrderedStatus):
                    group.lose(E2)
                else:
                    group.hear(node)
        for node, here in enumerate(group.nodes):
            for timer in tuple(here.running):
                if timer in here.running:
                    group.fire(timer, node)
    assert group.delivered() == ["a b", "a b"]
