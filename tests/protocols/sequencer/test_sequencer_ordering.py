"""The sequencer's part, rule by rule: numbers, duplicates, the table, the history, synchronisation, quiet times."""

import pytest

from ordercast.model.machine import Discard
from ordercast.model.units import Unit
from ordercast.protocols.sequencer.units import (
    Broadcast,
    NumberAnnouncement,
    Offer,
    SequencerStatus,
    Synchronise,
    Synchronised,
)
from tests.protocols.sequencer.driver import E1, E2, E3, E4, Node, acknowledgment, broadcast, offer


def sequencer(**options: int) -> Node:
    return Node(E1, **options)


def test_an_offer_gets_the_next_number_and_goes_to_everybody() -> None:
    node = sequencer()
    did = node.hears(offer(E2, 0, "a"))
    assert did.to(None) == [broadcast(0, "a", stable=0)]
    assert did.accepted == did.delivered == ["a"]
    assert node.hears(offer(E3, 0, "b")).broadcasts == ["1:b"]


def test_the_sequencers_own_go_out_at_once_in_one_unit() -> None:
    did = sequencer().submits("a", "b")
    assert did.broadcasts == ["0:a", "1:b"]
    assert did.delivered == ["a", "b"]
    assert len(did.units) == 2


def test_s1_the_first_message_of_a_node_is_no_duplicate() -> None:
    node = sequencer()
    assert node.hears(offer(E2, 0, "a")).broadcasts == ["0:a"]
    assert node.hears(offer(E3, 0, "b")).broadcasts == ["1:b"]


def test_s2_what_somebody_lacks_is_kept() -> None:
    node = sequencer(history=1)
    node.hears(offer(E2, 0, "a"))
    did = node.hears(offer(E2, 1, "b", received=1))  # E3 has said nothing
    assert not did.broadcasts
    assert node.hears(acknowledgment(E3, 0, (0, 1))).copies == [0]
    assert node.hears(acknowledgment(E3, 1)).broadcasts == ["1:b"]


def test_s3_a_duplicate_is_answered_with_the_whole_broadcast() -> None:
    node = sequencer()
    node.hears(offer(E2, 0, "a"))
    did = node.hears(offer(E2, 0, "a"))
    assert did.to(E2) == [broadcast(0, "a")]
    assert did.discards == ["duplicate"]
    assert did.copies == [0]


def test_who_has_it_is_told_only_how_things_stand() -> None:
    node = sequencer()
    node.hears(offer(E2, 0, "a"))
    did = node.hears(offer(E2, 0, "a", received=1))
    assert not did.copies
    assert did.to(E2) == [SequencerStatus(0, E1, 1, 1, 0)]


def test_s4_a_delayed_copy_of_an_old_offer_is_not_numbered_again() -> None:
    node = sequencer()
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b"))
    assert node.hears(offer(E2, 0, "a", received=2)).discards == ["duplicate"]
    assert node.machine.reception.received_below == 2
    assert node.machine.orderer.acknowledged == [2, 2, 0]


def test_the_table_never_goes_backwards_and_takes_every_unit() -> None:
    node = sequencer()
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b"))
    node.hears(acknowledgment(E2, 2), acknowledgment(E2, 1), offer(E2, 2, "c", received=0), acknowledgment(E3, 1))
    assert node.machine.orderer.acknowledged == [3, 2, 1]


def test_purging_takes_the_lowest_of_the_table() -> None:
    node = Node(E1, nodes=6)  # the paper's example: 8, 7, 9, 8, 6, 8
    node.submits(*"abcdefghi")
    for member, has in zip(range(1, 6), (7, 9, 8, 6, 8), strict=True):
        node.hears(acknowledgment(member, has))
    assert node.machine.reception.stable_below == 6
    assert min(node.machine.reception.history) == 6
    assert node.did.everywhere == list("abcdef")
    assert set(node.machine.orderer.number_of.values()) == {6, 7, 8}


def test_each_senders_order_is_kept_whatever_comes_first() -> None:
    node = sequencer()
    assert not node.hears(offer(E2, 2, "c")).broadcasts
    assert not node.hears(offer(E2, 1, "b")).broadcasts
    assert node.hears(offer(E3, 0, "x")).broadcasts == ["0:x"]
    assert node.hears(offer(E2, 0, "a")).broadcasts == ["1:a", "2:b", "3:c"]


def test_no_more_than_a_window_is_kept() -> None:
    node = sequencer(window=2)
    assert node.hears(offer(E2, 2, "c")).discards == ["ahead"]
    assert node.hears(offer(E2, 1, "b")).discards == []
    assert node.hears(offer(E2, 1, "b")).discards == ["duplicate"]
    assert node.hears(offer(E2, 0, "a")).broadcasts == ["0:a", "1:b"]


def test_senders_take_turns_when_there_is_room_again() -> None:
    node = sequencer(history=1)
    node.submits("s")
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b"), offer(E3, 0, "x"))
    order_of = []
    for number in range(1, 4):
        node.hears(acknowledgment(E2, number))
        order_of += node.hears(acknowledgment(E3, number)).broadcasts
    assert order_of == ["1:a", "2:x", "3:b"]


def test_a_full_history_asks_after_a_while_and_synchronises_if_that_does_not_help() -> None:
    node = sequencer(history=2)
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b"))
    node.hears(offer(E2, 2, "c", received=2), offer(E2, 3, "d", received=2))
    assert node.running["status"] < 2 * node.machine.config.timing.cooldown
    waits = node.running["status"] = 7
    assert not node.hears(offer(E3, 0, "x")).of(SequencerStatus)
    assert node.running["status"] == waits, "it waits once for each filling"
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 2, 2, 0, reply_from=0b100)]
    assert node.fires("status").of(Synchronise) == [Synchronise(0, E1, 1, 1, 2, 0, reply_from=0b100)]
    assert not node.hears(offer(E2, 4, "e")).broadcasts, "nothing is numbered meanwhile"
    assert not node.hears(acknowledgment(E3, 1)).of(Synchronise), "it does not have everything yet"
    did = node.hears(acknowledgment(E3, 2))
    assert did.of(Synchronise) == [Synchronise(0, E1, 1, 2, 2, 2, reply_from=0b110)]
    assert not did.broadcasts
    node.hears(Synchronised(0, E3, 1, 2))
    assert node.hears(Synchronised(0, E2, 1, 2)).broadcasts == ["2:c", "3:x"]


def test_a_history_is_full_when_its_bytes_are_and_has_room_when_they_are_stable() -> None:
    node = sequencer(history=100, history_bytes=6)
    assert node.hears(offer(E2, 0, "a")).broadcasts == ["0:a"]  # 3 bytes with its length
    assert node.hears(offer(E2, 1, "b")).broadcasts == ["1:b"]
    assert node.machine.orderer.history_bytes == 6
    assert not node.hears(offer(E2, 2, "c", received=2)).broadcasts
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 2, 2, 0, reply_from=0b100)], "who keeps half of it"
    assert not node.hears(acknowledgment(E3, 0)).broadcasts
    assert node.hears(acknowledgment(E3, 1)).broadcasts == ["2:c"]
    assert node.machine.orderer.history_bytes == 6


def test_a_history_that_fills_up_in_an_idle_group_does_not_wait_for_the_next_heartbeat() -> None:
    node = sequencer(history=1, heartbeat=1_000_000_000)
    node.hears(offer(E2, 1, "b"))
    assert node.running["status"] >= 1_000_000_000
    assert node.hears(offer(E2, 0, "a")).broadcasts == ["0:a"]
    assert node.running["status"] < 2 * node.machine.config.timing.cooldown, "acknowledgments may be under way"


def test_who_has_all_but_half_of_the_bytes_is_not_asked() -> None:
    node = Node(E1, nodes=4, history=100, history_bytes=12)
    node.submits(*"abcde")
    node.hears(acknowledgment(E2, 1), acknowledgment(E3, 2))
    assert node.machine.reception.first_within(6) == 2
    assert node.machine.reception.first_within(100) == 0
    assert node.machine.reception.first_within(2) == 4
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 4, 4, 0, reply_from=0b1010)]


def test_an_answer_that_makes_no_room_does_not_put_it_off() -> None:
    node = sequencer(history=2)
    node.submits(*"abc")
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 2, 2, 0, reply_from=0b110)]
    node.hears(acknowledgment(E2, 2))
    assert node.fires("status").of(Synchronise) == [Synchronise(0, E1, 1, 1, 2, 0, reply_from=0b100)]


def test_it_asks_again_when_the_history_is_full_again() -> None:
    node = sequencer(history=1)
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b", received=1))
    node.fires("status")
    assert node.hears(acknowledgment(E3, 1), offer(E2, 2, "c", received=2)).broadcasts == ["1:b"]
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 2, 2, 1, reply_from=0b100)]


def test_a_full_history_is_no_hurry_while_nothing_waits_for_room() -> None:
    node = sequencer(history=1)
    node.submits("a")
    out = [node.fires("status") for _ in range(5)]
    assert [found.to(None) for found in out] == [[], *[[SequencerStatus(0, E1, 1, 1, 0, reply_from=0b110)]] * 4]


def test_nor_does_it_wait_long_while_nothing_can_be_numbered() -> None:
    node = sequencer(history=1)
    node.submits("a", "b")
    for _ in range(8):
        node.fires("status")
    repeat = node.machine.config.timing.repeat
    assert 2 * repeat <= node.running["status"] < 4 * repeat


def test_only_those_are_asked_who_keep_half_of_it() -> None:
    node = Node(E1, nodes=4, history=8)
    node.submits(*"abcdefghi")
    node.hears(acknowledgment(E2, 4), acknowledgment(E3, 3))
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 8, 8, 0, reply_from=0b1100)]


def test_the_sequencers_questions_back_off() -> None:
    node = sequencer()
    node.submits("a")
    waits = []
    for _ in range(7):
        node.fires("status")
        waits.append(node.running["status"])
    poll = node.machine.config.timing.poll
    assert waits[0] < 4 * poll
    assert waits[-1] >= 16 * poll
    node.hears(acknowledgment(E2, 1))
    node.fires("status")
    assert node.running["status"] < 4 * poll


def test_an_answer_that_comes_late_says_what_its_sender_has_all_the_same() -> None:
    node = sequencer()
    node.submits("a")
    assert node.hears(Synchronised(0, E2, 9, 1)).discards == ["old"]
    assert node.machine.orderer.acknowledged[E2] == 1


def test_an_answer_makes_phases_frequent_again() -> None:
    node = sequencer(history=1)
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b", received=1))
    node.fires("status")
    node.fires("status")
    node.hears(acknowledgment(E3, 1))
    assert node.machine.orderer.sync_phase == 2
    node.fires("status")
    node.fires("status")
    repeat = node.machine.config.timing.repeat
    assert node.running["status"] >= 2 * repeat
    node.hears(Synchronised(0, E2, 1, 1))
    node.fires("status")
    assert node.running["status"] < 2 * repeat


def test_s7_an_old_answer_ends_no_later_phase() -> None:
    node = sequencer(history=1)
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b", received=1))
    node.fires("status")
    node.fires("status")
    node.hears(acknowledgment(E3, 1))
    node.hears(Synchronised(0, E2, 1, 1), Synchronised(0, E3, 1, 1))
    assert node.machine.reception.received_below == 2
    node.hears(offer(E2, 2, "c", received=2))
    node.fires("status")
    node.fires("status")
    assert node.machine.orderer.sync_round == 2
    assert node.hears(Synchronised(0, E3, 1, 1)).discards == ["old"]
    node.hears(acknowledgment(E3, 2))
    assert node.machine.orderer.sync_phase == 2
    assert node.hears(Synchronised(0, E3, 1, 2), Synchronised(0, E2, 1, 2)).discards == ["old", "old"]
    assert node.machine.orderer.sync_phase == 2
    assert node.hears(Synchronised(0, E3, 2, 2), Synchronised(0, E2, 2, 2)).broadcasts == ["2:c"]


def test_a_phase_is_said_again_to_those_who_have_not_answered() -> None:
    node = sequencer(history=1)
    node.hears(offer(E2, 0, "a"), offer(E2, 1, "b", received=1))
    node.fires("status")
    node.fires("status")
    node.hears(acknowledgment(E3, 1))
    node.hears(Synchronised(0, E3, 1, 1))
    [again] = node.fires("status").of(Synchronise)
    assert (again.phase, again.reply_from) == (2, 0b010)


def test_retransmissions_go_to_one_node_and_are_bounded() -> None:
    node = sequencer()
    node.submits(*[f"m{number}" for number in range(100)])
    did = node.hears(acknowledgment(E2, 0, (0, 100)))
    assert did.copies == list(range(32))
    assert all(send.to == E2 for send in did.sends)
    assert node.hears(acknowledgment(E2, 0, (0, 2), (5, 6), (40, 99))).copies == [0, 1, 5, *range(40, 69)]


def test_what_nobody_lacks_is_not_sent_again() -> None:
    node = sequencer()
    node.submits("a", "b")
    node.hears(acknowledgment(E2, 1), acknowledgment(E3, 1))
    assert node.hears(acknowledgment(E2, 0, (0, 2))).copies == [1]


def test_what_an_order_says_is_not_said_again() -> None:
    node = sequencer(resilience=1)
    node.hears(offer(E2, 0, "a", direct=True))
    out = node.hears(offer(E2, 1, "b", received=1, direct=True))
    assert [(unit.number, unit.commit_below) for unit in out.of(NumberAnnouncement)] == [(1, 1)]
    assert out.of(SequencerStatus) == []


def test_large_packets_get_numbers_only_unless_they_come_again() -> None:
    node = sequencer()
    did = node.hears(offer(E2, 0, "a", direct=True))
    assert did.to(None) == [NumberAnnouncement(0, E1, 0, ((E2, 0),), 1, 0)]
    assert node.hears(offer(E2, 1, "b")).broadcasts == ["1:b"]


def test_numbers_that_are_given_together_are_told_together() -> None:
    node = sequencer()
    node.hears(offer(E2, 1, "b", direct=True), offer(E2, 2, "c", direct=True), offer(E2, 3, "d"))
    did = node.hears(offer(E2, 0, "a", direct=True))
    assert [(unit.number, unit.packets) for unit in did.of(NumberAnnouncement)] == [(0, ((E2, 0), (E2, 1), (E2, 2)))]
    assert did.broadcasts == ["3:d"]


def test_it_says_when_everybody_has_everything() -> None:
    node = sequencer()
    node.submits("a")
    assert not node.hears(acknowledgment(E2, 1)).units
    did = node.hears(acknowledgment(E3, 1))
    assert did.to(None) == [SequencerStatus(0, E1, 1, 1, 1)]
    assert not node.hears(acknowledgment(E2, 1)).units, "once"
    node.fires("status")
    assert not node.running, "it is at rest"


def test_in_quiet_times_it_asks_those_not_known_to_have_everything() -> None:
    node = sequencer()
    node.submits("a")
    assert not node.fires("status").units, "something moved since it was set"
    node.hears(acknowledgment(E2, 1))
    node.fires("status")
    assert node.fires("status").to(None) == [SequencerStatus(0, E1, 1, 1, 0, reply_from=0b100)]


def test_whoever_asks_is_answered_alone() -> None:
    node = sequencer()
    node.submits("a")
    assert node.hears(acknowledgment(E2, 1, wants_status=True)).to(E2) == [SequencerStatus(0, E1, 1, 1, 0)]


def test_a_node_that_claims_too_much_is_not_believed_and_nothing_else_happens() -> None:
    node = sequencer()
    node.submits("a")
    before = node.machine.snapshot()
    for unit in (acknowledgment(E2, 2), offer(E2, 0, "b", received=2), Synchronised(0, E2, 0, 2)):
        assert node.hears(unit) == [Discard(unit, "impossible")]
    assert node.machine.snapshot() == before
    assert not node.hears(acknowledgment(E2, 1)).discards


# --- resilience ---


def test_with_resilience_nothing_is_delivered_before_others_hold_it() -> None:
    node = Node(E1, nodes=5, resilience=2)
    did = node.hears(offer(E2, 0, "a"))
    assert did.accepted == ["a"]
    assert [unit.commit_below for unit in did.of(Broadcast)] == [0]
    assert not node.hears(acknowledgment(E4, 1)).delivered
    assert not node.hears(acknowledgment(E4, 1)).delivered, "one node counts once"
    did = node.hears(acknowledgment(E2, 1))
    assert did.delivered == ["a"]
    assert did.to(None) == [SequencerStatus(0, E1, 1, 1, 0)]


def test_what_may_be_delivered_rides_on_the_next_broadcast() -> None:
    node = Node(E1, nodes=3, resilience=1)
    node.hears(offer(E2, 0, "a"))
    did = node.hears(offer(E2, 1, "b", received=1))
    assert did.delivered == ["a"]
    assert not did.of(SequencerStatus)
    assert [unit.commit_below for unit in did.of(Broadcast)] == [1]


@pytest.mark.parametrize(
    "unit",
    [
        broadcast(0, "a", by=E2),
        SequencerStatus(0, E2, 1, 1, 0),
        NumberAnnouncement(0, E2, 0, ((E2, 0),), 1, 0),
        Synchronise(0, E2, 1, 1, 0, 0, 0b111),
    ],
)
def test_nobody_else_speaks_for_the_sequencer(unit: Unit) -> None:
    for me in (E1, E3):
        did = Node(me).hears(unit)
        assert did.discards == ["stray"]
        assert len(did) == 1


def test_offers_of_others_are_no_business_of_a_member() -> None:
    assert Node(E3).hears(acknowledgment(E2, 0)).discards == ["stray"]
    assert Node(E3).hears(Synchronised(0, E2, 1, 0)).discards == ["stray"]
    assert not Node(E3).hears(Offer(offer(E2, 0, "a").packet, 0, 0, direct=True)).delivered
