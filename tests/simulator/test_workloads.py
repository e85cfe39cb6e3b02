"""What the applications of a group send, to whom and when."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from ordercast.model.machine import Input, LogSizes, Machine, Output, Submit
from ordercast.model.nodes import members
from ordercast.model.runs import Pattern, RunConfig, Workload
from ordercast.simulator.simulation import Simulation
from ordercast.simulator.workloads import senders, submissions
from tests.simulator.rows import make_config, of, run

GAP = 200_000


def config_of(nodes: int = 4, seed: int = 1, **work: object) -> RunConfig:
    return make_config(nodes, workload=Workload(**{"gap": GAP, **work}), seed=seed)  # type: ignore[arg-type]


def submitted(config: RunConfig, node: int = 0) -> list[tuple[int, Submit]]:
    return list(submissions(config, node))


# --- how many ---


@pytest.mark.parametrize("pattern", list(Pattern))
@pytest.mark.parametrize(
    ("messages", "batch", "packets"),
    [(0, 1, []), (1, 1, [1]), (5, 1, [1] * 5), (7, 3, [3, 3, 1]), (6, 3, [3, 3]), (2, 16, [2])],
)
def test_messages_go_into_packets_and_the_last_may_be_smaller(
    pattern: Pattern, messages: int, batch: int, packets: list[int]
) -> None:
    config = config_of(messages=messages, batch=batch, pattern=pattern, size=10)
    submits = [submit for _, submit in submitted(config)]
    assert [submit.lengths for submit in submits] == [(10,) * count for count in packets]
    assert [len(submit.payload) for submit in submits] == [10 * count for count in packets]


@pytest.mark.parametrize("pattern", list(Pattern))
def test_a_run_sends_what_it_was_told_to(pattern: Pattern) -> None:
    config = config_of(messages=13, batch=4, pattern=pattern)
    result, rows = run(config)
    talkers = 1 if pattern is Pattern.TALKER else 4
    assert senders(config) == tuple(range(talkers))
    assert result.counters.sent == 13 * talkers
    assert result.counters.transmitted == 4 * talkers  # packets of 4, 4, 4 and 1
    assert result.counters.delivered == 4 * 13 * talkers
    assert Counter(row.node for row in of(rows, "send")) == dict.fromkeys(range(talkers), 13)
    assert result.complete


def test_only_node_0_talks_as_a_talker() -> None:
    config = config_of(messages=9, pattern=Pattern.TALKER)
    assert [len(submitted(config, node)) for node in range(4)] == [9, 0, 0, 0]


# --- to whom ---


@pytest.mark.parametrize("nodes", [2, 3, 7, 12, 13, 40])
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.25, 0.5, 0.77, 1.0])
def test_a_message_goes_to_its_share_of_the_group_on_average(nodes: int, spread: float) -> None:
    """At least to one; else to the two whole numbers next to the share, in proportion: within five deviations."""
    sizes = [
        submit.destinations.bit_count() for _, submit in submitted(config_of(nodes, messages=2_000, spread=spread))
    ]
    wanted = max(1.0, spread * nodes)
    assert {int(wanted), int(wanted + 1 - 1e-9)} >= set(sizes)
    assert abs(sum(sizes) / len(sizes) - wanted) <= 5 * 0.5 / len(sizes) ** 0.5
    assert min(sizes) >= 1


@pytest.mark.parametrize("nodes", [5, 20])
def test_every_node_is_as_likely_a_destination_as_any_other(nodes: int) -> None:
    """The sender is one of them."""
    config = config_of(nodes, messages=4_000, spread=0.4)
    counts = Counter(node for _, submit in submitted(config, 1) for node in members(submit.destinations))
    assert set(counts) == set(range(nodes))
    for count in counts.values():
        assert abs(count - 1_600) <= 5 * (4_000 * 0.4 * 0.6) ** 0.5


def test_subsets_are_drawn_anew_for_each_packet_and_node() -> None:
    config = config_of(6, messages=200, spread=0.5)
    drawn = [[submit.destinations for _, submit in submitted(config, node)] for node in range(3)]
    assert drawn[0] != drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 20  # all subsets of three of six


def test_destinations_do_not_depend_on_times() -> None:
    """Each use of chance has a stream of its own."""
    drawn = [
        [submit.destinations for _, submit in submitted(config_of(messages=50, spread=0.5, pattern=pattern))]
        for pattern in Pattern
    ]
    assert all(destinations == drawn[0] for destinations in drawn)


# --- when ---


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("pattern", [Pattern.STEADY, Pattern.POISSON, Pattern.BURSTY, Pattern.TALKER])
def test_the_mean_gap_between_messages_is_what_was_asked_for(pattern: Pattern, batch: int) -> None:
    """Random gaps within five deviations of their mean; the others within the one gap that is between two of them."""
    times = [time for time, _ in submitted(config_of(messages=4_000, batch=batch, pattern=pattern))]
    assert times == sorted(times)
    mean = (times[-1] - times[0]) / 4_000
    tolerance = 5 / len(times) ** 0.5 if pattern is Pattern.POISSON else 16 / 4_000  # 16: a burst
    assert abs(mean - GAP) <= tolerance * GAP


def test_steady_nodes_send_at_equal_intervals_and_not_at_once() -> None:
    config = config_of(4, messages=50, pattern=Pattern.STEADY)
    starts = []
    for node in range(4):
        times = [time for time, _ in submitted(config, node)]
        assert {later - earlier for earlier, later in pairwise(times)} == {GAP}
        starts.append(times[0])
    assert starts == [0, GAP // 4, GAP // 2, 3 * GAP // 4]


def test_poisson_nodes_send_at_random() -> None:
    """The gaps of an exponential deviate from their mean by the mean itself."""
    config = config_of(messages=5_000, pattern=Pattern.POISSON)
    times = [time for time, _ in submitted(config)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert 0.9 < deviation / mean < 1.1
    assert times != [time for time, _ in submitted(config, 1)]


@pytest.mark.parametrize(("burst", "batch", "packets"), [(16, 1, 16), (16, 3, 5), (2, 16, 1)])
def test_bursty_nodes_send_bursts_at_once(burst: int, batch: int, packets: int) -> None:
    config = config_of(messages=40 * batch, pattern=Pattern.BURSTY, burst=burst, batch=batch)
    counts = Counter(time for time, _ in submitted(config))
    assert set(list(counts.values())[:-1]) <= {packets}
    assert {later - earlier for earlier, later in pairwise(counts)} == {GAP * packets * batch}


# --- everybody at once ---


@pytest.mark.parametrize("window", [1, 5, 32])
def test_everybody_keeps_the_window_full_and_little_more_waiting(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(3, workload=Workload(messages=100, pattern=Pattern.EVERYBODY), window=window)
    simulation = Simulation(config)
    seen: list[LogSizes] = []
    for machine in simulation.machines:
        monkeypatch.setattr(machine, "handle", watched(machine, seen))
    result = simulation.run()
    assert result.complete
    assert result.counters.sent == 300
    assert result.counters.longest_sent == window
    assert 0 < max(sizes.waiting for sizes in seen) <= window + 1
    assert sum(sizes.sent == window for sizes in seen) > len(seen) / 2


def watched(machine: Machine, seen: list[LogSizes]) -> Callable[[Input], list[Output]]:
    """The machine's own door, with an eye on how much it holds behind it."""
    handle = machine.handle

    def door(event: Input) -> list[Output]:
        outputs = handle(event)
        seen.append(machine.log_sizes())
        return outputs

    return door


def test_everybody_draws_submissions_only_as_the_window_takes_them() -> None:
    simulation = Simulation(make_config(3, workload=Workload(messages=200, pattern=Pattern.EVERYBODY), window=4))
    ahead: list[int] = []

    def counted(submits: Iterator[tuple[int, Submit]], node: int) -> Iterator[tuple[int, Submit]]:
        for drawn, submit in enumerate(submits, start=1):
            ahead.append(drawn - len(simulation._measurements._sent_at[node]))
            yield submit

    simulation._workloads = [counted(submits, node) for node, submits in enumerate(simulation._workloads)]
    assert simulation.run().complete
    assert len(ahead) == 600
    assert max(ahead) == 5  # one more than the window
