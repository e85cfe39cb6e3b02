"""SPO in a group with views: what is settled, who says so and who waits for it; and what happens without."""

from collections.abc import Iterable

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Level, Output, Reached, Receive, Send, SetTimer, Submit, TimerFired
from ordercast.model.nodes import mask_of
from ordercast.model.units import Unit
from ordercast.protocols.spo.flush import SpoFlush
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.units import Data, Ready
from tests.protocols.membership.missing_rules import v7_nothing_is_settled


class Members:
    """Machines that are given what the test says; everything else that is sent is lost."""

    def __init__(self, nodes: int, window: int = 32) -> None:
        config = GroupConfig(nodes=nodes, views=True, window=window)
        self.machines = [Spo(place, config) for place in range(nodes)]
        self.delivered: list[list[bytes]] = [[] for _ in range(nodes)]
        self.levels: list[dict[bytes, Level]] = [{} for _ in range(nodes)]

    def note(self, place: int, outputs: Iterable[Output]) -> list[Unit]:
        sent = []
        for output in outputs:
            if isinstance(output, Deliver):
                self.delivered[place].append(output.packet.payload)
            elif isinstance(output, Reached):
                self.levels[place][output.packet.payload] = output.level
            elif isinstance(output, Send):
                sent.append(output.unit)
        return sent

    def send(self, source: int, payload: bytes, *to: int) -> list[Unit]:
        return self.note(source, self.machines[source].handle(Submit(mask_of(to), (len(payload),), payload)))

    def receive(self, units: list[Unit], *places: int) -> list[Unit]:
        """Returns what is sent in answer."""
        return [
            sent
            for place in places
            for unit in units
            for sent in self.note(place, self.machines[place].handle(Receive(unit)))
        ]

    def owes_status(self, place: int) -> bool:
        return self.machines[place].status_due

    def say(self, source: int, *places: int) -> None:
        """A member sends its status, which gets to these."""
        sent = self.note(source, self.machines[source].handle(TimerFired("status")))
        assert sent, f"{source} owes no status"
        self.receive(sent, *places)


def chain() -> Members:
    """4 sends p to 3 alone, where it is lost, then three packets, each to the next two; 0 and 1 know of the last."""
    group = Members(5)
    group.send(4, b"p", 3)
    group.receive(group.send(4, b"m00", 2, 3), 2)
    group.receive(group.send(4, b"m0", 1, 2), 1, 2)
    group.receive(group.send(4, b"m", 0, 1), 0, 1)
    group.say(2, 1)
    group.say(0, 1)
    group.say(1, 0)
    return group


def finish(group: Members, *places: int) -> None:
    flushes = {place: SpoFlush(group.machines[place]) for place in places}
    cut = SpoFlush.cut({place: flush.report() for place, flush in flushes.items()}, len(group.machines))
    for place, flush in flushes.items():
        group.note(place, flush.finish(cut, {}))


def test_v7_a_packet_waits_for_all_that_its_source_sent_before() -> None:
    group = chain()
    assert group.delivered[0] == []
    finish(group, 1, 2, 3)
    assert group.delivered == [[], [], [], [], []]


def test_v7_without_it_no_cut_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    v7_nothing_is_settled(monkeypatch)
    group = chain()
    assert group.delivered[0] == [b"m"]  # so m must be in the cut, for 1
    finish(group, 1, 2, 3)
    assert group.delivered[1] == [b"m0", b"m"]
    assert group.delivered[2] == [b"m00", b"m0"]
    assert group.delivered[3] == []  # which should have been given p, and m00 as 2 was


def test_a_quiet_source_says_what_is_settled_with_the_packet_itself() -> None:
    group = Members(2)
    group.receive(group.send(0, b"x", 0, 1), 1)
    group.say(1, 0)
    assert group.levels[0][b"x"] is Level.ACKNOWLEDGED
    (unit,) = group.send(0, b"y", 0, 1)
    assert isinstance(unit, Data)
    assert unit.status.settled_below == 1


def test_a_source_owes_a_status_only_when_somebody_waits_for_it() -> None:
    group = Members(3)
    first = group.send(0, b"x", 1)
    group.receive(group.send(0, b"y", 2), 2)  # says that x is not settled
    group.receive(first, 1)
    assert not group.owes_status(0)
    group.say(1, 0)
    assert group.owes_status(0)
    assert b"y" not in [name for name, level in group.levels[2].items() if level > Level.ACCEPTED]
    group.say(0, 2)
    assert group.levels[2][b"y"] is Level.ACKNOWLEDGED  # 2 is its only destination
    assert not group.owes_status(0)


def test_a_source_with_one_packet_under_way_owes_nothing() -> None:
    group = Members(2)
    group.receive(group.send(0, b"x", 1), 1)
    group.say(1, 0)
    assert group.machines[0].settlement.settled_below[0] == 1
    assert not group.owes_status(0)


def test_a_destination_of_all_need_not_wait_for_the_source() -> None:
    group = Members(2)
    group.receive([*group.send(0, b"x", 0, 1), *group.send(0, b"y", 0, 1)], 1)
    assert group.levels[1] == {b"x": Level.STABLE, b"y": Level.STABLE}  # of y too: it knows of x by itself
    assert group.machines[1].settlement.settled_below[0] == 2


def test_whoever_waits_for_what_is_settled_polls_the_source() -> None:
    group = Members(3)
    group.send(0, b"x", 1)
    group.receive(group.send(0, b"y", 2), 2)
    machine = group.machines[2]
    machine.handle(TimerFired("poll"))
    (poll,) = [output.unit for output in machine.handle(TimerFired("poll")) if isinstance(output, Send)]
    assert isinstance(poll, Ready)
    assert poll.wants == 0b001
    assert "wait until E1 has settled all before them" in " ".join(machine.waits_for())
    assert machine.log_sizes().accepted == 1


def test_an_own_packet_waits_for_what_was_sent_before_it_too() -> None:
    group = Members(3)
    lost = group.send(0, b"x", 1)
    group.receive(group.send(0, b"y", 0, 2), 2)
    group.say(2, 0)
    assert group.levels[0] == {b"y": Level.ACCEPTED}  # by all its destinations, but x is not settled
    group.receive(lost, 1)
    group.say(1, 0)
    assert group.levels[0][b"y"] is Level.PREACKNOWLEDGED


def test_a_packet_to_its_sender_alone_is_settled_as_soon_as_all_before_it_are() -> None:
    group = Members(2)
    group.send(0, b"x", 0)
    settlement = group.machines[0].settlement
    assert not settlement.unsettled  # nobody will ask for it, and no acknowledgment will come to forget it
    group.send(0, b"y", 1)
    group.send(0, b"z", 0)
    assert [packet.payload for packet in settlement.unsettled] == [b"y", b"z"]


def test_what_waits_for_its_source_is_not_told_as_preacknowledged() -> None:
    group = Members(4)
    group.send(0, b"x", 1)
    group.receive(group.send(0, b"y", 2), 2)  # waits until 0 has settled x
    group.receive(group.send(3, b"z", 1, 2), 2)  # waits until 1 has accepted it
    (ready,) = group.note(2, group.machines[2].handle(TimerFired("status")))
    assert isinstance(ready, Ready)
    assert ready.status.expects == (2, 0, 0, 1)
    assert ready.status.preacknowledged_below == (1, 0, 0, 0)


def test_the_window_counts_what_is_not_settled() -> None:
    group = Members(3, window=2)
    lost = group.send(0, b"x", 1)
    status = group.receive(group.send(0, b"y", 2), 2)
    assert group.send(0, b"z", 2) == []
    assert group.receive(status, 0) == []  # y is accepted, and still counts
    assert len(group.machines[0].sent) == 1
    assert [packet.payload for packet in group.machines[0].settlement.unsettled] == [b"x", b"y"]
    (sent,) = group.receive(group.receive(lost, 1), 0)
    assert isinstance(sent, Data)
    assert sent.packet.payload == b"z"
    assert [packet.payload for packet in group.machines[0].settlement.unsettled] == [b"z"]


def test_without_views_nothing_is_said() -> None:
    machine = Spo(0, GroupConfig(nodes=2))
    for _ in range(2):
        (unit,) = [each.unit for each in machine.handle(Submit(2, (1,), b"x")) if isinstance(each, Send)]
        assert isinstance(unit, Data)
        assert unit.status.settled_below == 0
    assert not machine.settlement.unsettled
    with pytest.raises(AssertionError, match="what is settled"):
        SpoFlush(machine)


def test_what_waits_for_the_source_is_part_of_the_state() -> None:
    group = chain()
    for place, machine in enumerate(group.machines):
        again = Spo(place, machine.config)
        again.restore(machine.snapshot())
        assert again == machine
        assert SpoFlush(again).report() == SpoFlush(machine).report()
    assert [len(held) for held in group.machines[1].settlement.held] == [0, 0, 0, 0, 2]
    assert not [output for output in group.machines[1].handle(TimerFired("none")) if not isinstance(output, SetTimer)]
