"""What the units of TO and PriTO take on the network, and what they are called in traces."""

from ordercast.model.units import Unit
from ordercast.protocols.to.units import vector_of
from tests.protocols.to.driver import E1, E2, Peer

VECTOR = 4 * 3  # a number for each of three nodes
FIXED, BITS = 16, 1  # and a bit for each of them


def test_sizes_are_those_of_their_fields() -> None:
    peer = Peer(E2)
    heading = FIXED + 3 * 4 + VECTOR + BITS  # epoch, seq, delivered
    data = peer.sends("abc")
    assert [unit.size() for unit in (peer.ready(), peer.standing(E1))] == [heading, heading]
    assert peer.marker(7).size() == heading + 4
    assert data.size() == heading + 2 * 4 + 2 + 3, "its number and priority, a length, three bytes"
    vector = FIXED + 4 + VECTOR + BITS
    assert peer.vector(0, 0, 0).size() == vector
    assert peer.carries(data, 0, 0, 0).size() == vector + 3 * 4 + 2 + 3


def test_every_unit_has_its_sender_and_a_word() -> None:
    peer = Peer(E2)
    data = peer.sends("x")
    words: dict[str, list[Unit]] = {
        "data": [data, peer.carries(data, 0, 0, 0)],
        "status": [peer.ready(), peer.standing()],
        "poll": [peer.standing(E1)],
        "marker": [peer.marker(0)],
        "reset": [peer.vector(0, 0, 0)],
        "done": [peer.vector(0, 0, 0, installed=True)],
    }
    for word, units in words.items():
        assert {unit.label() for unit in units} == {word}
        assert {unit.source for unit in units} == {E2}
        assert {unit.asks_for() for unit in units} == {None}


def test_what_only_acknowledges_may_wait() -> None:
    peer = Peer(E2)
    data = peer.sends("x")
    assert [unit.can_wait() for unit in (peer.ready(), peer.standing(), peer.standing(E1))] == [True] * 3
    others = [data, peer.marker(0), peer.vector(0, 0, 0), peer.carries(data, 0, 0, 0)]
    assert [unit.can_wait() for unit in others] == [False] * 4


def test_what_only_tells_what_its_sender_has_may_come_at_any_place() -> None:
    peer = Peer(E2)
    assert not peer.standing().needs_place()
    assert peer.standing(E1).needs_place(), "who asks shows losses"
    assert all(unit.needs_place() for unit in (peer.ready(), peer.sends("x"), peer.marker(0), peer.vector(0, 0, 0)))


def test_a_vector_is_one_whether_it_carries_or_not() -> None:
    peer = Peer(E2)
    plain, carrying = peer.vector(1, 2, 3), peer.carries(peer.sends("x"), 1, 2, 3)
    assert vector_of(plain) == vector_of(carrying) == plain
