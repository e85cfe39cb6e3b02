"""Urgent first, judged while a run grows: what is found at its end, and nothing else, whichever rows come first."""

from collections.abc import Container
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ordercast.audit.logs import MARKER, logs_of
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.violations import Violation
from ordercast.model.config import GroupConfig
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import Flags
from ordercast.pipeline.audit.run import as_lists
from ordercast.pipeline.audit.stream import urgent_first
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.simulator.simulate import simulate
from ordercast.trace.files import events_batch
from ordercast.trace.schema import EventField, EventRow

NODES = 4


NAME = priority_order_kept.__name__


def recorded(protocol: str, seed: int, *, markers: bool = True) -> list[EventRow]:
    """A run with many priority runs; without its markers, whatever ended one has overtaken something."""
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=NODES),
        network=Network(channel=Channel.ONE),
        workload=Workload(messages=16, priorities=3),
        seed=seed,
    )
    rows: list[EventRow] = []
    simulate(config.with_default_timeouts(), rows=rows)
    rows.sort(key=lambda row: row[EventField.TIME])
    return [row for row in rows if markers or row[EventField.DETAIL] != MARKER]


def parts_of(rows: list[EventRow], size: int) -> list[list[EventRow]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def sentences(found: list[Violation]) -> set[str]:
    return {violation.sentence for violation in found if violation.breaks == NAME}


def at_the_end(rows: list[EventRow]) -> set[str]:
    return sentences([*priority_order_kept(logs_of("r", NODES, [as_lists(events_batch("r", rows))]))])


def by_node_and_a_bit_late(chance: Random, rows: list[EventRow]) -> list[EventRow]:
    """Each node's rows in the order of its steps; some nodes are behind others, as files of their own would be."""
    late = [chance.choice((0, 2_000_000, 20_000_000)) for _ in range(NODES)]
    return sorted(rows, key=lambda row: row[EventField.TIME] + late[row[EventField.NODE]])


def grown(protocol: str, rows: list[EventRow], size: int) -> tuple[set[str], int, Prefix]:
    """What is told, how many rows were there when it was, and the state then."""
    prefix = Prefix("r", NODES)
    for number, part in enumerate(parts_of(rows, size)):
        found = prefix.grow(events_batch("r", part), Service(protocol), uniform=False)
        assert {violation.breaks for violation in found} <= {NAME}, found
        if found:
            return sentences(found), (number + 1) * size, prefix
    return set(), len(rows), prefix


@pytest.mark.parametrize("protocol", ["prito", "prio"])
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_nothing_is_said_of_good_runs(protocol: str, seed: int) -> None:
    chance = Random(f"urgent {protocol} {seed}")
    rows = recorded(protocol, seed)
    assert any(row[EventField.DETAIL] == MARKER for row in rows)
    for size in (11, 100, 100_000):
        told, _, prefix = grown(protocol, by_node_and_a_bit_late(chance, rows), size)
        assert told == set()
        assert not prefix.urgent_first.left


@pytest.mark.parametrize("protocol", ["prito", "prio"])
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_what_overtakes_without_a_marker_is_told_before_the_end(protocol: str, seed: int) -> None:
    chance = Random(f"overtaking {protocol} {seed}")
    rows = recorded(protocol, seed, markers=False)
    expected = at_the_end(rows)
    assert expected
    told, seen, _ = grown(protocol, by_node_and_a_bit_late(chance, rows), 60)
    assert told
    assert told <= expected
    assert seen < len(rows)


@pytest.mark.parametrize("protocol", ["prito", "prio"])
def test_what_is_kept_does_not_grow_with_the_run(protocol: str) -> None:
    rows = recorded(protocol, 1)
    kept = []
    prefix = Prefix("r", NODES)
    for part in parts_of(rows, 100):
        prefix.grow(events_batch("r", part), Service(protocol), uniform=False)
        kept.append(pa.ipc.open_stream(prefix.urgent).read_all().num_rows if prefix.urgent else 0)
    asked = events_batch("r", rows)
    of_kinds = pc.sum(pc.is_in(asked.column("event"), urgent_first._KINDS)).as_py()
    assert max(kept) < of_kinds / 2
    assert kept[-1] < of_kinds / 10


@pytest.mark.parametrize("ends", ["crash", "abort", "view"])
def test_runs_in_which_a_node_stops_are_left_to_the_audit_of_the_whole(ends: str) -> None:
    rows = recorded("prito", 1, markers=False)
    first: EventRow = (0, -1, 0, ends, None, None, (0, 1, 2, 3) if ends == "view" else None, None, None, None, None)
    state = urgent_first.UrgentFirst()
    empty = pa.Table.from_batches([events_batch("r", rows[:1])]).slice(0, 0)
    found, kept = state.judge(NODES, empty, pa.Table.from_batches([events_batch("r", [first, *rows])]))
    assert (found, kept.num_rows, state.left) == ([], 0, True)


def test_clocks_that_run_back_and_too_much_to_keep_are_left_to_the_audit_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = recorded("prito", 1, markers=False)
    back = [(*row[:2], -row[EventField.TIME], *row[3:]) for row in rows]
    prefix = Prefix("r", NODES)
    state = prefix.urgent_first
    nothing = pa.Table.from_batches([events_batch("r", rows[:1])]).slice(0, 0)
    state.judge(NODES, nothing, pa.Table.from_batches([events_batch("r", back)]))
    assert state.left
    monkeypatch.setattr(urgent_first, "MOST_KEPT", 20)
    told, _, prefix = grown("prito", rows, 60)
    assert told == set()
    assert prefix.urgent_first.left
    assert prefix.urgent == b""


LOW, HIGH, NEXT = (0, 0), (0, 1), (0, 2)
PRIORITIES = {LOW: 1, HIGH: 5, NEXT: 1}
BOTH = [(0, 0, "send", LOW), (0, 1, "send", HIGH), (0, 2, "preack", LOW), (0, 2, "preack", HIGH)]
OVERTAKEN = [*BOTH, (0, 10, "deliver", LOW), (0, 11, "deliver", HIGH), (0, 15, "transmit", None)]
SENTENCE = "E1 delivered E1#0 of priority 1 while E1#1 of priority 5 waited, and no marker ended the run"


class Judge:
    """Two nodes; batches of (node, time, kind, message), where a transmission without a message is a marker."""

    def __init__(self) -> None:
        self.state = urgent_first.UrgentFirst()
        self.steps = [0, 0]
        self.retired: Container[int] = ()
        self.rows = self._table([(0, 0, "send", LOW)]).slice(0, 0)

    def _table(self, happenings: list[tuple[int, int, str, tuple[int, int] | None]]) -> pa.Table:
        found: list[EventRow] = []
        for node, time, kind, message in happenings:
            self.steps[node] += 1
            to, priority = ((0, 1), PRIORITIES[message]) if kind == "send" and message else (None, None)
            about = message or (None, None)
            detail = None if message else MARKER
            found.append((node, self.steps[node], time, kind, *about, to, priority, None, detail, None))
        return pa.Table.from_batches([events_batch("r", found)])

    def told(
        self, *happenings: tuple[int, int, str, tuple[int, int] | None], then: Container[int] = (0, 1, 2)
    ) -> list[str]:
        """What a batch shows; `then`: the numbers of the messages that are retired after it."""

        def is_retired(table: pa.Table) -> Flags:
            return np.array([seq in self.retired for seq in table.column("seq").to_pylist()], np.bool_)

        found, self.rows = self.state.judge(2, self.rows, self._table([*happenings]))
        self.retired = then
        self.rows = self.state.still_needed(self.rows, is_retired)
        return [violation.sentence for violation in found]


def test_what_is_retired_is_judged_when_all_have_told_what_was_before_it() -> None:
    judge = Judge()
    assert judge.told(*OVERTAKEN, (1, 5, "transmit", NEXT)) == []
    assert judge.told((1, 20, "transmit", NEXT)) == [SENTENCE]
    assert judge.told((0, 30, "transmit", NEXT), (1, 30, "transmit", NEXT)) == [], "it was told"
    assert judge.rows.num_rows == 1, "the last marker"


@pytest.mark.parametrize(("at", "told"), [(9, []), (11, [SENTENCE])])
def test_a_marker_that_is_read_later_covers_what_it_was_sent_before(at: int, told: list[str]) -> None:
    """The other node had acknowledged it; its rows are read when all is retired already."""
    judge = Judge()
    assert judge.told(*OVERTAKEN[:-1], (1, 5, "transmit", NEXT)) == []
    late = [(1, 6, "ack", LOW), (1, at, "transmit", None), (1, 20, "transmit", NEXT), (0, 20, "transmit", NEXT)]
    assert judge.told(*late) == told


def test_what_is_told_of_messages_that_were_judged_long_ago_is_not_asked_about() -> None:
    """A level that is told after the delivery: without the delivery, the message would seem to wait for ever."""
    judge = Judge()
    good = [*BOTH, (0, 10, "deliver", HIGH), (0, 11, "deliver", LOW)]
    assert judge.told(*good, (1, 20, "transmit", NEXT)) == []
    assert judge.told((0, 20, "transmit", NEXT), (1, 25, "transmit", NEXT), then=(0, 1)) == []
    late = [(0, 30, "preack", HIGH), (0, 31, "send", NEXT), (0, 32, "preack", NEXT), (0, 33, "deliver", NEXT)]
    assert judge.told(*late, (0, 40, "transmit", NEXT), (1, 40, "transmit", NEXT)) == []


def test_nothing_is_told_twice() -> None:
    judge = Judge()
    assert judge.told(*OVERTAKEN, (1, 20, "transmit", NEXT), then=()) == [SENTENCE]
    assert judge.told((0, 30, "transmit", NEXT), (1, 30, "transmit", NEXT), then=()) == []


def test_what_is_read_before_the_first_level_is_asked_about_later() -> None:
    """The file of one member may be read before any that has a level, or a transmission."""
    judge = Judge()
    assert judge.told(BOTH[0], BOTH[1], then=()) == []
    assert judge.told(*BOTH[2:], then=()) == []
    assert judge.told(*OVERTAKEN[4:], (1, 20, "transmit", NEXT), then=()) == [SENTENCE]
