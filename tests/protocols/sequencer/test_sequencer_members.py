"""What members do, rule by rule: sending, receiving in order, asking for what is missing, saying what they have."""

import pytest

from ordercast.model.machine import Submit
from ordercast.protocols.sequencer.units import Acknowledgment, NumberAnnouncement, Offer, Synchronised
from tests.protocols.sequencer.driver import (
    E1,
    E2,
    E3,
    Node,
    acknowledgment,
    announcement,
    broadcast,
    offer,
    packet,
    status,
    synchronise,
)

# --- sending ---


def test_a_packet_is_offered_to_the_sequencer_alone() -> None:
    node = Node(E2)
    assert node.submits("a").to(E1) == [Offer(packet(E2, 0, "a"), 0, 0)]


def test_with_a_window_of_one_the_next_waits_for_the_delivery() -> None:
    node = Node(E2, window=1)
    assert node.submits("a", "b").offers == ["a"]
    assert not node.hears(broadcast(1, "x", E3, 0)).offers
    assert not node.hears(broadcast(2, "a", E2, 0)).offers, "it came, but not in its place"
    did = node.hears(broadcast(0, "y", E1, 0))
    assert did.delivered == ["y", "x", "a"]
    assert did.offers == ["b"]
    assert [unit.received_below for unit in did.of(Offer)] == [3], "the acknowledgment rides on it"


def test_more_are_pipelined_up_to_the_window() -> None:
    node = Node(E2, window=3)
    assert node.submits(*"abcd").offers == list("abc")
    assert node.hears(broadcast(0, "a", E2, 0)).offers == ["d"]


def test_messages_are_counted_apart_from_packets() -> None:
    node = Node(E2)
    node.handle(Submit(0b111, (1, 1, 1), b"abc"))
    node.submits("d")
    assert [(unit.packet.seq, unit.packet.first) for unit in node.did.of(Offer)] == [(0, 0), (1, 3)]


def test_large_packets_go_to_everybody() -> None:
    node = Node(E2, direct_from=6)
    assert node.submits("tiny").to(None) == [Offer(packet(E2, 0, "tiny"), 0, 0, direct=True)]
    assert node.submits("abc").to(E1) == [Offer(packet(E2, 1, "abc"), 0, 0)]
    assert not Node(E2, direct_from=0).submits("x" * 2000).to(None)
    assert Node(E1, direct_from=1).submits("x" * 2000).broadcasts


def test_what_gets_no_number_is_offered_again_the_oldest_first_to_the_sequencer_alone() -> None:
    node = Node(E2, direct_from=1)
    node.submits(*"abcdef")
    assert not node.fires("need").offers, "they are not overdue yet"
    node.submits("g")
    did = node.fires("need")
    assert did.offers == list("abcd")
    assert all(send.to == E1 and send.again for send in did.sends)
    node.hears(broadcast(0, "a", E2, 0))
    node.hears(broadcast(2, "c", E2, 2))
    assert node.fires("need").offers == ["b", "d", "e", "f"], "not what was seen with a number"


def test_what_was_just_offered_is_not_offered_again() -> None:
    node = Node(E2)
    node.submits("a")
    node.fires("need")
    node.submits("b")
    assert node.fires("need").offers == ["a"]
    assert node.fires("need").offers == ["a", "b"]


def test_w9_who_lacks_something_asks_for_that_before_it_offers_anything_again() -> None:
    """On a medium with a short queue an offer would take the place of the answer, time and again."""
    node = Node(E2)
    node.submits("a")
    node.hears(broadcast(1, "c", E1))
    node.fires("need")
    assert node.fires("need").units == [acknowledgment(E2, 0, (0, 1))]
    node.hears(broadcast(0, "b", E1))
    assert node.fires("need").offers == ["a"]


# --- receiving ---


def test_numbers_are_taken_in_order_and_what_is_ahead_is_kept() -> None:
    node = Node(E3)
    assert node.hears(broadcast(0, "a")).delivered == ["a"]
    assert node.hears(broadcast(2, "c")).delivered == []
    assert node.hears(broadcast(1, "b")).delivered == ["b", "c"]
    assert (node.did.accepted, node.did.discards) == (["a", "b", "c"], [])
    assert node.hears(broadcast(1, "b")).discards == ["duplicate"]


def test_what_is_ahead_twice_is_a_duplicate() -> None:
    node = Node(E3)
    node.hears(broadcast(2, "c"))
    assert node.hears(broadcast(2, "c")).discards == ["duplicate"]


def test_s5_a_gap_is_asked_for_once_and_then_by_timer() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), broadcast(2, "c"), broadcast(3, "d"), broadcast(5, "f"))
    assert not node.did.of(Acknowledgment), "it may still be under way"
    assert node.fires("gap").of(Acknowledgment) == [acknowledgment(E3, 1, (1, 2))]
    assert node.fires("gap").of(Acknowledgment) == [acknowledgment(E3, 1, (4, 5))], (
        "found later, asked for later, and only that"
    )
    node.hears(broadcast(6, "g"), broadcast(7, "h"))
    assert "gap" not in node.running
    node.fires("need")
    assert node.fires("need").of(Acknowledgment) == [acknowledgment(E3, 1, (1, 2), (4, 5))]


def test_what_came_in_time_is_not_asked_for() -> None:
    node = Node(E3)
    node.hears(broadcast(1, "b"), broadcast(0, "a"))
    assert not node.fires("gap").units
    assert "gap" not in node.running


def test_one_request_asks_for_so_many() -> None:
    node = Node(E3)
    node.hears(broadcast(50, "z", seq=50))
    assert node.fires("gap").of(Acknowledgment) == [acknowledgment(E3, 0, (0, 32))]
    node = Node(E3)
    node.hears(broadcast(32, "y"), broadcast(34, "z"))
    node.fires("need")
    assert node.fires("need").of(Acknowledgment) == [acknowledgment(E3, 0, (0, 32))]


def test_a_status_shows_a_lost_last_broadcast() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), status(2))
    assert node.fires("gap").of(Acknowledgment) == [acknowledgment(E3, 1, (1, 2))]


@pytest.mark.parametrize("phase", [1, 2])
def test_so_does_a_synchronisation(phase: int) -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), synchronise(1, phase, 2))
    assert node.fires("gap").of(Acknowledgment) == [acknowledgment(E3, 1, (1, 2))]


def test_a_number_given_twice_to_one_packet_ends_the_group() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"))
    assert node.hears(broadcast(1, "a", seq=0)).aborts == ["packet 0 of E2 was numbered, but 1 is its next"]
    assert not node.hears(broadcast(2, "c")), "it answers nothing any more"


def test_a_number_for_what_i_never_sent_ends_the_group() -> None:
    did = Node(E3).hears(broadcast(0, "a", E3))
    assert did.aborts == ["packet 0 of E3 was numbered, but E3 never sent it"]


# --- packets that their senders broadcast ---


def direct(source: int, seq: int, name: str) -> Offer:
    return offer(source, seq, name, direct=True)


def test_data_wait_for_their_number() -> None:
    node = Node(E3)
    assert not node.hears(direct(E2, 0, "a"), direct(E2, 1, "b")).delivered
    assert node.hears(announcement(0, (E2, 0), (E2, 1))).delivered == ["a", "b"]
    assert not node.machine.reception.unnumbered


def test_a_number_waits_for_its_data_and_asks_for_them() -> None:
    node = Node(E3)
    node.hears(announcement(0, (E2, 0)))
    assert "gap" in node.running
    assert node.hears(direct(E2, 0, "a")).delivered == ["a"]
    assert not node.fires("gap").units
    node.hears(announcement(1, (E2, 1)))
    assert node.fires("gap").of(Acknowledgment) == [acknowledgment(E3, 1, (1, 2))]
    assert node.hears(broadcast(1, "b")).delivered == ["b"]
    assert not node.machine.reception.announced


def test_a_sender_has_its_own_data() -> None:
    node = Node(E2, direct_from=1)
    node.submits("a")
    assert node.hears(announcement(0, (E2, 0))).delivered == ["a"]


def test_my_data_are_not_taken_for_those_of_another_with_the_same_number() -> None:
    node = Node(E3)
    node.submits("x")
    assert not node.hears(announcement(0, (E2, 0))).accepted
    assert node.hears(direct(E2, 0, "a")).delivered == ["a"]


def test_data_are_kept_as_far_ahead_as_the_bytes_of_the_history_allow() -> None:
    """Of packets of 5 bytes and more, a history of 9 bytes holds two, and there is no third while it has that many."""
    node = Node(E3, window=1, history=100, history_bytes=9, direct_from=5)
    assert not node.hears(direct(E2, 2, "sent behind two that I lack")).discards
    assert node.hears(direct(E2, 3, "too far")).discards == ["ahead"]


def test_data_are_kept_once_and_not_without_end() -> None:
    """Its sender is ahead by its window at most, and by what the sequencer keeps."""
    node = Node(E3, window=2, history=3)
    node.hears(direct(E2, 1, "b"))
    assert node.hears(direct(E2, 1, "b")).discards == ["duplicate"]
    assert node.hears(direct(E2, 5, "f")).discards == ["ahead"]
    assert not node.hears(direct(E2, 4, "e")).discards
    node.hears(broadcast(0, "a"), broadcast(1, "b"))
    assert list(node.machine.reception.unnumbered) == [(E2, 4)]
    assert node.hears(direct(E2, 1, "b")).discards == ["duplicate"]
    assert not node.hears(direct(E2, 5, "f")).discards


def test_an_order_that_came_before_changes_nothing() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), broadcast(2, "c"))
    did = node.hears(announcement(0, (E2, 0), (E2, 1), (E2, 2)))
    assert not did.delivered
    assert node.machine.reception.announced == {(E2, 1): 1}


# --- saying what it has ---


def test_a_quiet_node_says_what_it_has_after_so_many_receipts() -> None:
    node = Node(E3, history=8)
    did = node.hears(*[broadcast(number, f"m{number}") for number in range(5)])
    assert not did.of(Acknowledgment)
    assert node.hears(broadcast(5, "m5")).of(Acknowledgment) == [acknowledgment(E3, 6)]
    assert not node.hears(broadcast(6, "m6")).of(Acknowledgment)


def test_a_node_that_sends_need_not() -> None:
    node = Node(E2, history=8)
    node.hears(*[broadcast(number, f"m{number}", E3) for number in range(5)])
    node.submits("a")
    assert not node.hears(broadcast(5, "m5", E3)).of(Acknowledgment)


def test_nor_a_node_that_offers_something_again() -> None:
    node = Node(E2, history=8)
    node.submits("a")
    node.hears(*[broadcast(number, f"m{number}", E3) for number in range(5)])
    node.fires("need")
    assert [unit.received_below for unit in node.fires("need").of(Offer)] == [5]
    assert not node.hears(broadcast(5, "m5", E3)).of(Acknowledgment)


def test_s6_after_a_while_of_silence_it_says_what_it_has_and_then_asks() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"))
    assert not node.fires("need").units, "something has come since"
    assert node.fires("need").to(E1) == [acknowledgment(E3, 1)]
    assert node.fires("need").to(E1) == [acknowledgment(E3, 1, wants_status=True)]
    did = node.hears(status(1, stable=1))
    assert did.everywhere == ["a"]
    assert not node.machine.reception.history
    assert not node.fires("need").units
    assert not node.running, "it is at rest"


def test_questions_back_off_less_so_while_the_sequencer_is_silent() -> None:
    for answers, least, most in ((True, 8, 16), (False, 2, 4)):
        node = Node(E3)
        node.hears(broadcast(0, "a"))
        node.fires("need")
        waits = []
        for _ in range(6):
            waits.append(node.running["need"])
            if answers:
                node.hears(status(1))
            node.fires("need")
        repeat = node.machine.config.timing.repeat
        assert waits[0] < 2 * repeat
        assert least * repeat <= waits[-1] < most * repeat
        node.hears(broadcast(1, "b"))
        node.fires("need")
        assert node.running["need"] < 2 * repeat


def test_in_a_view_of_a_changing_group_unanswered_questions_are_counted_to_an_end() -> None:
    """They tell nobody that the sequencer is gone, and only spread the timer: the count goes past the limit by one."""
    node = Node(E2, suspect_after=3, views=True)
    node.submits("a")
    counts = []
    for _ in range(9):
        node.fires("need")
        counts.append(node.machine.timers.unanswered)
    assert counts == [0, 1, 2, 3, 4, 4, 4, 4, 4], "it asks when the timer fires first"


def test_nobody_asks_while_more_becomes_known_as_received_by_everybody() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), broadcast(1, "b"))
    for _ in range(3):
        node.fires("need")
    repeat = node.machine.config.timing.repeat
    assert node.running["need"] >= 2 * repeat
    assert node.hears(status(2, stable=1)).everywhere == ["a"]
    assert not node.fires("need").units
    assert node.running["need"] < 2 * repeat


def test_it_answers_when_it_is_asked_at_once_or_when_it_can() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"))
    assert not node.hears(status(1, reply_from=0b010)).units
    assert node.hears(status(1, reply_from=0b100)).to(E1) == [acknowledgment(E3, 1)]
    assert not node.hears(status(3, reply_from=0b100)).units
    assert not node.hears(broadcast(1, "b")).units
    assert node.hears(broadcast(2, "c")).to(E1) == [acknowledgment(E3, 3)]


def test_being_asked_it_asks_again_for_what_was_missed_long_ago() -> None:
    node = Node(E3)
    node.hears(broadcast(1, "b"))
    node.fires("gap")
    assert node.hears(status(2, reply_from=0b100)).of(Acknowledgment) == [acknowledgment(E3, 0, (0, 1))]


def test_a_status_that_claims_too_much_ends_the_group() -> None:
    did = Node(E3).hears(status(1, stable=1))
    assert did.aborts == ["E1 says that everybody has 1 broadcasts, but I have 0"]


# --- synchronisation ---


def test_the_first_phase_stops_a_node_and_is_answered_when_it_has_everything() -> None:
    node = Node(E3)
    did = node.hears(broadcast(0, "a"), synchronise(1, 1, 2))
    assert not did.units
    assert not node.submits("x").offers
    assert node.hears(broadcast(1, "b")).to(E1) == [acknowledgment(E3, 2)]
    assert node.hears(synchronise(1, 1, 2)).to(E1) == [acknowledgment(E3, 2)]
    assert not node.hears(synchronise(1, 1, 2, reply_from=0b010)).units
    did = node.hears(synchronise(1, 2, 2, stable=2))
    assert did.to(E1) == [Synchronised(0, E3, 1, 2), Offer(packet(E3, 0, "x"), 0, 2)]
    assert did.everywhere == ["a", "b"]


def test_whoever_waits_to_send_asks_too() -> None:
    node = Node(E3)
    assert not node.hears(synchronise(1, 1, 0)).offers
    assert not node.running
    node.submits("x")
    assert node.fires("need").to(E1) == [acknowledgment(E3, 0, wants_status=True)]


def test_whoever_lacks_something_asks_until_it_has_it() -> None:
    node = Node(E3)
    node.hears(status(1))
    node.fires("gap")
    node.fires("need")
    for _ in range(3):
        assert node.fires("need").to(E1) == [acknowledgment(E3, 0, (0, 1))]


def test_s7_an_old_first_phase_stops_nobody() -> None:
    node = Node(E3)
    node.hears(synchronise(1, 1, 0), synchronise(1, 2, 0))
    node.hears(synchronise(1, 1, 0))
    assert node.submits("x").offers == ["x"]
    node.hears(synchronise(2, 1, 0))
    assert node.hears(synchronise(1, 2, 0)).discards == ["old"]
    assert not node.submits("y").offers


def test_a_later_broadcast_ends_it_too() -> None:
    node = Node(E3)
    node.hears(synchronise(1, 1, 0))
    assert not node.submits("x").offers
    assert node.hears(broadcast(0, "a")).offers == ["x"]


# --- resilience ---


def test_with_resilience_the_lowest_members_say_at_once_what_they_hold() -> None:
    nodes = {me: Node(me, nodes=4, resilience=2) for me in (E2, E3, 3)}
    for me, node in nodes.items():
        did = node.hears(broadcast(0, "a", E1, commit=0, nodes=4))
        assert did.accepted == ["a"]
        assert not did.delivered
        assert bool(did.of(Acknowledgment)) == (me != 3)
        assert node.hears(status(1, commit=1)).delivered == ["a"]


def test_w4_what_everybody_has_is_delivered_before_it_is_forgotten() -> None:
    node = Node(E3, resilience=1)
    node.hears(broadcast(0, "a", commit=0))
    did = node.hears(status(1, commit=0, stable=1))
    assert did.delivered == did.everywhere == ["a"]
    assert not node.machine.reception.history
    assert node.hears(announcement(1, (E3, 0))).delivered == []


def test_orders_say_what_may_be_delivered_too() -> None:
    node = Node(E3, resilience=1)
    node.hears(broadcast(0, "a", commit=0), offer(E2, 1, "b", direct=True))
    assert node.hears(NumberAnnouncement(0, E1, 1, ((E2, 1),), 1, 0)).delivered == ["a"]
