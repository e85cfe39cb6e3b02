"""Rules of a session one by one: what one member does when it is told one thing."""

import pytest

from ordercast.live.session.discovery import Discovery
from ordercast.live.session.events import (
    Aborted,
    AtRest,
    Begin,
    Close,
    Closed,
    ControlReceived,
    GiveUp,
    Left,
    Opened,
    Output,
    Refused,
    Remaining,
    SendControl,
    SessionConfig,
    Suspected,
    TrafficReceived,
)
from ordercast.live.session.handshake import MAX_INCARNATIONS, Identity
from ordercast.live.session.machine import Phase, Session
from ordercast.live.session.parameter_comparison import advice, difference, encode_parameters, name_at
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.declared_state import declared_names
from ordercast.model.errors import ConfigError
from ordercast.model.machine import SetTimer, TimerFired
from ordercast.wire.control import AbortNotice, Heartbeat, Join, LastJoin, Refuse, Stage

NAMES = ("A", "B", "C")
TERMS = encode_parameters("toys", NAMES, {"window": 32})
ME, B, C = 1, 2, 3
"""Incarnations."""
NOTHING = LastJoin()
HEARD_US = (LastJoin(ME, 1), NOTHING, NOTHING)


def begun() -> Session:
    session = Session(0, NAMES, Identity(incarnation=ME, first_seq=7), TERMS)
    session.handle(Begin())
    return session


def join(life: int, round_: int = 1, session: int = 0, heard: tuple[LastJoin, ...] = HEARD_US) -> Join:
    return Join(life, round_, 10 * life, session, heard, TERMS)


def agreed() -> Session:
    """It has heard everybody's join."""
    session = begun()
    session.handle(ControlReceived(1, join(B)))
    session.handle(ControlReceived(2, join(C)))
    assert session.session
    return session


def opened() -> Session:
    session = agreed()
    session.handle(ControlReceived(1, join(B, 2, session.session)))
    session.handle(ControlReceived(2, join(C, 2, session.session)))
    assert session.phase is Phase.OPEN
    return session


def said(out: list[Output]) -> list[tuple[object, int | None]]:
    return [(output.message, output.to) for output in out if isinstance(output, SendControl)]


def aware_of(session: Session, round_: int) -> tuple[LastJoin, ...]:
    """What one has heard that has heard our join of this round."""
    return (LastJoin(ME, round_, session.session), NOTHING, NOTHING)


# --- opening ---


def test_it_opens_when_all_agree_and_not_before() -> None:
    session = agreed()
    assert not any(
        isinstance(output, Opened) for output in session.handle(ControlReceived(1, join(B, 2, session.session)))
    )
    out = session.handle(ControlReceived(2, join(C, 2, session.session)))
    assert Opened(session.session, (ME, B, C), (7, 20, 30)) in out


def test_consent_to_another_session_is_none() -> None:
    session = agreed()
    session.handle(ControlReceived(1, join(B, 2, session.session)))
    session.handle(ControlReceived(2, join(C, 2, session.session ^ 1)))
    assert session.phase is Phase.HANDSHAKE


@pytest.mark.parametrize("event", [TrafficReceived(2), ControlReceived(2, Heartbeat(Stage.OPEN))])
def test_whatever_is_said_in_the_session_opens_it(event: TrafficReceived | ControlReceived) -> None:
    assert begun().handle(event) == []
    session = agreed()
    assert any(isinstance(output, Opened) for output in session.handle(event))


def test_numbers_lives_and_terms_make_the_session() -> None:
    tags = {agreed().session}
    for other in (
        Join(C, 1, 31, 0, HEARD_US, TERMS),
        Join(9, 1, 30, 0, HEARD_US, TERMS),
    ):
        session = begun()
        session.handle(ControlReceived(1, join(B)))
        session.handle(ControlReceived(2, other))
        tags.add(session.session)
    assert len(tags) == 3


def test_who_lacks_our_join_is_answered_and_who_has_it_is_not() -> None:
    session = begun()
    out = session.handle(ControlReceived(1, join(B, heard=(NOTHING,) * 3)))
    assert [to for message, to in said(out) if isinstance(message, Join)] == [1]
    assert session.handle(ControlReceived(1, join(B, 2, 0, aware_of(session, 1)))) == []


def test_a_new_life_must_show_that_it_is_alive() -> None:
    session = agreed()
    before = session.session
    stale = join(9, 50, 0, aware_of(session, 1))
    out = session.handle(ControlReceived(1, stale))
    assert session.session == before, "it knows only what we said before we knew the other one"
    assert [to for _, to in said(out)] == [1]
    session.handle(ControlReceived(1, join(9, 51, 0, aware_of(session, session.handshake.round))))
    assert session.session not in (0, before)
    after = session.session
    session.handle(ControlReceived(1, join(B, 99, before, aware_of(session, 2))))
    assert session.session == after, "the former life cannot have heard us since"


def test_other_terms_of_a_former_life_do_not_count_and_those_of_a_new_one_are_left_to_it() -> None:
    session = agreed()
    differs = Join(9, 5, 0, 0, aware_of(session, 1), encode_parameters("toys", NAMES, {"window": 64}))
    ((message, to),) = said(session.handle(ControlReceived(1, differs)))
    assert isinstance(message, Join)
    assert (message.heard[1], to) == (LastJoin(9), 1), "if it lives, it sees that we differ, and that we live"
    assert Refused("B says so") in session.handle(ControlReceived(1, Refuse(9, ME, "B says so")))


def test_an_older_join_says_nothing_new() -> None:
    session = agreed()
    session.handle(ControlReceived(1, join(B, 5, session.session)))
    session.handle(ControlReceived(1, join(B, 4, 0)))
    session.handle(ControlReceived(2, join(C, 2, session.session)))
    assert session.phase is Phase.OPEN


@pytest.mark.parametrize("length", [0, 2, 4])
def test_a_join_of_a_group_of_another_size_is_not_taken(length: int) -> None:
    odd = join(B, 9, 0, (NOTHING,) * length)
    session = begun()
    assert session.handle(ControlReceived(1, odd)) == []
    assert session.handshake.joins == [None] * 3
    session = opened()
    assert session.handle(ControlReceived(1, odd)) == []


def test_two_that_use_one_name_are_told_so() -> None:
    session = begun()
    for life in range(MAX_INCARNATIONS + 1):
        assert session.phase is Phase.HANDSHAKE
        heard = aware_of(session, session.handshake.round)
        out = session.handle(ControlReceived(1, join(100 + life, 1, 0, heard)))
        session.handle(TimerFired("join"))
    assert Refused("two processes use the name B, or it is restarted again and again") in out


def test_a_refusal_counts_only_for_the_life_that_is_meant() -> None:
    session = begun()
    assert session.handle(ControlReceived(1, Refuse(B, ME + 8, "no"))) == []
    assert Refused("no") in session.handle(ControlReceived(1, Refuse(B, ME, "no")))


def test_a_member_that_refuses_an_open_group_is_suspected_but_not_for_a_former_life() -> None:
    session = opened()
    assert session.handle(ControlReceived(1, Refuse(9, ME, "no"))) == []
    assert session.handle(ControlReceived(1, Refuse(B, ME, "no"))) == [Suspected(1)]
    session.handle(Remaining(0b101))
    assert session.handle(ControlReceived(1, Refuse(B, ME, "no"))) == [], "the group continues without it already"


def test_who_took_another_life_can_never_open_and_is_not_answered() -> None:
    session = opened()
    heard = (LastJoin(ME, session.handshake.round, 0), NOTHING, LastJoin(99, 1, 0))
    out = session.handle(ControlReceived(1, join(B, 9, 0, heard)))
    assert [type(message) for message, _ in said(out)] == [Join], "it may have said this before it agreed"
    heard = (LastJoin(ME, session.handshake.round, 0), NOTHING, LastJoin(99, 1, 0))
    assert session.handle(ControlReceived(1, join(B, 10, 0, heard))) == [], "it finds the open group, and joins that"


def test_one_that_still_opens_is_answered_by_one_that_is_open() -> None:
    session = opened()
    ((message, to),) = said(session.handle(ControlReceived(2, join(C, 9, session.session))))
    assert isinstance(message, Join)
    assert (message.session, to) == (session.session, 2)
    assert not said(session.handle(ControlReceived(2, join(C, 10, session.session, aware_of(session, 9)))))


def test_who_closes_before_it_opened_says_so() -> None:
    session = agreed()
    out = session.handle(Close())
    assert Refused("A closed before the group was open") in out
    assert {to for message, to in said(out) if isinstance(message, Refuse)} == {1, 2}


# --- heartbeats ---


def test_nothing_of_a_session_is_outside_of_its_declared_state() -> None:
    session, looking = opened(), Discovery("toys", "A", "here", 1, 3)
    parts = (session, session.handshake, session.closing, looking)
    for part in parts:
        assert set(vars(part)) == declared_names(type(part)), type(part).__name__


def test_a_question_is_answered() -> None:
    session = opened()
    assert (Heartbeat(Stage.OPEN), 1) in said(session.handle(ControlReceived(1, Heartbeat(Stage.OPEN, asks=True))))
    assert not said(session.handle(ControlReceived(1, Heartbeat(Stage.OPEN))))


# --- abort ---


def test_an_abort_is_said_three_times_and_answers_are_measured() -> None:
    session = opened()
    out = session.handle(GiveUp("enough"))
    abort = AbortNotice("enough")
    assert Aborted("enough") in out
    times = said(out).count((abort, None))
    assert said(session.handle(TrafficReceived(1))) == [(abort, 1)]
    assert said(session.handle(TrafficReceived(1))) == []
    for _ in range(5):
        times += said(session.handle(TimerFired("over"))).count((abort, None))
    assert times == 3
    assert said(session.handle(ControlReceived(1, Heartbeat(Stage.OPEN)))) == [(abort, 1)]
    assert Left() in session.handle(TimerFired("linger"))
    assert session.handle(TrafficReceived(1)) == []


def test_who_hears_of_an_abort_passes_it_on_and_leaves_when_all_know() -> None:
    session = opened()
    out = session.handle(ControlReceived(1, AbortNotice("enough")))
    assert Aborted("enough") in out
    assert (AbortNotice("enough"), None) in said(out)
    session.handle(TimerFired("over"))
    session.handle(TimerFired("over"))
    assert Left() in session.handle(ControlReceived(2, AbortNotice("enough")))


def test_one_that_was_left_behind_cannot_end_the_group() -> None:
    session = opened()
    session.handle(Remaining(0b011))
    assert session.handle(ControlReceived(2, AbortNotice("enough"))) == []
    assert Aborted("enough") in session.handle(ControlReceived(1, AbortNotice("enough")))


def test_an_aborted_one_refuses_new_lives_and_tells_the_old_ones() -> None:
    session = opened()
    session.handle(GiveUp("enough"))
    assert said(session.handle(ControlReceived(1, join(B, 9)))) == [(AbortNotice("enough"), 1)]
    assert said(session.handle(ControlReceived(2, join(99)))) == [(Refuse(ME, 99, "enough"), 2)]


# --- close ---


def test_stages_of_a_close() -> None:
    session = opened()
    session.handle(AtRest(at_rest=True))
    assert said(session.handle(Close())) == [], "whether it is at rest is said anew"
    assert said(session.handle(ControlReceived(1, Heartbeat(Stage.OPEN)))) == [], "also if something comes before"
    assert said(session.handle(AtRest(at_rest=False))) == [], "what it sent is not known to be everywhere"
    assert said(session.handle(AtRest(at_rest=True))) == [(Heartbeat(Stage.CLOSING), None)]
    session.handle(AtRest(at_rest=False))
    session.handle(ControlReceived(1, Heartbeat(Stage.CLOSING)))
    session.handle(ControlReceived(2, Heartbeat(Stage.CLOSING)))
    assert session.closing.stage is Stage.CLOSING, "something came meanwhile"
    assert (Heartbeat(Stage.DONE), None) in said(session.handle(AtRest(at_rest=True)))
    session.handle(ControlReceived(1, Heartbeat(Stage.DONE)))
    assert session.phase is Phase.OPEN
    assert (Heartbeat(Stage.DONE, asks=True), 2) in said(session.handle(TimerFired("round")))
    session.handle(ControlReceived(1, Heartbeat(Stage.OPEN)))  # late
    assert Closed() in session.handle(ControlReceived(2, Heartbeat(Stage.DONE)))
    assert {to for _, to in said(session.handle(TimerFired("round")))} == {1, 2}
    assert Left() not in session.handle(ControlReceived(1, Heartbeat(Stage.ALL_DONE))), "one may not know it yet"
    last = session.handle(ControlReceived(2, Heartbeat(Stage.ALL_DONE)))
    assert said(last) == [(Heartbeat(Stage.ALL_DONE), None)] * 3, "nobody can be asked for it again"
    assert last[-1] == Left(), "all know that all are done"


def test_the_last_stage_is_repeated_for_those_of_whom_nothing_is_known() -> None:
    session = opened()
    session.handle(Close())
    session.handle(AtRest(at_rest=True))
    for stage in (Stage.CLOSING, Stage.DONE):
        for member in (1, 2):
            session.handle(ControlReceived(member, Heartbeat(stage)))
    assert session.phase is Phase.CLOSED
    session.handle(Remaining(0b001))  # the others are gone without having told their last stage
    words = [session.handle(TimerFired("round")) for _ in range(4)]
    assert [said(out) for out in words] == [[(Heartbeat(Stage.ALL_DONE), None)]] * 3 + [[]]
    assert Left() in words[-1]


def test_a_farewell_says_that_all_are_done() -> None:
    session = opened()
    for event in (
        Close(),
        AtRest(at_rest=True),
        ControlReceived(1, Heartbeat(Stage.CLOSING)),
        ControlReceived(2, Heartbeat(Stage.CLOSING)),
    ):
        session.handle(event)
    assert Closed() in session.handle(ControlReceived(2, Heartbeat(Stage.ALL_DONE)))


def test_a_close_without_one_that_was_left_behind() -> None:
    session = opened()
    for event in (Close(), AtRest(at_rest=True), ControlReceived(1, Heartbeat(Stage.DONE))):
        session.handle(event)
    assert session.waits_for() == ("C has not closed, or still has messages in flight",)
    assert Closed() in session.handle(Remaining(0b011))
    assert session.waits_for() == ()


def test_heartbeats_are_sent_to_all_while_closing_and_not_before() -> None:
    session = opened()
    again = SetTimer("heartbeat", session.config.heartbeat)
    assert session.handle(TimerFired("heartbeat")) == [again]
    session.handle(Close())
    session.handle(AtRest(at_rest=True))
    assert session.handle(TimerFired("heartbeat")) == [again, SendControl(Heartbeat(Stage.CLOSING))]
    for member in (1, 2):
        session.handle(ControlReceived(member, Heartbeat(Stage.DONE)))
    assert session.phase is Phase.CLOSED
    assert session.handle(TimerFired("heartbeat")) == [again, SendControl(Heartbeat(Stage.ALL_DONE))]


def test_the_timer_of_heartbeats_begins_with_the_session_for_founders_and_for_who_joins() -> None:
    """It only begins again when it fires: without the first one no stage would be repeated before somebody is done."""
    session = agreed()
    first = SetTimer("heartbeat", session.config.heartbeat)
    assert session.handle(TrafficReceived(2)).count(first) == 1
    joiner = Session(3, ("D",), Identity(incarnation=ME), "", joined={0: "A", 3: "D"})
    assert joiner.handle(Begin()) == [first]


# --- values ---


def test_differences_are_told_in_words() -> None:
    ours = encode_parameters("toys", ("A", "B"), {"window": 32, "timing": {"poll": 1}, "quota": 5})
    theirs = encode_parameters("toys", ("A", "B"), {"window": 64, "timing": {"poll": 2}})
    told = "B has no quota, A has quota=5; B has window=64, A has window=32"
    assert difference(ours, "A", theirs, "B") == told, "what is within others follows from them"
    theirs = encode_parameters("toys", ("A", "B"), {"window": 32, "timing": {"poll": 2}, "quota": 5})
    assert difference(ours, "A", theirs, "B") == "B has timing.poll=2, A has timing.poll=1"


def test_of_lists_of_members_that_differ_what_differs_is_told() -> None:
    ours = encode_parameters("toys", [*"ABC"], {"window": 32})
    more = encode_parameters("toys", [*"ABCDE"], {"window": 32})
    other = encode_parameters("toys", [*"ABD"], {"window": 32})
    assert difference(ours, "A", more, "B") == "B has the members D, E, A has not"
    assert difference(ours, "A", other, "B") == "B has the member D, A has not; A has the member C, B has not"


@pytest.mark.parametrize(
    ("theirs", "said_to_do"),
    [
        (encode_parameters("toys", "ABD", {"window": 32}), "give all of them the same members"),
        (encode_parameters("toys", "ABC", {"window": 32, "state": True}), "give all of them a state, or none"),
        (encode_parameters("toys", "ABC", {"window": 64}), "make them equal, for example with one settings file"),
        ("nonsense", "make them equal, for example with one settings file"),
        (
            encode_parameters("toys", "ABD", {"window": 64}),
            "give all of them the same members, and make them equal, for example with one settings file",
        ),
    ],
)
def test_what_to_do_about_a_difference(theirs: str, said_to_do: str) -> None:
    end = "" if said_to_do.endswith(("members", "none")) else " for all members (--settings)"
    assert advice(encode_parameters("toys", "ABC", {"window": 32}), theirs) == said_to_do + end


def test_one_with_another_list_of_members_is_named_as_it_names_itself() -> None:
    """C is the second in its own list, and the third in ours."""
    session = begun()
    terms = encode_parameters("toys", ("A", "C"), {"window": 32})
    session.handle(ControlReceived(1, Join(C, 1, 0, 0, (NOTHING, NOTHING), terms)))
    sentence = "C sends to A, but does not receive from it; A has the member B, C has not"
    assert sentence in session.handshake.awaited()
    out = session.handle(ControlReceived(1, Join(C, 2, 0, 0, (LastJoin(ME, 1), NOTHING), terms)))
    assert Refused("A has the member B, C has not; give all of them the same members") in out


def test_a_name_that_is_not_in_the_list_of_its_sender() -> None:
    assert name_at(TERMS, 1, "X") == "B"
    for nonsense in (TERMS, '{"members": 5}', "[]", "{}", "nonsense"):
        assert name_at(nonsense, 3, "X") == "X"
    assert name_at(encode_parameters("toys", ["n" * 60], {}), 0, "X") == "n" * 40 + "…"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repeat", 0),
        ("repeat", SECOND),
        ("failure_timeout", 500 * MILLISECOND),
        ("handshake_timeout", 100 * MILLISECOND),
    ],
)
def test_times_that_cannot_work_are_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError):
        SessionConfig(**{name: value})


@pytest.mark.parametrize(("incarnation", "first_seq"), [(0, 0), (1 << 64, 0), (1, -1)])
def test_beginnings_that_cannot_be_said_are_refused(incarnation: int, first_seq: int) -> None:
    with pytest.raises(ConfigError):
        Identity(incarnation=incarnation, first_seq=first_seq)


def test_values_are_shown_whole_up_to_forty_characters() -> None:
    def told(length: int) -> str:
        ours = encode_parameters("toys", NAMES, {"relay": "x" * length})
        return difference(ours, "A", TERMS, "B")

    shown = '"' + "x" * 38 + '"'
    assert f"A has relay={shown};" in told(38)
    assert f"A has relay={shown[:-1]}x…" in told(39)


def test_who_is_waited_for_is_named_by_what_it_lacks() -> None:
    session = opened()
    session.handle(Close())
    session.handle(AtRest(at_rest=True))
    for member in (1, 2):
        session.handle(ControlReceived(member, Heartbeat(Stage.CLOSING)))
    session.handle(ControlReceived(1, Heartbeat(Stage.DONE)))
    assert session.waits_for() == ("C still waits for messages",)


def test_who_joined_has_a_name_has_not_closed_and_takes_no_part_in_the_handshake() -> None:
    session = opened()
    session.handle(Remaining(0b1011, ((3, "D"),)))
    assert session.names == {0: "A", 1: "B", 2: "C", 3: "D"}
    assert session.closing.stages == {1: Stage.OPEN, 3: Stage.OPEN}
    assert session.handle(ControlReceived(3, join(9))) == []
    assert session.handle(ControlReceived(3, Refuse(9, ME, "no"))) == []
    session.handle(Remaining(0b0011))
    assert session.names == {0: "A", 1: "B", 2: "C"}, "who joined and is gone is no founder"


def test_one_that_joined_is_told_by_its_name_that_the_others_go_on_without_it() -> None:
    session = Session(3, ("D",), Identity(incarnation=ME), "", joined={0: "A", 2: "C", 3: "D"})
    session.handle(Begin())
    out = session.handle(Remaining(0b001))
    assert Aborted("the group continues without D") in out
    assert session.names == {0: "A", 3: "D"}


def test_one_that_joined_takes_no_part_in_the_handshake_of_the_founders() -> None:
    session = Session(3, ("D",), Identity(incarnation=ME), "", joined={0: "A", 2: "C", 3: "D"})
    session.handle(Begin())
    assert session.handle(ControlReceived(0, join(B))) == []
    assert session.handle(ControlReceived(0, Refuse(B, ME, "no"))) == []
    assert session.informed == 0, "a refusal of one that is in the group does not say that the group is over"
