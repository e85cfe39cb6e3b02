"""SPO with `delivers_stable`: what is pre-acknowledged and to all is delivered, in its sender's order."""

from ordercast.model.config import Timing
from ordercast.model.machine import Abort, Deliver, Drained, GiveUp
from tests.protocols.spo.driver import Node, Outputs, Peer

ALL = E1, E2, E3 = (0, 1, 2)
POLL = Timing().poll


def delivered(out: Outputs) -> list[int]:
    return [each.packet.seq for each in out if isinstance(each, Deliver)]


def test_what_all_have_is_delivered_once_and_nobody_hurries_to_say_so() -> None:
    e1, e2, e3 = Node(E1, delivers_stable=True), Peer(E2), Peer(E3)
    assert delivered(e1.hears(e2.sends(*ALL))) == []
    assert e1.handle(Drained()).statuses, "it is accepted, for which others wait"
    out = e1.hears(e3.accepts(E2, 1).ready())
    assert delivered(out) == [0]
    assert not e1.handle(Drained()).statuses
    assert e1.machine.buffered == [0, 0, 0]
    assert delivered(e1.hears(e3.preacknowledges(E2, 1).ready(), e2.preacknowledges(E2, 1).ready())) == []
    assert e1.machine.log_sizes().total() == 0


def test_what_is_to_some_waits_for_the_second_round_and_what_follows_it_too() -> None:
    e1, e2, e3 = Node(E1, delivers_stable=True), Peer(E2), Peer(E3)
    e1.hears(e2.sends(E1, E3), e2.sends(*ALL))
    assert delivered(e1.hears(e3.accepts(E2, 2).ready())) == [], "none overtakes an earlier one of its sender"
    assert e1.handle(Drained()).statuses, "others wait for the second round of the first"
    assert delivered(e1.hears(e3.preacknowledges(E2, 1).ready())) == [0, 1], (
        "with the first comes what waited behind it"
    )
    assert delivered(e1.hears(e3.preacknowledges(E2, 2).ready(), e2.preacknowledges(E2, 2).ready())) == []


def test_acknowledgments_of_what_is_delivered_are_asked_for_after_a_while() -> None:
    e1, e2, e3 = Node(E1, delivers_stable=True), Peer(E2), Peer(E3)
    urgent = e1.hears(e2.sends(*ALL)).timers["poll"]
    assert urgent < 2 * POLL
    e1.handle(Drained())
    e1.hears(e3.accepts(E2, 1).ready())
    (late,) = [each for name, each in e1.fires("poll").timers.items() if name == "poll"]
    assert late >= 4 * POLL
    again = e1.hears(e2.sends(*ALL))
    assert again.timers["poll"] < 2 * POLL, "new data are asked for as soon as ever"
    e1.hears(e3.accepts(E2, 2).ready())
    e1.fires("poll")
    assert e1.fires("poll").polls, "and then also what all have delivered"


def test_a_group_that_is_given_up_delivers_nothing_twice() -> None:
    e1, e2, e3 = Node(E1, delivers_stable=True), Peer(E2), Peer(E3)
    e1.hears(e2.sends(*ALL), e2.sends(E1, E3), e3.accepts(E2, 2).ready())
    out = e1.handle(GiveUp("enough"))
    assert delivered(out) == [1]
    assert isinstance(list(out)[-1], Abort)


def test_what_follows_one_that_was_delivered_when_stable_is_delivered_so_too() -> None:
    e1, e2, e3 = Node(E1, delivers_stable=True), Peer(E2), Peer(E3)
    e1.hears(e2.sends(*ALL))
    assert delivered(e1.hears(e3.accepts(E2, 1).ready())) == [0]
    e1.hears(e3.preacknowledges(E2, 1).ready(), e2.preacknowledges(E2, 1).ready())
    assert e1.machine.log_sizes().total() == 0, "the first is known to be stable everywhere"
    e1.hears(e2.sends(*ALL))
    assert delivered(e1.hears(e3.accepts(E2, 2).ready())) == [1]


def test_own_messages_to_others_are_asked_for_as_soon_as_ever_until_they_have_them() -> None:
    e1 = Node(E1, delivers_stable=True)
    assert e1.submits(E2).timers["poll"] < 2 * POLL, "nothing waits, and nothing is buffered here"
