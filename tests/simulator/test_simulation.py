"""How runs end: at rest once faults stop, given up, or stalled; and what their results then say."""

from collections import Counter

import pytest

from ordercast.model.config import MILLISECOND, SECOND, GroupConfig, Timing
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Pause, Split
from ordercast.model.machine import Level
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.protocols.shared.backoff import MAX_FACTOR
from ordercast.protocols.spo.machine import Spo
from ordercast.simulator import simulate, simulation
from ordercast.simulator.simulation import Simulation
from tests.simulator.rows import by_node, make_config, of, run

FOR_EVER = 10**18
POLL = Timing().poll


# --- the end of a run that must finish ---

ENDING: list[tuple[Fault, ...]] = [
    (),
    (Loss(rate=0.6, until=15 * MILLISECOND),),
    (Loss(rate=0.4, shared=True, until=15 * MILLISECOND), Duplicates(rate=0.3, until=15 * MILLISECOND)),
    (Bursts(well=MILLISECOND, bad=MILLISECOND, until=15 * MILLISECOND),),
    (Split(side=(0, 1), at=MILLISECOND, lasting=14 * MILLISECOND),),
    (Split(side=(2,), at=MILLISECOND, lasting=14 * MILLISECOND, one_way=True), Loss(rate=0.1)),
    (Pause(node=1, at=MILLISECOND, lasting=14 * MILLISECOND), Pause(node=2, at=5 * MILLISECOND, lasting=MILLISECOND)),
]


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
@pytest.mark.parametrize("faults", ENDING, ids=lambda faults: "+".join(type(fault).__name__ for fault in faults))
@pytest.mark.parametrize("pattern", [Pattern.POISSON, Pattern.EVERYBODY])
def test_once_faults_stop_a_run_finishes_and_falls_silent(
    channel: Channel, faults: tuple[Fault, ...], pattern: Pattern
) -> None:
    config = make_config(
        4,
        network=Network(channel=channel),
        workload=Workload(messages=60, spread=0.5, pattern=pattern),
        faults=faults,
        polls_to_abort=10**9,
    )
    whole = Simulation(config)
    result = whole.run()
    assert (result.complete, result.stalled, result.aborted) == (True, False, False)
    assert result.waits == ((), (), (), ())
    assert whole._events.heap == []
    assert not any(whole._timers)
    for machine in whole.machines:
        assert isinstance(machine, Spo)
        assert not machine.unfinished()
        assert not any(getattr(machine.log_sizes(), name) for name in machine.log_sizes().__struct_fields__)


def test_when_nobody_waits_nobody_speaks() -> None:
    """After the last that was learnt, each node pays at most what it owed then and one answer to a poll."""
    result, rows = run(make_config(4, workload=Workload(messages=50), faults=[Loss(rate=0.1)]))
    late = Counter(row.node for row in of(rows, "transmit") if row.time > result.virtual_time)
    assert all(count <= 2 for count in late.values())
    assert max(row.time for row in rows) - result.virtual_time < 4 * POLL


def test_a_group_with_nothing_to_say_says_nothing() -> None:
    result, rows = run(make_config(3, workload=Workload(messages=0), faults=[Loss(rate=0.5)]))
    assert (result.complete, result.virtual_time, rows) == (True, 0, [])
    assert not any(count for _, count in result.counters.columns())


def test_the_virtual_time_is_when_something_last_moved() -> None:
    result, rows = run(make_config(4, faults=[Loss(rate=0.2)]))
    assert result.virtual_time == max(row.time for row in of(rows, "send", "accept", "preack", "ack"))


# --- complete ---


@pytest.mark.parametrize(("spread", "complete"), [(0.5, True), (1.0, False)])
def test_complete_is_when_all_destinations_know_it(spread: float, complete: bool) -> None:
    """What node 1 says is never heard. Alone with a message it needs nobody to know all; with node 0 in it, it does."""
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=2, polls_to_abort=10**9),
        workload=Workload(messages=12, pattern=Pattern.TALKER, spread=spread),
        faults=(Split(side=(1,), at=0, lasting=FOR_EVER, one_way=True),),
        stall_timeout=100 * MILLISECOND,
    )
    result, rows = run(config)
    assert {row.destinations for row in of(rows, "send")} == ({(0,), (1,)} if complete else {(0, 1)})
    assert (result.complete, result.counters.delivered) == (complete, 12 if complete else 0)
    known = {(row.node, row.message) for row in of(rows, "ack")}
    due = {(node, row.message) for row in of(rows, "send") for node in row.destinations or ()}
    assert (due <= known) == complete
    assert result.stalled  # as node 0 never learns what became of its messages
    assert result.waits[0]


@pytest.mark.parametrize(("at", "complete"), [(0, False), (3 * MILLISECOND, False), (SECOND, True)])
def test_what_a_crashed_node_did_not_send_is_lacking(at: int, complete: bool) -> None:
    """A node that stops when all is done takes nothing away."""
    config = make_config(3, workload=Workload(messages=40, gap=100_000), faults=[Crash(node=2, at=at)])
    result, rows = run(config)
    assert result.complete == complete
    sent = sum(row.node == 2 for row in of(rows, "send"))
    assert sent == {0: 0, SECOND: 40}.get(at, sent)
    assert complete or sent < 40


def test_at_rest_every_destination_and_source_knows_all() -> None:
    for seed in range(5):
        workload = Workload(messages=25, spread=0.4)
        result, rows = run(make_config(4, workload=workload, faults=[Loss(rate=0.2)], seed=seed))
        due = {(node, row.message) for row in of(rows, "send") for node in {*(row.destinations or ()), row.node}}
        assert {(row.node, row.message) for row in of(rows, "ack")} == due
        assert result.complete


# --- given up ---


@pytest.mark.parametrize("polls", [1, 3, 10])
def test_the_others_give_a_group_up_after_so_many_polls(polls: int) -> None:
    crash = Crash(node=2, at=5 * MILLISECOND)
    config = make_config(4, workload=Workload(messages=100), faults=[crash], polls_to_abort=polls)
    result, rows = run(config)
    aborts = {row.node: row for row in of(rows, "abort")}
    assert set(aborts) == {0, 1, 3}
    for node, abort in aborts.items():
        asked = [
            row
            for row in by_node(rows)[node]
            if row.event == "transmit" and row.detail == "poll" and row.time > crash.at + MILLISECOND
        ]
        assert len(asked) == polls
        assert abort.detail == f"E3 left {polls} polls in a row unanswered"
        # Each waits at most 2T · 4, the first for what moved before it too.
        assert crash.at < abort.time < crash.at + (polls + 3) * 2 * MAX_FACTOR * POLL
    assert (result.complete, result.aborted, result.stalled) == (False, True, False)
    assert result.waits[2] == ()
    for node in (0, 1, 3):
        assert any("E3" in line for line in result.waits[node])


def test_what_is_only_heard_after_giving_up_changes_nothing() -> None:
    _, rows = run(make_config(4, workload=Workload(messages=100), faults=[Crash(node=2, at=0)], polls_to_abort=2))
    for mine in by_node(rows).values():
        behind = [row.event for row in mine]
        behind = behind[behind.index("abort") + 1 :] if "abort" in behind else []
        assert set(behind) <= {"receive", "hear", "timeout", "lose"}


def test_nobody_gives_up_for_a_node_that_was_only_away() -> None:
    pause = Pause(node=2, at=2 * MILLISECOND, lasting=20 * MILLISECOND)
    result, rows = run(make_config(4, workload=Workload(messages=60), faults=[pause], polls_to_abort=30))
    assert [row for row in of(rows, "transmit") if row.detail == "poll"]
    assert (result.complete, result.aborted) == (True, False)


# --- stalled ---


def stalled_config(stall_timeout: int) -> RunConfig:
    """Nobody ever hears node 0, and nobody gives up."""
    return RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=3, polls_to_abort=10**9),
        workload=Workload(messages=5, gap=MILLISECOND),
        faults=(Split(side=(0,), at=0, lasting=FOR_EVER, one_way=True),),
        stall_timeout=stall_timeout,
        seed=1,
    )


@pytest.mark.parametrize("stall_timeout", [20 * MILLISECOND, 200 * MILLISECOND])
def test_a_run_in_which_nothing_moves_is_called_stalled(stall_timeout: int) -> None:
    result, rows = run(stalled_config(stall_timeout))
    assert (result.complete, result.stalled, result.aborted) == (False, True, False)
    last = max(row.time for row in rows)
    assert result.virtual_time + stall_timeout - 2 * MAX_FACTOR * POLL < last < result.virtual_time + stall_timeout
    assert result.virtual_time == max(row.time for row in of(rows, "send", "accept", "preack", "ack"))


def test_a_stalled_run_says_what_each_node_waits_for() -> None:
    waits = simulate(stalled_config(50 * MILLISECOND)).waits
    assert "5 packets sent are not known to be accepted by {E2,E3}" in waits[0]
    for node in (1, 2):
        assert "5 packets sent are not known to be accepted by {E1}" in waits[node]
        assert any("wait to be known as accepted by {E1}" in line for line in waits[node])


def test_a_long_pause_is_no_stall() -> None:
    """A paused node is known to come back: stall_timeout begins then."""
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=3, polls_to_abort=10**9),
        workload=Workload(messages=20),
        faults=(Pause(node=1, at=MILLISECOND, lasting=500 * MILLISECOND),),
        stall_timeout=50 * MILLISECOND,
    )
    result = simulate(config)
    assert (result.complete, result.stalled) == (True, False)
    assert result.virtual_time > 500 * MILLISECOND


def test_seldom_messages_are_no_stall() -> None:
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=3),
        workload=Workload(messages=5, pattern=Pattern.STEADY, gap=SECOND),
        stall_timeout=50 * MILLISECOND,
    )
    result = simulate(config)
    assert (result.complete, result.stalled) == (True, False)


# --- latencies ---


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
@pytest.mark.parametrize("propagation", [1_000, 50_000, 3_000_000])
def test_a_message_is_accepted_when_it_has_come(channel: Channel, propagation: int) -> None:
    """At its receivers a propagation after it was sent, at its source at once; in rows and in the counters."""
    config = make_config(
        4,
        network=Network(channel=channel, propagation=propagation, jitter=0),
        workload=Workload(messages=20, pattern=Pattern.TALKER),
        timing=Timing.for_round_trip(2 * propagation),
    )
    result, rows = run(config)
    sent = {row.message: row.time for row in of(rows, "send")}
    for row in of(rows, "accept"):
        assert row.time - sent[row.message] == (0 if row.node == 0 else propagation)
    accepted = result.counters.latency[Level.ACCEPTED]
    assert (accepted.count, accepted.highest) == (80, propagation)
    assert accepted.percentile(25) == 0
    assert propagation * 0.969 < accepted.percentile(26) <= propagation


def test_latencies_of_all_levels_are_those_of_the_rows() -> None:
    result, rows = run(make_config(4, workload=Workload(messages=50, spread=0.5), faults=[Loss(rate=0.1)]))
    sent = {row.message: row for row in of(rows, "send")}
    for level, event in ((Level.ACCEPTED, "accept"), (Level.PREACKNOWLEDGED, "preack"), (Level.ACKNOWLEDGED, "ack")):
        times = sorted(
            row.time - sent[row.message].time
            for row in of(rows, event)
            if row.node in (sent[row.message].destinations or ())
        )
        measured = result.counters.latency[level]
        assert (measured.count, measured.highest) == (len(times), times[-1])
        middle = times[(len(times) + 1) // 2 - 1]
        assert middle * 0.969 < measured.percentile(50) <= middle


# --- besides ---


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_PROGRESS_MASK", 127)
    told: list[tuple[int, int]] = []
    simulate(make_config(4, workload=Workload(messages=50)), progress=lambda done, total: told.append((done, total)))
    assert len(told) > 5
    assert {total for _, total in told} == {200}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert 0 < told[1][0] < told[-1][0] <= 200


def test_a_run_that_outgrows_64_bits_is_refused() -> None:
    config = make_config(3, workload=Workload(messages=30, pattern=Pattern.STEADY, gap=10**18))
    with pytest.raises(ConfigError, match="64 bits"):
        simulate(config)


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown protocol 'spa'; choose one of: .*spo"):
        simulate(RunConfig(protocol="spa", group=GroupConfig(nodes=3)))
