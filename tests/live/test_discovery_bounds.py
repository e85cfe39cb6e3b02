"""Bounds of discovery's rules, and what a process that looks for its group says in cases that are rare."""

from typing import Any

import pytest

from ordercast.live.session.discovery import (
    FORGET_AFTER,
    LAST_ROUNDS,
    Announce,
    AnnouncementReceived,
    Discovery,
    NotFound,
)
from ordercast.live.session.events import Begin, SessionConfig
from ordercast.model.errors import ConfigError
from ordercast.model.machine import CancelTimer, TimerFired
from ordercast.wire.control import MAX_HEARD, Hello, HelloRejection, Known
from tests.live.test_session_bounds import waits_of

ME = 1
"""Our incarnation."""


def searching(size: int = 3) -> Discovery:
    one = Discovery("toys", "A", "A:1", ME, size)
    one.handle(Begin())
    return one


def hello(name: str, incarnation: int, *, size: int = 3, round_: int = 1, **fields: Any) -> AnnouncementReceived:
    whole: dict[str, Any] = {"knows": (), "found": False, "hears": (ME,), **fields}
    return AnnouncementReceived(Hello("toys", name, incarnation, f"{name}:1", size, round_, **whole))


def test_a_rejected_process_repeats_its_hello_sooner() -> None:
    """Its few last rounds are there to reject others, and hold up whoever started it."""
    one, repeat = searching(), SessionConfig().repeat
    (wait,) = waits_of("hello", one.handle(TimerFired("hello")))
    assert 2 * repeat <= wait < 4 * repeat
    one.handle(AnnouncementReceived(HelloRejection("toys", "A", ME, "no")))
    (wait,) = waits_of("hello", one.handle(TimerFired("hello")))
    assert repeat <= wait < 2 * repeat


def test_enough_members_that_do_not_know_the_same_are_reported() -> None:
    one = searching()
    one.handle(hello("B", 2))
    one.handle(hello("C", 3))
    why = "within 60 s the members of toys did not agree on the same list; A knows A, B, C"
    assert NotFound(why) in one.handle(TimerFired("discovery"))


def test_who_finds_the_group_says_so_at_once_and_stops_searching() -> None:
    """Else the others would wait for its next round; and a timer that expires later would report a failure."""
    everybody = (Known("A", ME), Known("B", 2), Known("C", 3))
    one = searching()
    one.handle(hello("B", 2, knows=everybody))
    out = one.handle(hello("C", 3, knows=everybody))
    assert CancelTimer("hello") in out
    assert CancelTimer("discovery") in out
    (sent,) = [output.message for output in out if isinstance(output, Announce)]
    assert isinstance(sent, Hello)
    assert sent.found


def test_a_hello_that_arrives_again_does_not_keep_a_place() -> None:
    """Somebody may have recorded the last hello of a process that has ended."""
    one, recorded = searching(), hello("B", 2)
    one.handle(recorded)
    for _ in range(FORGET_AFTER):
        one.handle(TimerFired("hello"))
        one.handle(recorded)
    assert [known.name for known in one.others] == ["B"]
    one.handle(TimerFired("hello"))
    assert one.others == []


def test_names_may_be_as_long_as_a_hello_can_carry() -> None:
    for group, name, address in (("g" * 64, "A", "a"), ("g", "A" * 64, "a"), ("g", "A", "a" * 64)):
        Discovery(group, name, address, ME, 64)
    for group, name, address in (("g" * 65, "A", "a"), ("g", "A" * 65, "a"), ("g", "A", "a" * 65)):
        with pytest.raises(ConfigError):
            Discovery(group, name, address, ME, 64)
    with pytest.raises(ConfigError):
        Discovery("g", "A", "a", ME, 65)


def test_a_hello_names_each_process_that_was_heard_once() -> None:
    """One that sends very often must not push out the others: they would never see that they were heard."""
    one = searching()
    one.handle(hello("C", 3))
    for round_ in range(MAX_HEARD):
        one.handle(hello("B", 2, round_=round_))
    (sent,) = [output.message for output in one.handle(TimerFired("hello")) if isinstance(output, Announce)]
    assert isinstance(sent, Hello)
    assert sent.hears == (3, 2)


def test_another_size_is_told_for_some_rounds_after_it_was_heard() -> None:
    one = searching()
    other = hello("B", 2, size=4)
    told = HelloRejection("toys", "B", 2, "B looks for a group of 4 members, A for one of 3")
    assert one.handle(other) == [Announce(told)], "it has heard us, and can tell us the same"
    rounds = [one.handle(TimerFired("hello")) for _ in range(2 * LAST_ROUNDS)]
    assert [Announce(told) in out for out in rounds] == [True] * LAST_ROUNDS + [False] * LAST_ROUNDS
