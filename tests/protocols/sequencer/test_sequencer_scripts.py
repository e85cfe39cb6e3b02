"""Schedules that a random search does not find: a view decided by nodes that it shuts out, and a ballot that lost."""

from ordercast.protocols.sequencer.units import Accepted, Fetch, Flush, Flushed, Install, Propose, Supply
from tests.protocols.sequencer.driver import E1, E2, E3, E4, E5, Group


def test_w1_a_view_is_decided_by_nodes_that_are_in_it() -> None:
    """n = 5, r = 2, one crash. E1 and E5 are slow: they do not answer the flush, but accept what follows from it."""
    group = Group(5, resilience=2, suspect_after=2)
    group.submit(E1, "a")
    group.hear(E2)  # only E2 and the sequencer have a; nobody may deliver it
    group.lose()
    group.begins_ballot(E2)
    for node in (E3, E4):
        group.hear(node, Flush)
    group.lose(E1, E5)
    group.hear(E2, Flushed)
    group.fire_until(E2, "view", Propose)
    assert group.nodes[E2].did.of(Propose)[0].value.members == 0b01110
    group.lose(E3, E4)
    for _ in range(2):  # E5 fetches a; E1 has it
        for node in (E1, E5):
            group.hear(node, Propose)
            group.hear(node, Supply)
        group.hear(E2, Fetch)
    for node in (E1, E5):
        group.hear(node, Supply)
    group.hear(E2, Accepted)
    delivered_by_the_dead = group.nodes[E2].did.delivered  # nothing, unless it counts E1 and E5
    group.lose(E1, E5)
    for node in (E3, E4):
        group.hear(node, Install)
    group.crash(E2)
    group.submit(E3, "x")
    group.settle()  # E1 and E5 are heard again
    for node in (E3, E4):
        survivors = group.nodes[node].did.delivered
        assert survivors[: len(delivered_by_the_dead)] == delivered_by_the_dead
    assert group.delivered(E3, E4) == ["a x"] * 2
    assert group.told(E1, E5) == ["[1:2,3,4]"] * 2, "the view that they accepted is the one that is decided"


def test_w2_what_was_fetched_for_a_ballot_that_lost_is_not_mine() -> None:
    """V1, which keeps nothing, is accepted at E2. For V2, which keeps a and b, E3 fetches a only. Then V1 wins."""
    group = Group(5, suspect_after=2)
    group.submit(E1, "a", "b")
    group.lose()  # only E1 has them
    group.submit(E2, "x")
    group.submit(E4, "y")
    group.lose()
    group.begins_ballot(E2)
    for node in (E3, E4):
        group.hear(node, Flush)
    group.lose(E1, E5)
    group.hear(E2, Flushed)
    group.fire_until(E2, "view", Propose)  # V1: E2, E3, E4 go on, with nothing
    assert group.nodes[E2].did.of(Propose)[0].value.cut_below == 0
    group.lose()
    group.begins_ballot(E4)
    for node in (E1, E5):
        group.hear(node, Flush)
    group.lose(E2, E3)
    group.hear(E4, Flushed)
    group.fire_until(E4, "view", Fetch)
    group.hear(E1, Fetch)
    group.hear(E4, Supply)  # V2: E1, E4, E5 go on, with a and b
    assert group.nodes[E4].did.of(Propose)[-1].value.cut_below == 2
    group.lose(E1, E2, E5)
    group.hear(E3, Propose)
    group.hear(E4, Fetch)
    [first, _] = [unit for unit in group.mail[E3] if isinstance(unit, Supply)]
    group.nodes[E3].hears(first)
    assert list(group.nodes[E3].machine.agreement.supplied) == [0]
    group.lose()
    group.crash(E1)
    group.crash(E4)
    group.settle()
    assert [node.did.aborts for node in group.nodes] == [[]] * 5
    assert group.told(E2, E3) == ["[1:2,3,4] x [2:2,3]"] * 2
    assert group.told(E5) == ["[1:2,3,4]"]
