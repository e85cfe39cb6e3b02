"""Views, rule by rule: who is suspected, and how the next view is agreed on."""

from ordercast.model.machine import Stopped
from ordercast.protocols.sequencer.units import (
    Accepted,
    Ballot,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    Propose,
    Refused,
    SequencerStatus,
    Supply,
    ViewRequest,
)
from tests.protocols.sequencer.driver import E1, E2, E3, E4, E5, Group, Node, acknowledgment, broadcast, packet

NEXT = NextView(1, 0b110, E2, 1, "E1 did not answer")


def waits(node: Node, timer: str = "need", times: int = 20) -> list[Flush]:
    """What it asks of the others, if nobody answers for so long."""
    for _ in range(times):
        if timer in node.running:
            node.fires(timer)
    return node.did.of(Flush)


# --- suspicion ---


def test_a_silent_sequencer_is_suspected_by_whoever_waits_for_it() -> None:
    node = Node(E2, suspect_after=2)
    node.submits("a")
    assert not waits(node, times=3), "it asks three times; the third question is one more than may be left unanswered"
    assert len(node.did.to(E1)) == 4
    assert waits(node, times=1) == [Flush(0, E2, (1, E2), 0b010)]


def test_whoever_waits_for_nothing_suspects_nobody() -> None:
    node = Node(E2)
    node.hears(broadcast(0, "a", E3), SequencerStatus(0, E1, 1, 1, 1))
    node.fires("need")
    assert not node.running


def test_w8_a_sequencer_that_answers_anything_lives() -> None:
    node = Node(E2, suspect_after=2)
    node.submits("a")
    for _ in range(10):
        node.fires("need")
        node.hears(SequencerStatus(0, E1, 0, 0, 0))  # its history is full, and it numbers nothing
    assert not node.did.of(Flush)
    assert waits(node, times=5)


def test_once_it_is_heard_questions_are_counted_anew() -> None:
    node = Node(E2, suspect_after=2)
    node.submits("a")
    assert not waits(node, times=3)
    node.hears(SequencerStatus(0, E1, 0, 0, 0))
    assert not waits(node, times=3)
    assert waits(node, times=1)


def test_those_of_higher_rank_wait_and_forget_it_if_the_sequencer_is_heard() -> None:
    node = Node(E3, suspect_after=1)
    node.submits("a")
    assert not waits(node, times=6)
    assert "view" in node.running
    before = node.running["view"]
    waits(node, times=2)
    assert node.running["view"] == before, "it began to wait once"
    node.hears(SequencerStatus(0, E1, 0, 0, 0))
    assert not node.fires("view").units
    waits(node, times=6)
    assert node.fires("view").of(Flush) == [Flush(0, E3, (1, E3), 0b100)]


def test_a_member_that_leaves_questions_unanswered_is_suspected_by_the_sequencer() -> None:
    node = Node(E1, suspect_after=2)
    node.submits("a")
    node.hears(acknowledgment(E2, 1))
    assert not waits(node, "status", times=4)
    assert [unit.reply_from for unit in node.did.of(SequencerStatus)] == [0b100] * 3
    node.hears(acknowledgment(E3, 0))
    assert not waits(node, "status", times=3)
    assert waits(node, "status", times=1)


def test_broadcasts_are_a_sign_of_life_too() -> None:
    node = Node(E2, suspect_after=1)
    node.submits("a")
    for number in range(10):
        node.fires("need")
        node.hears(broadcast(number, "x", E3))
    assert not node.did.of(Flush)


def test_a_member_that_is_heard_again_is_not_suspected_any_more() -> None:
    node = Node(E3, node=E3, suspect_after=1)
    node.submits("a")
    node.hears(acknowledgment(E2, 1))
    waits(node, "status", times=6)
    assert "view" in node.running, "E2 would begin, but it is not its business: E3 waits"
    node.hears(acknowledgment(E1, 0))
    assert not node.fires("view").of(Flush)


def test_with_a_heartbeat_a_silent_group_notices_a_crash() -> None:
    group = Group(3, heartbeat=1_000_000, suspect_after=2)
    for me, node in enumerate(group.nodes):
        node.hears(ViewRequest(0, (me + 1) % 3))  # any input: the timers are set
    assert [sorted(node.running) for node in group.nodes] == [["status"], ["need"], ["need"]]
    for _ in range(10):
        for me, timer in ((E1, "status"), (E2, "need"), (E3, "need")):
            group.fire(me, timer)
            group.exhaust()
    assert not any(node.did.of(Flush) for node in group.nodes)
    group.crash(E1)
    group.begins_ballot(E2)
    group.exhaust(E1)
    for _ in range(10):
        group.fire(E2, "view")
        group.exhaust(E1)
        if group.told(E2) == ["[1:2,3]"]:
            break
    assert group.told(E2, E3) == ["[1:2,3]"] * 2


def test_what_is_awaited_does_not_wait_for_the_next_heartbeat() -> None:
    heartbeat = 1 << 40
    group = Group(3, heartbeat=heartbeat)
    for me, node in enumerate(group.nodes):
        node.hears(ViewRequest(0, (me + 1) % 3))  # any input: the timers are set
    assert all(after >= heartbeat for node in group.nodes for after in node.running.values())
    group.submit(E2, "a")
    group.exhaust()
    assert [sorted(node.running) for node in group.nodes] == [["status"], ["need"], ["need"]]
    assert all(after < heartbeat for node in group.nodes for after in node.running.values())
    soon = [dict(node.running) for node in group.nodes]
    group.submit(E2, "b")
    group.exhaust()
    assert [node.running for node in group.nodes] == soon, "timers that run for what is awaited are not set again"
    for _ in range(4):
        for me, timer in ((E1, "status"), (E2, "need"), (E3, "need")):
            group.fire(me, timer)
            group.exhaust()
    assert all(after >= heartbeat for node in group.nodes for after in node.running.values()), "nothing is awaited"


# --- the agreement ---


def a_flushed_group(nodes: int = 3, **options: int) -> Group:
    """E1 has numbered a, which only E2 has, and is silent; E2 asks the others to stop."""
    group = Group(nodes, suspect_after=1, **options)
    group.submit(E1, "a")
    group.hear(E2)
    group.lose()
    group.begins_ballot(E2)
    return group


def test_who_promises_stops_and_says_what_it_has() -> None:
    group = a_flushed_group()
    did = group.hear(E3)
    assert Stopped("view") in did
    assert did.to(E2) == [Flushed(0, E3, (1, E2), 0, None)]
    assert set(group.nodes[E3].running) == {"view"}
    assert group.nodes[E3].hears(broadcast(0, "a", E1)).discards == ["frozen"]
    assert not group.nodes[E3].submits("x").units


def test_an_answer_is_given_again_unless_it_was_heard() -> None:
    node = Node(E3)
    assert node.hears(Flush(0, E2, (1, E2), 0b010)).of(Flushed)
    assert node.hears(Flush(0, E2, (1, E2), 0b010)).of(Flushed)
    assert not node.hears(Flush(0, E2, (1, E2), 0b110)).units


def test_a_lower_ballot_is_refused() -> None:
    node = Node(E4, nodes=5)
    node.hears(Flush(0, E3, (2, E3), 0))
    assert node.hears(Flush(0, E2, (2, E2), 0)).to(E2) == [Refused(0, E4, (2, E2), (2, E3))]
    assert node.hears(Propose(0, E2, (2, E2), NEXT, 0)).to(E2) == [Refused(0, E4, (2, E2), (2, E3))]
    assert node.did.discards == ["old", "old"]
    assert node.hears(Flush(0, E5, (2, E5), 0)).of(Flushed)


def test_who_is_refused_tries_again_above() -> None:
    group = a_flushed_group()
    assert group.nodes[E2].hears(Refused(0, E3, (1, E2), (5, E3))).timers == ["view"], "a longer one"
    assert group.nodes[E2].hears(Flushed(0, E3, (1, E2), 0, None)).discards == ["old"]
    assert group.nodes[E2].fires("view").of(Flush) == [Flush(0, E2, (6, E2), 0b010)]


def test_a_coordinator_waits_longer_for_those_it_does_not_suspect() -> None:
    group = Group(5, suspect_after=4)
    group.submit(E1, "a")
    group.hear(E2)
    group.lose()
    group.begins_ballot(E2)
    group.hear(E3)
    group.hear(E4)
    group.hear(E2)
    rounds = 0
    while not group.nodes[E2].did.of(Propose):
        group.fire(E2, "view")
        rounds += 1
    assert rounds == 4, "E5 has not answered, and is not suspected"
    group = Group(5, suspect_after=4)
    group.submit(E1, "a")
    group.hear(E2)
    group.lose()
    group.begins_ballot(E2)
    for node in (E3, E4, E5):
        group.hear(node)
    group.hear(E2)
    rounds = 0
    while not group.nodes[E2].did.of(Propose):
        group.fire(E2, "view")
        rounds += 1
    assert rounds == 2, "only E1 has not, and it is"


def test_w3_with_resilience_all_but_so_many_must_answer() -> None:
    for nodes, resilience, enough in ((5, 0, 3), (5, 1, 4), (5, 2, 3), (5, 3, 3), (4, 0, 3), (4, 3, 3)):
        group = a_flushed_group(nodes, resilience=resilience)
        for node in range(2, nodes):
            group.hear(node)
        answers = group.mail[E2]
        group.mail[E2] = answers[: enough - 2]
        group.hear(E2)
        for _ in range(6):
            assert not group.fire(E2, "view").of(Propose)
        group.nodes[E2].hears(answers[enough - 2])
        assert any(group.fire(E2, "view").of(Propose) for _ in range(6)), f"resilience {resilience}"


def test_those_who_answered_go_on_with_all_that_any_of_them_has() -> None:
    group = a_flushed_group()
    group.hear(E3)
    group.hear(E2)
    group.fire_until(E2, "view", Propose)
    [proposal] = group.nodes[E2].did.of(Propose)
    assert proposal.value == NEXT
    assert group.hear(E3, Propose).to(E2) == [Fetch(0, E3, (1, E2), ((0, 1),))]
    assert [unit.number for unit in group.hear(E2).of(Supply)] == [0]
    assert group.hear(E3).to(E2) == [Accepted(0, E3, (1, E2))]
    group.hear(E2)
    group.hear(E3)
    assert group.told(E2, E3) == ["a [1:2,3]", "a [1:2,3]"]
    group.settle(E1)
    assert group.submit(E3, "b").to(E2)
    group.settle(E1)
    assert group.delivered(E2, E3) == ["a b", "a b"]


def test_a_coordinator_fetches_what_it_lacks_before_it_proposes() -> None:
    group = Group(3, suspect_after=1)
    group.submit(E1, *[f"m{number}" for number in range(40)])
    group.hear(E3)
    group.lose(E1, E2)
    group.submit(E2, "x")
    group.lose()
    group.begins_ballot(E2)
    group.hear(E3)
    group.hear(E2)
    group.fire_until(E2, "view", Fetch)
    assert not group.nodes[E2].did.of(Propose)
    assert len(group.hear(E3, Fetch).of(Supply)) == 32
    assert group.hear(E2).of(Fetch)[0].missing == ((32, 40),), "asked for once the first are here"
    group.hear(E3, Fetch)
    assert group.hear(E2).of(Propose)[0].value.cut_below == 40
    group.settle(E1)
    assert group.delivered(E2) == group.delivered(E3) == [" ".join([f"m{number}" for number in range(40)] + ["x"])]


def test_the_sequencer_stays_if_it_answered_and_is_not_suspected() -> None:
    group = Group(3, suspect_after=2)
    group.submit(E1, "a")
    group.exhaust(E3)
    group.crash(E3)
    group.settle(E3)
    assert group.told(E1, E2) == ["a [1:1,2]"] * 2
    assert {node.machine.view.sequencer for node in group.nodes[:2]} == {E1}
    group.submit(E2, "b")
    group.settle(E3)
    assert group.delivered(E1, E2) == ["a b"] * 2


def test_a_suspected_sequencer_that_answers_stays_a_member() -> None:
    group = a_flushed_group()
    group.settle()
    assert group.told() == ["a [1:1,2,3]"] * 3
    assert {node.machine.view.sequencer for node in group.nodes} == {E2}
    assert group.nodes[E2].did.of(Install)[0].value.why == "E1 was suspected"


def test_a_view_that_may_have_been_decided_is_proposed_again() -> None:
    accepted = ((1, E2), NEXT)
    node = Node(E3, suspect_after=1)
    node.submits("x")
    node.hears(Flush(0, E2, (1, E2), 0))
    node.fires("view")
    node.fires("view")
    assert node.did.of(Flush) == [Flush(0, E3, (2, E3), 0b100)]
    did = node.hears(Flushed(0, E2, (2, E3), 1, accepted), Flushed(0, E1, (2, E3), 3, None))
    assert did.to(E2) == [Fetch(0, E3, (2, E3), ((0, 1),))]
    did = node.hears(Supply(packet(E1, 0, "a"), 0, E2, 0))
    assert did.of(Propose) == [Propose(0, E3, (2, E3), NEXT, 0b100)]
    did = node.hears(Accepted(0, E2, (2, E3)))
    assert did.of(Install) == [Install(1, E3, NEXT)]
    assert node.did.told == ["a", "[1:2,3]"]


def takes_over(node: Node) -> Ballot:
    """It was asked to stop, and then heard nothing any more."""
    node.hears(Flush(0, E2, (1, E2), 0))
    node.fires("view")
    [flush] = node.fires("view").of(Flush)
    assert flush.ballot == (2, node.machine.me)
    return flush.ballot


def test_what_the_coordinator_itself_accepted_counts_too() -> None:
    node = Node(E3)
    value = NextView(1, 0b110, E2, 0, "why")
    node.hears(Propose(0, E2, (1, E2), value, 0))
    ballot = takes_over(node)
    node.hears(Flushed(0, E1, ballot, 0, None))
    for _ in range(20):
        node.fires("view")
    assert {unit.value for unit in node.did.of(Propose)} == {value}


def test_late_answers_and_those_to_other_ballots_change_nothing() -> None:
    group = a_flushed_group()
    group.hear(E3)
    group.hear(E2)
    group.fire_until(E2, "view", Propose)
    node = group.nodes[E2]
    assert node.hears(Flushed(0, E1, (1, E2), 5, None)).discards == ["old"]
    assert node.hears(Accepted(0, E1, (0, E2))).discards == ["old"]
    other = Node(E3)
    takes_over(other)
    assert other.hears(Flushed(0, E1, (1, E3), 0, None)).discards == ["old"]
    assert len(other.machine.agreement.reports) == 1


def test_a_sequencer_that_is_gone_is_replaced_though_nobody_suspected_it() -> None:
    node = Node(E3, nodes=5, suspect_after=1)
    ballot = takes_over(node)
    node.hears(Flushed(0, E4, ballot, 0, None), Flushed(0, E5, ballot, 0, None))
    node.fires("view")
    assert node.did.of(Propose)[0].value.sequencer == E3


def test_a_sequencer_that_answers_and_is_not_suspected_stays() -> None:
    node = Node(E3)
    ballot = takes_over(node)
    node.hears(Flushed(0, E1, ballot, 0, None), Flushed(0, E2, ballot, 0, None))
    assert node.did.of(Propose)[0].value.sequencer == E1


def test_supplies_are_bounded() -> None:
    node = Node(E1)
    node.submits(*[f"m{number}" for number in range(40)])
    did = node.hears(Flush(0, E2, (1, E2), 0), Fetch(0, E2, (1, E2), ((0, 10), (12, 40))))
    assert [unit.number for unit in did.of(Supply)] == [*range(10), *range(12, 34)]


def test_the_latest_of_several_is_proposed() -> None:
    node = Node(E5, nodes=5, suspect_after=1)
    node.hears(Flush(0, E2, (3, E2), 0))
    node.fires("view")
    node.fires("view")
    old, new = NextView(1, 0b11010, E4, 0, "old"), NextView(1, 0b11100, E3, 0, "new")
    node.hears(Flushed(0, E4, (4, E5), 0, ((3, E2), old)), Flushed(0, E3, (4, E5), 0, ((3, E4), new)))
    for _ in range(4):
        node.fires("view")
    assert [unit.value for unit in node.did.of(Propose)][:1] == [new]


def test_a_coordinator_has_all_its_time_once_everybody_has_answered() -> None:
    node = Node(E2, suspect_after=1)
    node.submits("a")
    [first] = waits(node)
    for _ in range(3):
        assert len(node.fires("view").of(Flush)) == 1
    assert node.hears(Refused(0, E3, (0, E2), (9, E3))).discards == ["old"], "that was about another ballot"
    did = node.hears(Flushed(0, E1, first.ballot, 0, None), Flushed(0, E3, first.ballot, 0, None))
    [proposed] = did.of(Propose)
    for _ in range(4):
        assert node.fires("view").of(Propose) == [proposed]
    [again] = node.fires("view").of(Flush)
    assert again.ballot > first.ballot


def test_nobody_takes_over_from_who_supplies_it() -> None:
    node = Node(E3)
    node.hears(Propose(0, E2, (1, E2), NextView(1, 0b110, E2, 2, "why"), 0))
    assert node.fires("view").of(Flush) == [], "it has heard the proposal"
    node.hears(Supply(packet(E1, 0, "a"), 0, E2, 0))
    assert node.fires("view").of(Flush) == []
    assert len(node.fires("view").of(Flush)) == 1
