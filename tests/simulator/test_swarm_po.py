"""PO in random configurations: every run finishes, falls silent and keeps each sender's order; and what a loss costs.

A run is decided by its number alone: `run_and_audit(draw_config(NUMBER, protocol="po"))` brings a failure back.
"""

import pytest

from ordercast.model.config import MICROSECOND, GroupConfig
from ordercast.model.faults import Loss, Miss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.simulator import RunResult, simulate
from ordercast.swarm.draw import draw_config
from ordercast.trace.schema import EventField, EventKind, EventRow
from tests.swarm.audited_runs import failures, run_and_audit

CHUNK = 5


@pytest.mark.parametrize("first", range(0, 5, CHUNK))
def test_a_swarm_of_random_runs_holds(first: int) -> None:
    for number in range(first, first + CHUNK):
        result, verdict = run_and_audit(draw_config(number, protocol="po", receipts=1_500))
        assert not failures(result, verdict), f"number {number}"
        assert result.counters.delivered > 0


def test_the_swarm_is_that_of_spo() -> None:
    for number in range(20):
        spo, po = draw_config(number), draw_config(number, protocol="po")
        assert (spo.protocol, po.protocol) == ("spo", "po")
        assert (spo.group, spo.network, spo.workload, spo.faults) == (po.group, po.network, po.workload, po.faults)


def test_going_back_ends_even_where_every_repetition_overruns_the_receivers() -> None:
    """All nodes send 32 packets at once to receivers that have four places: most of each repetition is lost again."""
    nodes = 8
    network = Network(receive_time=5 * MICROSECOND, receive_buffer=4)
    workload = Workload(messages=32, pattern=Pattern.EVERYBODY)
    group = GroupConfig(nodes=nodes, window=64, polls_to_abort=10**9, timing=workload.timing(network, nodes))
    faults = (Loss(rate=0.3),)
    result, verdict = run_and_audit(
        RunConfig(protocol="po", group=group, network=network, workload=workload, faults=faults)
    )
    assert not failures(result, verdict)
    assert result.counters.retransmitted > 3 * result.counters.transmitted, "it was as bad as that"


# --- JP section 4.2, Table 1: what is sent again when one packet is lost ---

NODES, SENT, LOST = 4, 20, 6


def with_one_loss(protocol: str, gap: int) -> tuple[RunResult, list[EventRow]]:
    """E1 sends at equal intervals; E3 misses one of its packets."""
    network, work = Network(jitter=0), Workload(messages=SENT, pattern=Pattern.TALKER, gap=gap)
    group = GroupConfig(nodes=NODES, timing=work.timing(network, NODES))
    faults = (Miss(node=2, source=0, nth=LOST + 1),)
    rows: list[EventRow] = []
    config = RunConfig(protocol=protocol, group=group, network=network, workload=work, faults=faults)
    result = simulate(config, rows=rows)
    assert result.complete
    return result, rows


@pytest.mark.parametrize("gap", [5, 10, 25, 40, 1000])
def test_table_1_the_lost_packet_and_all_behind_it_are_sent_again(gap: int) -> None:
    """N_PO: whatever its source sent from the lost packet on until it heard of the loss, once; N_SPO is one here."""
    result, rows = with_one_loss("po", gap * MICROSECOND)
    asked = next(row for row in rows if row[EventField.EVENT] == EventKind.REQUEST)
    copies = [place for place, row in enumerate(rows) if row[EventField.EVENT] == EventKind.RETRANSMIT]
    sent = [row[EventField.SEQ] for row in rows[: copies[0]] if row[EventField.EVENT] == EventKind.SEND]
    expected = sent[LOST:]
    assert [rows[place][5] for place in copies] == expected
    assert result.counters.retransmitted == len(expected)
    assert asked[0] == 2
    thrown_away = [
        row[EventField.SEQ] for row in rows if row[EventField.EVENT] == EventKind.DISCARD and row[EventField.NODE] == 2
    ]
    assert thrown_away == expected[1:], "what the loser throws away comes again: N is both"
    assert result.counters.requests == 1


def test_table_1_what_spo_sends_again_is_the_lost_packet() -> None:
    result, _ = with_one_loss("spo", 5 * MICROSECOND)
    assert result.counters.retransmitted == 1


def test_table_1_po_sends_again_an_nth_of_what_to_does() -> None:
    """N_PO = N_TO / n, as far as it can be: losses are few, and their repairs do not meet."""
    nodes, copies = 8, {}
    for protocol in ("to", "po"):
        network, work = Network(channel=Channel.ONE), Workload(messages=100, gap=50 * MICROSECOND)
        group = GroupConfig(nodes=nodes, timing=work.timing(network, nodes))
        losses = repaired = 0
        for seed in range(6):
            config = RunConfig(
                protocol=protocol, group=group, network=network, workload=work, faults=(Loss(rate=0.0007),), seed=seed
            )
            counters = simulate(config).counters
            losses, repaired = losses + counters.lost_data, repaired + counters.retransmitted
        assert losses > 15
        copies[protocol] = repaired / losses
    assert nodes / 2 < copies["to"] / copies["po"] < nodes * 2
