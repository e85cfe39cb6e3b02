"""SPO, sound rules: gaps, requests, retransmission, and loss inferred from peers (departure 3)."""

from ordercast.model.config import Timing
from ordercast.model.machine import SetTimer, TimerFired
from tests.protocols.spo.driver import E1, E2, E3, E4, Node, Outputs, Peer

REPEAT = Timing().repeat


def asked(*ranges: tuple[int, int], of: int = E1) -> object:
    """A request for ranges of one source."""
    return ((of, ranges),)


def patience(out: Outputs, name: str, duration: int) -> int:
    """How many times its duration a timer was set to, before it was spread."""
    after = out.timers[name]
    (found,) = [factor for factor in (1, 2, 4, 8) if factor * duration <= after < 2 * factor * duration]
    return found


# --- GAP ---


def test_gap_asks_at_once_for_exactly_what_is_missing() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = [e1.sends(E2) for _ in range(4)]
    assert node.hears(units[0]).requests == []
    assert node.hears(units[3]).requests == [asked((1, 3))]


def test_gap_a_status_acknowledges_nothing_behind_it() -> None:
    """What is only known to exist, or buffered ahead of the gap, is not accepted."""
    node, e1 = Node(E2), Peer(E1)
    first, _, third = (e1.sends(E2) for _ in range(3))
    node.hears(first)
    [request] = node.hears(third).statuses
    assert request.status.expects == (1, 0, 0)


def test_gap_is_counted_in_my_own_numbers() -> None:
    """Foreign packets between are neither missed nor asked for."""
    node, e1 = Node(E2), Peer(E1)
    for to in ([E3], [E2], [E3], [E2, E3], [E3]):
        e1.sends(*to)
    assert node.hears(e1.sends(E2)).requests == [asked((0, 2))]


def test_gap_asks_at_most_once_in_a_cooldown() -> None:
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    out = node.hears(e1.sends(E2))
    assert out.requests == [asked((0, 1))]
    assert Timing().cooldown <= out.timers["cooldown"] < 2 * Timing().cooldown
    e1.sends(E2)
    assert node.hears(e1.sends(E2)).requests == []
    out = node.fires("cooldown")
    assert out.requests == [asked((2, 3))], "what was newly missed, once the cooldown is over"
    assert "cooldown" in out.timers
    assert not node.machine.retransmission.gap_while_cooling_down


def test_gap_a_cooldown_that_ends_with_nothing_new_asks_nothing() -> None:
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    node.hears(e1.sends(E2))
    assert node.fires("cooldown") == []
    e1.sends(E2)
    assert node.hears(e1.sends(E2)).requests == [asked((2, 3))], "and the next one goes at once again"


def test_gap_of_all_sources_are_asked_for_in_one_request() -> None:
    node, peers = Node(E2, nodes=4), [Peer(source, 4) for source in (E1, E3, E4)]
    for peer in peers:
        peer.sends(E2)
    out = node.hears(*[peer.sends(E2) for peer in peers])
    assert out.requests == [asked((0, 1))]
    assert node.fires("cooldown").requests == [((E3, ((0, 1),)), (E4, ((0, 1),)))]


def test_gap_that_was_asked_for_raises_no_other_question() -> None:
    """What E1 sent found no place, so nobody asked; when there is one, the repeat timer will, not any unit of E3."""
    node, e1, e3, e4 = Node(E2, 4, quota=1), Peer(E1, 4), Peer(E3, 4), Peer(E4, 4)
    first, _, ahead = e1.sends(E2, E4), e1.sends(E2), e1.sends(E2)
    assert node.hears(first, ahead).requests == []
    e3.sends(E2)
    assert node.hears(e3.ready()).requests == [((E3, ((0, 1),)),)]
    node.fires("cooldown")
    assert node.hears(e4.preacknowledges(E1, below=1).ready()).delivered == [first.packet]
    assert node.hears(e3.ready()).requests == []
    assert node.fires("repeat").requests == [((E1, ((1, 3),)), (E3, ((0, 1),)))]


def test_gap_that_closes_within_the_cooldown_is_not_asked_for() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    e1.sends(E2)
    node.hears(e1.sends(E2))
    late = e3.sends(E2)
    node.hears(e3.sends(E2), late)
    assert node.fires("cooldown") == []


def test_gap_is_asked_for_only_once_however_much_comes_after_it() -> None:
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    out = node.hears(*[e1.sends(E2) for _ in range(5)])
    out += node.fires("cooldown")
    out += node.hears(*[e1.sends(E2) for _ in range(5)], e1.ready())
    assert out.requests == [asked((0, 1))]


def test_gap_everything_missing_is_asked_for_again_until_it_comes() -> None:
    """C4: a request may be lost as well; and what is held meanwhile is not asked for."""
    node, e1 = Node(E2), Peer(E1)
    a, _, c, _ = (e1.sends(E2) for _ in range(4))
    node.hears(e1.ready())
    node.hears(c)
    assert node.fires("repeat").requests == [asked((0, 2), (3, 4))]
    node.hears(a)
    assert node.fires("repeat").requests == [asked((1, 2), (3, 4))]
    assert node.fires("repeat").requests == [asked((1, 2), (3, 4))]


def test_gap_repeats_ask_for_all_sources_in_one_request() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    e1.sends(E2)
    e3.sends(E2)
    node.hears(e1.ready(), e3.ready())
    assert node.fires("repeat").requests == [((E1, ((0, 1),)), (E3, ((0, 1),)))]


def test_gap_repeats_back_off_up_to_four_times_while_nothing_arrives() -> None:
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    assert patience(node.hears(e1.ready()), "repeat", REPEAT) == 1
    assert [patience(node.fires("repeat"), "repeat", REPEAT) for _ in range(4)] == [2, 4, 4, 4]


def test_gap_repeats_are_as_fast_as_at_first_once_something_arrived() -> None:
    """Accepted or held: it came."""
    node, e1 = Node(E2), Peer(E1)
    a, _, c, _ = (e1.sends(E2) for _ in range(4))
    node.hears(e1.ready())
    for unit in (a, c):
        assert [patience(node.fires("repeat"), "repeat", REPEAT) for _ in range(2)] == [2, 4]
        node.hears(e1.repeats(unit))
        assert patience(node.fires("repeat"), "repeat", REPEAT) == 1


def test_gap_what_comes_twice_is_no_arrival() -> None:
    node, e1 = Node(E2), Peer(E1)
    a, _ = e1.sends(E2), e1.sends(E2)
    node.hears(a, e1.ready())
    node.fires("repeat")
    node.hears(e1.repeats(a))
    assert patience(node.fires("repeat"), "repeat", REPEAT) == 4


def test_gap_the_time_to_repeat_is_not_put_off_by_what_comes_meanwhile() -> None:
    """A steady stream behind a gap would put it off for ever."""
    node, e1 = Node(E2), Peer(E1)
    e1.sends(E2)
    out = node.hears(*[e1.sends(E2) for _ in range(5)], e1.ready())
    assert [output.name for output in out if isinstance(output, SetTimer)].count("repeat") == 1


def test_gap_repeats_end_when_nothing_is_missing() -> None:
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E2)
    node.hears(e1.ready())
    node.hears(unit)
    assert node.fires("repeat") == []
    assert "repeat" not in node.running


def test_gap_a_new_one_starts_repeating_without_patience_of_the_last() -> None:
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E2)
    node.hears(e1.ready())
    node.fires("repeat")
    node.fires("repeat")
    node.hears(unit)
    node.fires("repeat")
    e1.sends(E2)
    assert patience(node.hears(e1.ready()), "repeat", REPEAT) == 1
    assert patience(node.fires("repeat"), "repeat", REPEAT) == 2


def test_gap_nothing_is_asked_of_a_source_whose_quota_is_full() -> None:
    node, e1, e3 = Node(E2, quota=1), Peer(E1), Peer(E3)
    units = [e1.sends(E2, E3) for _ in range(2)]
    out = node.hears(*units)
    assert out.discards == ["full"]
    assert out.requests == []
    assert "cooldown" not in out.timers
    assert node.fires("repeat").units == []
    e3.sends(E2)
    assert node.hears(e3.ready()).requests == [asked((0, 1), of=E3)], "another source has places"
    assert node.fires("repeat").requests == [asked((0, 1), of=E3)]


def test_gap_what_was_not_asked_for_since_there_was_no_place_is_asked_for_at_once_when_there_is() -> None:
    node, e1, e3 = Node(E2, quota=1), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2, E3))
    e1.sends(E2)
    assert node.hears(e1.ready()).requests == []
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.hears(e1.ready()).requests == [asked((1, 2))]


# --- REPAIR ---


def test_repair_sends_exactly_the_ranges_that_are_asked_for() -> None:
    node, e2 = Node(E1), Peer(E2)
    packets = [node.submits(*to).numbered[0] for to in ([E2], [E3], [E2], [E2, E3], [E2], [E2])]
    copies = node.hears(e2.ready(missing=asked((1, 2), (3, 4)))).copies
    assert [copy.packet for copy in copies] == [packets[2], packets[4]], "by the numbers to E2"


def test_repair_sends_nothing_that_the_node_is_known_to_have() -> None:
    node, e2 = Node(E1), Peer(E2)
    packets = [node.submits(E2, E3).numbered[0] for _ in range(3)]
    copies = node.hears(e2.accepts(E1, below=2).ready(missing=asked((0, 9)))).copies
    assert [copy.packet for copy in copies] == packets[2:]


def test_repair_finds_numbers_wherever_the_log_begins() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E3)
    packets = [node.submits(E2).numbered[0] for _ in range(6)]
    copies = node.hears(e2.ready(missing=asked((1, 2)))).copies
    assert [copy.packet for copy in copies] == [packets[1]]
    node.fires("guard")
    copies = node.hears(e2.accepts(E1, below=3).ready(missing=asked((0, 4), (5, 6)))).copies
    assert [copy.packet for copy in copies] == [packets[2], packets[3], packets[5]]


def test_repair_knows_nothing_of_numbers_that_were_never_given() -> None:
    node, e2 = Node(E1), Peer(E2)
    assert node.hears(e2.ready(missing=asked((0, 5)))).units == []
    node.submits(E2)
    assert node.hears(e2.ready(missing=asked((1, 5), (-7, 0), (3, 2)))).units == []


def test_repair_sends_no_copy_twice_while_it_is_guarded_whoever_asks() -> None:
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    both, only_e3 = node.submits(E2, E3).numbered[0], node.submits(E3).numbered[0]
    out = node.hears(e2.ready(missing=asked((0, 1))))
    assert [copy.packet for copy in out.copies] == [both]
    assert Timing().guard <= out.timers["guard"] < 2 * Timing().guard
    assert node.hears(e2.ready(missing=asked((0, 1)))).copies == []
    out = node.hears(e3.ready(missing=asked((0, 2))))
    assert [copy.packet for copy in out.copies] == [only_e3], "the other copy served E3 as well"
    assert "guard" not in out.timers, "one guard at a time"


def test_repair_sends_a_copy_again_after_the_guard() -> None:
    node, e2 = Node(E1), Peer(E2)
    packet = node.submits(E2).numbered[0]
    for _ in range(3):
        out = node.hears(e2.ready(missing=asked((0, 1))))
        assert [copy.packet for copy in out.copies] == [packet]
        node.fires("guard")


def test_repair_is_no_new_packet() -> None:
    """A copy consumes no number and no place in the window."""
    node, e2 = Node(E1, window=2), Peer(E2)
    node.submits(E2)
    node.hears(e2.ready(missing=asked((0, 1))))
    assert node.submits(E2).data[0].packet.seq == 1


def test_repair_overlapping_ranges_bring_one_copy() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E2)
    assert len(node.hears(e2.ready(missing=asked((0, 1), (0, 1)))).copies) == 1


# --- hearsay ---


def test_hearsay_without_it_the_source_alone_shows_a_loss() -> None:
    node, e3 = Node(E2), Peer(E3)
    assert node.hears(e3.accepts(E1, below=4).ready()) == []


def test_hearsay_asks_the_source_after_a_while_about_what_only_others_know_of() -> None:
    node, e3 = Node(E2, infer_losses=True), Peer(E3)
    out = node.hears(e3.accepts(E1, below=4).ready())
    assert out.units == [], "it may be under way"
    assert Timing().inferred_loss <= out.timers["hearsay"] < 2 * Timing().inferred_loss
    out = node.fires("hearsay")
    assert out.polls == [1 << E1]
    assert out.requests == []


def test_hearsay_asks_nothing_if_it_settled_itself() -> None:
    node, e1, e3 = Node(E2, infer_losses=True), Peer(E1), Peer(E3)
    unit = e1.sends(E2, E3)
    node.hears(e3.accepts(E1, below=1).ready())
    node.hears(unit)
    assert node.fires("hearsay").polls == []
    assert "hearsay" not in node.running


def test_hearsay_of_what_is_held_is_no_news() -> None:
    """What was seen is asked for by number, not by hearsay."""
    node, e1, e3 = Node(E2, infer_losses=True), Peer(E1), Peer(E3)
    e1.sends(E2, E3)
    node.hears(e1.sends(E2, E3), e3.accepts(E1, below=2).ready())
    assert node.handle(TimerFired("hearsay")).polls == []


def test_hearsay_of_what_i_know_starts_no_timer() -> None:
    node, e3 = Node(E2, infer_losses=True), Peer(E3)
    assert node.hears(e3.ready(), e3.accepts(E1, below=0).ready()) == []


def test_hearsay_is_what_others_say_of_a_source_not_its_own_word() -> None:
    node, e1 = Node(E2, infer_losses=True), Peer(E1)
    assert "hearsay" not in node.hears(e1.sends(E2, E3)).timers


def test_hearsay_names_all_such_sources_in_one_unit_and_never_me() -> None:
    node, e3 = Node(E2, nodes=4, infer_losses=True), Peer(E3, 4)
    e3.accepts(E1, below=1).accepts(E4, below=1).accepts(E2, below=5)
    node.hears(e3.ready())
    assert node.fires("hearsay").polls == [1 << E1 | 1 << E4]


def test_hearsay_waits_once_at_a_time() -> None:
    node, e3 = Node(E2, infer_losses=True), Peer(E3)
    node.hears(e3.accepts(E1, below=1).ready())
    assert "hearsay" not in node.hears(e3.accepts(E1, below=2).ready()).timers
    node.fires("hearsay")
    assert "hearsay" in node.hears(e3.ready()).timers, "still not settled: again, when anybody says so again"
