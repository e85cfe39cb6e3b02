"""Nodes with logs, step by step and in small groups: what is noted, said, asked for, fetched and begun, and when."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Enter,
    GiveUp,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.by_node import SETTINGS
from ordercast.protocols.membership.machine import Phase
from ordercast.protocols.membership.units import Accepted, Entered, Install, Welcome
from ordercast.protocols.membership.view import GroupView, Incarnation, founding_view
from ordercast.protocols.membership.wrapped_units import OutsideView, ViewUnit
from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.durable_node import ANEW, TICK, DurableNode, durable_node
from ordercast.protocols.restart.machine import Patience
from ordercast.protocols.restart.node_log import BEGINNING, DropLog, NodeLog, Recovered, Synced, WriteNote, WritePacket
from ordercast.protocols.restart.node_units import AskLog, LogPart, Restarting
from ordercast.protocols.restart.standing import Plan, Standing, decode_standing, encode_standing, stamp_of

RETURNS = ((3, 0), (4, 1), (5, 2))
"""Nodes 3 to 5 are 0 to 2, started again."""
CONFIG = GroupConfig(nodes=6, views=True)
ALL = 0b111111
QUICK = Patience(forget=10, silent=30, grace=2, plan=100)


def node(me: int, founders: tuple[int, ...] = (0, 1, 2), **how: Any) -> DurableNode:
    return durable_node("to", founders, returns=RETURNS, patience=QUICK, **how)(me, CONFIG)


def person(me: int) -> Incarnation:
    return Incarnation(f"E{dict(RETURNS).get(me, me) + 1}", me, str(me))


FIRST = founding_view((person(0), person(1), person(2)), b"founding")


def packets(*names: str) -> tuple[Packet, ...]:
    """Of E1, a message in each."""
    return tuple(Packet(0, 7, at, (), at, (len(name),), name.encode()) for at, name in enumerate(names))


def log_of(*names: str) -> NodeLog:
    log = NodeLog()
    log.recover(packets(*names))
    return log


class Group:
    """Some nodes, a network that loses nothing, and disks that need a moment."""

    def __init__(self) -> None:
        self.nodes: dict[int, DurableNode] = {}
        self.delivered: dict[int, list[bytes]] = {}
        self.told: dict[int, list[Any]] = {}
        self.sent: list[tuple[int, Unit, int | None]] = []
        self.timers: dict[tuple[int, str], int] = {}
        self.now = self.count = 0
        self.sync_time = MILLISECOND // 2
        self._events: list[tuple[int, int, int, Any]] = []

    def add(self, machine: DurableNode, first: Any = None) -> None:
        """It begins now."""
        me = machine.me
        self.nodes[me], self.delivered[me], self.told[me] = machine, [], []
        self.give(me, Enter() if first is None else first)

    def restart(self, me: int, log: Sequence[str], standing: Standing) -> None:
        self.add(node(me), Recovered(packets(*log), encode_standing(standing)))

    def give(self, me: int, event: Any) -> None:
        machine = self.nodes[me]
        for output in machine.handle(event):
            self._carry_out(me, output)

    def submit(self, me: int, text: bytes) -> None:
        self.give(me, Submit(ALL, (len(text),), text))

    def run(self, milliseconds: int, until: Callable[[], bool] = lambda: False) -> None:
        end = self.now + milliseconds * MILLISECOND
        while self._events and self._events[0][0] <= end and not until():
            self.now, number, me, event = heappop(self._events)
            if me not in self.nodes or (isinstance(event, TimerFired) and self.timers.get((me, event.name)) != number):
                continue
            self.give(me, event)
        if not until():
            self.now = end

    def later(self, delay: int, me: int, event: Any) -> int:
        self.count += 1
        heappush(self._events, (self.now + delay, self.count, me, event))
        return self.count

    def _carry_out(self, me: int, output: Any) -> None:
        if isinstance(output, Send):
            self.sent.append((me, output.unit, output.to))
            to = [each for each in self.nodes if each != me] if output.to is None else [output.to]
            for each in to:
                self.later(MILLISECOND // 10, each, Receive(output.unit))
        elif isinstance(output, SetTimer):
            self.timers[me, output.name] = self.later(output.after, me, TimerFired(output.name))
        elif isinstance(output, CancelTimer):
            self.timers.pop((me, output.name), None)
        elif isinstance(output, WritePacket | WriteNote):
            self.later(self.sync_time, me, Synced(self.nodes[me].log.written))
        if isinstance(output, Deliver):
            self.delivered[me].append(output.packet.payload)
        self.told[me].append(output)

    def of(self, me: int, kind: type) -> list[Any]:
        return [output for output in self.told[me] if isinstance(output, kind)]

    def notes(self, me: int) -> list[Standing]:
        return [found for each in self.of(me, WriteNote) if (found := decode_standing(each.note)) is not None]

    def logged(self, me: int) -> list[bytes]:
        return [packet.payload for packet in self.nodes[me].log.packets]


def running(*members: int) -> Group:
    """A group that delivered three messages."""
    group = Group()
    for me in members:
        group.add(node(me, members))
    group.run(20)
    for text in (b"a", b"b", b"c"):
        group.submit(members[0], text)
        group.run(20)
    return group


def handled(machine: DurableNode, event: Any) -> list[Any]:
    return list(machine.handle(event))


def sent(outputs: list[Any], kind: type) -> list[tuple[Any, int | None]]:
    """Units outside of views, and to whom."""
    units = [(each.unit, each.to) for each in outputs if isinstance(each, Send)]
    return [(unit.unit, to) for unit, to in units if isinstance(unit, OutsideView) and isinstance(unit.unit, kind)]


# --- a group that runs ---


def test_what_is_delivered_is_written_and_the_view_is_noted_before() -> None:
    group = running(0, 1, 2)
    for me in (0, 1, 2):
        assert group.delivered[me] == group.logged(me) == [b"a", b"b", b"c"]
        assert group.nodes[me].log.durable == 3
        assert group.nodes[me].positions == {0: 0}
        [noted] = group.notes(me)
        assert (noted.view.number, noted.complete, noted.promised, noted.plan) == (0, True, None, None)
        assert group.nodes[me].standing == noted
        written = group.of(me, (Deliver, WritePacket))  # type: ignore[arg-type]
        assert [type(each) for each in written] == [Deliver, WritePacket] * 3
    assert group.nodes[0].restart.standing.view.members == (person(0),)


def test_who_joins_has_the_log_of_the_others_on_its_disk_before_it_counts() -> None:
    group = running(0, 1)
    group.add(node(2, (0, 1)))
    group.sync_time = 3 * MILLISECOND
    group.run(200)
    joined = group.nodes[2]
    assert group.logged(2) == [b"a", b"b", b"c"]
    assert (joined.behind, joined.waiting, joined.restarting) == (None, [], False)
    assert [(note.view.number, note.complete) for note in group.notes(2)] == [(1, False), (1, True)]
    assert group.nodes[0].positions == {0: 0, 1: 3}
    assert joined.positions == {1: 3}
    writes = group.of(2, (WritePacket, WriteNote))  # type: ignore[arg-type]
    assert [type(each) for each in writes] == [WriteNote, WritePacket, WritePacket, WritePacket, WriteNote]
    group.submit(2, b"d")
    group.run(50)
    assert group.logged(0) == group.logged(1) == group.logged(2) == [b"a", b"b", b"c", b"d"]
    assert group.delivered[2] == [b"d"]


def behind() -> tuple[Group, DurableNode]:
    """One that joined a group and has not got what was before it: the parts that it asks for are lost."""
    group = running(0, 1)
    group.add(node(2, (0, 1)))
    machine = group.nodes[2]
    group.run(200, until=lambda: machine.behind is not None)
    assert machine.behind == 1
    return group, machine


def test_who_is_behind_asks_all_again_and_again_until_its_membership_ends() -> None:
    group, machine = behind()
    assert machine.waits_for() == ("its log lacks what was before its first view",)
    [ask], [timer] = sent(group.told[2], AskLog), [each for each in group.of(2, SetTimer) if each.name == "log.ask"]
    assert ask == (AskLog(2, 1, None, (BEGINNING,)), None)
    assert timer.after == 2 * SETTINGS.repeat
    again = handled(machine, TimerFired("log.ask"))
    assert sent(again, AskLog) == [ask]
    assert SetTimer("log.ask", timer.after) in again
    assert handled(machine, TimerFired("log.tick")) == [], "it was not started again"
    assert handled(machine, GiveUp("enough"))[-1] == Abort("enough")
    assert machine.waits_for() == ()


def test_what_is_delivered_meanwhile_is_written_behind_what_was_before() -> None:
    _, machine = behind()
    [late] = packets("late")
    out: list[Any] = []
    machine.log_output(Deliver(late), out)
    assert out == [Deliver(late)]
    assert machine.waiting == [late]
    log = log_of("a", "b", "c")
    for wrong in (
        LogPart(0, 0, log.end, BEGINNING, tuple(log.packets)),  # of another view
        LogPart(0, 1, log.end, log.ends[0], tuple(log.packets[1:])),  # behind a place that it has not
    ):
        unit = OutsideView(0, wrong)
        assert handled(machine, Receive(unit)) == [Discard(unit, "old")]
    written = machine.log.written
    found = handled(machine, Receive(OutsideView(0, LogPart(0, 1, log.end, BEGINNING, tuple(log.packets)))))
    assert [each.packet for each in found if isinstance(each, WritePacket)] == [*log.packets, late]
    assert (machine.behind, machine.waiting, machine.positions) == (None, [], {1: 3})
    assert not [each for each in found if isinstance(each, WriteNote | DropLog)]
    assert handled(machine, Synced(written + 3)) == []
    synced = handled(machine, Synced(written + 4))
    [note] = [decode_standing(each.note) for each in synced if isinstance(each, WriteNote)]
    assert note is not None
    assert (note.view.number, note.complete) == (1, True)
    unit = OutsideView(0, LogPart(0, 1, log.end, BEGINNING, tuple(log.packets)))
    assert handled(machine, Receive(unit)) == [Discard(unit, "old")]
    assert handled(machine, TimerFired("log.ask")) == [], "it has asked enough"


def test_one_that_has_strayed_drops_it_before_it_writes() -> None:
    _, machine = behind()
    own, theirs = log_of("a", "mine"), log_of("a", "b", "c")
    machine.log = own
    part = LogPart(0, 1, theirs.end, own.ends[0], tuple(theirs.packets[1:]))
    found = handled(machine, Receive(OutsideView(0, part)))
    assert found[0] == DropLog(1)
    assert [packet.payload for packet in machine.log.packets] == [b"a", b"b", b"c"]


def test_who_is_asked_answers_from_the_last_common_place_up_to_the_view_or_a_place_on_its_disk() -> None:
    group = running(0, 1, 2)
    machine, log = group.nodes[0], group.nodes[0].log
    machine.positions[4] = 2

    def answer(ask: AskLog) -> list[tuple[Any, int | None]]:
        return sent(handled(machine, Receive(OutsideView(ask.source, ask))), LogPart)

    places = (log.ends[0], BEGINNING)
    assert answer(AskLog(5, 4, None, places)) == [(LogPart(0, 4, log.ends[1], log.ends[0], (log.packets[1],)), 5)]
    assert answer(AskLog(5, 9, None, places)) == [], "it knows of no such view"
    assert answer(AskLog(5, 9, log.ends[2], ())) == [(LogPart(0, 9, log.ends[2], BEGINNING, tuple(log.packets)), 5)]
    assert answer(AskLog(5, 9, (3, b"another"), ())) == []
    log.durable = 2
    assert answer(AskLog(5, 9, log.ends[2], ())) == [], "it is not on the disk"


# --- beginning anew ---


def test_all_that_were_killed_begin_anew_with_the_longest_log() -> None:
    group, standing = Group(), Standing(FIRST)
    group.restart(3, ["a", "b"], standing)
    group.restart(4, ["a", "b", "c"], standing)
    group.restart(5, ["a"], standing)
    ticks = [each for each in group.of(3, SetTimer) if each.name == "log.tick"]
    assert [each.after for each in ticks] == [TICK]
    group.run(400)
    for me in (3, 4, 5):
        machine = group.nodes[me]
        assert group.logged(me) == [b"a", b"b", b"c"]
        assert (machine.restarting, machine.is_member, machine.joiner.ended) == (False, True, True)
        [installed] = group.of(me, ViewInstalled)
        assert (installed.number, installed.why, installed.heard) == (1, ANEW, 0b000111)
        assert [noted.view.number for noted in group.notes(me)][-1] == 1
        assert group.notes(me)[-2].plan == machine.plan
        assert machine.positions[1] == 3
        assert group.delivered[me] == []
    group.submit(3, b"d")
    group.run(50)
    assert [group.logged(me)[-1] for me in (3, 4, 5)] == [b"d"] * 3
    asked = {(source, to) for source, unit, to in group.sent if isinstance(getattr(unit, "unit", None), AskLog)}
    assert asked == {(3, 4), (5, 4)}, "only the one that has it"


def test_what_is_submitted_before_they_begin_is_sent_when_they_have_begun() -> None:
    group = Group()
    for me in (3, 4, 5):
        group.restart(me, ["a"], Standing(FIRST))
        group.submit(me, b"early %d" % me)
    group.run(400)
    assert [sorted(group.delivered[me]) for me in (3, 4, 5)] == [[b"early 3", b"early 4", b"early 5"]] * 3
    assert [len(group.nodes[me].early) for me in (3, 4, 5)] == [0, 0, 0]


def test_one_that_comes_when_the_others_have_begun_joins_them() -> None:
    group = Group()
    for me in (3, 4):
        group.restart(me, ["a", "b"], Standing(FIRST))
    group.run(400)
    assert [installed.heard for installed in group.of(3, ViewInstalled)] == [0b000011], "of the last view, two"
    group.restart(5, ["a", "mine"], Standing(FIRST))
    group.run(600)
    assert group.logged(5) == [b"a", b"b"]
    assert DropLog(1) in group.told[5]
    assert group.nodes[5].plan is None
    joined = group.of(5, ViewInstalled)[-1]
    assert (joined.number, joined.why != ANEW) == (2, True)


def restarted(me: int, *log: str) -> tuple[DurableNode, list[Any]]:
    machine = node(me)
    return machine, handled(machine, Recovered(packets(*log), encode_standing(Standing(FIRST))))


def test_one_that_was_started_again_says_what_its_disk_has_and_looks_for_a_group() -> None:
    machine, out = restarted(3, "a", "b")
    [(said, to)] = sent(out, Restarting)
    assert to is None
    assert (said.source, said.here.me, said.here.position, said.here.hash) == (3, person(3), *log_of("a", "b").end)
    assert said.here.standing() == Standing(FIRST)
    assert [name.name for name in out if isinstance(name, SetTimer)].count("log.tick") == 1
    assert any(isinstance(each, SetTimer) and each.name.startswith("join.") for each in out)
    assert machine.begun
    assert machine.restarting
    assert machine.waits_for()[0].startswith("E2, E3, which were in the last view")
    machine.restart.waits_for = ""
    assert machine.waits_for() == ("it looks for the others, to begin anew",)
    again = handled(machine, TimerFired("log.tick"))
    assert len(sent(again, Restarting)) == 1
    assert SetTimer("log.tick", TICK) in again


def test_ticks_are_as_slow_as_the_network() -> None:
    slow = node(3, settings=replace(SETTINGS, repeat=3 * SETTINGS.repeat))
    assert slow.tick == 3 * TICK
    assert node(3).tick == TICK


def test_a_member_that_runs_says_nothing_to_one_that_was_started_again() -> None:
    group = running(0, 1, 2)
    machine, _ = restarted(5)
    hears = Receive(OutsideView(5, Restarting(5, machine.restart.here())))
    assert handled(group.nodes[0], hears) == []


def begun() -> tuple[Group, Plan]:
    group = Group()
    for me in (3, 4):
        group.restart(me, ["a"], Standing(FIRST))
    group.run(400)
    plan = group.nodes[3].plan
    assert plan is not None
    return group, plan


def heard(machine: DurableNode, here: Here) -> list[tuple[Any, int | None]]:
    return sent(handled(machine, Receive(OutsideView(here.me.number, Restarting(here.me.number, here)))), Restarting)


def test_who_has_begun_says_so_to_one_that_agreed_to_the_plan_and_to_nobody_else() -> None:
    group, plan = begun()
    machine, late = group.nodes[3], restarted(5, "a")[0]
    here = late.restart.here()
    [(answer, to)] = heard(machine, replace(here, plan=plan))
    assert to == 5
    assert (answer.source, answer.here.begins, answer.here.heard) == (3, True, (("E3", 5),))
    assert heard(machine, replace(here, plan=replace(plan, tag=b"another"))) == []
    assert heard(machine, here) == []
    assert heard(machine, replace(here, plan=plan, begins=True)) == []
    assert heard(machine, replace(here, plan=plan, is_member=True)) == []


def test_a_member_whose_view_cannot_go_on_says_what_its_log_has() -> None:
    group = running(0, 1, 2)
    machine = group.nodes[0]
    here = restarted(5, "a")[0].restart.here()
    machine.member.blocking.blocked = True
    [(answer, to)] = heard(machine, here)
    log, noted = machine.log, group.notes(0)[-1]
    assert to == 5
    assert answer == Restarting(
        0, Here("", person(0), encode_standing(noted), *log.end, is_member=True, heard=(("E3", 5),))
    )
    log.durable = 2
    assert heard(machine, here) == [], "what it has is not on its disk"
    log.durable = 3
    standing, machine.standing = machine.standing, None
    assert heard(machine, here) == []
    machine.standing, machine.is_member = standing, False
    assert heard(machine, here) == []


def test_a_plan_is_followed_step_by_step_each_on_the_disk_before_the_next() -> None:
    machine, _ = restarted(5, "a")
    theirs = log_of("a", "b")
    plan = Plan(1, b"8 bytes!", *theirs.end, (person(3), person(5)), person(3))
    machine.restart.plan, machine.restart.planned_at = plan, machine.restart.now
    ask = AskLog(5, 1, theirs.end, (machine.log.end, BEGINNING))
    assert sent(handled(machine, TimerFired("log.tick")), AskLog) == [(ask, 3)], "from the one that has it"
    wrong = OutsideView(3, LogPart(3, 1, (2, b"another"), machine.log.end, tuple(theirs.packets[1:])))
    assert handled(machine, Receive(wrong)) == [Discard(wrong, "old")]
    part = Receive(OutsideView(3, LogPart(3, 1, theirs.end, machine.log.end, (theirs.packets[1],))))
    assert handled(machine, part) == [WritePacket(theirs.packets[1])]
    assert sent(handled(machine, TimerFired("log.tick")), AskLog) == []
    [noted] = [each for each in handled(machine, Synced(1)) if isinstance(each, WriteNote)]
    assert decode_standing(noted.note) == replace(Standing(FIRST), plan=plan)
    assert not machine.restart.here().ready
    said = sent(handled(machine, Synced(2)), Restarting)
    assert machine.restart.here().ready
    assert [each.here.ready for each, _ in said] == [True]
    late = OutsideView(3, LogPart(3, 1, theirs.end, theirs.end, ()))
    assert handled(machine, Receive(late)) == [Discard(late, "old")], "it has it"


def test_who_joins_while_it_looks_for_others_begins_nothing_anew() -> None:
    """The disk is done with what it had agreed to when it is a member of a group that went on."""
    group, machine = behind()
    machine.restart.plan = Plan(1, b"8 bytes!", 0, b"", (person(2),), person(2))
    before = machine.log.written
    out: list[Any] = []
    machine.perform("noted", b"8 bytes!", out)
    machine.perform("fetched", None, out)
    assert out == []
    assert machine.log.written == before
    assert handled(machine, TimerFired("log.tick")) == []
    assert group.nodes[2].plan is None


@pytest.mark.parametrize("view", [FIRST, GroupView(3, FIRST.members, (0, 1, 2), bytes(8), 3)])
def test_the_view_that_begins_has_the_next_number(view: GroupView) -> None:
    group = Group()
    for me in (3, 4, 5):
        group.restart(me, ["a"], Standing(view))
    group.run(400)
    assert [group.nodes[me].member.current.view.number for me in (3, 4, 5)] == [view.number + 1] * 3


# --- what is said when ---


def test_others_enter_a_view_by_what_is_said_when_it_is_noted() -> None:
    """The one that decides may be the only one that knows: it is told of after it is on its disk."""
    group = running(0, 1)
    group.add(node(2, (0, 1)))
    group.sync_time = 3 * MILLISECOND
    group.run(200)
    told = group.told[0]
    [noted] = [at for at, each in enumerate(told) if isinstance(each, WriteNote) and view_of(each) == 1]
    said = [at for at, each in enumerate(told) if isinstance(each, Send) and isinstance(inner(each), Welcome | Install)]
    assert said
    assert min(said) > noted


def view_of(note: WriteNote) -> int:
    found = decode_standing(note.note)
    return -1 if found is None else found.view.number


def inner(send: Send) -> Any:
    return getattr(send.unit, "unit", None)


def test_only_what_leads_into_the_own_view_waits_for_its_note() -> None:
    machine = running(0, 1, 2).nodes[0]
    value: Any = None

    def send(unit: Any) -> Send:
        return Send(ViewUnit(0, FIRST.tag, 0, unit))

    machine.member.current.view = replace(machine.member.current.view, number=2)
    assert machine.tells_of_own_view(send(Install(1, 0, value)))
    assert not machine.tells_of_own_view(send(Install(2, 0, value)))
    welcome = Welcome(1, 0, value, FIRST, (), None)
    assert machine.tells_of_own_view(Send(OutsideView(0, welcome)))
    assert not machine.tells_of_own_view(Deliver(packets("x")[0]))


def promise(view: int) -> Send:
    return Send(ViewUnit(0, FIRST.tag, 0, Accepted(view, 0, (1, 0))))


def test_a_promise_of_another_view_is_not_noted_in_this_one() -> None:
    machine = running(0, 1, 2).nodes[0]
    machine.member.acceptor.promised = (3, 1)
    for view in (1, 7):
        out: list[Any] = []
        machine.promise(promise(view), view, out)
        assert out == [promise(view)], "nothing waits for the disk"
    out = []
    machine.promise(promise(0), 0, out)
    assert [type(each) for each in out] == [WriteNote]
    assert handled(machine, Synced(machine.log.written)) == [promise(0)]
    out = []
    machine.promise(promise(0), 0, out)
    assert out == [promise(0)], "it is noted already"
    machine.standing = None
    out = []
    machine.promise(promise(0), 0, out)
    assert out == [promise(0)]


def test_one_that_lacks_nothing_counts_at_once_when_it_knows() -> None:
    _, machine = behind()
    handled(machine, Synced(machine.log.written))
    out = handled(machine, Receive(OutsideView(0, LogPart(0, 1, BEGINNING, BEGINNING, ()))))
    notes = [decode_standing(each.note) for each in out if isinstance(each, WriteNote)]
    assert [note.complete for note in notes if note is not None] == [True]
    assert [inner(each).has_state for each in out if isinstance(each, Send) and isinstance(inner(each), Entered)]
    machine.standing, out = None, []
    machine.note_loaded(out)
    assert out == []


def test_what_comes_when_its_membership_has_ended_counts_no_more() -> None:
    _, machine = behind()
    machine.member.retirement.phase = Phase.RETIRED
    out: list[Any] = []
    machine.note_loaded(out)
    assert out == []
    assert machine.waits_for() == ()
    assert running(0, 1, 2).nodes[0].waits_for() == ()


def test_who_hears_a_plan_asks_for_its_log_at_once_or_waits_for_its_own_disk() -> None:
    first, _ = restarted(3, "a", "b")
    machine, _ = restarted(5, "a")
    theirs = log_of("a", "b")
    stamp = stamp_of(Standing(FIRST))
    plan = Plan(1, b"8 bytes!", *theirs.end, (person(3), person(5)), person(3), (stamp, stamp))
    here = replace(first.restart.here(), plan=plan, heard=(("E3", 5),))
    hears = Receive(OutsideView(3, Restarting(3, here)))
    ask = AskLog(5, 1, theirs.end, (machine.log.end, BEGINNING))
    assert sent(handled(machine, hears), AskLog) == [(ask, 3)]
    late, _ = restarted(5, "a")
    late.write_part(LogPart(3, 1, theirs.end, late.log.end, (theirs.packets[1],)), [])
    out = handled(late, hears)
    assert sent(out, AskLog) == []
    assert not [each for each in out if isinstance(each, WriteNote)]
    assert [type(each) for each in handled(late, Synced(1)) if isinstance(each, WriteNote)] == [WriteNote]


def test_who_has_begun_anew_knows_where_to_ask_for_a_group() -> None:
    group, _ = begun()
    assert group.nodes[3].member.blocking.contacts == ("0", "1", "2", "4", "5")
