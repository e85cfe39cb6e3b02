"""Watched logs, against minima computed anew each time."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.nodes import everybody, mask_of, members
from ordercast.model.units import Packet
from ordercast.protocols.shared.watched_logs import WatchedLogs

NODES = 4
ROWS = 5
HIGHEST = 12


def packet(source: int, destinations: int, seq: int) -> Packet:
    return Packet(source, destinations, seq, (), 0, (1,), b"x")


class PlainLogs:
    """The same, by the papers' condition: a top rises if it lies below the lowest of what its destinations said."""

    def __init__(self, by_all: int) -> None:
        self.by_all = by_all
        self.rows: list[list[Packet]] = [[] for _ in range(ROWS)]
        self.said = [[0] * NODES for _ in range(NODES)]

    def wanted(self, waiting: Packet) -> tuple[int, ...]:
        return members(self.by_all or waiting.destinations)

    def blockers(self, row: int) -> int:
        if not self.rows[row]:
            return 0
        top = self.rows[row][0]
        return mask_of(node for node in self.wanted(top) if not top.seq < self.said[node][top.source])

    def rise(self) -> list[Packet]:
        risen = []
        for log in self.rows:
            while log and log[0].seq < min(self.said[node][log[0].source] for node in self.wanted(log[0])):
                risen.append(log.pop(0))
        return risen


class Kept:
    """Watched logs, called as the protocols call them."""

    def __init__(self, by_all: int) -> None:
        self.columns = [[0] * NODES for _ in range(NODES)]
        self.logs = WatchedLogs(ROWS, list(self.columns), by_all)

    def append(self, row: int, made: Packet) -> list[Packet]:
        self.logs.rows[row].append(made)
        return self.logs.rise(row) if len(self.logs.rows[row]) == 1 else []

    def say(self, node: int, column: Sequence[int]) -> list[Packet]:
        self.columns[node][:] = column
        woken = self.logs.wake(node)
        assert woken == sorted(set(woken))
        risen = []
        for row in woken:
            top = self.logs.rows[row][0]
            assert top.seq < self.columns[node][top.source], "only what a node has passed is woken by it"
            risen += self.logs.rise(row)
        return risen


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.integers(0, ROWS - 1),
            st.integers(0, NODES - 1),
            st.integers(1, everybody(NODES)),
            st.integers(0, HIGHEST),
        ),
        st.tuples(
            st.just("say"), st.integers(0, NODES - 1), st.lists(st.integers(0, 4), min_size=NODES, max_size=NODES)
        ),
        st.tuples(st.just("refill")),
    ),
    max_size=60,
)


@given(by_all=st.sampled_from([0, 0b1111, 0b0110]), steps=steps)
def test_what_rises_is_what_lies_below_the_minima(by_all: int, steps: list[tuple[object, ...]]) -> None:
    kept, plain = Kept(by_all), PlainLogs(by_all)
    for step in steps:
        match step:
            case ("append", int(row), int(source), int(destinations), int(seq)):
                made = packet(source, destinations, seq)
                plain.rows[row].append(made)
                assert kept.append(row, made) == plain.rise()
            case ("say", int(node), list(more)):
                column = [said + extra for said, extra in zip(plain.said[node], more, strict=True)]
                plain.said[node] = column
                assert kept.say(node, column) == plain.rise()
            case _:
                kept.logs.refill([list(log) for log in kept.logs.rows], list(kept.columns))
        assert [list(log) for log in kept.logs.rows] == plain.rows
        assert list(map(kept.logs.blockers, range(ROWS))) == list(map(plain.blockers, range(ROWS)))


@given(by_all=st.sampled_from([0, 0b1111, 0b0110]), steps=steps)
def test_a_row_that_waits_is_watched_once_and_by_one_that_blocks_it(
    by_all: int, steps: list[tuple[object, ...]]
) -> None:
    kept = Kept(by_all)
    for step in steps:
        match step:
            case ("append", int(row), int(source), int(destinations), int(seq)):
                kept.append(row, packet(source, destinations, seq))
            case ("say", int(node), list(more)):
                kept.say(node, [said + extra for said, extra in zip(kept.columns[node], more, strict=True)])
            case _:
                kept.logs.refill([list(log) for log in kept.logs.rows], list(kept.columns))
        watched = [(row, node) for node in range(NODES) for row in kept.logs.watchers[node]]
        assert sorted(row for row, _ in watched) == [row for row, log in enumerate(kept.logs.rows) if log]
        assert all(kept.logs.blockers(row) >> node & 1 for row, node in watched)


class Counted(list[int]):
    """A column that counts how often it is looked at."""

    looks = 0

    def __getitem__(self, place: int) -> int:  # type: ignore[override]
        self.looks += 1
        return super().__getitem__(place)


def looks_at(columns: list[Counted]) -> int:
    return sum(column.looks for column in columns)


def test_one_finished_look_serves_all_that_goes_to_the_same_destinations() -> None:
    columns = [Counted([100, 0, 0]) for _ in range(3)]
    logs = WatchedLogs(3, list(columns))
    for seq in range(100):
        logs.rows[0].append(packet(0, 0b111, seq))
    assert len(logs.rise(0)) == 100
    assert looks_at(columns) == 3


def test_one_finished_look_serves_as_many_even_if_it_was_broken_off_before() -> None:
    columns = [Counted([2, 0, 0]), Counted([0, 0, 0]), Counted([100, 0, 0])]
    logs = WatchedLogs(3, list(columns))
    for seq in range(100):
        logs.rows[0].append(packet(0, 0b111, seq))
    assert logs.rise(0) == []
    columns[0][0] = columns[1][0] = 100
    assert logs.wake(1) == [0]
    assert len(logs.rise(0)) == 100
    assert looks_at(columns) <= 9, "the third packet is looked at anew, and then no other"


def test_what_passed_of_one_source_says_nothing_of_another() -> None:
    columns = [(5, 0), (5, 5)]
    logs = WatchedLogs(1, list(columns))
    logs.rows[0] += [packet(0, 0b11, 1), packet(1, 0b11, 2)]
    assert logs.rise(0) == [packet(0, 0b11, 1)]
    assert logs.blockers(0) == 0b01


def test_what_passed_for_one_set_says_nothing_of_another() -> None:
    columns = [(5,), (5,), (2,)]
    logs = WatchedLogs(1, list(columns))
    logs.rows[0] += [packet(0, 0b011, 1), packet(0, 0b101, 2)]
    assert logs.rise(0) == [packet(0, 0b011, 1)]
    assert logs.blockers(0) == 0b100


def test_a_look_goes_on_where_it_was_broken_off() -> None:
    """News of one destination never make the ones before it be looked at again."""
    nodes = 16
    columns = [Counted([0] * nodes) for _ in range(nodes)]
    logs = WatchedLogs(nodes, list(columns))
    logs.rows[0].append(packet(0, everybody(nodes), 0))
    assert logs.rise(0) == []
    for node in range(nodes):
        columns[node][0] = 1
        for row in logs.wake(node):
            logs.rise(row)
    assert not logs.rows[0]
    assert looks_at(columns) <= 3 * nodes, "a look when it blocks, one to wake, one to pass"


def test_news_of_those_that_are_not_waited_for_cost_nothing() -> None:
    columns = [Counted([0, 0, 0]) for _ in range(3)]
    logs = WatchedLogs(3, list(columns))
    logs.rows[0].append(packet(0, 0b111, 0))
    logs.rise(0)
    before = looks_at(columns)
    columns[2][0] = 1
    assert logs.wake(2) == []
    assert looks_at(columns) == before


def test_contents_that_could_rise_are_no_state_between_transitions() -> None:
    logs = WatchedLogs(1, [(0,), (0,)])
    with pytest.raises(AssertionError, match="between transitions"):
        logs.refill([[packet(0, 0b01, 0)]], [(1,), (0,)])
