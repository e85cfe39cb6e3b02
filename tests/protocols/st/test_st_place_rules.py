"""The rules of ST that places what was lost: who asks whom for what, and where it is put.

Every group is moved by hand on one channel: what one node loses and another does not is the test's choice.
"""

from typing import Any

import pytest

from ordercast.model.config import GroupConfig, RecoveryPolicy
from ordercast.model.machine import Level, Output, Receive, Send
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.st.place.flush import StPlaceFlush
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.machine import StPlace
from ordercast.protocols.st.place.positions import UNKNOWN, OwnPositions
from ordercast.protocols.st.place.transmission import ECHO_PERIODS
from ordercast.protocols.st.units import PlacedCopy, PlacedData, PlacedReady, PlacedStatus
from tests.protocols.one_channel import E1, E2, E3, OneChannel


class Group(OneChannel[StPlace]):
    """Three nodes, or as many as are asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(StPlace, **{"recovery": RecoveryPolicy.PLACE, "polls_late": True, **settings})

    def missing(self, node: int) -> list[list[int]]:
        """By source, the numbers that a node lacks."""
        return [sorted(numbers) for numbers in self.machines[node].requests.missing]

    def log(self, node: int) -> str:
        """The packets that are not pre-acknowledged at a node, in their order; in brackets, if they are held."""
        logs = self.machines[node].logs
        words = []
        for packet in logs.accepted.logs[0]:
            letter = self.letter(packet)
            words.append(f"({letter})" if (packet.source, packet.seq) in logs.held else letter)
        return " ".join(words)

    def generations(self, node: int) -> tuple[int, ...]:
        return self.machines[node].generations.known

    def ends_well(self) -> None:
        """In silence, with all promises kept."""
        assert self.settle()
        assert self.broken_promises() == set()
        for letter, (_, to) in self.submitted.items():
            for digit in to:
                assert letter in self.delivered[int(digit) - 1]
        assert all(not machine.waits_for() for machine in self.machines)
        assert all(not machine.logs.positions.low for machine in self.machines), "nobody asks for these any more"
        assert all(machine.logs.buffers_in_use() == machine.log_sizes().total() == 0 for machine in self.machines)
        assert all(not machine.logs.accepted_before for machine in self.machines)


def test_a_copy_gets_the_place_that_the_packet_had_on_the_channel() -> None:
    """E1 has heard g between a and z, so says its copy; p is held until it comes."""
    group = Group()
    group.submit_all("a2:123 g1:123 z2:123 p1:123")
    group.all_hear("a")
    group.hear(E1, "g")
    group.hear(E2, "g")
    group.miss(E3, "g")
    group.all_hear("z", "p")
    assert (group.log(E3), group.missing(E3)) == ("a z (p)", [[0], [], []])
    group.all_hear("RR E3")
    group.hear(E3, "copy g")
    assert (group.log(E3), group.missing(E3)) == ("a g z p", [[], [], []])
    assert group.copies == ["copy g"]
    group.ends_well()
    assert group.together() == ["a g z p"] * 3


def test_nobody_stops_while_a_packet_is_missing() -> None:
    group = Group()
    group.submit_all("g1:123 p1:123")
    group.hear(E1, "g", "p")
    group.hear(E2, "g", "p")
    group.miss(E3, "g")
    group.hear(E3, "p")
    group.submit(E3, "c", "123")
    assert group.labels()[-1] == "c"


def vetoed() -> Group:
    """E3 lost g, and E1, its source, lost x: nobody can tell E3 which of them was first."""
    group = Group()
    group.submit_all("g1:23 x2:3 p1:23")
    group.hear(E1, "g")
    group.miss(E1, "x")
    group.hear(E1, "p")
    group.hear(E2, "g", "x", "p")
    group.miss(E3, "g")
    group.hear(E3, "x", "p")
    group.all_hear("RR E3")
    return group


def test_a_copy_waits_while_its_source_has_not_heard_enough() -> None:
    """E1 has heard nothing of E2 after g: what comes next may tell that x was before or after."""
    group = vetoed()
    group.hear(E3, "copy g")
    assert (group.log(E3), group.missing(E3)) == ("x (p)", [[0], [], []])
    assert not group.machines[E3].requests.vetoes[E1]


def test_a_packet_whose_place_nobody_can_tell_gets_a_new_one() -> None:
    group = vetoed()
    assert group.settle()
    assert group.generations(E3) == (1, 0, 0)
    assert group.copies.count("g") == 1
    assert group.copies.count("p") == 1
    assert group.delivered[E3] == ["x", "g", "p"]
    group.ends_well()


def test_who_has_vetoed_takes_no_copy_any_more() -> None:
    """A copy that came late could still be accepted at the old place, while the others have the new one."""
    group = vetoed()
    copy = group.said("copy g")
    machine = group.machines[E3]
    machine.requests.vetoes[E1] = True
    group.hear(E3, "copy g")
    assert machine.requests.copies[E1] == {}
    status = PlacedStatus(copy.stamp + 1, (2, 1, 0), (0, 0, 0), 9, 0, (0, 0, 0))
    machine.handle(Receive(PlacedReady(E2, 1, (0, 0, 1), status)))
    known = PlacedCopy(copy.packet, copy.stamp + 2, 0, (0, 0, 0), (0, 1, 0), (0, 1, 0))
    machine.handle(Receive(known))
    assert group.missing(E3)[E1] == [0]


def test_a_copy_that_can_be_anywhere_is_put_nowhere() -> None:
    """Once E1 knows what E2 sent after g, its copy says that it has lost x itself."""
    group = vetoed()
    copy = group.said("copy g")
    known = PlacedCopy(copy.packet, copy.stamp, 0, (0, 0, 0), (1, 0, 0), (UNKNOWN, 1, UNKNOWN))
    group.handle(E3, Receive(known))
    assert group.machines[E3].requests.vetoes[E1]
    assert (group.log(E3), group.missing(E3)) == ("x (p)", [[0], [], []])


def test_a_source_that_lost_its_own_packet_asks_another_node_for_its_place() -> None:
    group = Group()
    group.submit_all("a2:123 g1:123 z2:123 p1:123")
    group.all_hear("a")
    group.miss(E1, "g")
    group.hear(E2, "g", "z", "p")
    group.hear(E3, "g", "z", "p")
    group.hear(E1, "z", "p")
    assert (group.log(E1), group.missing(E1)) == ("a z (p)", [[0], [], []])
    group.hear(E2, "RR E1")
    group.hear(E3, "RR E1")
    (position,) = [label for label in group.labels() if label.startswith("place")]
    told = group.said(position)
    assert (told.low, told.high) == ((0, 1, 0), (1, 1, UNKNOWN)), "behind a, and before p and z"
    group.hear(E1, "RR E1", position)
    assert group.log(E1) == "a g z p"
    assert group.copies == []
    group.ends_well()
    assert group.together() == ["a g z p"] * 3


def test_a_source_whose_packet_is_to_itself_alone_sends_it_again() -> None:
    """There is nobody to ask."""
    group = Group()
    group.submit_all("g1:1 p1:123")
    group.miss(E1, "g")
    for node in (E2, E3):
        group.hear(node, "g", "p")
    group.hear(E1, "p")
    assert group.copies == ["g", "p"]
    group.ends_well()
    assert group.delivered[E1] == ["g", "p"]


def test_what_is_moved_is_accepted_once_and_not_pre_acknowledged_at_its_old_place() -> None:
    """E3 has accepted g and p; E1 gives both new places, and z of E2 is between."""
    group = Group()
    group.submit_all("g1:123 p1:123 z2:123")
    group.all_hear("g", "p", "z")
    assert group.log(E3) == "g p z"
    machine = group.machines[E1]
    out: list[Output] = []
    machine.send_again(0, out)
    group.channel += [output.unit for output in out if isinstance(output, Send)]
    for node in (E1, E2, E3):
        group.hear(node, "g", "p")
        assert group.log(node) == "z g p"
    assert group.levels[E3]["g"] is Level.ACCEPTED
    group.ends_well()
    assert group.together() == ["z g p"] * 3


def test_the_window_bounds_what_can_be_missing() -> None:
    """A number that is too high would otherwise fill the memory."""
    group = Group(window=4)
    status = PlacedStatus(1, (9, 0, 0), (0, 0, 0), 9, 0, (0, 0, 0))
    wrong = Packet(E1, 0b100, 9, (5, 5, 5), 0, (1,), b"x")
    group.letters[E1, 0] = "x"
    group.handle(E3, Receive(PlacedData(wrong, status)))
    assert group.missing(E3) == [[], [], []]
    assert group.discarded[E3] == [("x", "impossible")]


def test_a_request_is_not_repeated_while_it_is_out() -> None:
    """The channel is slower than this node: asking again would make it slower."""
    group = Group()
    group.submit_all("g1:123 p1:123")
    group.miss(E3, "g")
    group.hear(E3, "p")
    for count in range(ECHO_PERIODS + 1):
        assert group.labels().count("RR E3") == 1, count
        group.fire(E3, "request")
    assert group.labels().count("RR E3") == 2


# --- generations ---


def status(generation: int, *starts: tuple[int, int], known: tuple[int, ...] = (0, 0, 0)) -> PlacedStatus:
    return PlacedStatus(1, (0, 0, 0), (0, 0, 0), 9, generation, known, starts)


def test_of_all_generations_that_were_missed_the_lowest_start_counts() -> None:
    """The second one began with 7 because somebody lacked that; 3 to 6 have moved before."""
    generations = Generations(E3, 3)
    assert generations.first_moved(E1, status(2, (1, 3), (2, 7))) == 3
    generations.enter(E1, 1)
    assert generations.first_moved(E1, status(2, (1, 3), (2, 7))) == 7


def test_a_generation_whose_start_is_not_told_is_impossible() -> None:
    generations = Generations(E3, 3)
    assert generations.first_moved(E1, status(2, (2, 7))) is None
    assert generations.first_moved(E3, status(1, (1, 7))) is None, "of my own, which I have not begun"


def test_a_start_is_told_until_all_know_the_generation() -> None:
    generations = Generations(E1, 3)
    generations.begin(3)
    generations.begin(7)
    for node in (E1, E2):
        generations.note(node, status(0, known=(2, 0, 0)))
    assert list(generations.starts) == [(1, 3), (2, 7)]
    generations.note(E3, status(0, known=(1, 0, 0)))
    assert list(generations.starts) == [(2, 7)]
    assert generations.own_moved_from(0, 99) == 7
    assert generations.own_moved_from(2, 99) == 99


def test_acknowledgments_in_another_generation_say_nothing() -> None:
    """E2 and E3 have accepted g in generation 0. It moves; that they have it at the old place does not count."""
    group = Group()
    group.submit(E1, "g", "123")
    group.all_hear("g")
    logs = group.machines[E1].logs
    logs.generations.enter(E1, 1)
    for node in (E1, E2, E3):
        logs.take_status(node, PlacedStatus(9, (1, 5, 0), (1, 5, 0), 9, 0, (0, 0, 0)), [])
    assert [below[:2] for below in logs.accepted.acknowledged_below] == [(0, 5)] * 3
    assert [below[:2] for below in logs.preacknowledged.acknowledged_below[1:]] == [(0, 5)] * 2


# --- positions ---


def test_a_position_is_what_was_heard_before_and_after() -> None:
    positions = OwnPositions(E1, (0, 0))
    positions.heard(E2, 3, 4)
    positions.came_back(0)
    assert (positions.low[0], positions.high[0][E2]) == ((0, 4), UNKNOWN)
    positions.heard(E2, 5, 6)
    positions.heard(E2, 6, 7)
    assert positions.high[0][E2] == 5


@pytest.mark.parametrize(("heard_after", "high"), [(False, UNKNOWN), (True, 2)])
def test_what_moves_is_after_a_packet_only_if_something_was_heard_after_it(heard_after: bool, high: int) -> None:
    """Otherwise a part of the new generation may have been sent before the packet, and lost."""
    positions = OwnPositions(E1, (0, 0))
    positions.heard(E2, 3, 4)
    positions.came_back(0)
    if heard_after:
        positions.heard(E2, 4, 5)
    positions.moved(E2, 2)
    assert (positions.low[0], positions.high[0][E2]) == ((0, 2), high)
    positions.heard(E2, 3, 4)
    assert positions.high[0][E2] == (2 if heard_after else 3)


def test_a_packet_with_a_new_place_has_no_position_until_it_comes_back() -> None:
    positions = OwnPositions(E1, (0, 0))
    for seq in (0, 1, 2):
        positions.came_back(seq)
    positions.forget_from(1)
    assert sorted(positions.low) == sorted(positions.high) == [0]
    positions.heard(E2, 0, 1)
    assert positions.high == {0: [UNKNOWN, 0]}


def test_all_nodes_must_accept_a_packet_not_only_its_destinations() -> None:
    """Lemma A; docs/protocols/st.md, S3."""
    machine = StPlace(E1, GroupConfig(nodes=3, recovery=RecoveryPolicy.PLACE))
    assert machine.logs.accepted.required == 0b111


# --- what only long runs would show ---


def test_what_has_moved_is_known_to_be_accepted_by_nobody() -> None:
    """E2 has told that it has g, at the old place."""
    group = Group()
    group.submit(E1, "g", "123")
    group.all_hear("g")
    ready = PlacedReady(E2, 0, (0, 0, 0), PlacedStatus(9, (1, 0, 0), (1, 0, 0), 9, 0, (0, 0, 0)))
    logs = group.machines[E1].logs
    group.handle(E1, Receive(ready))
    assert logs.accepted.acknowledged_below[E2] == (1, 0, 0)
    again: list[Output] = []
    group.machines[E1].send_again(0, again)
    group.channel += [output.unit for output in again if isinstance(output, Send)]
    group.hear_rest(E1)
    assert group.generations(E1) == (1, 0, 0)
    assert logs.accepted.acknowledged_below[E2] == (0, 0, 0)
    assert logs.preacknowledged.acknowledged_below[E2] == (0, 0, 0)


def test_the_status_of_what_is_held_does_not_count() -> None:
    """It was sent after the missing packet, of which this node knows nothing yet (Lemma A)."""
    group = Group()
    group.submit_all("g1:123 p1:123")
    group.miss(E3, "g")
    group.hear(E3, "p")
    logs = group.machines[E3].logs
    assert (group.log(E3), logs.stamps[E1]) == ("(p)", 0)
    assert logs.accepted.waiting_for[E1] or logs.accepted.acknowledged_below[E1] == (0, 0, 0)


def test_a_place_told_in_another_generation_is_compared_with_nothing() -> None:
    """E1 has heard E2's second generation, of which E3 knows nothing: x may be of the first one. It waits."""
    group = vetoed()
    copy = group.said("copy g")
    later = PlacedCopy(copy.packet, copy.stamp, 0, (0, 1, 0), (1, 0, 0), (UNKNOWN, 1, UNKNOWN))
    group.handle(E3, Receive(later))
    assert not group.machines[E3].requests.vetoes[E1]
    assert group.missing(E3)[E1] == [0]


@pytest.mark.parametrize(
    ("knows", "ends"),
    [((0, 0), 5), ((1, 1), 5), ((0, 1), 3), ((0, 2), 2), ((1, 2), 2), ((2, 2), 5)],
)
def test_a_view_ends_before_what_some_do_not_know_to_have_moved(knows: tuple[int, int], ends: int) -> None:
    """Both have 5 packets of E1. Its first generation has moved the packets from 3 on, its second those from 2 on."""
    starts = (E1, 1, 3, E1, 2, 2)
    reports = {
        place: EpochReport((5, 0), base=(known, 0), units=starts[: 3 * known]) for place, known in enumerate(knows)
    }
    assert StPlaceFlush.agree(reports)
    assert StPlaceFlush.cut(reports, 2) == Cut((ends, 0))


def test_a_view_does_not_end_while_nobody_knows_a_start() -> None:
    reports = {0: EpochReport((5, 0), base=(0, 0)), 1: EpochReport((5, 0), base=(2, 0), units=(E1, 2, 2))}
    assert not StPlaceFlush.agree(reports)
