"""TO, sound rules, after a loss: who stops, what is kept, who sends what again, and when all goes on."""

from collections.abc import Callable

import pytest

from ordercast.model.machine import Resumed
from ordercast.model.nodes import mask_of
from ordercast.model.units import Unit
from ordercast.protocols.to.units import EpochVector, OrderedData
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Outputs, Peer


def stopped(*words: str) -> tuple[Node, Peer, Outputs]:
    """E1 of two has heard these words of E2, and then seen a gap."""
    node, peer = Node(E1, 2), Peer(E2, 2)
    node.hears(*[peer.sends(word) for word in words])
    peer.sends("lost")
    return node, peer, node.hears(peer.ready())


def begun(node: Node, peer: Peer, *vector: int) -> Outputs:
    """The only other node says its vector, and that it is done."""
    out = node.hears(peer.vector(*vector), peer.vector(*vector, installed=True))
    peer.goes_on(node.machine.reception.expected[peer.me])
    return out


# --- stopping ---


def test_who_misses_something_stops_and_says_what_it_has() -> None:
    _, _, out = stopped("x", "y")
    assert (out.stops, out.units) == (["gap"], [EpochVector(E1, 1, (0, 2), installed=False, wants=0)])


def test_who_is_told_stops_too() -> None:
    node, peer = Node(E1), Peer(E2)
    out = node.hears(peer.vector(0, 0, 0))
    assert (out.stops, out.units) == (["told"], [EpochVector(E1, 1, (0, 0, 0), installed=False, wants=0)])
    assert node.hears(peer.vector(0, 0, 0)).units == [], "once"


def test_who_has_stopped_accepts_nothing_and_says_nothing_else() -> None:
    node, peer, _ = stopped("x")
    assert node.hears(peer.expecting(0, 1).sends("z"), peer.standing(E1)).discards == ["stopped", "stopped"]
    assert node.machine.reception.expected == [0, 1]
    assert node.submits("a").units == []
    assert node.drained().units == []
    assert node.fires("status").units == []
    assert node.fires("poll").units == []


def test_a_vector_never_changes() -> None:
    node, peer, out = stopped("x")
    node.hears(Peer(E2, 2).sends("x"), peer.sends("z"))
    (again,) = node.fires("reset").of(EpochVector)
    assert again.expects == out.of(EpochVector)[0].expects == (0, 1)


def test_the_first_vector_of_a_node_counts() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.vector(0, 0, 0), two.vector(5, 5, 5), three.vector(0, 0, 0))
    assert node.machine.reception.expected == [0, 0, 0]
    assert node.did.aborts == []


def test_vectors_are_said_again_naming_who_is_missing() -> None:
    node, two = Node(E1), Peer(E2)
    node.hears(two.vector(0, 0, 0))
    (again,) = node.fires("reset").of(EpochVector)
    assert again.wants == mask_of((E3,))
    assert not again.installed


def test_vectors_back_off() -> None:
    node, _, _ = stopped()
    reset = node.machine.config.timing.reset
    waits = [node.running["reset"], *[node.fires("reset") and node.running["reset"] for _ in range(4)]]
    lowest = [1, 2, 4, 4, 4]
    assert all(reset * low <= wait < 2 * reset * low for wait, low in zip(waits, lowest, strict=True))
    assert len(set(waits)) == len(waits), "drawn anew each time"


def test_vectors_start_with_the_shortest_interval_however_long_polls_had_become() -> None:
    node, two = Node(E1), Peer(E2)
    node.submits("a")
    for _ in range(4):
        node.fires("poll")
    assert node.running["poll"] >= 4 * node.machine.config.timing.poll
    node.hears(two.vector(0, 0, 0))
    assert node.running["reset"] < 2 * node.machine.config.timing.reset


def test_who_never_says_its_vector_is_given_up() -> None:
    node, two = Node(E1, polls_to_abort=2), Peer(E2)
    node.hears(two.vector(0, 0, 0))
    assert node.fires("reset").aborts == [], "something has moved"
    for _ in range(2):
        node.hears(two.vector(0, 0, 0))
        assert node.fires("reset").aborts == []
    out = node.fires("reset")
    assert (out.aborts, len(out)) == (["E3 left 2 polls in a row unanswered"], 1)


def test_who_says_its_vector_again_and_again_is_not_given_up() -> None:
    node, two, three = Node(E1, polls_to_abort=2), Peer(E2), Peer(E3)
    node.hears(two.vector(0, 0, 0), three.vector(0, 0, 0), three.vector(0, 0, 0, installed=True))
    for _ in range(10):
        node.hears(two.vector(0, 0, 0))
        assert node.fires("reset").aborts == []


# --- what is kept ---


def test_all_keep_what_all_have_and_nothing_else() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.sends("x"), three.sends("u"), two.sends("y"), three.sends("v"))
    two.sends("lost")
    node.hears(two.ready())
    out = node.hears(two.vector(0, 2, 1), three.vector(0, 1, 2))
    assert out.preacknowledged == ["x", "u"]
    assert node.machine.reception.expected == [0, 1, 1]
    assert node.machine.recovery.epoch == 1


def test_what_is_kept_is_acknowledged_when_all_are_known_to_keep_it() -> None:
    node, peer, _ = stopped("x")
    out = node.hears(peer.vector(0, 1))
    assert (out.preacknowledged, out.acknowledged, out.delivered) == (["x"], [], [])
    out = node.hears(peer.vector(0, 1, installed=True))
    assert (out.acknowledged, out.delivered) == (["x"], ["x"])
    assert out.resumes == [Resumed(0, 0, 0)]


def test_how_much_was_lacking_is_told() -> None:
    node, peer, _ = stopped("x")
    assert begun(node, peer, 0, 3).resumes == [Resumed(2, 0, 0)]


def test_what_was_thrown_away_is_accepted_again_and_told_once() -> None:
    node, peer, _ = stopped("x", "y")
    begun(node, peer, 0, 1)
    assert node.machine.reception.expected == [0, 1]
    peer.next_packet = 1
    again = node.hears(peer.expecting(0, 1).sends("y"))
    assert (again.accepted, again.stops, again.discards) == ([], [], [])
    assert node.hears(peer.sends("z")).accepted == ["z"]
    assert node.did.accepted == ["x", "y", "z"]


def test_ready_units_that_are_kept_acknowledge_what_they_say() -> None:
    node, two = Node(E1, 2), Peer(E2, 2)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 1).ready())
    two.sends("lost")
    node.hears(two.ready())
    out = node.hears(two.vector(1, 2))
    assert (out.acknowledged, out.delivered) == (["x"], ["x"]), "both have said so in sequence, and all have that"


def test_who_contradicts_itself_ends_the_group() -> None:
    node, two = Node(E1, 2), Peer(E2, 2)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 1).ready())
    assert node.did.preacknowledged == ["x"]
    out = node.hears(two.vector(1, 0))
    assert out.aborts == ["inconsistent acknowledgments: a node lacks what it has acknowledged"]
    assert out.delivered == ["x"]


# --- sending again ---


def test_what_was_thrown_away_is_sent_again_with_new_numbers_before_anything_else() -> None:
    node, peer = Node(E1, 2, window=6), Peer(E2, 2)
    sent = node.submits("a")
    node.hears(peer.sends("x"))
    node.hears(*sent.units)
    sent = node.submits("b", "c")
    node.hears(*sent.units)
    peer.sends("lost")
    node.hears(peer.ready())
    node.submits("d")
    out = begun(node, peer, 1, 1)
    assert out.data == ["b", "c", "d"]
    assert out.copies == ["b", "c"], "d waited"
    assert [(unit.heading.seq, unit.packet.seq) for unit in out.of(OrderedData)] == [(1, 1), (2, 2), (3, 3)]
    assert [packet.seq for packet in out.numbered] == [3], "numbered once"
    assert all(unit.heading.epoch == 1 for unit in out.of(OrderedData))


def test_after_a_loss_half_as_much_is_sent_and_more_as_it_gets_through() -> None:
    node, peer = Node(E1, 2, window=5), Peer(E2, 2)
    node.submits(*"abcdefghi")
    assert node.did.data == list("abcde")
    assert begun(node, peer, 0, 0).data == list("ab")
    node.hears_itself(node.hears(*node.did.of(OrderedData)[-2:]))
    out = node.hears(peer.expecting(1, 0).standing())
    assert (out.preacknowledged, out.data) == (["a"], list("cd")), "one has left, and one more may go"
    for _ in range(3):
        begun(node, peer, 1, 0)
        assert node.machine.transmission.congestion_window >= 1
    assert len(node.machine.transmission.sent) == 1


def test_ready_units_that_were_thrown_away_are_forgotten() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    node.hears(peer.sends("x"))
    node.hears_itself(node.fires("status"))
    peer.sends("lost")
    node.hears(peer.ready())
    assert begun(node, peer, 0, 1).units == [
        EpochVector(E1, 1, (1, 1), installed=True, wants=0),
    ]
    assert node.machine.transmission.next_seq == 0


def test_what_was_never_sent_waits_its_turn() -> None:
    node, peer, _ = stopped()
    node.submits("a")
    assert begun(node, peer, 0, 0).data == ["a"]
    assert node.did.copies == []


# --- when it goes on ---


def installed() -> tuple[Node, Peer, Peer]:
    """E1 of three knows what is kept, and that E2 does."""
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.submits("a")
    node.hears(two.vector(0, 0, 0), three.vector(0, 0, 0))
    node.hears(two.vector(0, 0, 0, installed=True))
    return node, two, three


def test_nothing_is_sent_before_all_know_what_is_kept() -> None:
    node, two, three = installed()
    assert node.did.of(EpochVector)[-1] == EpochVector(E1, 1, (0, 0, 0), installed=True, wants=0)
    assert node.submits("b").units == []
    assert node.drained().units == []
    (again,) = node.fires("reset").units
    assert again == EpochVector(E1, 1, (0, 0, 0), installed=True, wants=mask_of((E3,)))
    assert node.hears(two.vector(0, 0, 0, installed=True), three.vector(0, 0, 0)).data == []
    assert node.hears(three.vector(0, 0, 0, installed=True)).data == ["a", "b"]
    assert "reset" not in node.running


@pytest.mark.parametrize("kind", ["data", "standing", "vector"])
def test_whatever_is_said_in_an_epoch_tells_that_all_know(kind: str) -> None:
    node, two, _ = installed()
    two.goes_on(0)
    units: dict[str, Callable[[], Unit]] = {
        "data": lambda: two.sends("x"),
        "standing": two.standing,
        "vector": lambda: two.vector(0, 0, 0),
    }
    unit = units[kind]()
    out = node.hears(unit)
    assert out.resumes == [Resumed(0, 0, 0)]
    assert out.stops == (["told"] if kind == "vector" else [])
    assert out.data == ([] if kind == "vector" else ["a"])


def test_nobody_polls_when_an_epoch_has_just_begun() -> None:
    node, two, _ = installed()
    node.fires("reset")
    two.goes_on(0)
    assert node.hears(two.standing()).data == ["a"]
    assert node.fires("poll").units == []
    assert len(node.fires("poll").units) == 1


def test_whoever_comes_to_know_makes_vectors_frequent_again() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.vector(0, 0, 0), three.vector(0, 0, 0))
    reset = node.machine.config.timing.reset
    for news in (True, False):
        for _ in range(4):
            node.fires("reset")
        assert node.running["reset"] >= 4 * reset
        node.hears(two.vector(0, 0, 0, installed=True))
        node.fires("reset")
        assert (node.running["reset"] < 2 * reset) == news, "that it knows is news once"


def test_vectors_are_frequent_again_when_all_are_there() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.vector(0, 0, 0))
    for _ in range(4):
        node.fires("reset")
    reset = node.machine.config.timing.reset
    assert node.running["reset"] >= 4 * reset
    node.hears(three.vector(0, 0, 0))
    assert node.running["reset"] < 2 * reset


def test_who_was_told_early_needs_not_be_told_again() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.vector(0, 0, 0, installed=True))
    assert node.hears(three.vector(0, 0, 0, installed=True)).resumes == [Resumed(0, 0, 0)]


def test_when_nothing_travelled_nothing_is_owed() -> None:
    node, peer = Node(E1, 2), Peer(E2, 2)
    node.hears(peer.vector(0, 0))
    begun(node, peer, 0, 0)
    assert node.running == {}


def test_who_is_late_is_told_by_anything_that_is_said() -> None:
    node, two, three = installed()
    node.hears(three.vector(0, 0, 0, installed=True))
    late = three.vector(0, 0, 0, installed=True, wants=(E2,))
    node.hears_itself(Outputs(node.did[-3:]))
    node.running.pop("status", None)
    node.machine.status_timer = node.machine.reception.pending = False
    assert "status" not in node.hears(late).timers
    late = three.vector(0, 0, 0, installed=True, wants=(E1,))
    assert "status" in node.hears(late).timers
    assert len(node.fires("status").units) == 1
    assert two.epoch == 0


def test_old_units_are_thrown_away() -> None:
    node, peer, _ = stopped("x")
    begun(node, peer, 0, 1)
    old, late = Peer(E2, 2), Peer(E2, 2)
    late.epoch = -1
    out = node.hears(old.sends("x"), old.standing(), late.vector(0, 0))
    assert out.discards == ["old", "old", "old"]
    assert out.stops == []


def test_any_one_unit_may_be_lost_by_anyone() -> None:
    for unit in range(12):
        for loser in (E1, E2, E3):
            group = Group(3)
            group.submit(E1, "a", "b")
            group.submit(E2, "x")
            heard = 0
            for _ in range(6):
                while any(group.queues):
                    for node in range(3):
                        if group.queues[node]:
                            if node == loser and heard == unit:
                                group.lose(node)
                            else:
                                group.hear(node)
                            heard += node == loser
                group.fire("status")
            group.settle()
            assert set(group.delivered()) < {"a b x", "a x b", "x a b"}
            assert len(set(group.delivered())) == 1
