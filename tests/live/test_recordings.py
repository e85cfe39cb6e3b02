"""What was said when earlier groups opened, or were looked for, said again by somebody who kept it: nothing counts.

The network may lose and delay besides. `test_recorded_groups` has whole members, and datagrams.
"""

from typing import Any

import pytest

from ordercast.live.session.discovery import Announce, AnnouncementReceived, Found, NotFound
from ordercast.live.session.events import ControlReceived as HeardBy
from ordercast.live.session.events import Refused
from ordercast.live.session.machine import Phase
from ordercast.live.session.parameter_comparison import encode_parameters
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.machine import TimerFired
from ordercast.wire.control import Control, Hello, HelloRejection, Join, LastJoin
from tests.live.test_discovery import Place
from tests.live.test_session_rules import HEARD_US, ME, NOTHING, B, agreed, begun, join, said
from tests.live.toy_protocol import Unit
from tests.live.virtual_network import Network, Weather

Recording = list[tuple[int, int, Control | Unit]]
"""Who said it, under which session, and what."""


# --- opening ---


def recording(seed: int, **differently: object) -> Recording:
    """An earlier group of three, from its opening to its end; one of its members was started anew meanwhile."""
    network, kept = Network(seed, 3), []
    transmit = network.transmit

    def keep(source: int, target: int, tag: int, message: Control | Unit) -> None:
        kept.append((source, tag, message))
        transmit(source, target, tag, message)

    network.transmit = keep  # type: ignore[method-assign]
    for member in (0, 1, 2):
        network.start(member, **differently)
    network.start(1, **differently)
    network.run(SECOND)
    network.give_up(0, "enough")
    network.run()
    return kept


def say_again(network: Network, kept: Recording, within: int) -> None:
    """Every word to every member, at any time."""
    for source, tag, message in kept:
        for target in range(len(network.names)):
            if source != target:
                network.at(network.chance.randrange(within), network.arrive, source, target, tag, message)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_group_opens_whatever_was_said_in_earlier_openings(seed: int, loss: float) -> None:
    network = Network(seed, 3, Weather(loss=loss))
    for earlier, differently in enumerate(({}, {"window": 64}, {"window": 64})):
        say_again(network, recording(1000 + 100 * earlier + seed, **differently), SECOND // 2)
    for member in (0, 1, 2):
        network.at(network.chance.randrange(SECOND // 5), network.start, member)
    network.run(2 * SECOND if loss else SECOND)
    group = network.living()
    assert [process.session.phase for process in group] == [Phase.OPEN] * 3, [process.ends for process in group]
    assert len({process.opened for process in group}) == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("loss", "within"), [(0.0, 100 * MILLISECOND), (0.3, 1500 * MILLISECOND)])
@pytest.mark.parametrize("disturbed", [False, True])
def test_terms_that_do_differ_are_told_soon(seed: int, loss: float, within: int, disturbed: bool) -> None:
    network = Network(seed, 3, Weather(loss=loss))
    if disturbed:
        say_again(network, recording(1000 + seed, window=16), within)
        say_again(network, recording(2000 + seed), within)
    for member, window in enumerate((32, 64, 128 if seed % 2 else 32)):
        network.start(member, window=window)
    network.run(within)
    for process in network.living():
        (end,) = process.ends
        assert isinstance(end, Refused)
        assert "has window=" in end.why
        assert "; make them equal, for example with one settings file for all members (--settings)" in end.why
        assert "16" not in end.why


def test_one_that_is_heard_and_does_not_hear_is_told_of_when_it_is_too_late() -> None:
    """Whether it is there cannot be known: what came of it may be old."""
    network = Network(1, 3)
    network.cut = lambda _source, target, _message: target == 1
    for member, window in enumerate((32, 64, 32)):
        network.start(member, window=window)
    network.run(59 * SECOND)
    assert not network.processes[0].ends
    network.run()
    (end,) = network.processes[0].ends
    assert isinstance(end, Refused)
    assert end.why == (
        "the group did not open within 60 s: B sends to A, but does not receive from it; "
        "B has window=64, A has window=32"
    )


def test_old_joins_are_answered_once_each() -> None:
    """Nobody can have us say more than was said to us."""
    kept = [word for word in recording(1003) if word[0] != 0 and isinstance(word[2], Join)]
    network = Network(3, 3)
    alone = network.start(0)
    network.run(50 * MILLISECOND)
    before = network.datagrams
    for source, tag, message in kept:
        alone.receive(source, tag, message)
    assert network.datagrams - before <= len(kept)
    assert alone.session.handshake.silent() == ["B", "C"]


def test_who_has_not_shown_that_it_lives_is_named_until_it_does() -> None:
    session = begun()
    named = (NOTHING, LastJoin(B), NOTHING)
    ((answer, to),) = said(session.handle(HeardBy(1, join(B, heard=(NOTHING,) * 3))))
    assert isinstance(answer, Join)
    assert (answer.heard, to) == (named, 1)
    ((again, to),) = said(session.handle(TimerFired("join")))
    assert isinstance(again, Join)
    assert (again.heard, to) == (named, None), "the answer may be lost"
    assert session.handshake.silent() == ["B", "C"]


def test_who_has_heard_us_and_does_not_know_that_we_live_is_told() -> None:
    session = begun()
    ((answer, to),) = said(session.handle(HeardBy(1, join(B, heard=(LastJoin(ME), NOTHING, NOTHING)))))
    assert isinstance(answer, Join)
    assert (answer.heard[1], to) == (LastJoin(B, 1), 1)
    assert session.handshake.silent() == ["C"]


def test_nobody_changes_terms_in_one_life() -> None:
    session = agreed()
    before = session.snapshot()
    other = Join(B, 9, 10 * B, 0, HEARD_US, encode_parameters("toys", ("A", "B", "C"), {"window": 64}))
    assert session.handle(HeardBy(1, other)) == []
    assert session.snapshot() == before


# --- finding ---


def earlier_hellos(seed: int, names: str, size: int) -> list[Hello | HelloRejection]:
    """What was said when others, or the same, looked for a group of this name."""
    place, kept = Place(seed), []
    put = place.put

    def keep(who: Any, event: Any) -> None:
        if isinstance(event, AnnouncementReceived):
            kept.append(event.message)
        put(who, event)

    place.put = keep  # type: ignore[method-assign]
    for name in names:
        place.come(name, size)
    place.run(2 * SECOND)
    return kept


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_group_is_found_whatever_was_said_in_earlier_days(seed: int, loss: float) -> None:
    """By the same with the same size and with another, by namesakes, and by others whose names come first."""
    place = Place(seed, loss)
    days = (("BCD", 3), ("BCD", 2), ("ABCDE", 3), ("0A", 3))
    kept = [hello for day, (names, size) in enumerate(days, start=1000) for hello in earlier_hellos(day, names, size)]
    looking = []
    for name in "DBC":
        looking.append(place.come(name, 3))
        for hello in kept:
            place.at(place.now + 1 + place.chance.randrange(SECOND), looking[-1], AnnouncementReceived(hello))
        place.run(place.now + place.chance.randrange(SECOND // 3))
    place.run(3 * SECOND)
    found = {place.result(one) for one in looking}
    assert len(found) == 1
    (only,) = found
    assert isinstance(only, Found)
    assert only.names == ("B", "C", "D")


@pytest.mark.parametrize("seed", range(60))
def test_sizes_that_do_differ_are_told_to_both_soon(seed: int) -> None:
    place = Place(seed, loss=0.3)
    one = place.come("A", 3)
    place.run(place.chance.randrange(SECOND))
    began, other = place.now, place.come("B", 4)
    place.run(began + 2 * SECOND)
    for result in (place.result(one), place.result(other)):
        assert isinstance(result, NotFound)
        assert "looks for a group of" in result.why


def test_old_hellos_are_answered_in_measure() -> None:
    kept = earlier_hellos(1, "ABC", 3) + earlier_hellos(2, "ABC", 2)
    one = Place(3).come("A", 3)
    for hello in kept:
        assert sum(isinstance(output, Announce) for output in one.handle(AnnouncementReceived(hello))) <= 2
    assert not one.others
    assert not one.over
