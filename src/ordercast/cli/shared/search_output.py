"""What `ordercast check` and `ordercast replay` print of a search: progress, figures, and the counterexample."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from ordercast.cli.shared.printing import in_lines
from ordercast.cli.shared.progress import status_line
from ordercast.explorer.counterexample import Counterexample
from ordercast.explorer.explore import SearchProgress, SearchReport


@contextmanager
def search_progress() -> Iterator[SearchProgress | None]:
    """The progress callback of a search, if standard error is a terminal."""
    with status_line("searching …") as show:
        yield show and (lambda states, seconds: show(f"{states:,} states, {states / max(seconds, 1e-9):,.0f}/s"))


def print_figures(console: Console, report: SearchReport) -> None:
    """How much was searched, and how fast."""
    extent = "exhaustive" if report.exhausted else "cut off" if report.counterexample is None else "so far"
    rate = report.states / report.seconds if report.seconds else 0
    table = Table.grid(padding=(0, 2))
    table.add_row("states", f"{report.states:,} ({extent})")
    table.add_row("transitions", f"{report.edges:,}")
    table.add_row("depth", f"{report.depth:,} steps")
    if report.continued:  # only those that reach the liveness goal are counted
        table.add_row("fair continuations", f"{report.continued:,}, of up to {report.longest} rounds of timers")
    table.add_row("time", f"{report.seconds:,.1f} s, {rate:,.0f} states/s")
    console.print(table)


def print_counterexample(console: Console, counterexample: Counterexample) -> None:
    """The schedule, a line for each step, and the promise that it breaks."""
    console.print("[bold red]broken[/]")
    for number, line in enumerate(counterexample.schedule, start=1):
        console.print(f"  {number:>3}  {line}", markup=False, soft_wrap=True)
    if counterexample.live:
        since = "no unit is lost after this" if counterexample.schedule else "no unit is lost at all"
        console.print(f"       {since}, and yet:")
    first, *others = in_lines(counterexample.sentence)
    for line in (f"  => {first}", *(f"       {line}" for line in others)):
        console.print(line, markup=False, soft_wrap=True)
