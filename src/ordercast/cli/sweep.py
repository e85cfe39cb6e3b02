"""`ordercast sweep`: all runs of a grid, on Spark, into one trace."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.progress import progress_bar
from ordercast.cli.shared.spark_session import CONF, MASTER, pipeline_extra, spark_session
from ordercast.model.config import require
from ordercast.model.runs import TraceDetail
from ordercast.trace.storage import location

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.pipeline import SweepResult

_SHOWN = 5  # failed runs that are printed; the trace has them all
SOME_FAILED = 3
"""The exit status of a sweep that is done although some of its runs failed."""


def sweep_command(
    grid: Annotated[Path, typer.Argument(help="The grid, in TOML: lists are combined, [\\[grid]] blocks are added.")],
    out: Annotated[
        Any, typer.Option(help="Folder for the trace of all runs, also as a URL.", parser=location, metavar="FOLDER")
    ],
    master: Annotated[str | None, MASTER] = None,
    conf: Annotated[list[str] | None, CONF] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a sweep that was stopped.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Time limit of each run, in seconds.")] = None,
    record: Annotated[
        TraceDetail | None, typer.Option(help="How much the trace keeps, whatever the grid says.")
    ] = None,
) -> None:
    """Simulate all runs of a parameter grid on Spark.

    Exit 0: all runs are done; 3: done, but some failed; 2: bad input, or no Spark.
    """
    from rich.console import Console

    require(
        time_limit is None or 0 < time_limit < 1e9,
        f"--time-limit must be a positive number of seconds, not {time_limit}",
    )
    with pipeline_extra():
        from ordercast.pipeline import read_grid, require_sweepable, sweep
    configs = read_grid(grid, record)
    require_sweepable(configs, out, resume=resume)  # before Spark starts, which takes long
    with spark_session(master, conf) as spark, progress_bar("runs") as progress:
        try:
            result = sweep(spark, configs, out, resume=resume, time_limit=time_limit, progress=progress)
        except KeyboardInterrupt:
            typer.echo(f"Finished runs are kept in {out}; continue with --resume.", err=True)
            raise
    _print(result, Console())
    raise typer.Exit(SOME_FAILED if result.failed else 0)


def _print(result: "SweepResult", console: "Console") -> None:
    before = f" ({result.found:,} of them from before)" if result.found else ""
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
        console.print(f"  … and {len(result.failed) - _SHOWN:,} more; see the column `error` of runs/")
    sentence = f"The trace is in {result.out}; audit it with: ordercast audit {quote(str(result.out))}"
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)
