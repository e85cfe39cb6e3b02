"""Pending acknowledgments, against minima computed anew each time."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.nodes import everybody, mask_of, members
from ordercast.model.units import Packet
from ordercast.protocols.shared.pending_acknowledgments import PendingAcknowledgments

NODES = 4
LOGS = 5
HIGHEST = 12


def packet(source: int, destinations: int, seq: int) -> Packet:
    return Packet(source, destinations, seq, (), 0, (1,), b"x")


class PlainLogs:
    """The same, by the papers' condition: a head leaves if it lies below the minimum of its destinations' numbers."""

    def __init__(self, required: int) -> None:
        self.required = required
        self.logs: list[list[Packet]] = [[] for _ in range(LOGS)]
        self.below = [[0] * NODES for _ in range(NODES)]

    def wanted(self, waiting: Packet) -> tuple[int, ...]:
        return members(self.required or waiting.destinations)

    def blockers(self, log: int) -> int:
        if not self.logs[log]:
            return 0
        head = self.logs[log][0]
        return mask_of(node for node in self.wanted(head) if not head.seq < self.below[node][head.source])

    def take(self) -> list[Packet]:
        taken = []
        for log in self.logs:
            while log and log[0].seq < min(self.below[node][log[0].source] for node in self.wanted(log[0])):
                taken.append(log.pop(0))
        return taken


class Kept:
    """Pending acknowledgments, called as the protocols call them."""

    def __init__(self, required: int) -> None:
        self.required = required
        self.pending = PendingAcknowledgments(LOGS, [(0,) * NODES] * NODES, required)

    def append(self, log: int, made: Packet) -> list[Packet]:
        self.pending.logs[log].append(made)
        return self.pending.take_acknowledged(log) if len(self.pending.logs[log]) == 1 else []

    def acknowledge(self, node: int, below: Sequence[int]) -> list[Packet]:
        self.pending.acknowledged_below[node] = tuple(below)
        unblocked = self.pending.unblocked_by(node)
        assert unblocked == sorted(set(unblocked))
        taken = []
        for log in unblocked:
            head = self.pending.logs[log][0]
            assert head.seq < below[head.source], "only what a node has acknowledged is unblocked by it"
            taken += self.pending.take_acknowledged(log)
        return taken

    def restore(self) -> None:
        """Goes on in another object that takes the state over."""
        other = PendingAcknowledgments(LOGS, [(HIGHEST,) * NODES] * NODES, self.required)
        other.restore(self.pending.snapshot())
        assert other == self.pending
        self.pending = other


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.integers(0, LOGS - 1),
            st.integers(0, NODES - 1),
            st.integers(1, everybody(NODES)),
            st.integers(0, HIGHEST),
        ),
        st.tuples(
            st.just("acknowledge"),
            st.integers(0, NODES - 1),
            st.lists(st.integers(0, 4), min_size=NODES, max_size=NODES),
        ),
        st.tuples(st.just("restore")),
    ),
    max_size=60,
)


@given(required=st.sampled_from([0, 0b1111, 0b0110]), steps=steps)
def test_what_is_taken_is_what_lies_below_the_minima(required: int, steps: list[tuple[object, ...]]) -> None:
    kept, plain = Kept(required), PlainLogs(required)
    for step in steps:
        match step:
            case ("append", int(log), int(source), int(destinations), int(seq)):
                made = packet(source, destinations, seq)
                plain.logs[log].append(made)
                assert kept.append(log, made) == plain.take()
            case ("acknowledge", int(node), list(more)):
                below = [before + extra for before, extra in zip(plain.below[node], more, strict=True)]
                plain.below[node] = below
                assert kept.acknowledge(node, below) == plain.take()
            case _:
                kept.restore()
        assert [list(log) for log in kept.pending.logs] == plain.logs
        assert list(map(kept.pending.blockers, range(LOGS))) == list(map(plain.blockers, range(LOGS)))


@given(required=st.sampled_from([0, 0b1111, 0b0110]), steps=steps)
def test_a_log_that_is_not_empty_waits_for_one_node_and_that_node_blocks_it(
    required: int, steps: list[tuple[object, ...]]
) -> None:
    kept = Kept(required)
    for step in steps:
        match step:
            case ("append", int(log), int(source), int(destinations), int(seq)):
                kept.append(log, packet(source, destinations, seq))
            case ("acknowledge", int(node), list(more)):
                before = kept.pending.acknowledged_below[node]
                kept.acknowledge(node, [below + extra for below, extra in zip(before, more, strict=True)])
            case _:
                kept.restore()
        waiting = [(log, node) for node in range(NODES) for log in kept.pending.waiting_for[node]]
        assert sorted(log for log, _ in waiting) == [log for log, packets in enumerate(kept.pending.logs) if packets]
        assert all(kept.pending.blockers(log) >> node & 1 for log, node in waiting)


class Counted(list[int]):
    """Acknowledgments of a node that count how often they are looked at."""

    looks = 0

    def __getitem__(self, place: int) -> int:  # type: ignore[override]  # only ever asked for one
        self.looks += 1
        return super().__getitem__(place)


def counted(logs: int, below: list[Counted]) -> PendingAcknowledgments:
    """Logs over acknowledgments that a test changes in place."""
    given_in_place: Any = below
    return PendingAcknowledgments(logs, given_in_place)


def looks_at(below: list[Counted]) -> int:
    return sum(each.looks for each in below)


def test_one_complete_check_serves_all_packets_to_the_same_destinations() -> None:
    below = [Counted([100, 0, 0]) for _ in range(3)]
    pending = counted(3, below)
    for seq in range(100):
        pending.logs[0].append(packet(0, 0b111, seq))
    assert len(pending.take_acknowledged(0)) == 100
    assert looks_at(below) == 3


def test_one_complete_check_serves_as_many_even_if_it_stopped_before() -> None:
    below = [Counted([2, 0, 0]), Counted([0, 0, 0]), Counted([100, 0, 0])]
    pending = counted(3, below)
    for seq in range(100):
        pending.logs[0].append(packet(0, 0b111, seq))
    assert pending.take_acknowledged(0) == []
    below[0][0] = below[1][0] = 100
    assert pending.unblocked_by(1) == [0]
    assert len(pending.take_acknowledged(0)) == 100
    assert looks_at(below) <= 9, "the third packet is looked at anew, and then no other"


def test_what_is_acknowledged_of_one_source_says_nothing_of_another() -> None:
    pending = PendingAcknowledgments(1, [(5, 0), (5, 5)])
    pending.logs[0] += [packet(0, 0b11, 1), packet(1, 0b11, 2)]
    assert pending.take_acknowledged(0) == [packet(0, 0b11, 1)]
    assert pending.blockers(0) == 0b01


def test_what_one_set_has_acknowledged_says_nothing_of_another() -> None:
    pending = PendingAcknowledgments(1, [(5,), (5,), (2,)])
    pending.logs[0] += [packet(0, 0b011, 1), packet(0, 0b101, 2)]
    assert pending.take_acknowledged(0) == [packet(0, 0b011, 1)]
    assert pending.blockers(0) == 0b100


def test_a_check_goes_on_where_it_stopped() -> None:
    """An acknowledgment of one destination never makes the ones before it be looked at again."""
    nodes = 16
    below = [Counted([0] * nodes) for _ in range(nodes)]
    pending = counted(nodes, below)
    pending.logs[0].append(packet(0, everybody(nodes), 0))
    assert pending.take_acknowledged(0) == []
    for node in range(nodes):
        below[node][0] = 1
        for log in pending.unblocked_by(node):
            pending.take_acknowledged(log)
    assert not pending.logs[0]
    assert looks_at(below) <= 3 * nodes, "a look when it blocks, one to unblock, one to pass"


def test_acknowledgments_that_nothing_waits_for_cost_nothing() -> None:
    below = [Counted([0, 0, 0]) for _ in range(3)]
    pending = counted(3, below)
    pending.logs[0].append(packet(0, 0b111, 0))
    pending.take_acknowledged(0)
    before = looks_at(below)
    below[2][0] = 1
    assert pending.unblocked_by(2) == []
    assert looks_at(below) == before


def test_clearing_drops_packets_waits_and_earlier_acknowledgments() -> None:
    pending = PendingAcknowledgments(2, [(9, 0), (0, 0)])
    pending.logs[1].append(packet(0, 0b11, 4))
    assert pending.take_acknowledged(1) == []
    pending.clear([(5, 5), (5, 5)])
    assert pending == PendingAcknowledgments(2, [(5, 5), (5, 5)])
    assert pending.unblocked_by(1) == []


def test_a_state_between_transitions_has_no_acknowledged_head() -> None:
    pending = PendingAcknowledgments(1, [(1,), (0,)])
    pending.logs[0].append(packet(0, 0b01, 0))
    with pytest.raises(AssertionError, match="between transitions"):
        PendingAcknowledgments(1, [(0,), (0,)]).restore(pending.snapshot())
