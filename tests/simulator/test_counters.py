"""What is counted in a run: right to the last unit, and durations to 3 %."""

from collections import Counter
from collections.abc import Callable
from math import ceil

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ordercast.model.faults import Bursts, Duplicates, Loss, Miss
from ordercast.model.machine import Level
from ordercast.model.runs import Channel, Network, Workload
from ordercast.model.units import Unit
from ordercast.protocols.spo.units import Data, Ready
from ordercast.simulator.counters import Counters, Durations
from ordercast.simulator.simulation import Simulation
from ordercast.trace.schema import COUNTERS
from tests.simulator.rows import by_node, make_config, of, run

TOLERANCE = 1 / 33
"""A bucket reaches from its lowest duration, of 32 to 63 steps, to a step above it: 3 % below what was added."""


def histogram(durations: list[int]) -> Durations:
    made = Durations()
    for duration in durations:
        made.add(duration)
    return made


@given(st.lists(st.integers(0, 10**13), min_size=1), st.integers(1, 100))
@example([33 * 2**20 - 1], 50)
@example([63, 64, 65, 66], 75)
def test_a_percentile_is_right_to_3_percent(durations: list[int], percent: int) -> None:
    """The smallest duration that so many percent do not exceed, from the sorted list."""
    exact = sorted(durations)[ceil(len(durations) * percent / 100) - 1]
    found = histogram(durations).percentile(percent)
    assert exact * (1 - TOLERANCE) <= found <= exact


@given(st.lists(st.integers(0, 10**13), min_size=1))
def test_highest_and_count_are_exact(durations: list[int]) -> None:
    made = histogram(durations)
    assert (made.count, made.highest) == (len(durations), max(durations))


@given(st.lists(st.integers(0, 63), min_size=1), st.integers(1, 100))
def test_short_durations_are_told_apart_exactly(durations: list[int], percent: int) -> None:
    assert histogram(durations).percentile(percent) == sorted(durations)[ceil(len(durations) * percent / 100) - 1]


def test_percentiles_of_nothing_and_of_one() -> None:
    assert Durations().percentile(50) == 0
    assert Durations().highest == 0
    assert [histogram([32]).percentile(percent) for percent in (0, 50, 100)] == [32, 32, 32]


def test_memory_does_not_grow_with_the_number_of_durations() -> None:
    made = histogram(list(range(0, 1_000_000, 7)))
    assert len(made._buckets) <= 32 * 20  # 32 steps for each doubling below a million


def test_totals_are_exact_where_percentiles_are_not() -> None:
    assert histogram([1_000_003, 2_000_005]).as_document() == {
        "count": 2,
        "total": 3_000_008,
        "p50": 999_424,  # 61 << 14: the lowest with the same six bits in front
        "p99": 1_998_848,
        "most": 2_000_005,
    }


def test_the_columns_of_the_counters_are_all_its_counts() -> None:
    columns = dict(Counters(sent=3, longest_sent=2).columns())
    assert columns["sent"] == 3
    assert columns["longest_sent"] == 2
    assert "latency" not in columns
    assert set(COUNTERS) <= set(columns)  # what a trace keeps of them


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
def test_the_counters_say_what_the_rows_say(batch: int, channel: Channel) -> None:
    config = make_config(
        5,
        network=Network(channel=channel, receive_time=6_000, receive_buffer=4),
        workload=Workload(messages=45, spread=0.5, batch=batch, gap=50_000 // batch),
        faults=[Loss(rate=0.1), Duplicates(rate=0.05), Bursts(well=5_000_000, bad=300_000)],
    )
    result, rows = run(config)
    counts = result.counters
    events = Counter(row.event for row in rows)
    kinds = Counter(row.detail for row in {row.transmission: row for row in of(rows, "transmit")}.values())
    units = {(row.event, row.node, row.time, row.transmission) for row in rows}
    whom = {row.message: row.destinations or () for row in of(rows, "send")}

    assert counts.sent == events["send"] == 45 * 5
    assert counts.delivered == events["deliver"] == sum(map(len, whom.values()))
    assert counts.transmitted == kinds["data"] > 0
    assert counts.retransmitted == kinds["copy"] > 0
    assert counts.control == kinds["status"] + kinds["poll"] + kinds["request"]
    assert counts.requests == kinds["request"] == events["request"] > 0
    if batch == 1:  # a unit with several messages has several rows
        assert counts.received == events["receive"]
        assert counts.lost == events["lose"]
        assert counts.discarded == events["discard"]
        assert counts.lost_data == sum(row.node in whom.get(row.message, ()) for row in of(rows, "lose"))
    else:
        assert counts.lost == sum(event == "lose" for event, *_ in units)
    assert counts.duplicated > 0
    assert {row.detail for row in of(rows, "lose")} == {"loss", "burst", "overrun"}
    for level, event in ((Level.ACCEPTED, "accept"), (Level.PREACKNOWLEDGED, "preack"), (Level.ACKNOWLEDGED, "ack")):
        packets = {
            (row.node, row.source, (row.seq or 0) // batch) for row in of(rows, event) if row.node in whom[row.message]
        }
        assert counts.latency[level].count == len(packets)


def test_the_longest_logs_are_those_of_the_rows() -> None:
    """Played back: what a node holds at each level rises and falls with its own rows."""
    result, rows = run(make_config(5, workload=Workload(messages=45, spread=0.5, gap=50_000), faults=[Loss(rate=0.2)]))
    longest: Counter[str] = Counter()
    for mine in by_node(rows).values():
        held: Counter[str] = Counter()
        accepted = set()
        for row in mine:
            own = row.source == row.node
            if row.event == "send":
                held["sent"] += 1
            elif row.event == "accept":
                accepted.add(row.message)
                held["accepted"] += 1
            elif row.event == "preack":
                held["sent"] -= own
                held["accepted"] -= row.message in accepted
                held["preacknowledged"] += 1
            elif row.event == "ack":
                held["preacknowledged"] -= 1
            longest |= held
        assert not any(held.values())  # the run is complete: all came to its end
    counts = result.counters
    assert counts.longest_sent == longest["sent"] > 1
    assert counts.longest_accepted == longest["accepted"] > 1
    assert counts.longest_preacknowledged == longest["preacknowledged"] > 1


def test_the_bytes_are_those_of_all_units_put_on_the_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    kinds: tuple[type[Unit], ...] = (Data, Ready)
    for kind in kinds:

        def weighed(unit: Unit, size: Callable[[Unit], int] = kind.size) -> int:
            sizes.append(size(unit))
            return sizes[-1]

        monkeypatch.setattr(kind, "size", weighed)
    counts = Simulation(make_config(4, faults=[Loss(rate=0.1)])).run().counters
    assert counts.bytes == sum(sizes)
    assert len(sizes) == counts.transmitted + counts.retransmitted + counts.control


@pytest.mark.parametrize(
    ("missed", "insertions", "sortings"),
    [
        pytest.param([(2, 0, 1)], 1, 0, id="one lost by one"),
        pytest.param([(2, 0, 1), (1, 0, 1)], 2, 0, id="one lost by two"),
        pytest.param([(2, 0, 1), (2, 1, 2)], 0, 1, id="two lost by one"),
    ],
)
def test_recoveries_are_counted_by_kind_and_in_the_papers_unit(
    missed: list[tuple[int, int, int]], insertions: int, sortings: int
) -> None:
    """To insert one packet takes 1; to sort takes as many as there are from the first place on."""
    faults = [Miss(node=node, source=source, nth=nth) for node, source, nth in missed]
    work = Workload(messages=2)
    config = make_config(3, faults=faults, network=Network(channel=Channel.ONE), workload=work, seed=0)
    counts = Simulation(msgspec.structs.replace(config, protocol="st").with_default_timeouts()).run().counters
    assert (counts.recoveries, counts.insertions, counts.sortings) == (3, insertions, sortings)
    assert counts.processing == counts.insertions + counts.resorted
    assert counts.resorted >= 2 * sortings
