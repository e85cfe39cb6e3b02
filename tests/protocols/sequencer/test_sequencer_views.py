"""Views, rule by rule: how one begins, who is shut out, and what nodes of different views tell each other."""

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Resumed, Send, SetTimer, Suspect, ViewInstalled
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.units import (
    Accepted,
    Acknowledgment,
    Ballot,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    NumberAnnouncement,
    Offer,
    Propose,
    Supply,
    Synchronise,
    ViewRequest,
)
from ordercast.protocols.spo.units import RetransmitRequest
from tests.protocols.sequencer.driver import E1, E2, E3, E4, E5, Group, Node, acknowledgment, broadcast, offer, packet

NEXT = NextView(1, 0b110, E2, 1, "E1 did not answer")


def test_who_is_not_among_them_is_told_and_stops() -> None:
    node = Node(E1)
    node.submits("a")
    did = node.hears(Install(1, E2, NEXT))
    assert did == [ViewInstalled(1, 0b110, NEXT.why)]
    assert not node.submits("b")
    assert node.machine.waits_for() == ()


def test_a_member_cannot_skip_a_view() -> None:
    node = Node(E3)
    did = node.hears(Install(2, E2, NextView(2, 0b110, E2, 0, "late")))
    assert did.told == ["[2:2]"]
    assert not node.submits("x")


def test_what_is_lacking_below_the_cut_is_asked_for_in_the_new_view_and_the_view_is_told_behind_it() -> None:
    node = Node(E3)
    node.hears(Flush(0, E2, (1, E2), 0))
    did = node.hears(Install(1, E2, NextView(1, 0b110, E2, 2, "why")))
    assert (did.resumes, "view" in node.running) == ([Resumed(0, 0, 0)], False)
    assert did.to(E2) == [Acknowledgment(1, E3, 0, ((0, 2),))]
    assert not did.told
    did = node.hears(broadcast(0, "a", E1, view=1, by=E2), broadcast(2, "x", E2, 0, view=1, by=E2, stable=1))
    assert did.told == ["a"]
    assert not did.everywhere, "that is about a view of which nobody was told yet"
    did = node.hears(broadcast(1, "b", E1, view=1, by=E2, stable=2))
    assert did.told == ["b", "[1:2,3]", "x"]
    assert did.everywhere == ["a", "b"]


def test_own_packets_without_a_number_are_offered_anew() -> None:
    node = Node(E3)
    node.submits("a", "b")
    node.hears(broadcast(0, "a", E3, 0), Flush(0, E2, (1, E2), 0))
    did = node.hears(Install(1, E2, NextView(1, 0b110, E2, 1, "why")))
    assert did.to(E2) == [Offer(packet(E3, 1, "b"), 1, 1)]


def test_a_new_sequencer_is_told_what_everybody_has() -> None:
    for names in ("", "b"):
        node = Node(E3)
        node.submits(*names)
        node.hears(broadcast(0, "a"), Flush(0, E2, (1, E2), 0))
        for cut, told in (
            (1, [] if names else [Acknowledgment(1, E3, 1, ())]),
            (2, [Acknowledgment(1, E3, 1, ((1, 2),))]),
        ):
            twin = Node(E3)
            twin.machine.restore(node.machine.snapshot())
            assert twin.hears(Install(1, E2, NextView(1, 0b110, E2, cut, "why"))).of(Acknowledgment) == told


def test_a_gap_of_the_old_view_is_not_requested_in_the_new_one() -> None:
    node = Node(E3)
    node.hears(broadcast(5, "f"), Install(1, E2, NextView(1, 0b110, E2, 1, "why")))
    assert "gap" in node.running
    assert not node.fires("gap").of(Acknowledgment)
    assert node.fires("gap").of(Acknowledgment) == [Acknowledgment(1, E3, 0, ((0, 1),))]


def test_what_was_received_in_the_old_view_is_no_progress_in_the_new_one() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), Flush(0, E2, (1, E2), 0), Install(1, E2, NextView(1, 0b110, E2, 1, "why")))
    assert node.fires("need").to(E2) == [Acknowledgment(1, E3, 1, (), wants_status=True)]


def test_what_was_asked_of_the_old_sequencer_is_not_held_against_the_new_one() -> None:
    node = Node(E3, suspect_after=1)
    node.hears(broadcast(0, "a"))
    for _ in range(3):
        node.fires("need")
    assert node.machine.sender.asked
    node.hears(Flush(0, E2, (1, E2), 0), Install(1, E2, NextView(1, 0b110, E2, 1, "why")))
    assert not [*node.fires("need").of(Flush), *node.fires("need").of(Flush)]
    assert len(node.fires("need").of(Flush)) == 1


def test_to_offer_them_anew_is_a_question() -> None:
    node = Node(E3, suspect_after=1)
    node.submits("a")
    node.hears(Flush(0, E2, (1, E2), 0), Install(1, E2, NextView(1, 0b110, E2, 0, "why")))
    assert not node.fires("need").of(Flush)
    assert node.fires("need").of(Flush) == [Flush(1, E3, (1, E3), 0b100)]


def test_what_lies_ahead_of_the_cut_is_forgotten() -> None:
    node = Node(E3)
    node.hears(broadcast(1, "b", E1), broadcast(4, "e", E1), Flush(0, E2, (1, E2), 0))
    node.hears(Install(1, E2, NextView(1, 0b110, E2, 2, "why")))
    assert list(node.machine.reception.ahead) == [1]
    assert node.hears(broadcast(0, "a", E1, view=1, by=E2)).told == ["a", "b", "[1:2,3]"]
    assert node.hears(broadcast(4, "z", E2, 0, view=1, by=E2)).discards == []


def test_data_without_a_number_outlive_a_view_if_their_source_does() -> None:
    node = Node(E3)
    node.hears(offer(E2, 0, "a", direct=True), offer(E1, 0, "z", direct=True), Flush(0, E2, (1, E2), 0))
    node.hears(Install(1, E2, NextView(1, 0b110, E2, 0, "why")))
    assert list(node.machine.reception.unnumbered) == [(E2, 0)]
    assert not node.hears(offer(E2, 1, "b", direct=True)).of(Install), "nor are those of the old view refused"
    assert len(node.machine.reception.unnumbered) == 2


def test_orders_of_the_old_view_are_void() -> None:
    node = Node(E3)
    node.hears(NumberAnnouncement(0, E1, 0, ((E2, 0),), 1, 0), Flush(0, E2, (1, E2), 0))
    node.hears(Install(1, E2, NextView(1, 0b110, E2, 0, "why")))
    assert not node.hears(offer(E2, 0, "a", direct=True, view=1)).delivered


def test_a_view_that_contradicts_what_i_have_ends_the_group() -> None:
    node = Node(E3)
    node.hears(broadcast(0, "a"), Flush(0, E2, (1, E2), 0))
    did = node.hears(Install(1, E2, NextView(1, 0b110, E2, 0, "why")))
    assert did.aborts == ["view 1 takes back what E3 has of the one before"]
    node = Node(E3)
    node.hears(Flush(0, E2, (1, E2), 0))
    did = node.hears(Install(1, E2, NextView(1, 0b110, E3, 1, "why")))
    assert did.aborts == ["E3 must number the broadcasts of view 1, but lacks some"]


def test_with_resilience_what_the_old_view_left_is_delivered() -> None:
    node = Node(E3, resilience=2)
    node.hears(broadcast(0, "a", commit=0), Flush(0, E2, (1, E2), 0))
    assert not node.did.delivered
    did = node.hears(Install(1, E2, NextView(1, 0b110, E2, 1, "why")))
    assert did.told == ["a", "[1:2,3]"]
    assert node.machine.view.resilience == 1


def test_a_new_sequencer_answers_duplicates_of_the_old_view_with_the_whole_broadcast() -> None:
    node = Node(E2)
    node.hears(broadcast(0, "a", E3), Flush(0, E3, (1, E3), 0))
    node.hears(Install(1, E3, NextView(1, 0b110, E2, 1, "why")))
    assert node.hears(offer(E3, 0, "a", view=1)).copies == [0]


def test_w5_what_everybody_had_is_not_taken_back_by_a_new_table() -> None:
    group = Group(3, suspect_after=1)
    group.submit(E1, "a")
    group.settle()
    group.submit(E1, "b")
    group.hear(E2)
    group.crash(E1)
    group.lose(E3)
    group.begins_ballot(E2)
    group.settle(E1)
    assert group.nodes[E2].machine.reception.stable_below == 2
    assert group.nodes[E2].did.everywhere == group.nodes[E3].did.everywhere == ["a", "b"]


def test_the_new_sequencer_knows_duplicates_of_the_old_view() -> None:
    group = Group(3, suspect_after=1)
    group.submit(E3, "a")
    group.hear(E1)
    group.hear(E2)  # E3 does not hear that a was numbered
    group.lose(E3)
    group.crash(E1)
    group.begins_ballot(E2)
    group.settle(E1)
    assert group.delivered(E2, E3) == ["a", "a"]


def test_what_the_old_view_left_in_the_history_takes_its_bytes_in_the_new_one() -> None:
    node = Node(E2, history_bytes=6)
    node.hears(broadcast(0, "a", E1), broadcast(1, "b", E1))  # 3 bytes each with its length
    node.hears(Install(1, E3, NextView(1, 0b110, E2, 2, "E1 did not answer")))
    assert not node.submits("c").broadcasts
    assert node.hears(Acknowledgment(1, E3, 1, (), wants_status=False)).broadcasts == ["2:c"]


def test_rounds_of_synchronisation_begin_anew() -> None:
    node = Node(E3)
    node.hears(Synchronise(0, E1, 7, 1, 0, 0, 0b111))
    assert (node.machine.sender.sync_round, node.machine.sender.is_paused()) == (7, True)
    node.hears(Flush(0, E2, (1, E2), 0), Install(1, E2, NextView(1, 0b110, E2, 0, "why")))
    assert (node.machine.sender.sync_round, node.machine.sender.is_paused()) == (0, False)


# --- nodes of other views ---


def a_node_in_view_1() -> Node:
    node = Node(E3)
    node.hears(Flush(0, E2, (1, E2), 0), Install(1, E2, NextView(1, 0b110, E2, 0, "why")))
    node.did.clear()
    return node


def test_whoever_is_behind_is_told_the_view_but_not_all_the_time() -> None:
    node = a_node_in_view_1()
    unit = Install(1, E3, NextView(1, 0b110, E2, 0, "why"))
    assert node.hears(Flush(0, E1, (9, E1), 0)).to(E1) == [unit]
    assert node.hears(Flush(0, E1, (9, E1), 0)).discards == ["old"]
    node.fires("answer")
    assert node.hears(ViewRequest(0, E1)).to(E1) == [unit]
    node.fires("answer")
    assert node.hears(Flushed(0, E1, (9, E1), 0, None)).discards == ["old"]
    assert node.hears(Install(0, E1, NEXT)).discards == ["old"]


def test_offers_of_the_old_view_are_kept_only_where_a_sequencer_may_number_what_their_senders_broadcast() -> None:
    told = Install(1, E3, NextView(1, 0b110, E2, 0, "why"))
    node = a_node_in_view_1()
    assert node.hears(offer(E2, 0, "a")).to(E2) == [told], "it went to the sequencer alone"
    node = a_node_in_view_1()
    node.hears(Flush(1, E2, (1, E2), 0))
    assert told in node.hears(offer(E2, 0, "a", direct=True)).to(E2), "it has stopped"
    sequencer = Node(E2)
    sequencer.hears(Flush(0, E3, (1, E3), 0), Install(1, E3, NextView(1, 0b110, E2, 0, "why")))
    assert len(sequencer.hears(offer(E3, 0, "a", direct=True)).of(Install)) == 1
    assert not [*node.machine.reception.unnumbered, *sequencer.machine.reception.unnumbered]


def test_whoever_is_ahead_is_asked_for_its_view() -> None:
    node = Node(E3)
    assert node.hears(broadcast(0, "a", view=1, by=E2)).to(E2) == [ViewRequest(0, E3)]
    assert not node.hears(broadcast(1, "a", view=1, by=E2)).units
    assert not node.did.delivered


def test_the_old_sequencer_is_shut_out() -> None:
    node = a_node_in_view_1()
    assert node.hears(broadcast(0, "a", E1)).discards == ["old"]
    assert node.hears(broadcast(0, "a", E1, view=1)).discards == ["stray"]


def test_those_who_left_are_not_heard() -> None:
    node = a_node_in_view_1()
    assert node.hears(Flush(1, E1, (9, E1), 0)).discards == ["stray"]
    assert node.hears(offer(E1, 0, "z", direct=True, view=1)).discards == ["stray"]


def test_what_is_no_unit_of_this_protocol_is_thrown_away() -> None:
    class Alien(Offer, frozen=True, gc=False):
        pass

    assert Node(E1).hears(Alien(packet(E2, 0, "a"), 0, 0)).discards == ["stray"]
    assert Node(E1).hears(RetransmitRequest(E2, (0, 0, 0))).discards == ["stray"]


def test_what_claims_to_come_from_me_is_thrown_away() -> None:
    node = Node(E2)
    assert node.hears(Flush(0, E2, (1, E2), 0), Install(1, E2, NEXT)).discards == ["stray", "stray"]
    assert node.machine.view.number == 0


def test_what_nobody_asked_for_is_thrown_away() -> None:
    assert Node(E3).hears(Supply(packet(E1, 0, "a"), 0, E2, 0)).discards == ["old"]
    node = Node(E3)
    assert node.hears(Propose(0, E2, (1, E2), NextView(1, 0b110, E2, 1, "why"), 0)).stops == ["view"]
    assert node.hears(Supply(packet(E1, 1, "b"), 0, E2, 1)).discards == ["old"], "the next view does not take it over"
    assert node.hears(broadcast(0, "a", E1)).discards == ["frozen"], "who hears a proposal has stopped"


def test_what_is_not_for_members_and_what_everybody_knows_is_thrown_away() -> None:
    assert Node(E3).hears(acknowledgment(E1, 0)).discards == ["stray"]
    node = a_node_in_view_1()
    assert node.hears(Install(1, E2, NEXT), ViewRequest(1, E2)).discards == ["duplicate", "duplicate"]


# --- without a majority ---


def test_a_side_without_a_majority_delivers_nothing_and_gives_up_in_the_end() -> None:
    group = Group(5, suspect_after=1, polls_to_abort=10)
    group.submit(E1, "a")
    group.exhaust(E3, E4, E5)
    for _ in range(200):
        for node in (E1, E2):
            for timer in tuple(group.nodes[node].running):
                group.fire(node, timer)
        group.exhaust(E3, E4, E5)
    why = [node.did.aborts for node in group.nodes[:2]]
    assert ["3 of 5 members cannot be reached: no majority; what was sent may be lost"] in why
    assert all(why)
    assert group.told(E1, E2) == ["a", "a"]


def test_who_follows_gives_up_without_a_word_about_who_can_be_reached() -> None:
    node = Node(E3, polls_to_abort=1)
    for _ in range(2):
        node.hears(Flush(0, E2, (1, E2), 0))
        out = node.fires("view")
    assert out.aborts == ["the 3 members did not agree on the view after 0; what was sent may be lost"]


def test_each_view_has_all_its_time_to_be_agreed_on() -> None:
    """What the agreement on the last view took is not held against the next: a group may change many times."""
    node = Node(E3, polls_to_abort=2)
    for view in (0, 1):
        node.hears(Flush(view, E2, (1, E2), 0))
        for _ in range(2):
            assert not node.fires("view").aborts
        twin = Node(E3, polls_to_abort=2)
        twin.machine.restore(node.machine.snapshot())
        twin.running = {"view": 1}
        assert twin.fires("view").aborts, "that was once too often"
        node.hears(Install(view + 1, E2, NextView(view + 1, 0b110, E2, 0, "why")))


def fetching(**options: int) -> tuple[Node, Ballot]:
    """E2 leads, has heard of E3 that there is one broadcast, and asks it for that; E1 is silent."""
    node = Node(E2, suspect_after=1, **options)
    node.submits("a")
    while node.machine.agreement.promised is None:
        node.fires("need")
    ballot = node.machine.agreement.promised
    node.hears(Flushed(0, E3, ballot, 1, None))
    assert len(node.fires("view").of(Flush)) == 1
    assert node.fires("view").to(E3) == [Fetch(0, E2, ballot, ((0, 1),))]
    return node, ballot


def test_who_leads_has_all_its_time_to_fetch_what_it_lacks_and_proposes_nothing_before() -> None:
    node, ballot = fetching()
    for _ in range(4):
        assert node.fires("view").units == [Flush(0, E2, ballot, 0b111), Fetch(0, E2, ballot, ((0, 1),))]
    assert node.fires("view").units == [Flush(0, E2, (2, E2), 0b010)]


def test_who_leads_and_reaches_enough_gives_up_because_they_did_not_agree() -> None:
    node, _ = fetching(polls_to_abort=2)
    assert node.fires("view").aborts == ["the 3 members did not agree on the view after 0; what was sent may be lost"]


def test_w1_most_of_the_old_members_and_half_of_the_new_ones_decide() -> None:
    """An earlier ballot left E5 out, which answers now; it counts among the old members alone."""
    node = Node(E2, 5, suspect_after=1)
    node.submits("a")
    while node.machine.agreement.promised is None:
        node.fires("need")
    ballot, view = node.machine.agreement.promised, NextView(1, 0b01111, E2, 0, "E5 did not answer")
    node.hears(Flushed(0, E3, ballot, 0, ((0, E3), view)))
    node.hears(*[Flushed(0, member, ballot, 0, None) for member in (E1, E4, E5)])
    assert node.hears(Accepted(0, E1, ballot)).of(Install) == [], "two of four, but two of five"
    assert node.hears(Accepted(0, E5, ballot)).of(Install) == [Install(1, E2, view)], "three of five"


def test_the_lower_members_take_over_first() -> None:
    lowest, highest = Node(E2, 12), Node(11, 12)
    for node in (lowest, highest):
        node.hears(Flush(0, E1, (1, E1), 0))
    repeat = lowest.machine.config.timing.repeat
    assert 5 * repeat <= lowest.running["view"] < 10 * repeat
    assert 15 * repeat <= highest.running["view"] < 30 * repeat


def test_when_a_frozen_node_hears_nothing_it_takes_over() -> None:
    node = Node(E3)
    node.hears(Flush(0, E2, (1, E2), 0))
    assert not node.fires("view").units, "its coordinator was heard"
    assert node.fires("view").of(Flush) == [Flush(0, E3, (2, E3), 0b100)]


# --- suspicions of the host ---


def test_the_first_that_is_not_suspected_begins_a_ballot() -> None:
    machines = [Sequencer(node, GroupConfig(nodes=3)) for node in range(3)]
    begun = machines[1].handle(Suspect(0b001))
    assert any(isinstance(output, Send) and isinstance(output.unit, Flush) for output in begun)
    waits = machines[2].handle(Suspect(0b001))
    assert [output.name for output in waits if isinstance(output, SetTimer)] == ["view"]
    assert machines[0].handle(Suspect(0b001)) == [], "nobody suspects itself"


def test_who_suspects_more_while_members_agree_waits_for_less() -> None:
    machine = Sequencer(0, GroupConfig(nodes=5))
    machine.handle(Suspect(0b10000))
    before = machine.snapshot()
    assert machine.handle(Suspect(0b01000)) == []
    assert machine.snapshot() != before
