"""The measurements of the paper on the sequencer, published and simulated side by side.

The prototype of 1989 ran on ten 16 MHz MC68020s and an Ethernet of 10 Mbit/s. Three numbers describe it here. A null
message is a frame of 72 bytes with its preamble, which take 58 µs. What it costs a node to take one in follows from
Figure 6: each node more adds 25 µs to a broadcast, which is one dummy message after ten broadcasts, so 250 µs. What it
costs to send one is the rest of the 1.32 ms that a message takes to the sequencer and back to its sender: 352 µs.
Figure 7 is then computed, not fitted. The rules are the printed ones with the readings that the prototype must have
had, and dummies come after half a history: after a whole one they would come too late under the load of Figure 7, and
synchronization phases would take most of the time.

    make bench
"""

from ordercast.model.config import (
    MICROSECOND,
    MILLISECOND,
    SECOND,
    GroupConfig,
    PaperRules,
    Rules,
    SequencerConfig,
    SequencerReadings,
    Timing,
)
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.simulator import RunResult, simulate
from ordercast.trace.schema import EventRow

FIGURE_6 = {2: 1.32, 3: 1.35, 4: 1.38, 5: 1.40, 6: 1.43, 7: 1.45, 8: 1.48, 9: 1.50, 10: 1.53}
"""By nodes: the delay of a broadcast in milliseconds."""
FIGURE_7 = {2: 1333, 3: 1428, 4: 1538, 5: 1562, 6: 1500, 7: 1521}
"""By senders in a group of ten, one of them at the sequencer's node: broadcasts per second."""

HISTORY = 20
NULL_MESSAGE = 46  # with our header 72 bytes: the shortest frame of an Ethernet and its preamble
SEND_TIME = 352 * MICROSECOND
RECEIVE_TIME = 250 * MICROSECOND


def prototype(nodes: int, senders: tuple[int, ...], messages: int, *, dummy_after: int = HISTORY // 2) -> RunConfig:
    """Node 0 is the sequencer; each sender broadcasts without a pause, one message at a time."""
    readings = SequencerReadings(
        first_id=1, acknowledges_last=True, advances_own_row=True, older_are_duplicates=True, dummy_after=dummy_after
    )
    return RunConfig(
        protocol="sequencer",
        group=GroupConfig(
            nodes=nodes,
            rules=Rules.PAPER,
            window=1,
            timing=Timing.for_round_trip(20 * MILLISECOND),
            paper=PaperRules(sequencer=readings),
            sequencer=SequencerConfig(history=HISTORY),
        ),
        network=Network(
            channel=Channel.ONE,
            propagation=0,
            jitter=0,
            bits_per_second=10_000_000,
            send_time=SEND_TIME,
            receive_time=RECEIVE_TIME,
        ),
        workload=Workload(messages=messages, pattern=Pattern.EVERYBODY, senders=senders, size=NULL_MESSAGE),
    )


def measure_delay(nodes: int, messages: int = 1000) -> float:
    """Figure 6: milliseconds from calling to returning, for one node that broadcasts without a pause."""
    result = simulate(prototype(nodes, (nodes - 1,), messages))
    assert result.complete
    return result.virtual_time / messages / MILLISECOND


def measure_rate(senders: int, messages: int = 200, **settings: int) -> float:
    """Figure 7: broadcasts per second, while all senders send."""
    rows: list[EventRow] = []
    result: RunResult = simulate(prototype(10, tuple(range(senders)), messages, **settings), rows=rows)
    assert result.complete
    deliveries = [(time, node, source) for node, _, time, event, source, *_ in rows if event == "deliver"]
    last = {source: time for time, node, source in deliveries if node == source}
    end = min(last.values())
    return sum(node == 0 and time <= end for time, node, _ in deliveries) * SECOND / end


def main() -> None:
    """Prints the two figures."""
    from command_line import parser_for  # noqa: PLC0415 (tests import this file from elsewhere)

    parser_for(__doc__, "up to some minutes").parse_args()
    print("Figure 6: one site broadcasting continuously, delay in ms")
    print(f"{'nodes':>7} {'published':>10} {'simulated':>10} {'differs':>8}")
    for nodes, published in FIGURE_6.items():
        found = measure_delay(nodes)
        print(f"{nodes:>7} {published:>10.2f} {found:>10.3f} {found / published - 1:>8.1%}", flush=True)
    print(
        "\nFigure 7: several senders in a group of 10, broadcasts per second; dummies after 10 messages, and after 20"
    )
    print(f"{'senders':>7} {'published':>10} {'simulated':>10} {'differs':>8} {'after 20':>10}")
    for senders, rate in FIGURE_7.items():
        found, late = measure_rate(senders), measure_rate(senders, dummy_after=HISTORY)
        print(f"{senders:>7} {rate:>10} {found:>10.0f} {found / rate - 1:>8.1%} {late:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
