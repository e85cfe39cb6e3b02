"""Whatever a member is told, nothing is raised, what it holds stays small, and it answers in measure."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.live.session import discovery
from ordercast.live.session.discovery import Discovery
from ordercast.live.session.events import (
    AtRest,
    Begin,
    Close,
    ControlReceived,
    GiveUp,
    Input,
    Remaining,
    SendControl,
    TrafficReceived,
)
from ordercast.live.session.handshake import Identity, session_of
from ordercast.live.session.machine import Session
from ordercast.live.session.parameter_comparison import difference, encode_parameters
from ordercast.model.machine import TimerFired
from ordercast.wire.control import (
    CONTROL,
    MAX_REASON_LENGTH,
    AbortNotice,
    Control,
    Heartbeat,
    Hello,
    HelloRejection,
    Join,
    Known,
    LastJoin,
    Refuse,
    Stage,
)
from tests.live.virtual_network import TERMS

NAMES = ("A", "B", "C")
GOOD_TERMS = encode_parameters("toys", NAMES, TERMS)
LIVES = st.sampled_from([0, 1, 2, 3, 4, (1 << 64) - 1])
"""Few, so that they meet; 1 is ours."""
NUMBERS = st.sampled_from([0, 1, 2, 7, (1 << 60) - 1])
BEGUN = [Join(life, 0, 0, 0, (), GOOD_TERMS) for life in (1, 2, 3)]
SESSIONS = st.sampled_from([0, 9, session_of(GOOD_TERMS, NAMES, BEGUN)])
LAST_JOINS = st.builds(LastJoin, LIVES, NUMBERS, SESSIONS)
TEXTS = st.one_of(
    st.just(GOOD_TERMS), st.sampled_from(['{"window":1}', "[" * 9000, "{", "9" * 9000]), st.text(max_size=20)
)
NAMED = st.sampled_from(["A", "B", "C", "D", "E"])
KNOWN = st.builds(Known, NAMED, LIVES)
MESSAGES: st.SearchStrategy[Control] = st.one_of(
    st.builds(
        Join,
        LIVES,
        NUMBERS,
        st.just(0),
        SESSIONS,
        st.one_of(st.tuples(LAST_JOINS, LAST_JOINS, LAST_JOINS), st.lists(LAST_JOINS, max_size=5).map(tuple)),
        st.one_of(st.just(GOOD_TERMS), st.just(GOOD_TERMS), TEXTS),
    ),
    st.builds(Refuse, LIVES, LIVES, st.text(max_size=MAX_REASON_LENGTH)),
    st.builds(Heartbeat, st.sampled_from(Stage), st.booleans()),
    st.builds(AbortNotice, st.text(max_size=9), st.sampled_from([None, 0, 2, 63])),
    st.builds(HelloRejection, NAMED, NAMED, LIVES, st.text(max_size=9)),
)
HELLOS = st.builds(
    Hello,
    st.sampled_from(["toys", "other"]),
    NAMED,
    LIVES,
    st.just("somewhere"),
    st.sampled_from([3, 3, 3, 3, 4]),
    NUMBERS,
    st.lists(KNOWN, max_size=4).map(tuple),
    st.booleans(),
)
TIMERS = ("join", "handshake", "heartbeat", "round", "closing", "over", "linger", "other")
MEMBERS = st.integers(-1, 4)
EVENTS: st.SearchStrategy[Input] = st.one_of(
    st.builds(ControlReceived, MEMBERS, MESSAGES),
    st.builds(ControlReceived, MEMBERS, MESSAGES),
    st.builds(ControlReceived, MEMBERS, HELLOS),
    st.builds(TrafficReceived, MEMBERS),
    st.builds(TimerFired, st.sampled_from(TIMERS)),
    st.sampled_from([Begin(), Close(), Close(5), AtRest(True), AtRest(False), GiveUp("x"), Remaining(0b011)]),
)


def size(value: object) -> int:
    """How many values there are in a snapshot."""
    return sum(map(size, value)) if isinstance(value, tuple) else len(value) // 100 if isinstance(value, str) else 1


def copied(session: Any, another: Any) -> Any:
    """The state taken over by another machine."""
    another.restore(session.snapshot())
    assert another.snapshot() == session.snapshot()
    return another


def new_session() -> Session:
    return Session(0, NAMES, Identity(incarnation=1), GOOD_TERMS)


@settings(max_examples=120, deadline=None)
@given(st.lists(EVENTS, max_size=60))
def test_a_session_takes_whatever_comes(events: Sequence[Input]) -> None:
    session = new_session()
    session.handle(Begin())
    began = size(session.snapshot())
    for event in events:
        twin = copied(session, new_session())
        out = session.handle(event)
        assert twin.handle(event) == out, "the snapshot is the whole state"
        assert sum(isinstance(output, SendControl) for output in out) <= 3 * len(NAMES)
        assert size(session.snapshot()) <= began + 2 * len(NAMES) * (len(NAMES) * 3 + 8)
        session.waits_for()
        for output in out:
            if isinstance(output, SendControl):
                decode(msgspec.msgpack.encode(output.message))


def decode(record: bytes) -> Control:
    """As a member would read it: bounds are checked."""
    union: Any = CONTROL[0]
    for kind in CONTROL[1:]:
        union |= kind
    message: Control = msgspec.msgpack.decode(record, type=union)
    return message


@given(st.one_of(MESSAGES, HELLOS))
def test_what_is_said_is_read_as_it_was_said(message: Control) -> None:
    assert decode(msgspec.msgpack.encode(message)) == message


def new_discovery() -> Discovery:
    return Discovery("toys", "B", "here", 1, 3)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.one_of(HELLOS, HELLOS, MESSAGES, st.just("hello"), st.sampled_from(["discovery", "x"])), max_size=60)
)
def test_discovery_takes_whatever_comes(events: Sequence[Any]) -> None:
    looking = new_discovery()
    looking.handle(Begin())
    for event in events:
        given_in: Any = TimerFired(event) if isinstance(event, str) else discovery.AnnouncementReceived(event)
        twin = copied(looking, new_discovery())
        out = looking.handle(given_in)
        assert twin.handle(given_in) == out
        assert len(out) <= 5
        assert len(looking.others) <= 2
        assert len(looking.received_at) == len(looking.others)


@given(TEXTS, TEXTS)
def test_two_texts_have_a_difference_that_fits_a_sentence(ours: str, theirs: str) -> None:
    assert 0 < len(difference(ours, "A", theirs, "B")) < MAX_REASON_LENGTH
