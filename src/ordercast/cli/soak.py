"""`ordercast soak`: random runs of all protocols on Spark, each audited, until a limit is reached."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from ordercast.cli.shared.group_options import require_protocol
from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.spark_session import CONF, MASTER, pipeline_extra, spark_session
from ordercast.model.config import require
from ordercast.model.errors import TraceError, reason_of
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.storage import Location, location
from ordercast.trace.working_folder import working_folder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ordercast.pipeline import Soak


def soak_command(
    out: Annotated[
        Any,
        typer.Option(
            help="Folder for its state and for failing runs, also as a URL.", parser=location, metavar="FOLDER"
        ),
    ],
    seconds: Annotated[float | None, typer.Option(help="Time limit.")] = None,
    deliveries: Annotated[
        int | None, typer.Option(help="Stop when this number of deliveries has been audited in all.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Stop after this number of runs in all.")] = None,
    protocols: Annotated[str, typer.Option(help="Such as spo,st (default: all).")] = "",
    views: Annotated[
        bool, typer.Option("--views", help="Groups whose members crash, join, leave, return and are suspected.")
    ] = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="Groups with durable logs, whose nodes are killed and started again.")
    ] = False,
    first: Annotated[
        int | None, typer.Option(help="The first number of a new soak; each number is another run (default: 0).")
    ] = None,
    master: Annotated[str | None, MASTER] = None,
    conf: Annotated[list[str] | None, CONF] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a soak that was stopped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Simulate and audit random configurations on Spark until a limit is reached.

    Exit 0: no run failed; 1: some failed; 2: bad input, or no Spark.
    """
    from rich.console import Console

    limits = {"--seconds": seconds, "--deliveries": deliveries, "--runs": runs}
    require(
        any(limit is not None for limit in limits.values()),
        "give a limit: --seconds, --deliveries or --runs",
    )
    for option, limit in limits.items():
        require(limit is None or 0 < limit < 1e15, f"{option} must be positive, not {limit}")
    require(first is None or 0 <= first < 1e15, f"--first must not be negative: {first}")
    require(not (views and logs), "--views and --logs are two soaks; give one of them")
    with pipeline_extra():
        from ordercast.pipeline import Limits, Soak, session, soak  # noqa: F401 - a session needs Spark
    work = Soak(out, _protocols(protocols), first=first, resume=resume, views=views, logs=logs)
    if resume and not work.rounds:
        _say(f"{out} has nothing to resume: starting a new soak")
    with work.held(), spark_session(master, conf) as spark:  # held before Spark starts, which takes long
        try:
            soak(spark, work, Limits(seconds=seconds, deliveries=deliveries, runs=runs), note=_note)
        except KeyboardInterrupt:
            typer.echo(f"Finished rounds are kept in {out}; continue with --resume.", err=True)
            raise
    kept = _kept(work)
    if json:
        typer.echo(msgspec.json.encode(_document(work)))
    else:
        _print(work, kept, Console())
    raise typer.Exit(1 if work.failed else 0)


def _protocols(text: str) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())) or tuple(sorted(PROTOCOLS))
    for name in wanted:
        require_protocol(name)
    return wanted


def _kept(work: "Soak") -> list[Location]:
    """Writes each failing run as its configuration and, shrunk, as a file to replay and a test."""
    from ordercast.pipeline.soak.soak import FAILURES

    there = work.out / FAILURES
    if not work.failed:
        return []
    with working_folder(there) as folder:
        return [there / path.name for path in _written(work, folder)]


def _written(work: "Soak", folder: Path) -> list[Path]:
    from ordercast.cli.shrink import shrunk_run
    from ordercast.swarm.failing_runs import write_failing_run
    from ordercast.swarm.shrink import DoesNotFailError, shrink

    kept = []
    for number in work.failed:
        config = work.config(number)
        name = f"{config.protocol}-{number}"
        whole, small = folder / f"{name}.json", folder / f"{name}.toml"
        if not small.exists():
            try:
                folder.mkdir(exist_ok=True)
                whole.write_text(config.to_json(), encoding="utf-8")
            except OSError as error:
                raise TraceError(f"cannot write the failing run {name}: {reason_of(error)}") from error
            _say(f"number {number} failed; shrinking it")
            try:
                small, _ = write_failing_run(folder, name, shrunk_run(name, shrink(config)))
            except DoesNotFailError:  # it exceeded a time limit there, or failed with another version
                small = whole
        kept.append(small)
    return kept


def _note(work: "Soak") -> None:
    """A line for each round."""
    tally = work.tally
    _say(
        f"{counted(tally.runs, 'run')}, {tally.deliveries:,} deliveries audited, "
        f"{counted(tally.failed, 'run')} failed, {work.seconds:,.0f} s"
    )


def _say(line: str) -> None:
    """Progress on standard error even if that is a file: a soak of hours is watched in its log."""
    typer.echo(f"soak: {line}", err=True)


def _document(work: "Soak") -> dict[str, object]:
    failed = {
        number: [{"kind": kind, "sentence": told} for kind, told in wrong] for number, wrong in work.failed.items()
    }
    return {**msgspec.structs.asdict(work.tally), "seconds": work.seconds, "failures": failed}


def _print(work: "Soak", kept: list[Location], console: "Console") -> None:
    tally = work.tally
    console.print(
        f"{counted(tally.runs, 'run')}, {tally.deliveries:,} deliveries audited "
        f"({tally.with_levels:,} with levels), {counted(tally.failed, 'run')} failed; {work.seconds:,.0f} s",
        soft_wrap=True,
        highlight=False,
    )
    table = _table("protocol", "runs", "deliveries")
    for name, (runs, deliveries) in sorted(tally.protocols.items()):
        table.add_row(name, f"{runs:,}", f"{deliveries:,}")
    console.print(table)
    for title, counts in (("fault drawn", tally.faults), ("what happened", tally.states)):
        table = _table(title, "runs")
        for name, count in sorted(counts.items(), key=lambda item: -item[1]):
            table.add_row(name, f"{count:,}")
        console.print(table)
    for (number, wrong), path in zip(work.failed.items(), kept, strict=True):
        kind, sentence = wrong[0]
        console.print(f"number {number}: {kind}: {sentence}", style="red", soft_wrap=True, markup=False)
        console.print(f"  {_what_to_do(path)}", soft_wrap=True, markup=False)


def _what_to_do(kept: Location) -> str:
    place = quote(str(kept))
    if kept.name.endswith(".toml"):
        return f"shrunk: ordercast replay {place} --draw"
    return f"it did not fail in this process; try again: ordercast shrink {place}"


def _table(first: str, *numbers: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(first, min_width=32)
    for name in numbers:
        table.add_column(name, justify="right")
    return table
