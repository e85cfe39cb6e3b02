"""Beginning anew, and what nodes with logs wait for: rule by rule, by machines without clock, disk and network."""

from collections.abc import Iterator

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Enter, Output, Receive, Send, SetTimer, Suspect, TimerFired
from ordercast.model.units import Packet
from ordercast.protocols.membership.units import Accepted, Propose, Report
from ordercast.protocols.membership.view import GroupView
from ordercast.protocols.membership.wrapped_units import ViewUnit
from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.durable_node import DurableNode, durable_node
from ordercast.protocols.restart.machine import (
    BeginAnew,
    Patience,
    RestartMachine,
)
from ordercast.protocols.restart.node_log import NodeLog, Recovered, Synced, WriteNote
from ordercast.protocols.restart.standing import Plan, Standing, decode_standing, encode_standing, forgetting
from tests.protocols.restarting import HASHES, LAST, NAMES, Process, life, talk


def test_all_begin_by_one_plan_with_the_longest_log() -> None:
    a, b, c = (Process(name, position) for name, position in zip(NAMES, (5, 7, 6), strict=True))
    talk(a, b, c)
    assert a.begun is not None
    assert a.begun == b.begun == c.begun
    assert (a.begun.position, a.begun.holder.name, a.begun.number) == (7, "B", 5)
    assert (a.fetched, b.fetched, c.fetched) == (1, 0, 1)
    assert b.offered == [a.begun]


def test_a_plan_is_noted_before_it_is_said() -> None:
    a, b = Process("A", 5), Process("B", 5)
    a.disk_is_slow = True
    talk(a, b)
    plan = a.plan
    assert plan is not None
    assert a.notes == [plan]
    assert b.machine.here().ready
    assert (a.machine.here().ready, a.begun, b.begun) == (False, None, None)
    a.carry_out(a.machine.noted(plan.tag))
    assert a.machine.here().ready
    assert a.machine.here().standing().plan == plan
    assert a.begun == plan


def test_it_waits_for_those_that_are_missing_and_for_a_moment_only() -> None:
    a, b = Process("A", 5), Process("B", 5)
    talk(a, b, rounds=8)
    assert (a.begun, a.machine.waits_for) == (None, "C of view 4, for a moment")
    talk(a, b, rounds=10)
    assert a.begun is not None
    assert [one.name for one in a.begun.members] == ["A", "B"]


def test_one_alone_begins_only_by_force() -> None:
    alone, forced = Process("C", 5), Process("C", 5, force=True)
    talk(alone)
    talk(forced)
    assert alone.begun is None
    assert (
        alone.machine.waits_for
        == "A, B, which were in the last view (4: A, B, C): start so many of them that a majority is there"
    )
    assert forced.begun is not None


def test_one_that_has_noted_something_else_meanwhile_does_not_agree() -> None:
    """The plan was made from what it had noted before: another one may have begun since."""
    a, b = Process("A", 5), Process("B", 5)
    other = Plan(4, b"another!", 5, HASHES[5], (life("B", 2), life("C", 2)), life("B", 2))
    b.machine.standing = Standing(LAST.view, plan=other)
    before = Process("B", 5)
    before.disk_is_slow = True
    talk(a, before, rounds=15)
    assert a.plan is not None
    b.carry_out(b.machine.hear(a.machine.here()))
    assert b.plan is None


def test_a_plan_whose_member_says_nothing_any_more_is_given_up() -> None:
    a, b = Process("A", 5), Process("B", 5)
    a.machine = RestartMachine(a.machine.me, "g", LAST, patience=Patience(forget=10, silent=5, grace=1, plan=50))
    a.machine.place(5, HASHES[5])
    b.disk_is_slow = True
    talk(a, b, rounds=4)
    assert a.plan is not None
    for _ in range(8):
        a.tick()
    assert (a.gave_up, a.begun) == (1, None)


def test_one_that_was_started_once_more_makes_a_plan_void() -> None:
    a, b = Process("A", 5), Process("B", 5)
    a.machine = RestartMachine(a.machine.me, "g", LAST, patience=Patience(grace=1))
    a.machine.place(5, HASHES[5])
    talk(a, b, rounds=2)
    b.disk_is_slow = True
    a.tick()
    talk(a, b, rounds=2)
    assert a.plan is not None
    again = Here("g", life("B", 3), encode_standing(LAST), 5, HASHES[5], heard=(("A", 2),))
    a.carry_out(a.machine.hear(again))
    assert (a.gave_up, a.begun) == (1, None)


def test_one_that_has_forgotten_says_nothing() -> None:
    b = Process("B", 5, Standing(LAST.view, complete=False, forgot=True))
    talk(b)
    assert b.said == []
    assert b.machine.waits_for == "the others, which have to begin without it: its own log was damaged"


def test_a_log_that_does_not_become_that_of_the_plan_gives_it_up() -> None:
    b = Process("B", 5)
    plan = Plan(5, b"8 bytes!", 9, HASHES[9], (life("A", 2), life("B", 2)), life("A", 2))
    b.machine.plan = plan
    b.carry_out(b.machine.log_is(7, HASHES[7]))
    assert b.plan is None
    assert (b.notes, b.gave_up) == ([], 1)
    b.machine.plan = plan
    b.carry_out(b.machine.log_failed(apart=True))
    assert b.plan is None
    assert b.machine.apart


# --- nodes ---


def node(me: int = 0, nodes: int = 3) -> DurableNode:
    return durable_node("to")(me, GroupConfig(nodes=nodes, views=True))


def promises(outputs: list[Output]) -> list[Output]:
    return [
        output
        for output in outputs
        if isinstance(output, Send)
        and isinstance(output.unit, ViewUnit)
        and isinstance(output.unit.unit, Report | Accepted | Propose)
    ]


def test_what_is_promised_is_said_when_it_is_on_the_disk() -> None:
    """E2 suspects E1: it asks the others to stop, and they report when their promise is on their disks."""
    asks, answers = node(1), node(2)
    asks.handle(Enter())
    answers.handle(Enter())
    asks.handle(Synced(1))
    answers.handle(Synced(1))
    units = [output.unit for output in asks.handle(Suspect(1)) if isinstance(output, Send)]
    assert units
    found = [output for unit in units for output in answers.handle(Receive(unit))]
    assert promises(found) == []
    notes = [decode_standing(output.note) for output in found if isinstance(output, WriteNote)]
    assert [note.promised is not None for note in notes if note is not None] == [True]
    assert promises(answers.handle(Synced(answers.log.written - 1))) == []
    assert promises(answers.handle(Synced(answers.log.written))) != []


def packets(count: int) -> Iterator[Packet]:
    for number in range(count):
        yield Packet(0, 7, number, (), number, (1,), b"%d" % number)


def test_a_recovered_log_has_its_places_and_a_tail_can_be_dropped() -> None:
    log = NodeLog()
    log.recover(tuple(packets(3)))
    assert (log.end, log.durable_end) == (log.ends[2], log.ends[2])
    log.write(next(packets(1)))
    assert log.durable_end == log.ends[2]
    assert not log.has(log.ends[3])
    log.sync(1)
    assert log.has(log.ends[3])
    log.drop_above(log.ends[1])
    assert [packet.first for packet in log.packets] == [0, 1]
    assert log.between((0, b""), log.ends[1]) == tuple(packets(2))


def test_one_that_was_started_again_looks_for_the_others() -> None:
    again = durable_node("to", (0, 1, 2), returns=((3, 1),))(3, GroupConfig(nodes=4, views=True))
    founder = node(1)
    notes = [output.note for output in founder.handle(Enter()) if isinstance(output, WriteNote)]
    out = again.handle(Recovered(tuple(packets(2)), notes[-1]))
    assert any(isinstance(output, SetTimer) and output.name == "log.tick" for output in out)
    assert again.log.end[0] == 2
    assert again.waits_for() == (
        "E1, E3, which were in the last view (0: E1, E2, E3): start so many of them that a majority is there",
    )
    assert not any(isinstance(output, Deliver) for output in again.handle(TimerFired("log.tick")))


@pytest.mark.parametrize("note", [b""])
def test_one_without_a_note_was_never_a_member(note: bytes) -> None:
    again = durable_node("to", (0, 1, 2), returns=((3, 1),))(3, GroupConfig(nodes=4, views=True))
    assert again.handle(Recovered((), note)) == []
    assert not again.restarting


def test_what_is_held_is_done_when_it_is_on_the_disk_and_once() -> None:
    log = NodeLog()
    assert not log.hold("x", 0), "nothing is written"
    log.write_note(b"a")
    assert log.hold("x", 1)
    log.write(next(packets(1)))
    assert log.hold("x", 2)
    assert log.sync(1) == [("x", 1)]
    assert log.durable == 0
    assert log.sync(2) == [("x", 2)]
    assert log.durable == 1
    assert log.sync(2) == []
    assert not log.hold("x", 3)


def test_the_last_place_that_both_logs_have_is_on_the_disk_and_not_too_late() -> None:
    log, other = NodeLog(), NodeLog()
    log.recover(tuple(packets(4)))
    other.recover(tuple(packets(3)))
    assert log.common(other.places(), 4) == other.ends[2]
    assert log.common(other.places(), 3) == other.ends[2]
    assert log.common(other.places(), 1) == other.ends[0]
    assert log.common(((2, b"another"), other.ends[0]), 4) == other.ends[0]
    assert log.common((), 4) == (0, b"")


def test_what_is_dropped_is_never_on_the_disk() -> None:
    log = NodeLog()
    log.recover(tuple(packets(3)))
    log.write(next(packets(1)))
    log.drop_above(log.ends[0])
    assert (log.durable, log.durable_end) == (1, log.ends[0])
    log.sync(1)
    assert log.durable == 1
    log.drop_above((0, b""))
    assert (log.packets, log.end, log.durable) == ([], (0, b""), 0)


def test_a_plan_that_does_not_begin_is_given_up_and_the_next_one_is_another() -> None:
    a, b = Process("A", 5), Process("B", 5)
    a.machine = RestartMachine(a.machine.me, "g", LAST, patience=Patience(grace=0, plan=6))
    a.machine.place(5, HASHES[5])
    b.disk_is_slow = True
    talk(a, b, rounds=3)
    first = a.plan
    assert first is not None
    talk(a, b, rounds=3)
    assert a.plan == first
    talk(a, b, rounds=4)
    assert a.gave_up == 1
    talk(a, b, rounds=3)
    assert a.plan is not None
    assert a.plan.tag != first.tag


def test_who_has_agreed_follows_those_that_have_begun() -> None:
    a, b = Process("A", 5), Process("B", 5)
    assert a.machine.others_have_begun() == []
    a.disk_is_slow = True
    talk(a, b, rounds=20)
    assert a.plan is not None
    assert a.machine.others_have_begun() == [], "what it has agreed to is not on its disk"
    assert b.machine.others_have_begun() == [BeginAnew(a.plan)]


def test_another_plan_that_is_noted_does_not_make_it_ready() -> None:
    a, b = Process("A", 5), Process("B", 5)
    a.disk_is_slow = True
    talk(a, b, rounds=20)
    a.carry_out(a.machine.noted(b"another!"))
    assert not a.machine.ready


def test_who_is_silent_is_forgotten_and_an_old_incarnation_does_not_come_back() -> None:
    a, b = Process("A", 5), Process("B", 5)
    talk(a, b, rounds=2)
    old = b.machine.here()
    for _ in range(9):
        a.tick()
    assert "B" in a.machine.peers
    a.tick()
    assert "B" not in a.machine.peers
    new = Here("g", life("B", 3), encode_standing(LAST), 5, HASHES[5], heard=(("A", 2),))
    a.carry_out(a.machine.hear(new))
    a.carry_out(a.machine.hear(changed_heard(old)))
    assert a.machine.peers["B"][0].me.number == 3, "it has not heard A, so it may be old"
    a.carry_out(a.machine.hear(changed_heard(new)))
    assert a.machine.peers["B"][0].heard == ()


def changed_heard(here: Here) -> Here:
    return Here(here.group, here.me, here.note, here.position, here.hash)


def test_who_lacks_the_log_says_so_before_it_asks_and_who_has_it_offers_it_once() -> None:
    a, b = Process("A", 5), Process("B", 7)
    talk(a, b, rounds=30)
    assert a.begun is not None
    assert b.offered == [a.begun]
    c = Process("A", 9)
    c.disk_is_slow = True
    d = Process("B", 7)
    talk(c, d, rounds=30)
    assert c.plan is not None
    assert c.offered == [c.plan]
    assert d.offered == []


def test_a_note_of_one_that_was_no_member_stays_empty() -> None:
    assert forgetting(b"") == b""
    left = decode_standing(forgetting(encode_standing(LAST)))
    assert left is not None
    assert (left.view, left.complete, left.forgot) == (LAST.view, False, True)


def test_among_those_that_are_gone_nobody_began() -> None:
    other = Standing(GroupView(5, (life("X", 1),), (0,), bytes(8), 1))
    a = Process("A", 5, other, force=True)
    talk(a)
    assert "a member of view 5 that is started again" in a.machine.waits_for
