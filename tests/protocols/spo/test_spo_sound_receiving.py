"""SPO, sound rules: RECEIVE DT and RECEIVE RR."""

from tests.protocols.spo.driver import E1, E2, E3, Node, Peer

# --- RECEIVE DT ---


def test_receive_dt_drops_a_duplicate() -> None:
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E2, E3)
    node.hears(unit)
    out = node.hears(e1.repeats(unit))
    assert out.discards == ["duplicate"]
    assert out.accepted == []


def test_receive_dt_the_duplicate_test_comes_first() -> None:
    """D1: an old foreign packet whose number to me fits again must not move what is expected back."""
    node, e1 = Node(E2), Peer(E1)
    foreign, later = e1.sends(E3), e1.sends(E3)
    node.hears(foreign, later)
    assert node.machine.expected[E1] == 2
    assert node.hears(foreign).discards == ["duplicate"]
    assert node.machine.expected[E1] == 2


def test_receive_dt_skips_what_is_foreign() -> None:
    node, e1 = Node(E2), Peer(E1)
    out = node.hears(e1.sends(E3))
    assert out.discards == ["foreign"]
    assert len(out) == 1
    assert node.machine.expected[E1] == 1
    assert node.machine.expected_to_me[E1] == 0
    assert node.machine.log_sizes().accepted == 0


def test_receive_dt_skips_what_is_foreign_though_something_behind_it_is_missing() -> None:
    node, e1 = Node(E2), Peer(E1)
    foreign, _, ahead = e1.sends(E3), e1.sends(E2), e1.sends(E2)
    assert node.hears(ahead, foreign).discards == ["foreign"]
    assert (node.machine.expected[E1], node.machine.expected_to_me[E1]) == (1, 0)


def test_receive_dt_accepts_my_next_number() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = [e1.sends(E2, E3), e1.sends(E3), e1.sends(E2, E3)]
    out = node.hears(*units)
    assert out.accepted == [units[0].packet, units[2].packet]
    assert node.machine.expected[E1] == 3
    assert node.machine.expected_to_me[E1] == 2


def test_receive_dt_holds_what_is_ahead_of_a_gap_and_accepts_it_in_order() -> None:
    node, e1 = Node(E2), Peer(E1)
    a, b, c, d = (e1.sends(E2, E3) for _ in range(4))
    out = node.hears(d, b, c)
    assert out.accepted == []
    assert out.discards == []
    assert node.machine.log_sizes().held == 3
    assert node.hears(a).accepted == [a.packet, b.packet, c.packet, d.packet]
    assert node.machine.log_sizes().held == 0
    assert node.machine.expected[E1] == 4


def test_receive_dt_accepts_from_hold_only_as_far_as_nothing_is_missing() -> None:
    node, e1 = Node(E2), Peer(E1)
    a, b, c, d = (e1.sends(E2, E3) for _ in range(4))
    node.hears(b, d)
    assert node.hears(a).accepted == [a.packet, b.packet]
    assert node.machine.expected[E1] == 2
    assert node.hears(c).accepted == [c.packet, d.packet]


def test_receive_dt_what_is_held_comes_twice_and_is_dropped() -> None:
    node, e1 = Node(E2), Peer(E1)
    _, b = e1.sends(E2), e1.sends(E2)
    node.hears(b)
    assert node.hears(e1.repeats(b)).discards == ["duplicate"]
    assert node.machine.log_sizes().held == 1


def test_receive_dt_never_holds_what_is_foreign() -> None:
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    out = node.hears(e1.sends(E3))
    assert out.discards == ["foreign"]
    assert node.machine.log_sizes().held == 0
    assert node.machine.expected[E1] == 0, "but it shows that something is missing"
    assert out.requests == [((E1, ((0, 1),)),)]


def test_receive_dt_sees_the_highest_header_and_jumps_there_when_the_gap_is_closed() -> None:
    """a and d are for me, b, c and e are not; all but e come late or never."""
    node, e1 = Node(E2), Peer(E1)
    a, _, _, d, e = e1.sends(E2), e1.sends(E3), e1.sends(E3), e1.sends(E2), e1.sends(E3)
    node.hears(e)
    assert (node.machine.seen[E1], node.machine.seen_to_me[E1]) == (5, 2)
    node.hears(e1.repeats(d))
    assert (node.machine.seen[E1], node.machine.seen_to_me[E1]) == (5, 2), "the highest, not the last"
    assert node.machine.expected[E1] == 0
    assert node.hears(e1.repeats(a)).accepted == [a.packet, d.packet]
    assert node.machine.expected[E1] == 5, "b, c and e were not for me"


def test_receive_dt_what_is_for_me_is_not_expected_past_before_it_came() -> None:
    node, e1 = Node(E2), Peer(E1)
    a, b = e1.sends(E2), e1.sends(E2)
    c = e1.sends(E3)
    node.hears(c, a)
    assert node.machine.expected[E1] == 1
    node.hears(b)
    assert node.machine.expected[E1] == 3


def test_receive_dt_refuses_what_finds_no_place() -> None:
    node, e1, e3 = Node(E2, quota=2), Peer(E1), Peer(E3)
    units = [e1.sends(E2, E3) for _ in range(3)]
    out = node.hears(*units)
    assert out.accepted == [unit.packet for unit in units[:2]]
    assert out.discards == ["full"]
    assert node.machine.expected[E1] == 2
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.hears(e1.repeats(units[2])).accepted == [units[2].packet], "a place came free"


def test_receive_dt_a_place_is_taken_until_the_packet_is_delivered() -> None:
    node, e1, e3 = Node(E2, quota=1), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2, E3))
    unit = e1.sends(E2)
    assert node.hears(unit).discards == ["full"]
    node.hears(e3.accepts(E1, below=1).ready())
    assert node.hears(e1.repeats(unit)).discards == ["full"], "pre-acknowledged is not delivered"
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.hears(e1.repeats(unit)).delivered == [unit.packet]


def test_departure_6_places_are_kept_for_each_source_apart() -> None:
    node, e1, e3 = Node(E2, quota=1), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2, E3))
    unit = e3.sends(E1, E2)
    assert node.hears(unit).accepted == [unit.packet]


def test_receive_dt_holds_only_what_finds_a_place_after_all_before_it() -> None:
    node, e1 = Node(E2, quota=3), Peer(E1)
    a, b, c, d, e = (e1.sends(E2, E3) for _ in range(5))
    assert node.hears(a, c).discards == []
    assert node.hears(d).discards == ["full"]
    assert node.hears(e).discards == ["full"]
    assert node.hears(b).accepted == [b.packet, c.packet]
    assert node.machine.buffered[E1] == 3


def test_receive_dt_a_refused_packet_is_missing_like_a_lost_one() -> None:
    node, e1, e3 = Node(E2, quota=1), Peer(E1), Peer(E3)
    a, b = e1.sends(E2, E3), e1.sends(E2)
    node.hears(a, b)
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.fires("repeat").requests == [((E1, ((1, 2),)),)]
    assert node.hears(e1.repeats(b)).delivered == [b.packet]


# --- RECEIVE RR ---


def test_receive_rr_skips_foreign_numbers() -> None:
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E3)
    e1.sends(E1)
    assert node.hears(e1.ready()) == []
    assert node.machine.expected[E1] == 2


def test_receive_rr_shows_a_lost_last_packet() -> None:
    """C3: nothing comes after it that could."""
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    assert node.hears(e1.ready()).requests == [((E1, ((0, 1),)),)]
    assert node.machine.expected[E1] == 0


def test_receive_rr_shows_no_gap_where_all_is_held() -> None:
    node, e1 = Node(E2), Peer(E1)
    a, b = e1.sends(E2), e1.sends(E2)
    assert node.hears(b).requests == [((E1, ((0, 1),)),)]
    assert node.hears(e1.ready()).requests == [], "b is held, and a was asked for"
    assert node.hears(a).accepted == [a.packet, b.packet]


def test_receive_rr_an_older_one_takes_nothing_back() -> None:
    node, e1 = Node(E2), Peer(E1)
    old = e1.ready()
    node.hears(e1.sends(E2))
    node.hears(old)
    assert (node.machine.seen[E1], node.machine.seen_to_me[E1], node.machine.expected[E1]) == (1, 1, 1)


def test_receive_rr_jumps_over_foreign_numbers_when_the_gap_is_closed() -> None:
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E2)
    e1.sends(E3)
    node.hears(e1.ready())
    assert node.hears(e1.repeats(unit)).accepted == [unit.packet]
    assert node.machine.expected[E1] == 2


def test_receive_rr_who_is_wanted_owes_a_status_and_others_do_not() -> None:
    node, e1 = Node(E2), Peer(E1)
    assert node.hears(e1.ready(wants=[E3])) == []
    assert node.hears(e1.ready(wants=[E2, E3])).timers.keys() == {"status"}
    assert len(node.fires("status").statuses) == 1


def test_receive_rr_a_request_to_another_source_is_not_mine_to_answer() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E2)
    assert node.hears(e2.ready(missing=((E3, ((0, 1),)),))).units == []
    assert len(node.hears(e2.ready(missing=((E3, ((0, 1),)), (E1, ((0, 1),))))).copies) == 1


def test_departure_4_a_status_passes_a_closed_window() -> None:
    """C7: both have sent their one packet before hearing anything."""
    node, e2 = Node(E1, window=1), Peer(E2)
    node.submits(E2)
    node.submits(E2)
    out = node.hears(e2.sends(E1, E3))
    assert out.data == []
    assert [ready.status.expects for ready in out.statuses] == [(1, 1, 0)]


def test_a_status_need_not_come_from_a_destination_to_be_heard() -> None:
    node, e3 = Node(E1), Peer(E3)
    node.submits(E2)
    e3.accepts(E1, below=1)
    assert node.hears(e3.ready()) == []
    assert node.machine.accepted.acknowledged_below[E3] == (1, 0, 0)
