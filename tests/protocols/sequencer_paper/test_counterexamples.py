"""Where the printed sequencer fails, each told once: as stated under those rules, mended by one reading, and sound.

The names S1 to S8 are those of the golden file and of docs/protocols/sequencer_paper.md. Flaws hide each other (after
S1 nothing is left to fail), so each story takes the readings that mend the others and leaves its own as printed.
"""

from collections import defaultdict
from typing import Any

import pytest

from ordercast.model.machine import Receive
from ordercast.model.units import DataUnit, Packet
from ordercast.protocols.sequencer.paper.units import PaperBroadcast, PaperPhase, PaperRetransmit
from tests.protocols.sequencer_paper.datagrams import E2, E3, SEQUENCER, Flight, Group, once, printed, sound
from tests.protocols.sequencer_paper.stories import GOLDEN, PURGES, QUIET, RUNS, broadcast_to

# --- S1: every first message counts as a duplicate ---


def test_s1_the_first_message_ends_the_sequencer() -> None:
    group = printed()
    group.submit(E2, "a")
    group.carry()
    assert "null pointer" in group.aborted[SEQUENCER]
    assert group.logs == ["", "", ""]


@pytest.mark.parametrize("group", [printed(**RUNS), sound()], ids=["reading", "sound"])
def test_s1_is_gone_when_ids_begin_behind_what_the_table_begins_with(group: Group) -> None:
    group.submit(E2, "a")
    group.submit(E3, "b")
    group.carry()
    assert group.logs == ["a b"] * 3


# --- S2: what is expected next is taken for what was received ---


def s2(group: Group) -> None:
    """A history of one. E3 loses a, and E2, which has it, sends again."""
    group.submit(E2, "a")
    group.carry(once(broadcast_to(E3, "a")))
    group.submit(E2, "b")
    group.carry()


def test_s2_what_a_node_lacks_is_purged() -> None:
    group = printed(history=1, **RUNS, dummy_after=QUIET)
    s2(group)
    assert group.machines[SEQUENCER].acknowledged == [0, 1, 0], "E3 has nothing, which is written as message 0"
    assert [stored.number for stored in group.machines[SEQUENCER].history] == [1]
    assert group.logs == ["a b", "a b", ""]
    assert group.settle()
    assert group.logs[E3] == ""
    assert "E1 does not answer" in group.aborted[E3]


@pytest.mark.parametrize(
    "group",
    [printed(history=1, **RUNS, acknowledges_last=True, dummy_after=QUIET), sound(history=1)],
    ids=["reading", "sound"],
)
def test_s2_is_gone_when_nodes_say_what_they_received_last(group: Group) -> None:
    """The history stays full, and the synchronization phase brings E3 what it lacks."""
    s2(group)
    group.settle()
    assert group.logs == ["a b"] * 3
    assert not group.aborted


def test_the_row_of_the_sequencer_never_moves_so_every_full_history_needs_a_synchronization() -> None:
    """Everybody has everything and has said so, but the sequencer itself, whose LastSeqReceived nobody advances."""
    phases = {}
    for own in (False, True):
        group = printed(history=2, **PURGES | {"advances_own_row": own}, dummy_after=1)
        for letter in "abcdefgh":
            group.submit(E2, letter)
        assert group.settle()
        assert group.logs == ["a b c d e f g h"] * 3
        phases[own] = sum(isinstance(flight.unit, PaperPhase) and flight.to == E2 for flight in group.handed)
    assert phases == {False: 2 * 3, True: 0}, "two phases before each third message, or none"


# --- S3: a duplicate is answered without data ---


def s3(group: Group) -> None:
    """E2 misses its own broadcast, and its timer sends DATA again."""
    group.submit(E2, "a")
    group.settle(once(broadcast_to(E2, "a")))


def test_s3_an_empty_message_is_delivered() -> None:
    group = printed(**RUNS)
    s3(group)
    assert group.delivered == [["a"], [""], ["a"]]


@pytest.mark.parametrize("group", [printed(**RUNS, whole_answers=True), sound()], ids=["reading", "sound"])
def test_s3_is_gone_when_the_answer_is_the_message(group: Group) -> None:
    s3(group)
    assert group.delivered == [["a"]] * 3


# --- S4: only the last message of a sender counts as a duplicate ---


def s4(group: Group) -> None:
    """A copy of m1 was delayed, and comes when m2 has been broadcast."""
    for letter in "12":
        group.submit(E2, letter)
    (delayed,) = [flight for flight in group.under_way if flight.to == SEQUENCER]
    group.carry()
    group.hand(delayed)
    group.settle()


def test_s4_an_old_message_is_broadcast_again_and_the_table_falls() -> None:
    group = printed(**RUNS)
    s4(group)
    assert [[f"m{letter}" for letter in log] for log in group.delivered] == [GOLDEN["S4"]["printed"]] * 3
    assert group.machines[SEQUENCER].acknowledged[E2] == 0, "E2 had said 1 with m2"


@pytest.mark.parametrize("group", [printed(**RUNS, older_are_duplicates=True), sound()], ids=["reading", "sound"])
def test_s4_is_gone_when_all_older_messages_are_duplicates(group: Group) -> None:
    s4(group)
    assert [[f"m{letter}" for letter in log] for log in group.delivered] == [GOLDEN["S4"]["fixed"]] * 3


def test_s4_with_that_reading_acknowledgments_never_fall() -> None:
    group = printed(**RUNS, older_are_duplicates=True)
    s4(group)
    assert group.machines[SEQUENCER].acknowledged[E2] >= 1


# --- S5: every wrong number asks for everything again ---


def storm(followers: int, *, asks_once: bool) -> int:
    """Repair packets when E2 loses broadcast 0 and so many follow, one in each tick.

    A request takes two ticks to the sequencer, and its answer two ticks back.
    """
    group = printed(nodes=2, tries=10_000, **PURGES, asks_once=asks_once)
    sequencer, receiver = group.machines
    later: defaultdict[int, list[tuple[Any, Flight]]] = defaultdict(list)
    packets = 0
    for tick in range(1_000):
        arrivals = [flight for machine, flight in later.pop(tick, []) if machine is receiver]
        if tick <= followers:
            group.submit(SEQUENCER, "m")
            (offer,) = group.under_way
            group.under_way.clear()
            group.hand(offer)
            (broadcast,) = group.under_way
            group.under_way.clear()
            if tick > 0:
                arrivals.insert(0, broadcast)
        requests = [flight for machine, flight in later.pop(-tick, []) if machine is sequencer]
        for flight in arrivals + requests:
            group.hand(flight)
        for flight in group.under_way:
            packets += 1
            is_request = isinstance(flight.unit, PaperRetransmit)
            later[-(tick + 2) if is_request else tick + 2].append((group.machines[flight.to], flight))
        group.under_way.clear()
    assert receiver.expected == followers + 1
    return packets


def counted(followers: int) -> int:
    """The same counted without any machine: what Figure 5 does with a number that is not the expected one."""
    arrivals: defaultdict[int, list[int]] = defaultdict(list)
    expected = packets = 0
    for tick in range(1_000):
        live = [tick] if 0 < tick <= followers else []
        for number in live + arrivals[tick]:
            if number == expected:
                expected += 1
                continue
            answer = range(expected, min(tick + 2, followers) + 1)
            arrivals[tick + 4] += answer
            packets += 1 + len(answer)
    return packets


@pytest.mark.parametrize("followers", [4, 8, 12, 16])
def test_s5_one_loss_starts_a_storm(followers: int) -> None:
    """How the delay is counted moves the figure a little; that four more broadcasts make it fourfold stays."""
    packets = storm(followers, asks_once=False)
    assert packets == counted(followers)
    assert 0.9 < packets / GOLDEN["S5"]["printed_repair_packets"][str(followers)] < 1.5


def test_s5_a_storm_ends_in_giving_up_when_tries_are_counted() -> None:
    """Each wrong number is a request that brought nothing."""
    group = printed(**PURGES, tries=5)
    first = Receive(PaperBroadcast(Packet(E2, 7, 1, (), 0, (1,), b"x"), SEQUENCER, 0, 1))
    for _ in range(1 + 5):
        group.handle(E3, first)
    assert not group.aborted
    group.handle(E3, first)
    assert "E1 does not answer" in group.aborted[E3], "though it lacks nothing"


@pytest.mark.parametrize("followers", [4, 8, 12, 16])
def test_s5_is_gone_when_what_comes_ahead_is_kept_and_a_gap_asked_for_once(followers: int) -> None:
    """One request, and the answer, which repeats what has come by then: 3 messages more than were lost."""
    asked, lost, on_the_way = 1, 1, min(followers, 3)
    assert storm(followers, asks_once=True) == asked + lost + on_the_way


@pytest.mark.parametrize("followers", [4, 8, 12, 16])
def test_s5_the_sound_rules_repair_one_loss_with_two_units(followers: int) -> None:
    group = sound(nodes=2)
    lost = once(broadcast_to(E2, "m"))
    for _ in range(followers + 1):
        group.submit(SEQUENCER, "m")
        while group.under_way and group.under_way[0].is_broadcast:
            flight = group.under_way.popleft()
            if not lost(flight):
                group.hand(flight)
    group.settle()
    asked = [flight for flight in group.handed if flight.unit.asks_for() is not None]
    data = [flight for flight in group.handed if isinstance(flight.unit, DataUnit) and flight.to == E2]
    assert len(asked) + len(data) - followers == GOLDEN["S5"]["fixed_repair_packets"][str(followers)]
    assert group.logs[E2] == " ".join("m" * (followers + 1))


# --- S6: a lost last broadcast, and silence ---


def s6(group: Group) -> None:
    """E3 loses the last message, and nobody sends any more."""
    for letter in "ab":
        group.submit(E2, letter)
    group.settle(once(broadcast_to(E3, "b")))


@pytest.mark.parametrize("dummy_after", [1, 2, 3])
def test_s6_a_dummy_that_counts_messages_never_comes(dummy_after: int) -> None:
    group = printed(**PURGES, asks_once=True, whole_answers=True, older_are_duplicates=True, dummy_after=dummy_after)
    s6(group)
    assert group.logs == ["a b", "a b", "a"]
    assert not any(group.timers), "nobody waits for anything"
    assert group.machines[E3].waits_for() == ()


def test_s6_does_not_happen_under_the_sound_rules() -> None:
    group = sound()
    s6(group)
    assert group.logs == ["a b"] * 3
    assert not any(group.timers)


# --- what the stories lean on ---


def test_a_header_without_data_has_as_many_messages_all_empty() -> None:
    packet = Packet(E2, 7, 1, (), 0, (1, 2), b"xyz")
    nothing = PaperBroadcast(packet, SEQUENCER, 4, 1).without_data()
    assert (nothing.packet.lengths, nothing.packet.payload, nothing.number) == ((0, 0), b"", 4)
    group = printed(**RUNS)
    group.handle(E3, Receive(PaperBroadcast(packet, SEQUENCER, 0, 1).without_data()))
    assert group.delivered[E3] == [""]
