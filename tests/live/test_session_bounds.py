"""Bounds of a session's rules, and what it says and leaves out in cases that are rare in runs of whole groups."""

from collections.abc import Sequence
from typing import Any

import pytest

from ordercast.live.session.events import (
    Aborted,
    AtRest,
    Close,
    Closed,
    ControlReceived,
    GiveUp,
    Left,
    Opened,
    Refused,
    Remaining,
    SessionConfig,
    TrafficReceived,
)
from ordercast.live.session.handshake import Identity
from ordercast.live.session.machine import Phase, Session
from ordercast.live.session.parameter_comparison import difference, encode_parameters
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.control import (
    MAX_PARAMETERS_LENGTH,
    AbortNotice,
    Heartbeat,
    Join,
    Refuse,
    Stage,
)
from tests.live.test_session_rules import ME, NAMES, NOTHING, TERMS, B, C, agreed, begun, join, opened, said

# --- parameters ---


def test_parameters_may_be_as_long_as_a_join_can_carry() -> None:
    """One character more could not be decoded by the others: the group would never open."""
    empty = len(encode_parameters("toys", NAMES, {"relay": ""}))
    longest = "x" * (MAX_PARAMETERS_LENGTH - empty)
    assert len(encode_parameters("toys", NAMES, {"relay": longest})) == MAX_PARAMETERS_LENGTH
    with pytest.raises(ConfigError, match=f"not {MAX_PARAMETERS_LENGTH + 1}; use shorter names"):
        encode_parameters("toys", NAMES, {"relay": longest + "x"})


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "; and 1 more values differ")])
def test_three_differences_are_told_and_the_others_counted(count: int, more: str) -> None:
    ours = encode_parameters("toys", NAMES, {f"p{number}": 1 for number in range(count)})
    theirs = encode_parameters("toys", NAMES, {f"p{number}": 2 for number in range(count)})
    told = "; ".join(f"B has p{number}=2, A has p{number}=1" for number in range(3))
    assert difference(ours, "A", theirs, "B") == told + more


def test_values_that_are_nested_deeply_are_shown_as_one() -> None:
    """A stranger chooses how deep: paths as long as it likes would fill the sentence, and cost the square of it."""
    nested: Any = 1
    for _ in range(7):
        nested = {"a": nested}
    ours, theirs = encode_parameters("toys", NAMES, {}), encode_parameters("toys", NAMES, nested)
    assert difference(ours, "A", theirs, "B") == 'B has a.a.a.a.a.a={"a":1}, A has no a.a.a.a.a.a'


# --- the handshake ---


@pytest.mark.parametrize("fields", [{"incarnation": 1}, {"incarnation": (1 << 64) - 1}])
@pytest.mark.parametrize("first_seq", [0, (1 << 60) - 1])
def test_what_a_join_can_carry_is_an_identity(fields: dict[str, int], first_seq: int) -> None:
    Identity(**fields, first_seq=first_seq)


@pytest.mark.parametrize(
    "fields", [{"incarnation": 0}, {"incarnation": 1 << 64}, {"incarnation": 1, "first_seq": 1 << 60}]
)
def test_what_a_join_cannot_carry_is_none(fields: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Identity(**fields)


def test_a_member_has_a_place_and_a_name_of_its_own() -> None:
    for me, names in ((-1, NAMES), (3, NAMES), (0, ("A", "B", "A"))):
        with pytest.raises(ConfigError):
            Session(me, names, Identity(incarnation=ME), TERMS)
    assert Session(2, NAMES, Identity(incarnation=ME), TERMS).phase is Phase.IDLE


def test_a_join_of_another_process_is_not_answered_when_the_group_is_open() -> None:
    """Our own that comes back, that of another incarnation, and one of a group of another size."""
    for other in (join(0, 9), join(ME, 9), join(99, 9), join(B, 9, 0, (NOTHING,) * 2)):
        assert opened().handle(ControlReceived(1, other)) == []


def test_only_the_other_members_are_listened_to() -> None:
    for member in (-1, 0, 3):
        session = agreed()
        assert session.handle(TrafficReceived(member)) == []
        assert session.handle(ControlReceived(member, Heartbeat(Stage.OPEN, asks=True))) == []


def test_who_agrees_sends_one_join_to_all() -> None:
    """The member whose join was the last one is among all: another one to it alone would say the same."""
    session = begun()
    session.handle(ControlReceived(1, join(B)))
    ((message, to),) = said(session.handle(ControlReceived(2, join(C))))
    assert isinstance(message, Join)
    assert (message.session, to) == (session.session, None)


def test_who_has_joined_and_does_not_agree_is_named() -> None:
    session = agreed()
    session.handle(ControlReceived(1, join(B, 2, session.session)))
    out = session.handle(TimerFired("handshake"))
    assert Refused("the group did not open within 60 s: C did not agree") in out


def waits_of(name: str, out: Sequence[object]) -> list[int]:
    return [output.after for output in out if isinstance(output, SetTimer) and output.name == name]


def test_joins_are_repeated_less_often_until_something_changes() -> None:
    session, repeat = begun(), SessionConfig().repeat
    rounds = [waits_of("join", session.handle(TimerFired("join"))) for _ in range(40)]
    for number, (wait,) in enumerate(rounds, start=2):  # the first join was sent at the beginning
        slower = min(1 + number // 8, 4)
        assert slower * repeat <= wait < 2 * slower * repeat
    session.handle(ControlReceived(1, join(B)))
    (wait,) = waits_of("join", session.handle(ControlReceived(2, join(C))))
    assert repeat <= wait < 2 * repeat, "now there is something new to say"


def test_a_join_that_arrives_twice_is_answered_once() -> None:
    session = agreed()
    again = ControlReceived(1, join(B, 2))
    assert [to for _, to in said(session.handle(again))] == [1], "it does not know what we agree to"
    assert session.handle(again) == []


def test_who_opens_tells_all_others_at_once() -> None:
    """One that has not received everybody's agreement opens by this, and need not ask again."""
    session = agreed()
    session.handle(ControlReceived(1, join(B, 2, session.session)))
    assert (Heartbeat(Stage.OPEN), None) in said(session.handle(ControlReceived(2, join(C, 2, session.session))))


def test_an_abort_in_the_session_opens_it_first() -> None:
    """Whoever sent it knew that all agree, and may be gone: else we would wait for the group until the timeout."""
    out = agreed().handle(ControlReceived(2, AbortNotice("enough")))
    ends = [type(output) for output in out if isinstance(output, Opened | Aborted | Refused)]
    assert ends == [Opened, Aborted]
    assert begun().handle(ControlReceived(2, AbortNotice("enough"))) == [], "there is no session yet"


def test_who_was_refused_by_all_leaves_with_its_last_notice() -> None:
    session = begun()
    for member, incarnation in ((1, B), (2, C)):
        session.handle(ControlReceived(member, Refuse(incarnation, ME, "no")))
    assert Left() not in session.handle(TimerFired("over"))
    assert Left() in session.handle(TimerFired("over")), "all know: nobody needs an answer"


def test_nobody_is_refused_before_we_began_or_without_an_incarnation() -> None:
    idle = Session(0, NAMES, Identity(incarnation=ME), TERMS)
    assert idle.handle(ControlReceived(1, join(B))) == [], "the group may open yet"
    refused = begun()
    refused.handle(GiveUp("enough"))
    assert refused.handle(ControlReceived(1, join(0))) == [], "no process has that one"
    assert said(refused.handle(ControlReceived(1, join(B)))) == [(Refuse(ME, B, "enough"), 1)]


def test_who_opens_knows_that_all_have_agreed() -> None:
    """It learned it from C alone; a join that does not say so of B would be answered by B, again and again."""
    session = agreed()
    session.handle(TrafficReceived(2))
    ((message, to),) = said(session.handle(ControlReceived(1, join(B, 9, session.session))))
    assert isinstance(message, Join)
    assert ([heard.session for heard in message.heard], to) == ([0, session.session, session.session], 1)


# --- timers ---


def test_a_timer_that_was_cancelled_may_still_expire() -> None:
    session = opened()
    for name in ("join", "handshake", "over", "closing of another"):
        assert session.handle(TimerFired(name)) == []
    session.handle(GiveUp("enough"))
    for name in ("heartbeat", "closing", "round"):
        assert session.handle(TimerFired(name)) == []


# --- views ---


def test_who_is_left_behind_drops_out_if_the_group_is_open() -> None:
    session = opened()
    out = session.handle(Remaining(0b110))
    assert Aborted("the group continues without A") in out
    assert Left() in out
    session = closed()
    assert session.handle(Remaining(0b110)) == [], "it has everything, and needs nobody"
    assert session.phase is Phase.CLOSED


# --- abort ---


@pytest.mark.parametrize(("suspect", "passed_on"), [(None, None), (2, 2), (3, None), (63, None)])
def test_the_suspect_of_an_abort_is_passed_on_if_it_is_a_member(suspect: int | None, passed_on: int | None) -> None:
    """Nobody waits for an answer of the suspect; a number that is no member's would shift any number of bits."""
    session = opened()
    out = session.handle(ControlReceived(1, AbortNotice("enough", suspect)))
    assert said(out) == [(AbortNotice("enough", passed_on), None)]


def test_who_aborts_leaves_with_its_last_notice_if_all_know() -> None:
    session = opened()
    session.handle(GiveUp("enough"))
    for member in (1, 2):
        session.handle(ControlReceived(member, AbortNotice("enough")))
    assert Left() not in session.handle(TimerFired("over")), "their own notice may have crossed ours"
    assert Left() in session.handle(TimerFired("over"))


def test_an_aborted_group_has_no_timers_of_an_open_one() -> None:
    out = opened().handle(GiveUp("enough"))
    assert {output.name for output in out if isinstance(output, CancelTimer)} == {"heartbeat", "closing", "round"}


# --- closing ---


def test_a_second_close_may_set_the_time_that_it_takes() -> None:
    session = opened()
    assert session.handle(Close()) == []
    assert session.handle(Close(5 * SECOND)) == [SetTimer("closing", 5 * SECOND)]
    assert session.handle(Close()) == [], "it may take as long as was said before"
    session.handle(TimerFired("closing"))
    assert session.why.startswith("A could not close within 5 s: A still has messages in flight; B has not closed")


def test_a_second_close_does_not_undo_the_first() -> None:
    """The host reports that it is at rest once, when that changes: it would not report it again."""
    session = opened()
    for event in (Close(), AtRest(at_rest=True), Close(5 * SECOND)):
        session.handle(event)
    for member in (1, 2):
        session.handle(ControlReceived(member, Heartbeat(Stage.CLOSING)))
    assert session.closing.stage is Stage.DONE


def test_the_rounds_of_closing_begin_once_when_it_is_done() -> None:
    """Before, it is the others who have to act; and a second timer would be one too many."""
    session = opened()
    session.handle(Close())
    assert waits_of("round", session.handle(AtRest(at_rest=True))) == []
    session.handle(ControlReceived(1, Heartbeat(Stage.CLOSING)))
    repeat = SessionConfig().repeat
    (wait,) = waits_of("round", session.handle(ControlReceived(2, Heartbeat(Stage.CLOSING))))
    assert repeat <= wait < 2 * repeat
    session.handle(ControlReceived(1, Heartbeat(Stage.DONE)))
    out = session.handle(ControlReceived(2, Heartbeat(Stage.DONE)))
    assert Closed() in out
    assert waits_of("round", out) == []


def test_rounds_of_closing_go_on_at_times_that_differ() -> None:
    """Equal times would make all members repeat in step, again and again."""
    session = closed()
    waits = [wait for _ in range(5) for wait in waits_of("round", session.handle(TimerFired("round")))]
    assert len(set(waits)) == 5


def test_a_close_of_an_aborted_group_changes_nothing() -> None:
    session = opened()
    session.handle(GiveUp("enough"))
    assert session.handle(Close(5 * SECOND)) == []


def closed() -> Session:
    session = opened()
    for event in (Close(), AtRest(at_rest=True)):
        session.handle(event)
    for member in (1, 2):
        session.handle(ControlReceived(member, Heartbeat(Stage.DONE)))
    assert session.phase is Phase.CLOSED
    return session


def test_who_gives_up_before_it_began_or_after_it_closed_leaves_at_once() -> None:
    idle = Session(0, NAMES, Identity(incarnation=ME), TERMS)
    for session in (idle, closed()):
        out = session.handle(GiveUp("enough"))
        assert Left() in out
        assert not any(isinstance(output, Aborted | Refused) for output in out), "there is no group that could fail"
        assert session.phase is Phase.LEFT
        timers = {output.name for output in out if isinstance(output, CancelTimer)}
        assert timers == {"heartbeat", "closing", "round", "over", "linger"}, "its host would be woken for nothing"


def test_who_has_not_closed_waits_for_nobody() -> None:
    session = opened()
    assert session.waits_for() == ()
    session.handle(AtRest(at_rest=False))
    assert session.waits_for() == ()
