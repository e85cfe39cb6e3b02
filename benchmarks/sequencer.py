"""The measurements of the paper on the sequencer, published and simulated side by side.

How the prototype of 1989 is simulated, and where its three numbers are from, is told beside `prototype`. Dummies come
after half a history: after a whole one they would come too late under the load of Figure 7, and synchronization phases
would take most of the time.

    make bench
"""

from msgspec.structs import replace

from ordercast.evaluation.papers.sequencer_figures_6_and_7 import FIGURE_6, FIGURE_7, HISTORY, prototype
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.runs import TraceDetail
from ordercast.simulator import RunResult, simulate
from ordercast.trace.schema import EventRow


def measure_delay(nodes: int, messages: int = 1000) -> float:
    """Figure 6: milliseconds from calling to returning, for one node that broadcasts without a pause."""
    result = simulate(prototype(nodes, (nodes - 1,), messages))
    assert result.complete
    return result.virtual_time / messages / MILLISECOND


def measure_rate(senders: int, messages: int = 200, **settings: int) -> float:
    """Figure 7: broadcasts per second, while all senders send."""
    rows: list[EventRow] = []
    run = replace(prototype(10, tuple(range(senders)), messages, **settings), record=TraceDetail.ALL)
    result: RunResult = simulate(run, rows=rows)
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
