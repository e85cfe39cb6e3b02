"""Faults in whole runs: who lacks what because of them, and what it takes to repair it."""

from collections import Counter
from itertools import pairwise

import pytest

from ordercast.model.config import MILLISECOND, Timing
from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, UnitKind
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from tests.simulator.rows import Row, by_node, make_config, of, run

TALKER = Workload(messages=6, pattern=Pattern.TALKER, gap=300_000)
ALIKE = Network(jitter=0)
"""A network in which a unit reaches all nodes at one instant."""


def details(rows: list[Row]) -> dict[int | None, str | None]:
    """What each transmission was."""
    return {row.transmission: row.detail for row in of(rows, "transmit")}


def test_without_faults_nothing_is_lost_and_nothing_repaired() -> None:
    result, rows = run(make_config(4, workload=Workload(messages=20, spread=0.5)))
    counts = result.counters
    assert result.complete
    assert (counts.lost, counts.retransmitted, counts.requests, counts.duplicated) == (0, 0, 0, 0)
    assert counts.received == 3 * counts.transmitted > 0
    assert not of(rows, "lose", "retransmit", "request")


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
@pytest.mark.parametrize("nth", [1, 3, 6])
def test_node_2_misses_the_nth_unit_of_node_0_and_one_copy_repairs_it(channel: Channel, nth: int) -> None:
    """Also the first, before which node 2 knows of nothing, and the last, behind which nothing shows the gap."""
    miss = Miss(node=2, source=0, nth=nth)
    result, rows = run(make_config(4, network=Network(channel=channel), workload=TALKER, faults=[miss]))
    kinds = details(rows)
    [lost] = of(rows, "lose")
    assert (lost.node, lost.message, lost.detail) == (2, (0, nth - 1), "scripted")
    assert kinds[lost.transmission] == "data"
    came = [row for row in of(rows, "receive") if row.node == 2 and row.message == lost.message]
    assert [kinds[row.transmission] for row in came] == ["copy"]
    firsts = Counter((row.node, row.message) for row in of(rows, "receive") if kinds[row.transmission] == "data")
    assert set(firsts) == {(node, (0, seq)) for node in (1, 2, 3) for seq in range(6)} - {(2, lost.message)}
    counts = result.counters
    assert result.complete
    assert (counts.lost, counts.lost_data, counts.retransmitted, counts.transmitted) == (1, 1, 1, 6)
    assert len(of(rows, "request")) == counts.requests == 1
    assert counts.received == 3 * 7 - 1  # the copy reaches all, and all but node 2 have it already
    assert counts.discarded == 2


def test_a_missed_copy_is_asked_for_again() -> None:
    faults = [Miss(node=2, source=0, nth=3), Miss(node=2, source=0, nth=1, kind=UnitKind.COPY)]
    result, rows = run(make_config(4, network=ALIKE, workload=TALKER, faults=faults))
    kinds = details(rows)
    assert [(row.node, kinds[row.transmission]) for row in of(rows, "lose")] == [(2, "data"), (2, "copy")]
    assert (result.counters.lost, result.counters.retransmitted, result.counters.requests) == (2, 2, 2)
    assert result.complete


def test_a_missed_control_unit_takes_no_message_with_it() -> None:
    faults = [Miss(node=0, source=2, nth=1, kind=UnitKind.CONTROL)]
    result, rows = run(make_config(4, workload=TALKER, faults=faults))
    [lost] = of(rows, "lose")
    assert (lost.node, lost.source, lost.seq) == (0, None, None)
    assert details(rows)[lost.transmission] in {"status", "poll", "request"}
    assert (result.counters.lost, result.counters.lost_data) == (1, 0)
    assert result.complete


def test_a_miss_of_any_kind_counts_all_units() -> None:
    quiet = run(make_config(4, workload=TALKER))[1]
    fifth = of([row for row in quiet if row.node == 0], "transmit")[4]
    _, rows = run(make_config(4, workload=TALKER, faults=[Miss(node=2, source=0, nth=5, kind=UnitKind.ANY)]))
    assert [(row.node, row.transmission) for row in of(rows, "lose")] == [(2, fifth.transmission)]


def test_scripted_misses_come_to_pass_amid_other_faults() -> None:
    faults: list[Fault] = [
        Duplicates(rate=1),
        Loss(rate=0.2),
        *(Miss(node=3, source=0, nth=nth) for nth in range(1, 7)),
    ]
    result, rows = run(make_config(4, workload=TALKER, faults=faults))
    kinds = details(rows)
    assert not [row for row in of(rows, "receive") if row.node == 3 and kinds[row.transmission] == "data"]
    assert result.complete


def test_a_lost_unit_that_was_for_others_is_no_lost_data() -> None:
    """Node 0 talks to one node at a time; who misses a unit for another counts it as lost, not as lost data."""
    config = make_config(
        4, workload=Workload(messages=40, pattern=Pattern.TALKER, spread=0.25), faults=[Loss(rate=0.3)]
    )
    result, rows = run(config)
    whom = {row.message: row.destinations or () for row in of(rows, "send")}
    lost = of(rows, "lose")
    data = [row for row in lost if row.source is not None]
    assert result.counters.lost == len(lost)
    assert result.counters.lost_data == sum(row.node in whom[row.message] for row in data)
    assert 0 < result.counters.lost_data < len(data) < len(lost)
    assert result.complete


def test_the_loss_rate_of_a_run_is_what_was_asked_for() -> None:
    """Of some 14,000 receipts: within five deviations."""
    config = make_config(
        8,
        workload=Workload(messages=150, pattern=Pattern.EVERYBODY),
        faults=[Loss(rate=0.1)],
    )
    result, rows = run(config)
    lost, came = len(of(rows, "lose")), len(of(rows, "receive", "hear"))
    total = lost + came
    assert total > 10_000
    assert abs(lost - total * 0.1) < 5 * (total * 0.1 * 0.9) ** 0.5
    assert {row.detail for row in of(rows, "lose")} == {"loss"}
    assert result.complete


def test_a_shared_loss_takes_a_unit_from_all() -> None:
    result, rows = run(make_config(4, faults=[Loss(rate=0.2, shared=True)]))
    lost = Counter(row.transmission for row in of(rows, "lose"))
    assert lost
    assert set(lost.values()) == {3}
    assert not {row.transmission for row in of(rows, "receive", "hear")} & set(lost)
    assert result.complete


def test_a_duplicate_comes_twice_and_is_thrown_away() -> None:
    result, rows = run(make_config(3, workload=TALKER, faults=[Duplicates(rate=1)]))
    arrivals = Counter((row.node, row.transmission) for row in of(rows, "receive", "hear"))
    assert set(arrivals.values()) == {2}
    assert result.counters.duplicated == len(arrivals)
    assert result.counters.discarded == len(of(rows, "discard")) == 12  # six messages at two nodes
    assert {row.detail for row in of(rows, "discard")} == {"duplicate"}
    assert result.complete


def test_on_one_a_duplicate_follows_at_once() -> None:
    """Or what comes between would be heard in two orders."""
    _, rows = run(make_config(4, network=Network(channel=Channel.ONE), faults=[Duplicates(rate=0.5)]))
    heard = [[row.transmission for row in mine] for mine in by_node(of(rows, "receive", "hear")).values()]
    for order in heard:
        assert len(order) > len(set(order))
        assert order == sorted(order, key=lambda number: number or 0)


def test_bursts_lose_what_falls_into_them() -> None:
    config = make_config(4, workload=Workload(messages=200), faults=[Bursts(well=4 * MILLISECOND, bad=2 * MILLISECOND)])
    result, rows = run(config)
    lost = of(rows, "lose")
    assert {row.detail for row in lost} == {"burst"}
    assert len(lost) > 100
    assert result.complete


@pytest.mark.parametrize(
    "fault",
    [
        Loss(rate=0.99, until=8 * MILLISECOND),
        Bursts(well=1, bad=10**12, until=8 * MILLISECOND),
        Split(side=(0, 1), at=0, lasting=8 * MILLISECOND),
        Split(side=(0,), at=0, lasting=8 * MILLISECOND, one_way=True),
    ],
)
def test_a_fault_that_ends_is_survived(fault: Fault) -> None:
    """It covers the first half of the sending; nothing that is sent later is lost."""
    config = make_config(4, workload=Workload(messages=80), faults=[fault], polls_to_abort=10**9)
    result, rows = run(config)
    sent_at = {row.transmission: row.time for row in of(rows, "transmit")}
    lost = [sent_at[row.transmission] for row in of(rows, "lose")]
    assert len(lost) > 50
    assert max(lost) < 8 * MILLISECOND < max(sent_at.values())
    assert result.complete


@pytest.mark.parametrize("one_way", [False, True])
def test_a_split_parts_a_run(one_way: bool) -> None:
    split = Split(side=(0, 1), at=2 * MILLISECOND, lasting=4 * MILLISECOND, one_way=one_way)
    result, rows = run(make_config(4, workload=Workload(messages=60), faults=[split], polls_to_abort=10**9))
    transmitted = {row.transmission: row for row in of(rows, "transmit")}
    ways = {(transmitted[row.transmission].node, row.node) for row in of(rows, "lose")}
    out, back = {(0, 2), (0, 3), (1, 2), (1, 3)}, {(2, 0), (3, 0), (2, 1), (3, 1)}
    assert ways == (out if one_way else out | back)
    for row in of(rows, "receive", "hear"):
        sent = transmitted[row.transmission]
        crosses = (sent.node, row.node) in ways and split.at <= sent.time < split.at + split.lasting
        assert not crosses
    assert result.complete


def test_a_paused_node_does_nothing_and_then_takes_what_waited() -> None:
    pause = Pause(node=1, at=2 * MILLISECOND, lasting=3 * MILLISECOND)
    result, rows = run(make_config(3, workload=Workload(messages=60, gap=100_000), faults=[pause]))
    mine = by_node(rows)[1]
    during = [row for row in mine if 2 * MILLISECOND <= row.time < 5 * MILLISECOND]
    assert not during
    waited = [row for row in mine if row.time == 5 * MILLISECOND and row.event == "receive"]
    assert len(waited) > 10
    assert result.counters.lost == 0
    assert result.complete


def test_who_pauses_with_a_small_buffer_loses_what_it_has_no_room_for() -> None:
    pause = Pause(node=1, at=2 * MILLISECOND, lasting=3 * MILLISECOND)
    talker = Workload(messages=60, pattern=Pattern.TALKER, gap=100_000)
    config = make_config(3, network=Network(receive_buffer=4), workload=talker, faults=[pause])
    result, rows = run(config)
    during = [row for row in of(rows, "lose") if row.time < 5 * MILLISECOND]
    assert {(row.node, row.detail) for row in during} == {(1, "overrun")}
    assert min(row.time for row in during) > 2 * MILLISECOND
    assert len(during) > 20
    assert sum(row.time == 5 * MILLISECOND for row in by_node(of(rows, "receive", "hear"))[1]) == 4
    assert result.complete


def test_a_crashed_node_does_nothing_any_more() -> None:
    crash = Crash(node=2, at=2 * MILLISECOND)
    result, rows = run(make_config(4, workload=Workload(messages=60), faults=[crash], polls_to_abort=8))
    mine = by_node(rows)[2]
    assert (mine[-1].event, mine[-1].time) == ("crash", 2 * MILLISECOND)
    assert len(mine) > 10
    assert [row.node for row in of(rows, "crash")] == [2]
    assert not result.complete


# --- overrun ---


def overrun_config(receive_buffer: int) -> RunConfig:
    """Seven senders at once, each receiver busy for 20 µs with a unit."""
    network = Network(jitter=0, receive_time=20_000, receive_buffer=receive_buffer)
    return make_config(
        8,
        network=network,
        workload=Workload(messages=30, pattern=Pattern.EVERYBODY),
        timing=Timing.for_round_trip(2 * MILLISECOND),
        window=4,
    )


def test_a_receiver_that_is_too_slow_loses_by_overrun() -> None:
    result, rows = run(overrun_config(receive_buffer=5))
    lost = of(rows, "lose")
    assert len(lost) == result.counters.lost > 50
    assert {row.detail for row in lost} == {"overrun"}
    assert result.counters.retransmitted > 0
    assert result.complete


@pytest.mark.parametrize("receive_buffer", [0, 10_000])
def test_a_buffer_with_room_for_all_loses_nothing(receive_buffer: int) -> None:
    result, rows = run(overrun_config(receive_buffer))
    assert result.counters.lost == len(of(rows, "lose")) == 0
    assert result.complete


@pytest.mark.parametrize("receive_buffer", [0, 5])
def test_a_receiver_takes_units_one_after_the_other(receive_buffer: int) -> None:
    _, rows = run(overrun_config(receive_buffer))
    for mine in by_node(of(rows, "receive", "hear")).values():
        times = [row.time for row in mine]
        assert all(later - earlier >= 20_000 for earlier, later in pairwise(times))


@pytest.mark.parametrize(("receive_buffer", "receive_time"), [(3, MILLISECOND), (1, MILLISECOND), (1, 0), (4, 0)])
def test_the_buffer_holds_as_many_as_it_is_said_to(receive_buffer: int, receive_time: int) -> None:
    """Node 0 sends ten units at one instant: the buffer takes the first, the others are lost."""
    config = make_config(
        2,
        network=Network(jitter=0, receive_time=receive_time, receive_buffer=receive_buffer),
        workload=Workload(messages=10, pattern=Pattern.TALKER, gap=0),
        timing=Timing.for_round_trip(10 * MILLISECOND, least_status=2 * MILLISECOND),
    )
    _, rows = run(config)
    kinds = details(rows)
    firsts = [row.seq for row in of(rows, "receive") if kinds[row.transmission] == "data"]
    lost = [row.seq for row in of(rows, "lose") if kinds[row.transmission] == "data"]
    assert (firsts, lost) == (list(range(receive_buffer)), list(range(receive_buffer, 10)))
