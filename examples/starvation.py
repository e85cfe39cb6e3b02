"""Low priorities under an endless stream of urgent messages, with and without run synchronisation.

Prints how long each priority waits, and draws every message: when it was sent, and how long it waited at E1.

    python examples/starvation.py [PICTURE.svg]
"""

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ordercast.simulation import (
    Channel,
    GroupConfig,
    Network,
    Pattern,
    PriorityConfig,
    RunConfig,
    RunResult,
    TraceDetail,
    Workload,
    simulate,
)
from ordercast.trace.schema import EventField, EventRow

MILLISECOND = 1_000_000
PRIORITIES = {
    3: ("urgent (3), every tenth", "#9aa1ac", 5, 10),
    2: ("normal (2)", "#0072b2", 12, 1),
    1: ("low (1)", "#d55e00", 12, 1),
}
"""Of each priority: its name, colour, size in the picture, and which of its messages are drawn."""


def run(*, synchronises: bool) -> tuple[RunResult, list[tuple[int, float, float]]]:
    """A run, and of each message its priority, when it was sent, and how long it waited at E1, in milliseconds."""
    config = RunConfig(
        protocol="prito",
        group=GroupConfig(nodes=4, priority=PriorityConfig(synchronises=synchronises)),
        network=Network(channel=Channel.ONE, bits_per_second=100_000_000),
        workload=Workload(messages=500, pattern=Pattern.STEADY, gap=50_000, size=200, priorities=3, urgent=0.9),
        record=TraceDetail.DELIVERIES,
    ).with_default_timeouts()
    rows: list[EventRow] = []
    result = simulate(config, rows=rows)
    sent = {
        (row[EventField.SOURCE], row[EventField.SEQ]): (row[EventField.PRIORITY] or 0, row[EventField.TIME])
        for row in rows
        if row[EventField.EVENT] == "send"
    }
    waits = []
    for node, _, time, event, source, seq, *_ in rows:
        if event == "deliver" and node == 0:
            priority, sent_at = sent[source, seq]
            waits.append((priority, sent_at / MILLISECOND, (time - sent_at) / MILLISECOND))
    return result, waits


def draw(axes: Axes, title: str, waits: list[tuple[int, float, float]]) -> None:
    """One picture: the urgent in the back, the low in front."""
    for priority, (name, colour, size, every) in PRIORITIES.items():
        points = [(sent, wait) for of, sent, wait in waits if of == priority][::every]
        sent, waited = zip(*points, strict=True)
        marker = "^" if priority == 1 else "o"
        axes.scatter(sent, waited, s=size, color=colour, label=name, linewidths=0, marker=marker)
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel("sent at (ms)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e7eb", linewidth=0.6)
    axes.set_axisbelow(True)


def main() -> None:
    """Both runs, the table and the picture."""
    mpl.rcParams.update({"svg.hashsalt": "ordercast", "font.size": 9})  # the same picture each time
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    print(f"{'run synchronisation':<20} {'priority':>8} {'deliveries':>10} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}")
    for axes, synchronises in zip(panels, (False, True), strict=True):
        result, waits = run(synchronises=synchronises)
        assert result.complete
        draw(axes, "with run synchronisation" if synchronises else "without", waits)
        for priority, times in sorted(result.counters.waiting.items(), reverse=True):
            told = [time / MILLISECOND for time in (times.percentile(50), times.percentile(99), times.highest)]
            words = "with" if synchronises else "without"
            print(f"{words:<20} {priority:>8} {times.count:>10,} {told[0]:>8.1f} {told[1]:>8.1f} {told[2]:>8.1f}")
    panels[0].set_ylabel("waited at E1 (ms)")
    panels[0].legend(frameon=False, loc="upper right")
    if len(sys.argv) > 1:
        figure.savefig(Path(sys.argv[1]), metadata={"Date": None})
        print(f"The picture is {sys.argv[1]}")


if __name__ == "__main__":
    main()
