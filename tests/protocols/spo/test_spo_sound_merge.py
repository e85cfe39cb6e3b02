"""SPO, sound rules: MERGE, and how what is known of a packet rises."""

from ordercast.model.machine import Deliver, Level, Reached
from ordercast.protocols.spo.units import Data
from tests.protocols.spo.driver import E1, E2, E3, E4, Node, Peer

# --- MERGE (departure 7) ---


def test_merge_the_newest_stamp_wins_and_an_older_status_is_ignored() -> None:
    node, e2 = Node(E1), Peer(E2)
    packet = node.submits(E1, E2).numbered[0]
    old, old_data = e2.has_free(1).ready(), e2.sends(E1)
    new = e2.has_free(9).accepts(E1, below=1).ready()
    assert node.hears(new).preacknowledged == [packet]
    for older in (old, old_data):
        node.hears(older)
        assert node.machine.accepted.acknowledged_below[E2] == new.status.expects
        assert node.machine.preacknowledged.acknowledged_below[E2] == new.status.preacknowledged_below
        assert node.machine.free[E2] == 9


def test_merge_an_older_status_that_says_as_much_is_ignored_too() -> None:
    """What is free now is not what was free then."""
    node, e2 = Node(E1), Peer(E2)
    old_data, old = e2.has_free(1).sends(E1), e2.ready()
    new = e2.has_free(9).ready()
    assert old_data.status.expects == old.status.expects == new.status.expects
    for older in (old, old_data):
        node.hears(new, older)
        assert node.machine.free[E2] == 9


def test_merge_of_equal_stamps_the_first_stays() -> None:
    """A stamp is one transmission: what comes again says the same."""
    node, e2 = Node(E1), Peer(E2)
    said = e2.accepts(E1, below=0).ready()
    node.hears(said)
    before = node.machine.snapshot()
    assert node.hears(said) == []
    assert node.machine.snapshot() == before


def test_merge_nobody_takes_back_what_it_has_said() -> None:
    """A look at a packet's destinations that was broken off goes on where it was: who has passed has passed."""
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    packet = node.submits(E1, E2, E3).numbered[0]
    node.hears(e2.has_free(9).preacknowledges(E1, below=1).ready())
    before = node.machine.snapshot()
    e2.preacknowledged_below[E1] = 0
    node.hears(e2.ready())
    e2.preacknowledged_below[E1] = 1
    node.hears(e2.has_free(5).accepts(E1, below=0).ready())
    assert node.machine.snapshot() == before
    twin = Node(E1)
    twin.machine.restore(before)
    last = e3.preacknowledges(E1, below=1).ready()
    out = node.hears(last)
    assert packet in out.delivered
    assert out == twin.hears(last)


def test_merge_the_newest_status_replaces_also_what_is_free_now() -> None:
    """Not the largest: free places come and go."""
    node, e2 = Node(E1), Peer(E2)
    node.hears(e2.has_free(9).ready(), e2.has_free(2).ready())
    assert node.machine.free[E2] == 2


def test_merge_takes_facts_from_a_unit_whatever_becomes_of_it() -> None:
    """Accepted, held, foreign, ahead of a gap and foreign, duplicate, refused: its status is true all the same."""

    def fates() -> list[tuple[str, Node, Peer, Data]]:
        made = []
        for fate in ("accepted", "held", "foreign", "foreign ahead", "duplicate", "full"):
            node, e3 = Node(E1, quota=2), Peer(E3)
            node.submits(E1, E3)
            e3.accepts(E1, below=0)
            to = [E2] if fate.startswith("foreign") else [E1, E2]
            if fate in {"held", "foreign ahead"}:
                e3.sends(E1, E2)  # lost
            if fate == "full":
                node.hears(e3.sends(E1, E2), e3.sends(E1, E2))
            unit = e3.sends(*to)
            if fate == "duplicate":
                node.hears(unit)
            made.append((fate, node, e3, e3.accepts(E1, below=1).repeats(unit)))
        return made

    for fate, node, e3, unit in fates():
        out = node.hears(unit)
        assert len(out.preacknowledged) == 1, f"a unit that is {fate}"
        assert node.machine.accepted.acknowledged_below[E3] == unit.status.expects
        assert node.machine.stamps[E3] == e3.stamp
        assert out.discards == {
            "accepted": [], "held": [], "foreign": ["foreign"], "foreign ahead": ["foreign"],
            "duplicate": ["duplicate"], "full": ["full"],
        }[fate]  # fmt: skip


def test_merge_my_own_acceptance_needs_no_word_from_me() -> None:
    """Own columns are always live: when all others have said so, acceptance here is the last that is needed."""
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    unit = e1.sends(E2, E3)
    node.hears(e3.accepts(E1, below=1).ready())
    out = node.hears(unit)
    assert out.accepted == out.preacknowledged == [unit.packet]
    assert out.units == [], "nothing had to be said for it"


def test_merge_my_own_preacknowledgment_needs_no_word_from_me() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    unit = e1.sends(E2, E3)
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.hears(unit).delivered == [unit.packet]


def test_merge_a_unit_proves_that_its_source_has_it() -> None:
    """E1 is a destination of its own packet: nobody waits for another word of E1 that it accepted it."""
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E1, E2)
    out = node.hears(unit)
    assert out.preacknowledged == [unit.packet]
    assert out.acknowledged == []


# --- the levels: departures 1 and 2 ---


def test_departure_1_acknowledgment_rests_on_what_each_says_to_have_preacknowledged() -> None:
    """A1: that E3 accepted the packet, and packets after it, and was heard of by all, is not enough."""
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    unit = e1.sends(E2, E3)
    node.hears(unit)
    assert node.hears(e3.accepts(E1, below=1).ready()).preacknowledged == [unit.packet]
    assert unit.packet not in node.hears(e3.sends(E2), e3.sends(E1, E2, E3), e3.ready()).delivered
    assert node.hears(e3.preacknowledges(E1, below=1).ready()).delivered[:1] == [unit.packet]


def test_departure_1_what_is_for_one_node_only_is_acknowledged_when_it_is_accepted() -> None:
    """A2: no packet of its own, to itself or to anybody, is needed for that."""
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E2)
    out = node.hears(unit)
    packet = unit.packet
    assert out[:4] == [
        Reached(Level.ACCEPTED, packet),
        Reached(Level.PREACKNOWLEDGED, packet),
        Reached(Level.ACKNOWLEDGED, packet),
        Deliver(packet),
    ]


def test_levels_wait_for_every_destination_and_for_nobody_else() -> None:
    node, e1, e3, e4 = Node(E2, nodes=4), Peer(E1, 4), Peer(E3, 4), Peer(E4, 4)
    unit = e1.sends(E2, E3)
    node.hears(unit)
    assert node.hears(e4.preacknowledges(E1, below=1).ready()).preacknowledged == []
    out = node.hears(e3.preacknowledges(E1, below=1).ready())
    assert out.preacknowledged == out.acknowledged == [unit.packet]
    to_three = e1.sends(E2, E3, E4)
    node.hears(to_three)
    assert node.hears(e3.accepts(E1, below=2).ready()).preacknowledged == []
    assert node.hears(e4.accepts(E1, below=2).ready()).preacknowledged == [to_three.packet]
    assert node.hears(e4.preacknowledges(E1, below=2).ready()).acknowledged == []
    assert node.hears(e3.preacknowledges(E1, below=2).ready()).acknowledged == [to_three.packet]


def test_levels_a_bound_is_exclusive() -> None:
    """Who expects number 1 has accepted number 0 and no more."""
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    units = [e1.sends(E2, E3) for _ in range(3)]
    packets = [unit.packet for unit in units]
    node.hears(*units)
    assert node.hears(e3.accepts(E1, below=1).ready()).preacknowledged == packets[:1]
    assert node.hears(e3.accepts(E1, below=3).ready()).preacknowledged == packets[1:]
    assert node.hears(e3.preacknowledges(E1, below=2).ready()).acknowledged == packets[:2]
    assert node.hears(e3.preacknowledges(E1, below=3).ready()).acknowledged == packets[2:]


def test_levels_the_next_packet_waits_for_each_destination_anew() -> None:
    """What the last of them said by now counts for what it said, not for the others."""
    node, e1, e3, e4 = Node(E2, nodes=4), Peer(E1, 4), Peer(E3, 4), Peer(E4, 4)
    first, second = e1.sends(E2, E3, E4), e1.sends(E2, E3, E4)
    node.hears(first, second)
    node.hears(e3.accepts(E1, below=1).ready())
    assert node.hears(e4.accepts(E1, below=2).ready()).preacknowledged == [first.packet]
    assert node.hears(e3.accepts(E1, below=2).ready()).preacknowledged == [second.packet]


def test_levels_of_packets_to_different_sets_are_looked_at_apart() -> None:
    node, e1, e2, e3 = Node(E4, nodes=4), Peer(E1, 4), Peer(E2, 4), Peer(E3, 4)
    to_e2, to_e3 = e1.sends(E2, E4), e1.sends(E3, E4)
    node.hears(to_e2, to_e3)
    assert node.hears(e2.accepts(E1, below=9).ready()).preacknowledged == [to_e2.packet]
    assert node.hears(e3.accepts(E1, below=2).ready()).preacknowledged == [to_e3.packet]


def test_levels_of_one_source_rise_in_its_order() -> None:
    """What could rise by itself waits behind what cannot; what another source sent does not."""
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    shared, alone, other = e1.sends(E2, E3), e1.sends(E2), e3.sends(E2)
    out = node.hears(shared, alone, other)
    assert out.delivered == [other.packet]
    out = node.hears(e3.preacknowledges(E1, below=1).ready())
    assert out.delivered == [shared.packet, alone.packet]


def test_departure_2_what_others_have_accepted_never_holds_a_packet_up() -> None:
    """C0, C2: E1 has accepted of E3 what has not reached me, and may never, if it is not for me."""
    node, e1 = Node(E2), Peer(E1)
    unit = e1.accepts(E3, below=7).sends(E2)
    assert node.hears(unit).accepted == [unit.packet]


def test_departure_2_a_lost_foreign_packet_shuts_nobody_out() -> None:
    """C1: a is for E3 only and lost here; b has my next number."""
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E3)
    unit = e1.sends(E2)
    out = node.hears(unit)
    assert out.accepted == [unit.packet]
    assert out.requests == []
    assert node.machine.expected[E1] == 2
