"""What is kept of a growing run does not grow with what was lost early, and what comes too late is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.audit.violations import Violation
from ordercast.model.services import Service
from ordercast.pipeline.audit.stream import missing, prefix, run_follower
from ordercast.pipeline.audit.stream.follower import Follower, take_here
from ordercast.pipeline.audit.stream.missing import lags
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.pipeline.audit.stream.run_follower import LAG, RunState, _new_lags
from tests.audit.figures import Row
from tests.pipeline.random_runs import batch_of
from tests.pipeline.test_follow import add

NODES = 3
BATCH = 20  # messages
EARLY = (1, 2)  # of E2, the third


def messages(batches: int, *, without: frozenset[tuple[int, int, int]] = frozenset()) -> Iterator[list[Row]]:
    """Messages of the nodes in turn, each delivered at once everywhere but at (node, source, seq) of `without`."""
    steps = [0] * NODES

    def row(node: int, time: int, event: str, message: tuple[int, int], to: tuple[int, ...] | None = None) -> Row:
        steps[node] += 1
        return (node, steps[node], time, event, *message, to, 0 if to else None)

    for batch in range(batches):
        rows: list[Row] = []
        for number in range(batch * BATCH, (batch + 1) * BATCH):
            source, seq = number % NODES, number // NODES
            rows.append(row(source, 10 * number, "send", (source, seq), tuple(range(NODES))))
            rows += [
                row(node, 10 * number + 5, "deliver", (source, seq))
                for node in range(NODES)
                if (node, source, seq) not in without
            ]
        yield rows


def grown(service: Service, batches: Iterator[list[Row]]) -> tuple[Prefix, list[int], list[Violation]]:
    """The state at the end, how many events were kept after each batch, and what was told."""
    run, kept, found = Prefix("r", nodes=NODES), list[int](), list[Violation]()
    for rows in batches:
        found += run.grow(batch_of(rows), service, uniform=service is Service.SEQUENCED)
        kept.append(run.carried().num_rows)
    return run, kept, found


@pytest.mark.parametrize("service", Service)
def test_one_delivery_lost_early_keeps_nothing_else(service: Service) -> None:
    run, kept, found = grown(service, messages(8, without=frozenset({(0, *EARLY)})))
    assert found == []
    assert max(kept) <= 3 * BATCH // 2, "a batch is complete but for what was lost"
    assert kept[-1] <= NODES
    assert [sentence for _, sentence in run.lags().values()] == ["E1 has lacked E2#2 for 140 messages"]


TOO_LATE = {
    Service.PRIORITY: [],  # may be delivered whenever it likes
    Service.SEQUENCED: ["E1 delivered E2#6 before E2#2, but E2 sent E2#2 first"],
    Service.PRIORITY_TOTAL: ["E1 delivered E3#2 before E2#2, E2 in the opposite order"],
}
"""By service: what a delivery long after is told as; of all others that the sender's order is not kept."""


@pytest.mark.parametrize("service", Service)
def test_what_comes_long_after_is_told(service: Service) -> None:
    run, _, _ = grown(service, messages(4, without=frozenset({(0, *EARLY)})))
    late: list[Row] = [(0, 10_000, 10_000, "deliver", *EARLY, None, None)]
    expected = TOO_LATE.get(service, TOO_LATE[Service.SEQUENCED])
    assert [one.sentence for one in run.grow(batch_of(late), service, uniform=True)] == expected
    assert run.lags() == {}
    again: list[Row] = [(0, 10_001, 10_001, "deliver", *EARLY, None, None)]
    assert [one.breaks for one in run.grow(batch_of(again), service, uniform=True)][:1] == ["complete"]


@pytest.mark.parametrize("service", [Service.TOTAL, Service.SELECTIVE_TOTAL, Service.PARTIAL, Service.PRIORITY_TOTAL])
def test_what_was_delivered_nowhere_does_not_hold_up_the_rest(service: Service) -> None:
    lost = frozenset((node, *EARLY) for node in range(NODES))
    run, kept, found = grown(service, messages(6, without=lost))
    assert found == []
    assert kept[-1] <= 1, "the send, where somebody might still deliver it"
    assert len(run.lags()) == NODES


@pytest.mark.parametrize("service", [Service.TOTAL, Service.PRIORITY, Service.SELECTIVE_PARTIAL])
def test_a_node_that_stays_behind_is_not_waited_for_at_last(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "MOST_CARRIED", 200)
    silent = frozenset((2, number % NODES, number // NODES) for number in range(1, 10_000))
    run, kept, found = grown(service, messages(20, without=silent))
    assert found == []
    assert max(kept) < 200 + 2 * NODES * BATCH
    assert run.behind == [2]
    ((age, sentence),) = run.lags().values()
    assert age > 300
    assert sentence == f"E3 has lacked E2#0 for {age:,} messages; it is not waited for any more"
    late: list[Row] = [(2, 10_000, 10_000, "deliver", 1, 0, None, None)]
    assert run.grow(batch_of(late), service, uniform=True) == [], "the audit of the whole judges it"


def test_more_losses_than_are_remembered_accuse_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "MOST_MISSING", 3)
    lost = frozenset((0, 1, seq) for seq in range(0, 30, 2))
    run, kept, found = grown(Service.PARTIAL, messages(6, without=lost))
    assert found == []
    assert len(run.missing) == 3
    assert run.forgetful == [0]
    assert kept[-1] <= NODES
    late: list[Row] = [(0, 10_000, 10_000, "deliver", 1, 28, None, None)]
    assert run.grow(batch_of(late), Service.PARTIAL, uniform=True) == []


def test_a_lag_is_told_once_and_again_when_it_is_ten_times_as_much() -> None:
    run = Prefix("r")
    run.missing = [missing.Missing(0, 3, 515, 0, None)]
    state, told = RunState(run), list[str]()
    for sent in (LAG - 1, LAG, 2 * LAG, 10 * LAG, 11 * LAG):
        run.messages = sent
        told += _new_lags(state, "r")
    assert told == [
        f"run r: E1 has lacked E4#515 for {LAG:,} messages",
        f"run r: E1 has lacked E4#515 for {10 * LAG:,} messages",
    ]
    run.missing = []
    assert _new_lags(state, "r") == []
    assert state.told == {}


def test_a_lag_is_told_with_the_batch_that_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_follower, "LAG", 100)
    following = Follower(tmp_path, tmp_path / "state", Service.TOTAL)
    told = []
    for number, rows in enumerate(messages(6, without=frozenset({(0, *EARLY)}))):
        add(tmp_path, number, rows)
        told += following.take(take_here) or []
    assert told == ["run r: E1 has lacked E2#2 for 100 messages"]


def test_several_lacks_are_one_sentence() -> None:
    lacks = [missing.Missing(0, 3, seq, since, None) for seq, since in ((9, 40), (2, 10), (7, 30))]
    assert lags(lacks, {1: (0, 5, 90)}, 100, []) == {
        0: (90, "E1 has lacked E4#2 and 2 others for 90 messages"),
        1: (10, "E2 has lacked E1#5 for 10 messages"),
    }
