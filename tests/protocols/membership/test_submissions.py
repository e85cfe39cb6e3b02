"""Submissions over views: what is sent again, withdrawn, and how messages are numbered."""

from typing import Any

import pytest

from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Level, Numbered, Reached, Submit, TimerFired
from ordercast.protocols.membership.events import Withdrawn
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import Accepted, Leave, Propose
from ordercast.protocols.spo.units import Data, Ready
from tests.protocols.membership.hand import Hand
from tests.protocols.membership.orders import STREAMS


def test_what_nobody_is_left_for_is_withdrawn() -> None:
    hand = Hand(3, STREAMS)
    hand.give(0, Submit(0b100, (1,), b"x"))
    hand.give(0, Submit(0b110, (1,), b"y"))
    hand.flush(0, 1)
    hand.give(0, Submit(0b101, (1,), b"z"))
    hand.choose(0)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1"
    assert [output.submit.payload for output in hand.last if isinstance(output, Withdrawn)] == [b"x"]
    machine: Any = hand.members[0].machine
    packets = [(packet.payload, packet.destinations, packet.first) for packet in machine.own]
    assert packets == [(b"y", 0b10, 1), (b"z", 0b01, 2)], "the number of what is withdrawn is not given again"


def test_the_numbers_of_what_was_withdrawn_are_left_out_later() -> None:
    hand = Hand(3, STREAMS)
    hand.give(0, Submit(0b100, (1,), b"x"))
    assert hand.members[0].is_direct
    for others in ((1,), (1,)):
        hand.flush(0, *others)
        hand.choose(0)
        hand.passes_if_sent(Propose, 0, 1)
        hand.passes_if_sent(Accepted, 1, 0)
        hand.install(0, 1)
        assert not hand.members[0].is_direct
    hand.submit(0, "y")
    hand.submit(0, "z")
    machine: Any = hand.members[0].machine
    assert [(packet.payload, packet.first) for packet in machine.own] == [(b"y", 1), (b"z", 2)]
    assert hand.members[0].is_direct


def test_who_leaves_takes_no_more_submissions() -> None:
    hand = Hand(2)
    hand.leave(1)
    with pytest.raises(LocalProtocolError):
        hand.submit(1, "x")


def _numbered(outputs: list[Any]) -> list[tuple[bytes, int]]:
    return [(each.packet.payload, each.packet.first) for each in outputs if isinstance(each, Numbered)]


def test_a_message_keeps_its_number_when_one_behind_it_was_withdrawn_in_an_earlier_view() -> None:
    hand = Hand(4, order_of("spo"))
    hand.give(0, Submit(0b0010, (1,), b"p"))
    hand.give(0, Submit(0b1000, (1, 1), b"qq"))
    hand.flush(0, 1, 2)
    hand.choose(0)
    hand.accept(0, 1)
    entering = hand.last
    assert _numbered(entering) == [(b"p", 0)]
    assert [(each.submit.payload, each.first) for each in entering if isinstance(each, Withdrawn)] == [(b"qq", 1)]
    hand.install(0, 1, 2)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    assert hand.members[0].current.view.number == 2
    assert _numbered(hand.last) == [(b"p", 0)], "it is before what was withdrawn"
    assert _numbered(hand.give(0, Submit(0b0010, (1,), b"r"))) == [(b"r", 3)]


def test_an_own_packet_of_the_cut_whose_destinations_are_all_gone_is_withdrawn() -> None:
    """It is in the cut, since nobody that goes on lacks it; whether it was delivered, nobody knows."""
    hand = Hand(3, order_of("spo"))
    hand.give(0, Submit(0b100, (1,), b"x"))
    hand.passes(Data, 0, 1)
    hand.flush(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    assert [(each.submit.payload, each.first) for each in hand.last if isinstance(each, Withdrawn)] == [(b"x", 0)]
    assert hand.view_of(0) == "0,1"


def test_what_is_known_to_be_stable_among_those_that_are_gone_is_withdrawn() -> None:
    """All its destinations have accepted it; whether they delivered it, nobody knows."""
    hand = Hand(4, order_of("spo"))
    hand.give(0, Submit(0b1100, (1,), b"x"))
    data: Any = hand.find(Data, 0, 2)
    for receiver in (2, 3):
        hand.passes(Data, 0, receiver)
    for receiver in (2, 3):
        hand.give(receiver, TimerFired("status"))
        hand.passes(Ready, receiver, 0)
    assert Reached(Level.PREACKNOWLEDGED, data.packet) in hand.last
    hand.flush(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    assert [(each.submit.payload, each.first) for each in hand.last if isinstance(each, Withdrawn)] == [(b"x", 0)]


def test_an_own_packet_for_one_that_leaves_is_not_withdrawn() -> None:
    """It finishes its last view."""
    hand = Hand(3, order_of("spo"))
    hand.give(0, Submit(0b100, (1,), b"x"))
    for receiver in (1, 2):
        hand.passes(Data, 0, receiver)
    hand.leave(2, drain=False)
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1"
    assert not [each for each in hand.last if isinstance(each, Withdrawn)]
