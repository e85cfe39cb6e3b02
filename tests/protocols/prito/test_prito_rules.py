"""PriTO, sound rules: who overtakes whom, when a run ends, and the counterexamples to what is printed."""

from collections.abc import Sequence
from random import Random

import pytest

from ordercast.model.config import PriorityConfig
from ordercast.model.units import Unit
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.to.units import OrderedData, OrderedReady
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Peer, name_of_packet


def group_of(nodes: int, **config: object) -> Group:
    return Group(nodes, priorities=True, **config)


def round_of(group: Group, *nodes: int) -> None:
    """These nodes say what they have accepted, everybody if none is named, and everybody hears it."""
    group.fire("status", *nodes)
    group.exhaust()


def overtake(group: Group, first: str, second: str) -> None:
    group.submit(E1, first)
    group.exhaust()
    round_of(group, E1)
    group.submit(E2, second)
    group.exhaust()
    round_of(group, E3)
    round_of(group)


def overtaken(**config: object) -> Group:
    """p of E1 is acknowledged at all three nodes, but h of E2, which is not yet, stands before it.

    On the channel: p, E1's answer, h (which answers for E2), E3's answer: h comes before the last of the first answers.
    """
    group = group_of(3, **config)
    overtake(group, "p1", "h5")
    assert [node.did.acknowledged for node in group.nodes] == [["p"]] * 3
    assert group.delivered() == ["", "", ""]
    return group


# --- priorities (4.1) ---


def test_higher_priorities_come_first_and_equal_ones_keep_their_order() -> None:
    group = group_of(3)
    for node, word in [(E1, "a1"), (E2, "b2"), (E3, "c1"), (E1, "d3"), (E2, "e2"), (E1, "f1")]:
        group.submit(node, word)
    group.settle()
    assert group.delivered() == ["d b e a c f"] * 3


def test_without_priorities_it_is_the_order_of_the_channel() -> None:
    group = group_of(2)
    group.submit(E2, "x")
    group.submit(E1, "a", "b")
    group.submit(E2, "y")
    group.settle()
    assert group.delivered() == ["x a b y"] * 2


def test_what_is_acknowledged_waits_behind_what_is_not() -> None:
    group = overtaken()
    round_of(group)
    assert group.delivered() == ["h p"] * 3


def test_what_comes_after_the_last_first_answer_does_not_overtake() -> None:
    group = group_of(2)
    group.submit(E1, "p1")
    group.exhaust()
    round_of(group)
    group.submit(E2, "h5")
    group.settle()
    assert group.delivered() == ["p h"] * 2


def test_one_sender_and_one_priority_keep_their_order_across_runs() -> None:
    group = overtaken()
    group.submit(E1, "q1")
    group.fire("run", E1)
    group.submit(E1, "r1")
    group.settle()
    assert len(set(group.delivered())) == 1
    words = group.delivered()[0].split()
    assert [word for word in words if word != "h"] == ["p", "q", "r"]


# --- ending a run (5) ---


def test_the_timer_runs_only_for_what_is_acknowledged_and_waits() -> None:
    group = group_of(2)
    group.submit(E1, "p1")
    group.exhaust()
    round_of(group)
    round_of(group)
    assert group.delivered() == ["p", "p"]
    assert all("run" not in node.did.timers for node in group.nodes)
    assert all("run" in node.running for node in overtaken().nodes)


def test_the_timer_is_not_set_anew_by_what_happens_meanwhile() -> None:
    """Or it would never fire where there is always something to do."""
    node = overtaken().nodes[E1]
    assert "run" not in node.drained().timers
    assert "run" not in node.submits("q1").timers
    assert "run" in node.running


def test_it_says_that_something_waits_behind_what_is_more_urgent() -> None:
    machine = overtaken().nodes[E1].machine
    assert machine.waits_for()[-1] == "1 acknowledged packets wait behind more urgent ones"
    assert machine.log_sizes().preacknowledged == 2


def test_runs_can_be_left_to_themselves() -> None:
    group = overtaken(priority=PriorityConfig(synchronises=False))
    assert all("run" not in node.running for node in group.nodes)
    group.settle()
    assert group.delivered() == ["h p"] * 3


def test_a_marker_acts_at_its_place_and_not_when_it_is_sent() -> None:
    """F6: a node that acts when its timer fires has other runs than those to whom more has come by then."""
    group = overtaken()
    (marker,) = group.fire("run", E1).units
    assert isinstance(marker, RunMarker)
    assert marker.covered_below == 1
    assert group.nodes[E1].did.delivered == []
    group.hear_all()
    assert group.delivered() == ["", "", ""], "nobody knows that all have it"
    group.settle()
    assert len(set(group.delivered())) == 1


def urgent_stream(group: Group, names: str) -> None:
    """E2 and E1 in turn send urgent packets, each of which answers for all before it: p is never the first."""
    for number, name in enumerate(names):
        group.submit((E2, E1)[number % 2], f"{name}9")
        group.exhaust()


def test_without_markers_a_packet_starves() -> None:
    group = group_of(2)
    group.submit(E1, "p1")
    group.exhaust()
    urgent_stream(group, "abcdefghijklmn")
    assert "p" in group.nodes[E1].did.acknowledged
    assert all(len(node.did.delivered) > 8 and "p" not in node.did.delivered for node in group.nodes)


def test_what_a_marker_covers_is_delivered_past_what_is_not_acknowledged() -> None:
    """As in the paper's Figure 5: what is acknowledged goes, what is not is stepped over."""
    group = group_of(2)
    group.submit(E1, "p1", "q1")
    group.exhaust()
    urgent_stream(group, "abcdef")
    group.submit(E2, "s1", "t9")  # not acknowledged at the place of the marker
    group.exhaust()
    group.fire("run", E1)
    group.exhaust()
    urgent_stream(group, "ghijkl")
    logs = group.delivered()
    assert logs[0] == logs[1]
    assert "p q" in logs[0]
    assert "s" not in logs[0]
    assert "t" in logs[0].split("q ")[1], "it was before them, and was stepped over"


def test_no_second_marker_for_what_a_marker_of_mine_covers() -> None:
    group = overtaken()
    group.fire("run", E1)
    assert "run" not in group.nodes[E1].running
    group.hear_all(E1)
    assert "run" not in group.nodes[E1].running


def test_no_marker_for_what_the_marker_of_another_covers() -> None:
    group = overtaken()
    group.fire("run", E1)
    group.hear_all()
    assert group.fire("run", E2, E3).of(RunMarker) == []


def test_a_marker_for_what_was_overtaken_since() -> None:
    group = overtaken()
    machine = group.nodes[E1].machine
    machine.policy.covered_below = 1
    machine.policy.overtaken.add(1)
    machine.policy.acknowledged_count = 2
    (marker,) = group.fire("run", E1).of(RunMarker)
    assert marker.covered_below == 2


def test_the_timer_runs_again_for_the_next_run() -> None:
    group = overtaken()
    group.fire("run", E1)
    group.settle()
    overtake(group, "q1", "k5")
    assert all("run" in node.running for node in group.nodes)
    (marker,) = group.fire("run", E1).of(RunMarker)
    assert marker.covered_below == 3


def test_nothing_waits_any_more_when_the_timer_fires() -> None:
    group = overtaken()
    round_of(group)
    assert group.delivered() == ["h p"] * 3
    assert group.fire("run").units == []
    assert all("run" not in node.running for node in group.nodes)


def test_two_markers_for_the_same_do_no_more_than_one() -> None:
    group = overtaken()
    assert len(group.fire("run").of(RunMarker)) == 3
    group.settle()
    assert group.delivered() == ["h p"] * 3


@pytest.mark.parametrize("losers", [(E1,), (E2,), (E2, E3), (E1, E2, E3)])
def test_a_marker_may_be_lost(losers: tuple[int, ...]) -> None:
    group = overtaken()
    group.fire("run", E1)
    for node in losers:
        group.lose(node)
    group.settle()
    assert group.delivered() == ["h p"] * 3


def test_a_timer_that_fires_while_the_group_goes_back_does_nothing() -> None:
    group = overtaken()
    node = group.nodes[E1]
    node.hears(Peer(E2).vector(0, 0, 0))
    assert node.fires("run").units == []


def test_a_marker_for_more_than_is_acknowledged_ends_what_is() -> None:
    group = overtaken()
    machine = group.nodes[E2].machine
    heard = machine.reception.preacknowledged_count + machine.reception.unpreacknowledged
    assert heard > machine.policy.acknowledged_count
    marker = RunMarker(machine.heading_in_sequence(), heard)
    for queue in group.queues:
        queue.append(marker)
    group.settle()
    assert group.delivered() == ["h p"] * 3


def test_a_marker_for_what_nobody_has_sent_is_thrown_away_and_suppresses_no_other() -> None:
    node, peer = Node(E1, 2, priorities=True), Peer(E2, 2)
    node.hears(peer.sends("p1"))
    before = node.machine.snapshot()
    for covered_below in (2, 1 << 62):
        marker = RunMarker(peer.heading(), covered_below)
        peer.next_seq -= 1
        assert node.hears(marker).discards == ["impossible"]
        assert node.machine.policy.covered_below == 0
    assert node.machine.snapshot() == before
    assert node.hears(peer.marker(1)).discards == []
    assert node.machine.policy.covered_below == 1


def test_a_marker_that_is_ahead_of_a_gap_shows_the_gap_whatever_it_ends() -> None:
    node, peer = Node(E1, 2, priorities=True), Peer(E2, 2)
    peer.sends("p1")  # lost
    assert node.hears(peer.marker(1)).stops == ["gap"]


def test_who_gives_up_delivers_nothing_more() -> None:
    group = overtaken(polls_to_abort=1)
    node = group.nodes[E3]
    while not node.did.aborts:
        node.fires("poll")
    assert node.did.delivered == [], "elsewhere something more urgent may have come before p and h"


# --- counterexamples to the printed rules ---


def test_ce1_a_lost_urgent_packet_does_not_overtake_where_it_was_heard() -> None:
    """F2: if packets were sorted in when accepted, E2 would put z before p, and E1, which misses it, could not."""
    group = group_of(2)
    group.submit(E1, "p1")
    group.exhaust()
    round_of(group)
    group.fire("status", E2)
    group.submit(E2, "z5")
    group.hear_all(E2)
    group.hear(E1)
    assert name_of_packet(lost(group, E1).packet) == "z"
    group.fire("status", E1)
    group.hear_all()
    assert group.delivered() == ["p", "p"]
    group.settle()
    assert group.delivered() == ["p z", "p z"]


def test_ce2_who_misses_the_last_acknowledgment_delivers_at_the_same_place() -> None:
    """F2, F4: E1 learns of both at once what E2 learns one after the other."""
    group = group_of(2)
    group.submit(E1, "p1")
    group.exhaust()
    round_of(group)
    group.fire("status", E2)
    group.lose(E1)
    group.submit(E1, "h5")
    group.hear_all()
    assert group.delivered() == ["", "p"]
    round_of(group, E1)
    assert group.delivered() == ["", "p"]
    round_of(group, E2)
    assert group.nodes[E1].did.preacknowledged == ["p", "h"]
    assert group.delivered() == ["p", "p"]
    group.settle()
    assert group.delivered() == ["p h", "p h"]


def lost(group: Group, node: int) -> OrderedData:
    (unit,) = group.lose(node)
    assert isinstance(unit, OrderedData)
    return unit


# --- the definition, once more and simply ---


def reference(units: Sequence[Unit], nodes: int) -> list[str]:
    """What is delivered of a sequence, by lists and minima alone."""
    acknowledges = [[0] * nodes for _ in range(nodes)]  # PAL, by source and node
    log: list[tuple[int, OrderedData]] = []  # PRL, with places
    delivered: list[str] = []
    places = 0

    def acknowledged(unit: OrderedData) -> bool:
        return unit.heading.seq < min(acknowledges[unit.source])

    def deliver(entry: tuple[int, OrderedData]) -> None:
        log.remove(entry)
        delivered.append(name_of_packet(entry[1].packet))

    for unit in units:
        assert isinstance(unit, OrderedData | OrderedReady | RunMarker)
        for source, expects in enumerate(unit.heading.expects):
            acknowledges[source][unit.source] = expects
        if isinstance(unit, OrderedData):
            lower = [at for at, (_, other) in enumerate(log) if other.packet.priority < unit.packet.priority]
            log.insert(min(lower, default=len(log)), (places, unit))
            places += 1
        if isinstance(unit, RunMarker):
            late = [at for at, (place, other) in enumerate(log) if place < unit.covered_below and acknowledged(other)]
            for entry in log[: max(late, default=-1) + 1]:
                if acknowledged(entry[1]):
                    deliver(entry)
        while log and acknowledged(log[0][1]):
            deliver(log[0])
    return delivered


@pytest.mark.parametrize("seed", range(40))
def test_without_loss_it_is_the_definition(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.randint(2, 4)
    group = group_of(nodes, window=chance.choice([2, 8, 32]))
    names = iter("abcdefghijklmnopqrstuvwxyz")
    for name in names:
        group.submit(chance.randrange(nodes), f"{name}{chance.randint(1, 4)}")
        for _ in range(chance.randint(0, 12)):
            node = chance.randrange(nodes)
            timers = sorted(group.nodes[node].running)
            if timers and chance.random() < 0.3:
                group.fire(chance.choice(timers), node)
            elif group.queues[node]:
                group.hear(node)
    group.settle(rounds=200)
    kinds = (OrderedData, OrderedReady, RunMarker)
    channel = [unit for unit in group.channel if isinstance(unit, kinds)]
    assert group.delivered() == [" ".join(reference(channel, nodes))] * nodes


def test_a_lone_node_of_two_sorts_nothing_that_it_does_not_know() -> None:
    node, peer = Node(E1, 2, priorities=True), Peer(E2, 2)
    node.hears(peer.sends("p1"), peer.sends("h5"))
    assert node.machine.policy.by_priority == []
