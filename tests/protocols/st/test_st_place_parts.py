"""The parts of ST that places what was lost, one rule at a time: what each keeps, forgets, and counts."""

from typing import Any

import pytest

from ordercast.model.machine import Abort, Discard, GiveUp, Level, Reached, Receive, Submit, TimerFired
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.shared.reasons import INFERRED_LOSS
from ordercast.protocols.spo.units import Ready, Status
from ordercast.protocols.st.place.flush import StPlaceFlush
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.positions import UNKNOWN, OwnPositions
from ordercast.protocols.st.place.requests import WITNESSES
from ordercast.protocols.st.place.transmission import ECHO_PERIODS
from ordercast.protocols.st.units import PacketPosition, PlacedCopy, PlacedData, PlacedReady, PlacedStatus
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.st.test_st_place_rules import Group


def status(stamp: int, expects: tuple[int, ...] = (0, 0, 0), **fields: Any) -> PlacedStatus:
    given = {"free": 9, "generation": 0, "generations": (0, 0, 0), "starts": (), **fields}
    return PlacedStatus(
        stamp, expects, (0, 0, 0), given["free"], given["generation"], given["generations"], given["starts"]
    )


def one_missing(**settings: Any) -> Group:
    """E3 has lost g of E1, and has a copy of it under way; the others have everything."""
    group = Group(**settings)
    group.submit_all("a2:123 g1:123 z2:123 p1:123")
    group.all_hear("a")
    for node in (E1, E2):
        group.hear(node, "g")
    group.miss(E3, "g")
    group.all_hear("z", "p", "RR E3")
    return group


# --- positions ---


@pytest.mark.parametrize("restored", [False, True])
def test_what_another_node_told_is_completed_by_what_is_heard_from_now_on(restored: bool) -> None:
    """Only where it is unknown, and of others only."""
    positions = OwnPositions(E1, (0, 0, 0))
    positions.learn(4, (0, 5, 6), (UNKNOWN, 7, UNKNOWN), [True, True, True])
    if restored:
        again = OwnPositions(E1, (0, 0, 0))
        again.restore(positions.snapshot())
        positions = again
    for source, number in ((E1, 5), (E2, 8), (E3, 9), (E3, 10)):
        positions.heard(source, number, number + 1)
    assert positions.high == {4: [UNKNOWN, 7, 9]}
    assert positions._open == [[], [], []], "nothing is looked for any more"


def test_what_moves_has_not_been_heard_at_its_new_place() -> None:
    positions = OwnPositions(E1, (0, 0))
    positions.heard(E2, 8, 9)
    positions.moved(E2, 5)
    positions.came_back(0)
    assert positions.low[0] == (0, 5)
    positions.moved(E2, 7)
    positions.came_back(1)
    assert positions.low[1] == (0, 5), "more than was heard is not"


# --- generations ---


def test_what_a_node_knows_of_generations_it_knows_for_good() -> None:
    """An old status says less."""
    generations = Generations(E1, 3)
    generations.begin(3)
    for node, known in ((E2, 1), (E2, 0), (E1, 1), (E3, 1)):
        generations.note(node, status(1, generations=(known, 0, 0)))
    assert generations.starts == ()
    generations.note(E2, status(1, generations=(0, 0, 0)))
    assert generations.confirmed == [1, 1, 1]


# --- requests ---


def test_a_request_names_ranges() -> None:
    group = Group()
    group.submit_all("a1:3 b1:3 c1:3 d1:3 e1:3")
    for letter in "abcde":
        group.hear(E3, letter) if letter in "ce" else group.miss(E3, letter)
    assert group.machines[E3].requests.wanted() == ((E1, 0, ((0, 2), (3, 4)), False),)


def test_what_was_found_is_forgotten_and_is_progress() -> None:
    group = one_missing()
    requests = group.machines[E3].requests
    before = requests.progress
    group.hear(E3, "copy g")
    assert (before, requests.progress) == (False, True)
    assert (requests.missing, requests.copies) == ([{}, {}, {}], [{}, {}, {}])
    requests.progress = False
    requests.forget(E1)
    assert requests.progress, "a new generation is, too"


def test_three_witnesses_are_asked_one_after_the_other() -> None:
    group = Group(nodes=6)
    group.submit_all("g1:123456 p1:123456")
    group.miss(E1, "g")
    group.hear(E1, "p")
    requests = group.machines[E1].requests
    requests.asked = 0
    asked = [requests.next_witness() for _ in range(WITNESSES + 2)]
    assert len(set(asked[:WITNESSES]) - {E1, None}) == WITNESSES
    assert asked[WITNESSES:] == [None, None]


# --- copies ---


def test_a_copy_is_sent_once_for_all_that_ask_meanwhile() -> None:
    group = one_missing()
    assert group.copies == ["copy g"]
    wanted = ((E1, 0, ((0, 1),), False),)
    machine = group.machines[E1]
    machine.handle(Receive(PlacedReady(E2, 2, (2, 2, 2), status(99, (2, 2, 0)), 0, wanted)))
    asked = machine.handle(Receive(PlacedReady(E3, 0, (0, 0, 0), status(99), 0, wanted)))
    assert not [output for output in asked if isinstance(getattr(output, "unit", None), PlacedCopy)]


def test_copies_may_be_sent_again_when_they_have_come_back_or_must_be_lost() -> None:
    group = Group()
    repairs, transmission = group.machines[E1].repairs, group.machines[E1].transmission
    transmission.copy_stamp = 5
    for came_back, waits in ((4, ECHO_PERIODS), (5, 0)):
        repairs.sent, repairs.timer, transmission.came_back = {3}, True, came_back
        for _ in range(waits):
            assert repairs.wait_for_return()
            assert (repairs.timer, repairs.sent) == (True, {3})
        assert not repairs.wait_for_return()
        assert (repairs.timer, repairs.sent, repairs.periods) == (False, set(), 0)


def test_an_own_copy_that_comes_back_is_a_duplicate() -> None:
    group = one_missing()
    group.hear(E1, "copy g")
    assert ("copy g", "duplicate") in group.discarded[E1]


@pytest.mark.parametrize(("to", "copies"), [("3", ["g", "p"]), ("13", [])])
def test_who_does_not_know_where_its_packet_is_sends_it_again_unless_it_will_learn_it(
    to: str, copies: list[str]
) -> None:
    """E1 has lost g itself. If it is to E1 too, E1 asks for its place, or sends it again if nobody tells."""
    group = Group()
    group.submit_all(f"g1:{to} p1:{to}")
    for node in (E1, E3):
        group.miss(node, "g")
    group.hear(E3, "p")
    group.hear(E1, "p")
    while group.labels()[group.places[E1]] != "RR E3":
        group.miss(E1, group.labels()[group.places[E1]])
    group.hear(E1, "RR E3")
    assert group.copies == copies


def test_a_witness_tells_only_of_what_is_asked_for() -> None:
    group = Group()
    group.submit_all("g1:123 p1:123")
    group.miss(E2, "g")
    group.hear(E2, "p")
    out: list[Any] = []
    group.machines[E2].repairs.testify((E1, 0, ((0, 1),), False), out)
    assert out == []
    group.machines[E2].repairs.testify((E1, 1, ((1, 2),), False), out)
    assert out == [], "of another generation"
    group.machines[E2].repairs.testify((E1, 0, ((1, 2),), False), out)
    assert len(out) == 1


def test_a_position_names_the_next_packet_of_each_source() -> None:
    group = Group()
    group.submit_all("g1:123 p1:123 q1:123 x3:123 y3:123")
    for letter in "gpqxy":
        group.hear(E2, letter)
    out: list[Any] = []
    group.machines[E2].repairs.testify((E1, 0, ((1, 2),), False), out)
    (position,) = [output.unit for output in out]
    assert (position.of, position.low, position.high) == ((E1, 1), (1, 0, 0), (2, UNKNOWN, 0))


# --- logs and what is told ---


def test_what_moves_is_told_as_accepted_once_and_keeps_its_buffer() -> None:
    group = Group(quota=4)
    group.submit_all("g1:123 p1:123")
    group.all_hear("g", "p")
    out: list[Any] = []
    group.machines[E1].send_again(0, out)
    machine = group.machines[E3]
    told: list[Any] = []
    for output in out:
        told += machine.handle(Receive(output.unit))
        assert machine.free_buffers() == 12 - 2
    assert not [output for output in told if isinstance(output, Reached) and output.level is Level.ACCEPTED]
    assert (machine.logs.kept, machine.logs.accepted_before) == ({}, set())


@pytest.mark.parametrize("first", [False, True])
def test_whoever_is_said_to_have_accepted_what_it_has_not_ends_the_group(first: bool) -> None:
    """E3 holds p behind g, which it lacks; all, itself among them, say to have both."""
    group = Group() if first else one_missing()
    if first:
        group.submit_all("g1:123 p1:123")
        group.miss(E3, "g")
        group.hear(E3, "p")
    machine = group.machines[E3]
    for node in (E1, E2, E3):
        machine.logs.take_status(node, status(99, (9, 9, 0)), [])
    group.handle(E3, Submit(0b111, (1,), b"x"))
    assert group.aborted == {E3: "the channel did not keep one order"}


def test_what_is_stable_is_delivered_once_and_frees_its_buffer_where_that_is_wanted() -> None:
    group = Group(delivers_stable=True)
    group.submit_all("a2:123 g1:123 p1:123")
    group.all_hear("a")
    for node in (E1, E2):
        group.hear(node, "g")
    group.miss(E3, "g")
    group.all_hear("p")
    assert group.settle()
    assert group.together() == ["a g p"] * 3
    assert [machine.logs.buffers_in_use() for machine in group.machines] == [0, 0, 0]


def test_where_it_is_not_others_wait_to_hear_that_something_is_stable() -> None:
    for stable in (False, True):
        group = Group(delivers_stable=stable)
        group.submit(E1, "a", "123")
        group.all_hear("a")
        machine = group.machines[E3]
        for node in (E1, E2):
            machine.logs.take_status(node, status(98, (1, 0, 0)), [])
        machine.logs.acknowledgment_pending = machine.backoff.progress = False
        machine.logs.take_status(E3, status(98, (1, 0, 0)), [])
        assert (machine.logs.acknowledgment_pending, machine.backoff.progress) == (not stable, True)
        machine.backoff.progress = False
        for node in (E1, E2):
            given = PlacedStatus(99, (1, 0, 0), (1, 0, 0), 9, 0, (0, 0, 0), ())
            machine.logs.take_status(node, given, [])
        assert machine.backoff.progress, "that it is acknowledged is progress"
        assert machine.log_sizes().preacknowledged == 0


def test_an_accepted_copy_is_to_be_told_and_takes_a_place() -> None:
    group = one_missing(quota=4)
    machine = group.machines[E3]
    assert machine.free_buffers() == 12 - 3
    group.hear(E3, "copy g")
    assert machine.logs.acknowledgment_pending
    assert machine.free_buffers() == 12 - 4


def test_after_so_many_packets_a_status_is_sent_at_once_and_then_after_as_many_again() -> None:
    group = Group(window=4)
    group.submit_all("a1:2 b1:2 c1:2 d1:2")
    said = []
    for letter in "abcd":
        group.hear(E2, letter)
        said.append(group.labels().count("RR E2"))
        if said[-1] > sum(said[:-1]):
            group.machines[E2].transmission.came_back = 99  # it has come back
    assert said == [0, 1, 1, 2]


def test_no_more_is_under_way_than_the_window() -> None:
    group = Group(window=2)
    group.submit_all("a1:2 b1:2 c1:2")
    assert group.labels() == ["a", "b"]


def test_that_something_is_to_all_is_known_until_all_have_it() -> None:
    machine = Group(views=True).machines[E1]
    for to_all in (True, False):
        machine.handle(Submit(0b111, (1,), b"x", to_all=to_all))
    assert [StPlaceFlush(machine).is_to_all(seq) for seq in (0, 1)] == [True, False]


def test_a_cut_takes_nothing_back() -> None:
    group = Group(views=True)
    group.submit(E1, "a", "123")
    assert group.settle()
    flush = StPlaceFlush(group.machines[E1])
    good = Cut((1, 0, 0), round=0, base=flush.report().base, units=())
    cut = StPlaceFlush.cut({0: flush.report()}, 3)
    assert cut.ends == good.ends
    assert flush.problem(cut) is None
    assert flush.problem(Cut((0, 0, 0), base=cut.base, units=cut.units)) == "what is stable is above the cut"


PACKET = Packet(E2, 0b001, 0, (0, 0, 0), 0, (1,), b"x")


@pytest.mark.parametrize(
    "unit",
    [
        PlacedData(PACKET, status(1)),
        PlacedReady(E2, 0, (0, 0, 0), status(1)),
        PlacedCopy(PACKET, 1, 0, (0, 0, 0), (0, 0, 0), (0, 0, 0)),
        PacketPosition(E2, (E1, 0), 1, (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    ],
    ids=lambda unit: type(unit).__name__,
)
def test_whatever_a_node_sends_shows_that_it_is_there(unit: Unit) -> None:
    machine = Group().machines[E1]
    machine.backoff.unanswered[E2] = machine.backoff.unanswered[E3] = 5
    machine.handle(Receive(unit))
    assert machine.backoff.unanswered[E2:] == [0, 5]


def test_what_came_before_is_a_duplicate_though_it_is_said_again() -> None:
    """What is accepted, and what is held; and what is for others, of which only the number tells."""
    group = Group()
    group.submit_all("f2:1 a2:3 b2:3 c2:3")
    group.hear(E3, "f", "a")
    group.miss(E3, "b")
    group.hear(E3, "c")
    machine = group.machines[E3]
    for letter, stamp in zip("fac", (97, 98, 99), strict=True):
        unit = group.said(letter)
        group.handle(E3, Receive(PlacedData(unit.packet, status(stamp, (0, 4, 0)))))
        assert group.discarded[E3][-1] == (letter, "duplicate")
    assert group.log(E3) == "a (c)"
    assert machine.logs.held.keys() == {(E2, 3)}


# --- the end ---


def test_who_is_told_to_give_up_does_so_and_says_nothing_any_more() -> None:
    group = Group()
    group.handle(E1, GiveUp("enough"))
    assert group.aborted == {E1: "enough"}
    assert group.handle(E1, Submit(0b111, (1,), b"x")) == []


def test_the_last_word_of_who_gives_up_for_silence_is_that() -> None:
    group = Group(polls_to_abort=2, polls_late=False)
    group.submit(E1, "a", "123")
    for _ in range(40):
        if group.aborted:
            break
        for name in list(group.timers[E1]):
            group.machines[E1].transmission.came_back = 1 << 30  # its own units come back
            out = group.handle(E1, TimerFired(name))
            if group.aborted:
                assert isinstance(out[-1], Abort)
    assert "left 2 questions in a row unanswered" in group.aborted[E1]


# --- what is not taken, and why ---


def test_what_is_not_taken_is_named() -> None:
    """For others, behind a gap or not; more than there is room for; and of no protocol that is known here."""
    group = Group()
    group.submit_all("f1:2 g1:3 q1:2")
    group.hear(E3, "f")
    group.miss(E3, "g")
    group.hear(E3, "q")
    assert group.discarded[E3] == [("f", "foreign"), ("q", "gap")]
    group = Group(quota=1, nodes=3)
    group.machines[E3].logs.buffered = 3
    group.submit(E1, "a", "3")
    group.hear(E3, "a")
    assert group.discarded[E3] == [("a", "full")]
    (stray,) = group.handle(E3, Receive(Ready(E2, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0), 9))))
    assert stray == Discard(stray.unit, "stray")  # type: ignore[union-attr]


def test_what_comes_twice_or_from_a_generation_that_cannot_be_is_not_heard() -> None:
    machine = Group().machines[E1]

    def why(unit: Unit) -> list[str]:
        return [output.why for output in machine.handle(Receive(unit)) if isinstance(output, Discard)]

    first = PlacedData(PACKET, status(1))
    assert (why(first), why(first)) == ([], ["duplicate"])
    assert why(PlacedReady(E2, 1, (1, 0, 0), status(2, generation=1))) == ["impossible"], "its start is not told"
    assert machine.generations.known == (0, 0, 0)
    machine.logs.stable_below[E2] = 1
    moved = status(3, generation=1, starts=((1, 0),))
    assert why(PlacedReady(E2, 1, (1, 0, 0), moved)) == ["impossible"], "what is stable does not move"
    machine.logs.stable_below[E2] = 0
    assert why(PlacedReady(E2, 1, (1, 0, 0), status(4, generation=1, starts=((1, 0),)))) == []
    assert machine.generations.known == (0, 1, 0)
    assert why(PlacedReady(E2, 1, (1, 0, 0), status(5))) == ["old"]
    copy = PlacedCopy(PACKET, 6, 0, (0, 0, 0), (0, 0, 0), (0, 0, 0))
    assert (why(copy), why(copy)) == (["duplicate"], ["duplicate"]), "nobody lacks it"
    position = PacketPosition(E2, (E1, 0), 7, (0, 0, 0), (0, 0, 0), (0, 0, 0))
    assert (why(position), why(position)) == ([], ["duplicate"])


def test_what_waits_for_the_window_is_told() -> None:
    group = Group(window=1)
    group.submit_all("a1:123 b1:123")
    assert group.machines[E1].waits_for()[0] == "1 submissions wait for the window"


def test_who_gives_up_delivers_what_is_stable_unless_it_has() -> None:
    for stable, delivered in ((False, ["a"]), (True, [])):
        group = Group(delivers_stable=stable)
        group.submit(E1, "a", "123")
        group.all_hear("a")
        for node in (E1, E2, E3):
            group.machines[E3].logs.take_status(node, status(98, (1, 0, 0)), [])
        group.handle(E3, GiveUp("enough"))
        assert group.delivered[E3] == delivered


def test_a_loss_that_only_others_show_is_asked_about_after_a_while() -> None:
    group = Group(infer_losses=True)
    group.submit(E1, "g", "123")
    group.hear(E1, "g")
    group.hear(E2, "g")
    group.miss(E3, "g")
    assert INFERRED_LOSS not in group.timers[E3]
    group.handle(E3, Receive(PlacedReady(E2, 0, (0, 0, 0), status(50, (1, 0, 0)))))
    due = group.timers[E3][INFERRED_LOSS]
    group.handle(E3, Receive(PlacedReady(E2, 0, (0, 0, 0), status(51, (1, 0, 0)))))
    assert group.timers[E3][INFERRED_LOSS] == due, "the timer runs"
    group.machines[E3].transmission.came_back = 1 << 30
    group.fire(E3, INFERRED_LOSS)
    assert group.said("RR E3").wants == 0b111
    group.handle(E3, Receive(PlacedReady(E2, 0, (0, 0, 0), status(52, (1, 0, 0)))))
    assert INFERRED_LOSS in group.timers[E3], "and once more"
    group.machines[E3].transmission.expected[E1] = 1
    group.fire(E3, INFERRED_LOSS)
    assert group.labels().count("RR E3") == 1, "it has come meanwhile"


def test_what_a_source_says_of_itself_shows_no_loss() -> None:
    group = Group(infer_losses=True)
    group.handle(E3, Receive(PlacedReady(E2, 0, (0, 0, 0), status(50, (0, 7, 0)))))
    assert INFERRED_LOSS not in group.timers[E3]


@pytest.mark.parametrize("log", ["submitted", "received", "missing"])
def test_who_has_anything_that_is_not_delivered_is_in_a_hurry(log: str) -> None:
    """Whatever it is: each of these alone."""
    machine = Group(delivers_stable=True).machines[E1]
    assert machine.is_in_no_hurry()
    if log == "submitted":
        machine.transmission.waiting.append(Submit(0b111, (1,), b"x"))
    elif log == "received":
        machine.logs.accepted.logs[0].append(PACKET)
    else:
        machine.requests.missing[E2][0] = 1
    assert not machine.is_in_no_hurry()
    assert not Group().machines[E1].is_in_no_hurry(), "where all wait for acknowledgments"


def test_what_was_for_others_is_a_duplicate_by_its_number_alone() -> None:
    group = Group()
    group.submit_all("a2:3 f2:1")
    group.hear(E3, "a", "f")
    group.handle(E3, Receive(PlacedData(group.said("f").packet, status(99, (0, 2, 0)))))
    assert group.discarded[E3] == [("f", "foreign"), ("f", "duplicate")]


def test_what_was_accepted_or_sent_last_is_known() -> None:
    """A status counts as accepted, too: a missing packet comes after it."""
    group = one_missing()
    assert group.machines[E1].transmission.copy_stamp == group.said("copy g").stamp
    machine = group.machines[E2]
    machine.handle(Receive(PlacedReady(E1, 2, (2, 2, 2), status(99, (2, 2, 0)))))
    assert machine.requests.last_accepted[E1] == machine.count


def test_witnesses_are_counted_for_one_packet_of_mine() -> None:
    requests = Group().machines[E1].requests
    for source, asked in ((E2, 2), (E1, 0)):
        requests.asked = 2
        requests.found(source, 0)
        assert requests.asked == asked
