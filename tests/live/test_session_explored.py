"""Two members, and every order in which little can happen: arrivals, losses, timers, and a member that comes again."""

from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from ordercast.live.session.events import (
    AtRest,
    Begin,
    Close,
    Closed,
    ControlReceived,
    Input,
    Left,
    SendControl,
)
from ordercast.live.session.handshake import Identity
from ordercast.live.session.machine import Phase, Session
from ordercast.live.session.parameter_comparison import encode_parameters
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.control import IN_SESSION, Control

NAMES = ("A", "B")
TERMS = encode_parameters("toys", NAMES, {})
PATIENT = {"handshake", "linger", "closing"}
"""Timers so long that nothing else is under way when they fire."""


class World(NamedTuple):
    """All that there is; equal worlds have equal futures."""

    lives: tuple[tuple[int, Any], ...]
    """Each life that there was: its member and its state. The last one of a member lives."""
    timers: frozenset[tuple[int, str]]
    """By life."""
    under_way: tuple[tuple[int, int, Control], ...]
    """To whom, under which session, what."""
    losses: int
    firings: int
    restarts: int


def life_of(number: int, member: int, state: Any = None) -> Session:
    """The machine of a life, new or as it was."""
    session = Session(member, NAMES, Identity(incarnation=number + 1, first_seq=10 * number), TERMS)
    if state is not None:
        session.restore(state)
    return session


def after(world: World, number: int, event: Input) -> World:
    """The world when one life has taken one input."""
    member, state = world.lives[number]
    session = life_of(number, member, state)
    timers, under_way = set(world.timers), list(world.under_way)
    for output in session.handle(event):
        match output:
            case SendControl(message):
                under_way.append((1 - member, session.session if isinstance(message, IN_SESSION) else 0, message))
            case SetTimer(name):
                timers.add((number, name))
            case CancelTimer(name):
                timers.discard((number, name))
    lives = (*world.lives[:number], (member, session.snapshot()), *world.lives[number + 1 :])
    return world._replace(
        lives=lives, timers=frozenset(timers), under_way=tuple(sorted(under_way, key=msgspec.msgpack.encode))
    )


def living(world: World) -> dict[int, int]:
    """Which life each member leads."""
    return {member: number for number, (member, _) in enumerate(world.lives)}


def sessions(world: World) -> list[Session]:
    return [life_of(number, member, state) for number, (member, state) in enumerate(world.lives)]


def arrived(world: World, index: int) -> World:
    member, tag, message = world.under_way[index]
    without = lost(world, index)
    number = living(world)[member]
    if isinstance(message, IN_SESSION) and tag != life_of(number, *world.lives[number]).session:
        return without
    return after(without, number, ControlReceived(1 - member, message))


def lost(world: World, index: int) -> World:
    return world._replace(under_way=world.under_way[:index] + world.under_way[index + 1 :])


def fired(world: World, number: int, name: str) -> World:
    return after(world._replace(timers=world.timers - {(number, name)}), number, TimerFired(name))


def begun(world: World, member: int) -> World:
    """A new life of a member."""
    number = len(world.lives)
    gone = living(world).get(member)
    lives = (*world.lives, (member, life_of(number, member).snapshot()))
    timers = frozenset(timer for timer in world.timers if timer[0] != gone)
    return after(world._replace(lives=lives, timers=timers), number, Begin())


def nexts(world: World) -> list[World]:
    """Everything that may happen next."""
    found = [arrived(world, index) for index in range(len(world.under_way))]
    if world.losses:
        found += [lost(world, index)._replace(losses=world.losses - 1) for index in range(len(world.under_way))]
    if world.firings:
        fewer = world._replace(firings=world.firings - 1)
        found += [fired(fewer, *timer) for timer in sorted(world.timers) if timer[1] not in PATIENT]
    if world.restarts:
        found.append(begun(world._replace(restarts=world.restarts - 1), 1))
    return found


def explored(world: World, most: int | None = None) -> set[World]:
    """Every world that can be reached; if not more than so many are wanted, some that lie far apart."""
    seen, frontier, chance = {world}, [world], Random(1)
    while frontier and (most is None or len(seen) < most):
        if most is not None:
            chosen = chance.randrange(len(frontier))
            frontier[chosen], frontier[-1] = frontier[-1], frontier[chosen]
        for one in nexts(frontier.pop()):
            if one not in seen:
                seen.add(one)
                frontier.append(one)
    return seen


def completed(world: World) -> World:
    """When nothing is lost any more: all arrives, then timers fire, and so on until nothing changes in a few rounds."""
    for _ in range(12):
        for _ in range(40):
            if not world.under_way:
                break
            world = arrived(world, 0)
        assert not world.under_way, "they answer each other for ever"
        for timer in sorted(world.timers):
            if timer in world.timers and timer[1] not in PATIENT:
                world = fired(world, *timer)
    return world


def check_one_session(world: World) -> None:
    """Two lives that opened with each other opened the same."""
    opened = [session for session in sessions(world) if session.handshake.opened_at is not None]
    for one in opened:
        for other in opened:
            heard, back = one.handshake.joins[other.me], other.handshake.joins[one.me]
            if heard is not None and back is not None:
                mutual = heard.incarnation == other.handshake.mine.incarnation
                if mutual and back.incarnation == one.handshake.mine.incarnation:
                    assert one.session == other.session


EMPTY = World((), frozenset(), (), losses=0, firings=0, restarts=0)


@pytest.mark.parametrize(("losses", "firings"), [(3, 0), pytest.param(2, 1, marks=pytest.mark.soak)])
def test_two_members_always_open(losses: int, firings: int) -> None:
    worlds = explored(begun(begun(EMPTY._replace(losses=losses, firings=firings), 0), 1))
    assert len(worlds) > 300
    for world in worlds:
        check_one_session(world)
        one, other = sessions(completed(world))
        assert one.phase is other.phase is Phase.OPEN
        assert one.session == other.session


@pytest.mark.parametrize(
    ("losses", "most"),
    [(0, 8000), pytest.param(0, None, marks=pytest.mark.soak), pytest.param(1, None, marks=pytest.mark.soak)],
)
def test_one_comes_again(losses: int, most: int | None) -> None:
    """It opens if the other has not opened with its former life; else never, and the other is not disturbed."""
    worlds = explored(begun(begun(EMPTY._replace(losses=losses, restarts=1), 0), 1), most)
    ends = set()
    for number, world in enumerate(worlds):
        check_one_session(world)
        if not world.restarts and number % 20 == 0:  # what follows is much the same from worlds that are close
            all_lives = sessions(completed(world))
            one, former, other = all_lives
            assert former.me == other.me == 1
            assert one.phase is Phase.OPEN
            known = one.handshake.joins[1]
            assert known is not None
            if known.incarnation == other.handshake.mine.incarnation:
                assert other.phase is Phase.OPEN
                assert one.session == other.session
            else:
                assert other.handshake.opened_at is None
                assert other.phase is Phase.HANDSHAKE
            ends.add(other.phase is Phase.OPEN)
    assert ends == {True, False}


@pytest.mark.parametrize("firings", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_two_members_always_close(firings: int) -> None:
    world = completed(begun(begun(EMPTY, 0), 1))
    for number in (0, 1):
        world = after(world, number, Close())
    world = after(after(world, 0, AtRest(at_rest=True)), 1, AtRest(at_rest=False))
    worlds = explored(world._replace(losses=1, firings=firings))
    assert all(session.closing.stage <= 1 for one in worlds for session in sessions(one)), (
        "the other one is not at rest"
    )
    worlds = explored(after(world, 1, AtRest(at_rest=True))._replace(losses=1, firings=firings))
    assert len(worlds) > 500
    for one in list(worlds)[::5]:
        for session in sessions(completed(one)):
            assert session.phase in (Phase.CLOSED, Phase.LEFT)


def test_close_ends_with_two_words() -> None:
    """What the application is told, and in which order."""
    told = []
    alone = Session(0, ("A",), Identity(incarnation=1), encode_parameters("toys", ("A",), {}))
    events: list[Input] = [Begin(), Close(), AtRest(at_rest=True), *(TimerFired("round") for _ in range(4))]
    for event in events:
        told += [type(output) for output in alone.handle(event)]
    assert [kind for kind in told if kind in (Closed, Left)] == [Closed, Left]
