"""What a node tells its host: levels, packets that are sent again or not any more, timers, and the end of its part."""

from collections.abc import Collection
from random import Random
from typing import Any

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Depart,
    Departed,
    Discard,
    Drained,
    Enter,
    ExcludedFrom,
    Input,
    LogSizes,
    Machine,
    MembershipInput,
    NotSent,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Receive,
    Reconnected,
    Renumbered,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    Suspect,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of
from ordercast.model.units import Unit
from ordercast.protocols.membership.by_node import SETTINGS, by_node
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import InstallView, SendControl, Unblocked
from ordercast.protocols.membership.silence import BEATS, SilenceDetector
from ordercast.protocols.membership.units import Answer, Find, Install, Probe
from ordercast.protocols.membership.view import NextView, Reason
from ordercast.protocols.membership.wrapped_units import OutsideView, ViewData, ViewUnit
from tests.protocols.contract import test_contract as contract
from tests.protocols.contract.group import Group
from tests.protocols.membership.test_by_node import ORDERS, config_of

CRASHED = 2


class Told(Group):
    """A group that keeps what each node told, and in which units to and from a node that crashed are lost.

    Levels that are reached before a view is told, in the same step, are reached because of it; others are not.
    """

    def __init__(self, protocol: str, nodes: int = 3, founders: int | None = None) -> None:
        super().__init__(by_node(protocol, founders), config_of(nodes))
        self.told: list[list[Output]] = [[] for _ in range(nodes)]
        self.crashed: set[int] = set()
        self.by_view = 0
        self.watch = self._watched

    def _watched(self, node: int, machine: Machine, event: Input) -> list[Output]:
        if node in self.crashed:
            return []
        did = machine.handle(event)
        self.told[node] += did
        entered = [at for at, output in enumerate(did) if isinstance(output, ViewInstalled | Departed)]
        for at, output in enumerate(did):
            if isinstance(output, Reached):
                assert isinstance(output, ReachedByView) is (at < max(entered, default=0))
                self.by_view += isinstance(output, ReachedByView)
        return did

    def of(self, node: int, *kinds: type[Any]) -> list[Any]:
        """What a node told, of some kinds."""
        return [output for output in self.told[node] if isinstance(output, kinds)]

    def crash(self, node: int) -> None:
        self.crashed.add(node)
        self.timers[node].clear()

    def lose_all(self, receivers: Collection[int] = range(9)) -> None:
        """What is under way to these is lost."""
        self.waiting = {queue: units for queue, units in self.waiting.items() if queue[1] not in receivers}

    def without(self, node: int) -> None:
        """A node has crashed, and the others agree on a view without it."""
        self.crash(node)
        for other in range(self.config.nodes):
            if other != node:
                self.give(other, Suspect(mask_of([node])))
        assert self.settle()
        assert self.member(0).current.view.number == 1
        assert len(self.member(0).current.view.members) == self.config.nodes - 1

    def member(self, node: int) -> Any:
        machine: Any = self.machines[node]
        return machine.member


# --- packets ---


@pytest.mark.parametrize("protocol", ORDERS)
def test_levels_that_the_end_of_a_view_brings_say_so_and_no_others_do(protocol: str) -> None:
    group = Told(protocol)
    group.submit(0, "x")
    assert group.settle()
    assert {type(output) for output in group.of(0, Reached)} == {Reached}
    group.submit(0, "y")
    for queue in sorted(group.waiting):
        group.receive(queue)
    group.lose_all()
    for told in group.told:
        told.clear()
    group.give(0, Suspect(mask_of([CRASHED])))
    assert group.settle()
    assert group.by_view, "the cut of the view brings some of them"


def test_what_is_sent_again_in_the_next_view_says_so() -> None:
    group = Told("spo")
    group.submit(0, "x")
    group.lose_all()
    group.give(0, Suspect(mask_of([CRASHED])))
    assert group.settle()
    [again] = group.of(0, Renumbered)
    assert (again.packet.source, again.packet.first, again.packet.payload, again.view) == (0, 0, b"x", 1)
    assert group.delivered == [[(0, 0)]] * 3


def test_what_was_for_one_that_is_gone_is_told_as_not_sent() -> None:
    group = Told("spo")
    group.submit(0, "x", mask_of([CRASHED]))
    group.lose_all()
    group.without(CRASHED)
    assert group.of(0, NotSent) == [NotSent(1, first=0)]


def test_levels_of_packets_of_one_that_is_gone_are_forgotten() -> None:
    """0 alone has it, so that it is not in the cut, and reaches no level any more."""
    group = Told("spo")
    group.submit(CRASHED, "x")
    group.lose_all({1})
    group.receive((CRASHED, 0))
    machine: Any = group.machines[0]
    assert machine.outputs.packets.levels
    group.without(CRASHED)
    assert machine.outputs.packets.levels == {}
    assert group.delivered[:2] == [[], []]


# --- units ---


def _data(group: Group, sender: int, receiver: int) -> Unit:
    return next(unit for unit in group.waiting[sender, receiver] if isinstance(unit, ViewData))


def test_a_unit_that_the_order_discards_is_told_with_its_view() -> None:
    group = Told("spo")
    group.submit(0, "x")
    unit: Any = _data(group, 0, 1)
    assert group.settle()
    outputs = group.give(1, Receive(unit))
    [discarded] = [output for output in outputs if isinstance(output, Discard)]
    assert isinstance(discarded.unit, ViewUnit)
    assert (discarded.unit.unit, discarded.unit.view_tag) == (unit.unit, unit.view_tag)


def test_a_unit_of_the_view_before_is_answered_and_one_of_no_known_view_discarded() -> None:
    group = Told("spo")
    group.submit(0, "x")
    old: Any = _data(group, 0, 1)
    group.give(0, Suspect(mask_of([CRASHED])))
    assert group.settle()
    assert group.member(1).current.previous.tag == old.view_tag
    answers = [output.unit for output in group.give(1, Receive(old)) if isinstance(output, Send)]
    assert [type(answer.unit) for answer in answers if isinstance(answer, ViewUnit)] == [Install]
    strange = ViewUnit(0, b"strange!", 0, Probe(0, 0))
    assert group.give(1, Receive(strange)) == [Discard(strange, "old")]


# --- stopping, leaving, joining ---


def test_a_node_that_stopped_for_a_view_resumes_with_it() -> None:
    group = Told("spo")
    group.submit(0, "x")
    group.give(0, Suspect(mask_of([CRASHED])))
    assert group.settle()
    for node in range(3):
        kinds = [type(output) for output in group.of(node, Stopped, Resumed, ViewInstalled)]
        assert kinds[-3:] == [Stopped, Resumed, ViewInstalled]
        assert kinds.count(Resumed) == 1


def test_one_that_leaves_says_when_it_has() -> None:
    group = Told("spo")
    group.submit(1, "x")
    event: Any = Depart()
    group.give(1, event)
    assert group.settle()
    assert group.of(1, Departed) == [Departed(drained=True)]
    assert group.timers[1] == set()


def test_one_that_is_excluded_is_told_the_view_without_it() -> None:
    group = Told("spo")
    group.submit(CRASHED, "x")
    group.lose_all()
    waiting, group.crashed = group.timers[CRASHED].copy(), {CRASHED}
    for node in (0, 1):
        group.give(node, Suspect(mask_of([CRASHED])))
    group.settle()
    value = group.member(0).current.value
    group.crashed.clear()
    outputs = group.give(CRASHED, Receive(ViewUnit(0, group.member(0).current.previous.tag, 0, Install(0, 0, value))))
    assert [(view.number, view.members) for view in outputs if isinstance(view, ViewInstalled)] == [(1, 0b011)]
    assert {output.name for output in outputs if isinstance(output, CancelTimer)} >= {
        name for name in waiting if not name.startswith("view.")
    }
    assert not [output for output in outputs if isinstance(output, ExcludedFrom | SendControl)]


def joiner(begins: MembershipInput | None = None) -> Any:
    machine: Any = by_node("spo", 2)(CRASHED, GroupConfig(nodes=3, views=True))
    if begins is not None:
        machine.handle(begins)
    return machine


def test_one_that_leaves_before_it_has_joined_gives_up() -> None:
    machine = joiner(Enter())
    assert machine.waits_for() == ("it has not joined the group",)
    assert machine.handle(Depart()) == [Abort("it leaves before it has joined the group")]
    assert machine.waits_for() == ()


def test_one_that_is_to_join_waits_for_nothing_before_it_begins() -> None:
    assert joiner().waits_for() == ()


def test_one_that_is_refused_gives_up() -> None:
    machine = joiner(Enter())
    answer = Answer(CRASHED, (CRASHED << 32) + 1, refused=True, why="another order", reach=0)
    outputs = machine.handle(Receive(OutsideView(0, answer)))
    assert outputs[-1] == Abort("another order")
    assert machine.waits_for() == ()


# --- timers ---


@pytest.mark.parametrize("protocol", ORDERS)
def test_a_node_knows_which_timers_of_its_epoch_run(protocol: str) -> None:
    group = Told(protocol)
    chance = Random(f"timers/{protocol}")
    contract.submit_all(group, protocol, chance)
    machines: Any = group.machines
    fired = 0
    for _ in group.disturbed(chance, 300):
        for node, machine in enumerate(machines):
            running = {name for name in group.timers[node] if not name.startswith("view.")}
            assert machine.outputs.timers == running
            fired += bool(running)
    assert fired


def test_only_a_detector_with_many_beats_runs_while_somebody_asks_to_join() -> None:
    few, many = (SilenceDetector(SETTINGS.failure_timeout, beats) for beats in (BEATS, BEATS + 1))
    few.asked()
    many.asked()
    assert (few.asking, many.asking) == (0, 2 * (BEATS + 1))
    for beats, runs in ((BEATS, False), (BEATS + 1, True)):
        machine: Any = by_node("spo", beats=beats)(0, GroupConfig(nodes=2, views=True))
        outputs = machine.handle(Receive(OutsideView(1, Find("", "E9", 9, 1))))
        assert any(isinstance(output, SetTimer) and output.name == "view.beat" for output in outputs) is runs


# --- places, destinations, sizes: of the view told last ---


def test_a_node_sends_from_its_place_in_the_view_that_was_told_last() -> None:
    group = Told("spo")
    group.crash(0)
    for node in (1, 2):
        group.give(node, Suspect(mask_of([0])))
    assert group.settle()
    group.submit(2, "x")
    unit: Any = _data(group, 2, 1)
    assert (unit.source, unit.place) == (2, 1)


@pytest.mark.parametrize(("protocol", "to"), [("to", 0b111), ("spo", 0b011)])
def test_what_goes_to_all_keeps_its_destinations_and_what_goes_to_some_names_members(protocol: str, to: int) -> None:
    group = Told(protocol)
    group.without(CRASHED)
    group.submit(0, "y", 0b111)
    assert [output.packet.destinations for output in group.of(0, Numbered)] == [to]


def test_timers_of_an_epoch_are_cancelled_and_forgotten_with_it() -> None:
    """One of the same name that runs in the next epoch is another one."""
    group = Told("spo")
    machine: Any = group.machines[0]
    machine.outputs.timers = {"gap", "ack"}
    out: list[Output] = []
    machine.outputs.tell(
        InstallView(machine.member.current.view, 0, (), (), "", None, gives_state=False),
        machine.member,
        out,
        by_view=False,
    )
    assert [output.name for output in out if isinstance(output, CancelTimer)] == ["ack", "gap"]
    assert machine.outputs.timers == set()


def test_a_node_that_reaches_enough_others_again_says_so() -> None:
    machine: Any = by_node("spo")(0, config_of(3))
    out: list[Output] = []
    machine.outputs.tell(Unblocked(), machine.member, out, by_view=False)
    assert out == [Reconnected()]


def test_what_a_node_keeps_is_that_of_its_epoch_and_nothing_when_its_part_is_over() -> None:
    group = Told("spo")
    group.submit(0, "x")
    machine: Any = group.machines[0]
    assert machine.log_sizes().sent == 1
    event: Any = Depart()
    group.give(0, event)
    assert group.settle()
    assert machine.log_sizes() == LogSizes(0, 0, 0, 0, 0)
    waits = joiner(Enter())
    waits.handle(Submit(0b011, (1,), b"x"))
    assert waits.log_sizes().waiting == 1


def test_a_node_that_has_been_excluded_keeps_nothing_whatever_its_last_epoch_had() -> None:
    group = Told("spo")
    group.submit(CRASHED, "x")
    group.lose_all()
    machine: Any = group.machines[CRASHED]
    assert machine.log_sizes().sent == 1
    value = NextView(1, 0b011, (), 0b011, ((CRASHED, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "")
    group.give(CRASHED, Receive(ViewUnit(0, machine.member.current.view.tag, 0, Install(0, 0, value))))
    assert machine.member.machine.log_sizes().sent == 1
    assert machine.log_sizes() == LogSizes(0, 0, 0, 0, 0)


def test_the_order_hears_that_nothing_waits_to_be_received() -> None:
    """It answers what it has taken, as it does without views."""
    group = Told("spo")
    group.submit(0, "x")
    group.receive((0, 1))
    sent = [output.unit for output in group.give(1, Drained()) if isinstance(output, Send)]
    assert [type(unit) for unit in sent] == [ViewUnit]


def test_what_is_for_nobody_who_is_a_member_is_not_sent() -> None:
    group = Told("spo")
    group.without(CRASHED)
    assert group.submit(0, "xyz", mask_of([CRASHED])) == [NotSent(1)]
