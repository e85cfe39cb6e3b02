"""What a search sees, for people: how far it is, its figures, and the schedule that breaks a promise."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from ordercast.cli.printing import in_lines
from ordercast.cli.progress import status_line
from ordercast.explorer.counterexample import Counterexample
from ordercast.explorer.explore import Progress, Report


@contextmanager
def searching() -> Iterator[Progress | None]:
    """What a search tells how far it is, if somebody looks."""
    with status_line("searching …") as tell:
        yield tell and (lambda states, seconds: tell(f"{states:,} states, {states / max(seconds, 1e-9):,.0f} a second"))


def print_figures(console: Console, report: Report) -> None:
    """How much was searched, and how fast."""
    whole = "all there are" if report.exhausted else "and there are more" if report.counterexample is None else "so far"
    pace = report.states / report.seconds if report.seconds else 0
    table = Table.grid(padding=(0, 2))
    table.add_row("states", f"{report.states:,}, {whole}")
    table.add_row("edges", f"{report.edges:,}")
    table.add_row("steps to the farthest", f"{report.depth:,}")
    if report.continued:  # those that end well: none does where everybody waits for ever
        table.add_row("continuations", f"{report.continued:,}, of up to {report.longest} rounds of timers")
    table.add_row("time", f"{report.seconds:,.1f} s, {pace:,.0f} states a second")
    console.print(table)


def print_broken(console: Console, counterexample: Counterexample) -> None:
    """The schedule, a line for each step, and what it breaks."""
    console.print("[bold red]broken[/]")
    for number, line in enumerate(counterexample.schedule, start=1):
        console.print(f"  {number:>3}  {line}", markup=False, soft_wrap=True)
    if counterexample.live:
        since = "from there on nothing is lost" if counterexample.schedule else "nothing is lost at all"
        console.print(f"       {since}, and yet:")
    first, *others = in_lines(counterexample.sentence)
    for line in (f"  => {first}", *(f"       {line}" for line in others)):
        console.print(line, markup=False, soft_wrap=True)
