"""Where the printed sequencer fails when the group synchronises (S7) and when nodes fail (S8), like the others."""

from collections.abc import Iterator

from ordercast.protocols.sequencer.paper.units import PaperCommitted, PaperPhase
from tests.protocols.sequencer_paper.datagrams import E2, E3, SEQUENCER, Flight, Group, once, printed, sound
from tests.protocols.sequencer_paper.stories import PURGES, QUIET, broadcast_to

# --- S7: units of the synchronization phase look all alike ---


def full(group: Group) -> Iterator[Flight]:
    """With a history of one, E2 sends a and b, and the group synchronises between; all that was handed over."""
    for letter in "ab":
        group.submit(E2, letter)
        group.settle()
    assert group.logs == ["a b"] * 3
    yield from list(group.handed)


def test_s7_an_old_reply_counts_in_a_later_synchronization() -> None:
    """A copy of an ACK_COMMIT of E3 was delayed, and says for E3 that it has c, which it lost."""
    group = printed(history=1, **PURGES, dummy_after=QUIET)
    old = [flight for flight in full(group) if isinstance(flight.unit, PaperCommitted) and flight.unit.source == E3]
    assert len(old) == 2, "one for each phase, and equal"
    assert old[0] == old[1]
    group.submit(E2, "c")
    lost = once(broadcast_to(E3, "c"))
    group.settle(lost)
    assert group.logs == ["a b c", "a b c", "a b"]
    group.submit(E2, "d")
    while group.machines[SEQUENCER].phase != 1:
        group.hand(group.under_way.popleft())
    group.hand(old[0])
    group.settle()
    assert group.logs[E3] == "a b"
    assert "E1 does not answer" in group.aborted[E3], "its history was emptied of c"


def test_s7_an_old_phase_1_stops_a_node_for_ever() -> None:
    group = printed(history=1, **PURGES, dummy_after=QUIET)
    (old,) = [flight for flight in full(group) if flight.to == E3 and getattr(flight.unit, "phase", 0) == 1]
    group.hand(old)
    group.submit(E3, "c")
    group.settle()
    assert group.logs == ["a b"] * 3
    assert group.machines[E3].waits_for() == (
        "has something to send, but not while the group synchronises",
        "has stopped sending until E1 says that everybody has everything",
    )


def test_one_lost_unit_of_a_synchronization_stops_the_group() -> None:
    """Nobody repeats a PHASE1, whatever is sent again."""
    group = printed(history=1, **PURGES, dummy_after=QUIET)
    group.submit(E2, "a")
    group.settle()
    group.submit(E2, "b")
    group.settle(once(lambda flight: isinstance(flight.unit, PaperPhase) and flight.to == E3))
    assert group.logs == ["a"] * 3
    assert "waits for the ACK_COMMITs of {E3} in phase 1" in group.machines[SEQUENCER].waits_for()


def test_s7_under_the_sound_rules_no_old_unit_does_any_harm() -> None:
    """All that was ever handed over comes again, and then c and d, of which E3 loses one."""
    group = sound(history=1)
    for flight in full(group):
        group.hand(flight)
    group.settle()
    for letter in "cd":
        group.submit(E2, letter)
    group.submit(E3, "e")
    group.settle(once(broadcast_to(E3, "c")))
    assert group.logs[0].split()[:2] == ["a", "b"]
    assert sorted(group.delivered[0]) == list("abcde")
    assert group.logs == [group.logs[0]] * 3


# --- S8: the highest number is not enough ---


def split(group: Group) -> None:
    """The sequencer is cut off from the others; each side broadcasts something; then they hear each other again."""

    def crosses(flight: Flight) -> bool:
        return (flight.unit.source == SEQUENCER) != (flight.to == SEQUENCER)

    group.submit(SEQUENCER, "a")
    group.submit(E2, "b")
    group.settle(crosses)
    group.submit(E3, "c")
    group.settle(crosses)


def test_s8_two_sequencers_number_different_messages_alike() -> None:
    group = printed(**PURGES, elects=True)
    split(group)
    assert [machine.sequencer for machine in group.machines] == [SEQUENCER, E2, E2]
    assert group.logs == ["a", "b c", "b c"]


def test_s8_a_message_may_be_lost_with_the_only_node_that_took_part_in_nothing() -> None:
    """E2 and the sequencer deliver a; E3, which lost it, takes over when it hears nobody."""
    group = printed(**PURGES, elects=True)
    group.submit(E2, "a")
    group.carry(once(broadcast_to(E3, "a")))
    group.submit(E3, "b")
    group.settle(lambda flight: flight.unit.source != E3 or flight.to != E3)
    assert group.machines[E3].sequencer == E3
    assert group.logs == ["a", "a", "b"]


def test_s8_a_node_delivers_more_than_it_has_claimed() -> None:
    """A broadcast of the old sequencer comes when E3 has said that it has none; E2 takes over, and begins at none."""
    group = printed(**PURGES, elects=True, asks_once=True)
    group.submit(SEQUENCER, "a")
    group.carry(lambda flight: flight.to != SEQUENCER)
    late = Flight(group.machines[SEQUENCER].history[0], E3)
    group.submit(E2, "b")
    while not group.machines[E3].in_election:
        group.carry(lambda flight: SEQUENCER in (flight.to, flight.unit.source))
        assert group.fire()
    assert group.machines[E3].claims == {E2: 0, E3: 0}
    group.hand(late)
    group.settle(lambda flight: SEQUENCER in (flight.to, flight.unit.source))
    assert group.machines[E3].sequencer == E2
    assert group.logs[1:] == ["b", "a"]


def test_s8_a_crashed_sequencer_is_replaced_and_nothing_is_lost_while_all_others_take_part() -> None:
    """What the paper promises, where it holds: the new sequencer brings the others up to date."""
    group = printed(**PURGES, elects=True, asks_once=True, whole_answers=True)
    group.submit(SEQUENCER, "a")
    group.carry(once(broadcast_to(E2, "a")))
    group.machines[SEQUENCER].aborted = True
    group.submit(E2, "b")
    assert group.settle()
    assert [machine.sequencer for machine in group.machines[1:]] == [E3, E3]
    assert group.logs[1:] == ["a b", "a b"]


def test_s8_under_the_sound_rules_one_side_goes_on() -> None:
    """Each broadcast is held by a majority before anybody is given it, and a majority agrees on the next view."""
    group = sound(resilience=1)
    split(group)
    assert group.logs[E2] == group.logs[E3]
    assert sorted(group.delivered[E2]) == ["b", "c"]
    assert group.logs[SEQUENCER] == ""
