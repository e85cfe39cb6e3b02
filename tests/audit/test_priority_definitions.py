"""The definitions of "Run Synchronization in the Priority-Based Broadcast Protocol", section 3, and its Figures 1 to 4.

Figure 3 is lost; the golden file has logs of which all is true that the text says of it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.audit.logs import Moment, Sent
from ordercast.audit.priorities import priority_equivalent, priority_ordered, priority_runs
from tests.audit.figures import golden
from tests.audit.priority_definitions import (
    is_connected,
    is_maximum_run_partition,
    is_run,
    is_run_partition,
    run_equivalent,
)

PRITO = golden("golden-prito-seq.json")["prito"]

Log = list[Sent]
Parts = Sequence[Sequence[Sent]]


def letters(*sending_logs: Any) -> dict[str, Sent]:
    """By letter, what the entities sent: each log a list of letters and priorities."""
    return {
        letter: Sent((source, seq), seq, 0, priority, Moment(0, 0))
        for source, log in enumerate(sending_logs)
        for seq, (letter, priority) in enumerate(log)
    }


def of_different_senders(log: Any) -> Log:
    """A log of which nothing is known but the priorities."""
    return list(letters(*[[entry] for entry in log]).values())


def cut(log: Log, lengths: Sequence[int]) -> list[Log]:
    """A log in parts of these lengths."""
    ends = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    assert ends[-1] == len(log)
    return [log[start:end] for start, end in pairwise(ends)]


def partitions(log: Log) -> Iterator[list[Log]]:
    """All ways of cutting a log into parts."""
    for count in range(len(log)):
        for ends in combinations(range(1, len(log)), count):
            yield [log[start:end] for start, end in pairwise([0, *ends, len(log)])]


# --- Figure 1: priority-based ordered, priority-equivalent ---


@pytest.fixture
def fig_1() -> tuple[dict[str, Sent], list[Log]]:
    fig = PRITO["fig1"]
    sent = letters(fig["SL1"], fig["SL2"], fig["SL3"])
    return sent, [[sent[letter] for letter, _ in fig[name]] for name in ("RL1", "RL2", "RL3")]


def test_figure_1_every_log_is_priority_based_ordered(fig_1: tuple[dict[str, Sent], list[Log]]) -> None:
    assert [priority_ordered(log) for log in fig_1[1]] == PRITO["fig1"]["expect"]["priority_based_ordered"]


def test_figure_1_all_logs_are_priority_equivalent(fig_1: tuple[dict[str, Sent], list[Log]]) -> None:
    pairs = list(combinations(fig_1[1], 2))
    expected = PRITO["fig1"]["expect"]["priority_equivalent_pairwise"]
    assert [priority_equivalent(*pair) for pair in pairs] == [expected] * 3
    assert all(one != other for one, other in pairs), "and no two of them are the same"


def test_figure_1_it_is_x_and_z_that_keep_their_sending_order(fig_1: tuple[dict[str, Sent], list[Log]]) -> None:
    """The text says x and y, which have different priorities."""
    sent, (log, *_) = fig_1
    x, y, z = sent["x"], sent["y"], sent["z"]
    assert [x.priority == z.priority, x.priority == y.priority] == [True, False]
    exchanged = [{x: z, z: x}.get(entry, entry) for entry in log]
    assert not priority_ordered(exchanged)
    assert not priority_equivalent(log, exchanged)


def test_logs_with_other_messages_are_not_priority_equivalent(fig_1: tuple[dict[str, Sent], list[Log]]) -> None:
    log = fig_1[1][0]
    assert not priority_equivalent(log, log[:-1])
    assert priority_equivalent([], [])


# --- Figure 2: runs, connected ---

FIG_2 = PRITO["fig2"]
L = of_different_senders(FIG_2["L"])
R = {name: L[FIG_2[name]["from"] - 1 : FIG_2[name]["to"]] for name in ("R1", "R2", "R3", "R4")}


def test_figure_2_runs() -> None:
    assert {name: is_run(part, L) for name, part in R.items()} == {name: FIG_2[name]["run"] for name in R}


def test_figure_2_r3_is_connected_to_r2_and_nothing_else_to_anything() -> None:
    found = [[one, other] for one in R for other in R if is_connected(R[one], R[other], L)]
    assert found == FIG_2["connected"]


def test_a_run_has_no_holes() -> None:
    """The text says subsequence; with holes nothing could be connected."""
    holed = [L[0], L[2]]
    assert priority_ordered(holed)
    assert not is_run(holed, L)
    assert not is_run(R["R1"], L[1:])
    assert not is_run([], L)


def test_figure_2_the_maximum_partition() -> None:
    lengths = FIG_2["maximum_run_partition_lengths"]
    assert [len(run) for run in priority_runs(L)] == lengths
    assert is_maximum_run_partition(cut(L, lengths), L)


# --- Figure 3: run-partitions ---


@pytest.mark.parametrize("number", "12")
def test_figure_3_both_are_run_partitions_and_one_is_maximum(number: str) -> None:
    fig = PRITO["fig3"]
    log = of_different_senders(fig[f"L{number}"])
    some, maximum = cut(log, fig[f"S{number}"]), cut(log, fig[f"R{number}"])
    assert [is_run_partition(parts, log) for parts in (some, maximum)] == [True, True]
    assert [is_maximum_run_partition(parts, log) for parts in (some, maximum)] == [False, True]


def test_figure_3_the_logs_are_run_equivalent() -> None:
    fig = PRITO["fig3"]
    sent = letters(*[[entry] for entry in fig["L1"]])
    one, other = ([sent[letter] for letter, _ in fig[name]] for name in ("L1", "L2"))
    assert one != other
    assert run_equivalent(one, other)


def test_what_is_not_all_of_the_log_or_no_run_is_no_run_partition() -> None:
    assert not is_run_partition([R["R2"], R["R3"]], L)
    assert not is_run_partition([R["R3"], L[:5]], L)
    assert not is_run_partition(cut(L, [4, 4]), L), "its second part is R4"
    assert is_run_partition([], [])


# --- the maximum run-partition, and the printed condition ---


def maximum_as_printed(parts: Parts, log: Log) -> bool:
    """k = 1, or p.PRI > q.PRI for p the last of each run and q the top of the next."""
    return is_run_partition(parts, log) and all(one[-1].priority > two[0].priority for one, two in pairwise(parts))


def lengths_of(log: Log, accepts: Callable[[Parts, Log], bool]) -> list[list[int]]:
    return [[len(part) for part in parts] for parts in partitions(log) if accepts(parts, log)]


def test_as_printed_the_maximum_would_not_be_unique() -> None:
    case = PRITO["maximum_partition_printed_condition_is_wrong"]
    log = of_different_senders(case["L"])
    assert lengths_of(log, maximum_as_printed) == case["printed_condition_accepts"]
    assert lengths_of(log, is_maximum_run_partition) == case["corrected_condition_accepts"]


def test_as_printed_figure_4_would_have_none() -> None:
    log = of_different_senders(PRITO["fig4"]["PriTO"][0])
    assert lengths_of(log, maximum_as_printed) == []
    assert lengths_of(log, is_maximum_run_partition) == [PRITO["fig4"]["maximum_run_partition_lengths"]]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=8))
def test_there_is_just_one_maximum_run_partition(priorities: list[int]) -> None:
    log = of_different_senders([(str(place), priority) for place, priority in enumerate(priorities)])
    assert lengths_of(log, is_maximum_run_partition) == [[len(run) for run in priority_runs(log)]]


def test_a_log_against_a_senders_order_has_none() -> None:
    one, two = letters([("a", 1), ("b", 1)]).values()
    assert lengths_of([two, one], is_maximum_run_partition) == []
    assert not run_equivalent([two, one], [two, one])


# --- Figure 4: run-equivalent ---


@pytest.mark.parametrize("service", ["PriO", "PriTO"])
def test_figure_4_all_logs_are_run_equivalent(service: str) -> None:
    fig = PRITO["fig4"]
    sent = letters(fig["SL1"], fig["SL2"], fig["SL3"])
    logs = [[sent[letter] for letter, _ in log] for log in fig[service]]
    pairs = list(combinations(logs, 2))
    assert [run_equivalent(*pair) for pair in pairs] == [fig["expect"][f"{service}_run_equivalent"]] * 3
    assert all(one == other for one, other in pairs) == fig["expect"][f"{service}_order_equivalent"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("b c e d a f", "b c e d a"),  # a message is lacking
        ("b c e d a f", "b c d e a f"),  # another number of runs
        ("b c d e a f", "b e d c a f"),  # c and e change runs
    ],
)
def test_logs_that_are_not_run_equivalent(one: str, other: str) -> None:
    fig = PRITO["fig4"]
    sent = letters(fig["SL1"], fig["SL2"], fig["SL3"])
    assert not run_equivalent(*([sent[letter] for letter in log.split()] for log in (one, other)))
