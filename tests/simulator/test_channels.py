"""The papers' two channels, and datagrams: who hears what in which order, and when."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from ordercast.model.config import SECOND, GroupConfig, Timing
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Fault, Loss, Pause
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.simulator.channels import channel_model
from ordercast.simulator.simulation import Simulation
from ordercast.swarm.reductions import explicit
from tests.simulator.rows import by_node, make_config, of, run

NODES = 5
SPEEDS = [0, 1_000_000, 100_000_000]


def random_sends(seed: int, count: int = 2_000) -> Iterator[tuple[int, int, int]]:
    """When, by whom and how large: senders that often overlap, sizes from nothing to a large unit."""
    chance, now = Random(seed), 0
    for _ in range(count):
        now += chance.choice([0, 0, 100, 5_000, 100_000])
        yield now, chance.randrange(NODES), chance.choice([0, 40, 1_500, 60_000])


def heard(network: Network, seed: int) -> list[list[tuple[int, int]]]:
    """By receiver, the sender and number of all units in the order heard; equal times in the order sent."""
    channel = channel_model(network, NODES, seed)
    arrivals: list[list[tuple[int, int, int]]] = [[] for _ in range(NODES)]
    for number, (now, sender, size) in enumerate(random_sends(seed)):
        for receiver, time in enumerate(channel.arrivals(now, sender, size)):
            arrivals[receiver].append((time, number, sender))
    return [[(sender, number) for _, number, sender in sorted(times)] for times in arrivals]


@pytest.mark.parametrize("bits_per_second", SPEEDS)
@pytest.mark.parametrize("jitter", [0, 50_000, 5_000_000])
def test_on_one_all_nodes_hear_one_order(bits_per_second: int, jitter: int) -> None:
    for seed in range(3):
        orders = heard(Network(channel=Channel.ONE, jitter=jitter, bits_per_second=bits_per_second), seed)
        assert all(order == orders[0] for order in orders)
        assert [number for _, number in orders[0]] == sorted(number for _, number in orders[0])  # the order sent


@pytest.mark.parametrize("bits_per_second", SPEEDS)
@pytest.mark.parametrize("jitter", [0, 50_000, 5_000_000])
def test_on_many_each_sender_is_heard_in_its_order(bits_per_second: int, jitter: int) -> None:
    for seed in range(3):
        for order in heard(Network(channel=Channel.MANY, jitter=jitter, bits_per_second=bits_per_second), seed):
            for sender in range(NODES):
                mine = [number for source, number in order if source == sender]
                assert mine == sorted(mine)
                assert len(mine) > 100


def test_on_many_different_senders_interleave_differently_at_different_receivers() -> None:
    orders = heard(Network(channel=Channel.MANY, jitter=50_000), 1)
    for one, other in combinations(orders, 2):
        assert one != other


def test_on_any_units_of_one_sender_overtake_each_other_differently_at_different_receivers() -> None:
    for seed in range(3):
        orders = heard(Network(channel=Channel.ANY, jitter=50_000), seed)
        for one, other in combinations(orders, 2):
            assert one != other
        for order in orders:
            for sender in range(NODES):
                mine = [number for source, number in order if source == sender]
                assert mine != sorted(mine)


def test_on_any_the_jitter_is_drawn_for_each_unit_and_receiver_whatever_is_on_the_way() -> None:
    medium = channel_model(Network(channel=Channel.ANY, propagation=70_000, jitter=20_000), NODES, seed=3)
    delays = [time - now for now in range(1_000) for time in medium.arrivals(now, 2, 64)]
    assert all(70_000 <= delay < 90_000 for delay in delays)
    assert abs(sum(delays) / len(delays) - 80_000) < 400  # of 5,000 draws: five deviations
    assert len(set(delays)) > 4_000


def test_a_channel_serves_whoever_needs_no_more() -> None:
    served = {(one, needed) for one in Channel for needed in Channel if one.serves(needed)}
    weaker = {(Channel.ONE, Channel.MANY), (Channel.ONE, Channel.ANY), (Channel.MANY, Channel.ANY)}
    assert served == weaker | {(channel, channel) for channel in Channel}


@pytest.mark.parametrize(("needs", "channel"), [("many", "any"), ("one", "many"), ("one", "any")])
def test_a_protocol_is_refused_on_a_channel_that_promises_less(needs: str, channel: str) -> None:
    config = make_config(3, network=Network(channel=Channel(channel)))
    config = msgspec.structs.replace(config, protocol={"many": "spo", "one": "st"}[needs])
    with pytest.raises(ConfigError, match=f"needs the channel `{needs}`, on which .*; on `{channel}` "):
        Simulation(config)


@pytest.mark.parametrize("channel", list(Channel))
def test_without_jitter_a_unit_takes_the_propagation_everywhere(channel: Channel) -> None:
    medium = channel_model(Network(channel=channel, propagation=70_000, jitter=0), NODES, seed=3)
    for now, sender, size in random_sends(3, 100):
        assert medium.arrivals(now, sender, size) == [now + 70_000] * NODES


def test_on_one_each_receiver_has_a_delay_of_its_own_for_ever() -> None:
    network = Network(channel=Channel.ONE, propagation=70_000, jitter=20_000)
    for seed in range(20):
        medium = channel_model(network, NODES, seed)
        delays = [time - 10 for time in medium.arrivals(10, 0, 99)]
        assert all(70_000 <= delay <= 90_000 for delay in delays)
        assert len(set(delays)) > 1
        assert [time - 777 for time in medium.arrivals(777, 4, 5)] == delays
    drawn = [channel_model(network, NODES, seed).arrivals(0, 0, 0) for seed in (1, 2)]
    assert drawn[0] != drawn[1]


def test_on_many_jitter_is_drawn_anew_within_its_bounds() -> None:
    """A sender that waits for its last unit to arrive is held up by nothing but the draw."""
    medium = channel_model(Network(channel=Channel.MANY, propagation=70_000, jitter=20_000), NODES, seed=3)
    delays = [
        time - now for now in range(0, 200_000_000, 200_000) for time in medium.arrivals(now, now // 200_000 % 3, 64)
    ]
    assert all(70_000 <= delay <= 90_000 for delay in delays)
    assert min(delays) < 70_100
    assert max(delays) > 89_900
    assert abs(sum(delays) / len(delays) - 80_000) < 400  # of 5,000 draws: five deviations


def test_on_many_no_unit_comes_before_its_propagation_however_late_it_is() -> None:
    medium = channel_model(Network(channel=Channel.MANY, propagation=3, jitter=2), NODES, seed=3)
    for now in range(10**18, 10**18 + 5_000, 10):
        assert all(now + 3 <= time <= now + 5 for time in medium.arrivals(now, 0, 1))


def test_on_many_an_older_unit_is_never_overtaken() -> None:
    medium = channel_model(Network(channel=Channel.MANY, propagation=0, jitter=1_000_000), NODES, seed=3)
    times = [medium.arrivals(now, 2, 64) for now in range(100)]
    for earlier, later in pairwise(times):
        assert all(old <= new for old, new in zip(earlier, later, strict=True))


@pytest.mark.parametrize(
    ("channel", "second_sender", "second_arrives"),
    [
        (Channel.ONE, 1, 2_000_000),  # one medium: it waits for its turn
        (Channel.ONE, 0, 2_000_000),
        (Channel.MANY, 1, 1_000_000),  # a medium of its own
        (Channel.MANY, 0, 2_000_000),
        (Channel.ANY, 1, 1_000_000),
        (Channel.ANY, 0, 2_000_000),
    ],
)
def test_the_medium_is_busy_as_long_as_the_bytes_take(
    channel: Channel, second_sender: int, second_arrives: int
) -> None:
    """125 bytes at 1 Mbit/s take 1 ms."""
    network = Network(channel=channel, propagation=0, jitter=0, bits_per_second=1_000_000)
    medium = channel_model(network, NODES, seed=1)
    assert medium.arrivals(0, 0, 125) == [1_000_000] * NODES
    assert medium.arrivals(0, second_sender, 125) == [second_arrives] * NODES
    assert medium.arrivals(10_000_000, 0, 250) == [12_000_000] * NODES  # the medium was idle: its turn at once


def test_the_propagation_comes_after_the_transmission_and_does_not_occupy_the_medium() -> None:
    network = Network(channel=Channel.ONE, propagation=5_000_000, jitter=0, bits_per_second=1_000_000)
    medium = channel_model(network, NODES, seed=1)
    assert [medium.arrivals(0, 0, 125)[3] for _ in range(3)] == [6_000_000, 7_000_000, 8_000_000]


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
@pytest.mark.parametrize("receive_time", [0, 4_000])
@pytest.mark.parametrize("fault", [None, Loss(rate=0.2), Pause(node=2, at=400_000, lasting=700_000)])
def test_the_channel_keeps_its_promise_in_a_run(channel: Channel, receive_time: int, fault: Fault | None) -> None:
    """All transmissions that reached both of two nodes: in one order on `one`, in some other order on `many`."""
    config = make_config(
        5,
        network=Network(channel=channel, bits_per_second=100_000_000, receive_time=receive_time),
        workload=Workload(messages=60, spread=0.6, gap=20_000, size=300),
        faults=[fault] if fault else [],
    )
    _, rows = run(config)
    orders = [[row.transmission or 0 for row in mine] for mine in by_node(of(rows, "receive", "hear")).values()]
    sender_of = {row.transmission: row.node for row in of(rows, "transmit")}
    differ = 0
    for one, other in combinations(orders, 2):
        both = set(one) & set(other)
        first, second = ([number for number in order if number in both] for order in (one, other))
        assert len(both) > 50
        if channel is Channel.ONE:
            assert first == second
        else:
            differ += first != second
    assert channel is Channel.ONE or differ > 5
    for order in orders:
        for sender in range(5):
            mine = [number for number in order if sender_of[number] == sender]
            assert mine == sorted(mine)  # transmissions are numbered in the order made


def test_a_slow_medium_makes_units_wait_in_a_run() -> None:
    """On one medium of 1 Mbit/s two talkers' units are never nearer to each other than a unit takes."""
    config = make_config(
        3,
        network=Network(channel=Channel.ONE, jitter=0, bits_per_second=1_000_000),
        workload=Workload(messages=5, pattern=Pattern.STEADY, gap=0, size=1_000),
        timing=Timing.for_round_trip(SECOND),
    )
    result, rows = run(config)
    assert result.complete
    details = {row.transmission: row.detail for row in of(rows, "transmit")}
    times = sorted({row.time for row in of(rows, "receive") if details[row.transmission] == "data"})
    assert len(times) == 15
    assert all(later - earlier >= 8_000_000 for earlier, later in pairwise(times))  # 1,000 bytes and a header


# --- lines and queues ---

MILLISECOND = SECOND // 1_000
SLOW = 8_000_000  # a thousand bytes take a millisecond


def all_at_once(nodes: int, size: int = 1_000, *, seed: int = 1, **network: Any) -> RunConfig:
    """Each node sends one message at once, on one channel that takes no time."""
    return RunConfig(
        protocol="st",
        group=GroupConfig(nodes=nodes),
        network=Network(channel=Channel.ONE, propagation=0, jitter=0, **network),
        workload=Workload(messages=1, pattern=Pattern.EVERYBODY, size=size),
        seed=seed,
    ).with_default_timeouts()


def test_what_comes_by_a_line_waits_for_what_came_before() -> None:
    """The last of four has waited for three; everybody has a line of its own, so that all receive at the same times."""
    _, rows = run(all_at_once(4, line_bits_per_second=SLOW))
    heard = by_node(of(rows, "receive"))
    for received in heard.values():
        times = [row.time for row in received[:4]]
        assert all(later - earlier >= MILLISECOND for earlier, later in pairwise([0, *times]))
    assert len({tuple((row.time, row.source) for row in received[:4]) for received in heard.values()}) == 1


@pytest.mark.parametrize("bandwidth", ["bits_per_second", "line_bits_per_second"])
def test_what_finds_a_full_queue_is_lost(bandwidth: str) -> None:
    """A thousand bytes may wait behind the unit that is transmitted: of four that come at once, two find more."""
    result, rows = run(all_at_once(4, queue_bytes=1_100, **{bandwidth: SLOW}))
    first = [row for row in of(rows, "lose") if row.time == 0]
    assert {row.detail for row in first} == {"queue full"}
    assert sorted((row.node, row.source) for row in first) == sorted(
        (node, lost) for node in range(4) for lost in (2, 3)
    )
    assert result.complete, "what is lost is repaired"


@pytest.mark.parametrize("bandwidth", ["bits_per_second", "line_bits_per_second"])
def test_nothing_is_lost_where_there_is_room(bandwidth: str) -> None:
    result, _ = run(all_at_once(4, queue_bytes=10_000, **{bandwidth: SLOW}))
    assert (result.counters.lost, result.complete) == (0, True)


def test_a_queue_is_of_each_sender_where_each_has_a_medium() -> None:
    network = Network(channel=Channel.MANY, bits_per_second=SLOW)
    channel = channel_model(network, 2, 1)
    channel.arrivals(0, 0, 3_000)
    assert (channel.waits(0, 0), channel.waits(0, 1), channel.waits(5 * MILLISECOND, 0)) == (3 * MILLISECOND, 0, 0)


def test_a_queue_of_any_length_loses_nothing() -> None:
    network = Network(bits_per_second=SLOW)
    assert not network.is_full(SECOND)
    assert not network.may_lose()
    narrow = Network(bits_per_second=SLOW, queue_bytes=1_000)
    assert [narrow.is_full(waiting) for waiting in (MILLISECOND, MILLISECOND + 1)] == [False, True]
    assert narrow.may_lose()
    assert Network(receive_buffer=1).may_lose()


def test_timeouts_know_the_line() -> None:
    """Everything that all nodes send comes by one line."""
    without, narrow = Network(), Network(line_bits_per_second=SLOW)
    assert narrow.round_trip(4, 1_000) - without.round_trip(4, 1_000) == 2 * 4 * MILLISECOND


def test_a_run_with_narrow_lines_can_be_repeated_with_its_losses_as_a_script() -> None:
    config = msgspec.structs.replace(
        all_at_once(4, queue_bytes=1_100, line_bits_per_second=SLOW), faults=(Loss(rate=0.1),), seed=3
    )
    first, again = run(config), run(config)
    assert first[1] == again[1]
    scripted, _ = run(explicit(config))
    assert scripted.complete
    assert explicit(config).network.queue_bytes == 0
