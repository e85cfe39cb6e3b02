"""`ordercast sweep`: all runs of a grid, on Spark, into one trace."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ordercast.cli.printing import counted
from ordercast.cli.progress import bar
from ordercast.cli.spark import MASTER, opened, pipeline_extra
from ordercast.model.config import require
from ordercast.model.runs import TraceDetail

if TYPE_CHECKING:
    from ordercast.pipeline import SweepResult

_SHOWN = 5  # failed runs that are told on the screen; the trace has them all
SOME_FAILED = 3
"""The exit status of a sweep that went to its end although some runs came to nothing."""


def sweep_command(
    grid: Annotated[Path, typer.Argument(help="The grid, in TOML: lists are multiplied, [\\[grid]] blocks added up.")],
    out: Annotated[Path, typer.Option(help="Write the trace of all runs there.")],
    master: Annotated[str | None, MASTER] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a sweep that was stopped.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Seconds that a run may take.")] = None,
    record: Annotated[
        TraceDetail | None, typer.Option(help="How much the trace keeps, whatever the grid says.")
    ] = None,
) -> None:
    """Simulates all runs of a grid. Exit 0: all were run; 3: all but some that failed; 2: bad input, or no Spark."""
    require(time_limit is None or 0 < time_limit < 1e9, "--time-limit must be a positive number of seconds")
    with pipeline_extra():
        from ordercast.pipeline import read_grid, require_sweepable, sweep  # noqa: PLC0415
    configs = read_grid(grid, record)
    require_sweepable(configs, out, resume=resume)  # before Spark takes its time to start
    with opened(master) as spark, bar("runs") as progress:
        try:
            result = sweep(spark, configs, out, resume=resume, time_limit=time_limit, progress=progress)
        except KeyboardInterrupt:
            typer.echo(f"What is done stays in {out}; go on with it by --resume.", err=True)
            raise
    _print(result, Console())
    raise typer.Exit(SOME_FAILED if result.failed else 0)


def _print(result: "SweepResult", console: Console) -> None:
    before = f" ({result.found:,} of them before)" if result.found else ""
    incomplete = result.runs - result.complete - len(result.failed)
    console.print(
        f"{counted(result.runs, 'run')}{before}: {result.complete:,} complete, {incomplete:,} incomplete, "
        f"{len(result.failed):,} failed",
        soft_wrap=True,
        highlight=False,
    )
    for run, error in list(result.failed.items())[:_SHOWN]:
        console.print(f"  {run}: {error}", soft_wrap=True, markup=False, highlight=False)
    if len(result.failed) > _SHOWN:
        console.print(f"  … and {len(result.failed) - _SHOWN:,} more; the column `error` of runs/ has them all")
    sentence = f"The trace is in {result.out}; judge it with: ordercast audit {quote(str(result.out))}"
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)
