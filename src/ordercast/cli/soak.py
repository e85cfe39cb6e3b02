"""`ordercast soak`: random runs of all protocols on Spark, each judged, for as long as wanted."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ordercast.cli.printing import counted
from ordercast.cli.shrink import story_of_shrunk
from ordercast.cli.spark import MASTER, opened, pipeline_extra
from ordercast.model.config import require
from ordercast.model.errors import ConfigError, TraceError, reason_of
from ordercast.swarm.files import write_story
from ordercast.swarm.shrink import DoesNotFailError, shrink
from ordercast.swarm.soak import EVERY_PROTOCOL

if TYPE_CHECKING:
    from ordercast.pipeline import Soak


def soak_command(
    out: Annotated[Path, typer.Option(help="Remember there what is done, and keep what fails.")],
    seconds: Annotated[float | None, typer.Option(help="Go on for so long.")] = None,
    deliveries: Annotated[int | None, typer.Option(help="Go on until so many deliveries were judged in all.")] = None,
    runs: Annotated[int | None, typer.Option(help="Go on until there were so many runs in all.")] = None,
    protocols: Annotated[str, typer.Option(help="Such as spo,st; if not said, all.")] = "",
    first: Annotated[
        int | None, typer.Option(help="The number that a new soak begins with; others, other runs; if not said, 0.")
    ] = None,
    master: Annotated[str | None, MASTER] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a soak that was stopped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Runs random configurations and judges them. Exit 0: all held; 1: some failed; 2: bad input, or no Spark."""
    limits = {"--seconds": seconds, "--deliveries": deliveries, "--runs": runs}
    require(
        any(limit is not None for limit in limits.values()), "say when it is enough: --seconds, --deliveries or --runs"
    )
    for option, limit in limits.items():
        require(limit is None or 0 < limit < 1e15, f"{option} must be positive")
    require(first is None or 0 <= first < 1e15, "--first must not be negative")
    with pipeline_extra():
        from ordercast.pipeline import Limits, Soak, session, soak  # noqa: F401, PLC0415 - a session needs Spark
    work = Soak(out, _protocols(protocols), first=first, resume=resume)  # before Spark takes its time to start
    if resume and not work.rounds:
        _say(f"there is nothing in {out} to go on with: a new soak begins")
    with work.held(), opened(master) as spark:
        try:
            soak(spark, work, Limits(seconds=seconds, deliveries=deliveries, runs=runs), note=_note)
        except KeyboardInterrupt:
            typer.echo(f"What is done stays in {out}; go on with it by --resume.", err=True)
            raise
    kept = _kept(work)
    if json:
        typer.echo(msgspec.json.encode(_document(work)))
    else:
        _print(work, kept, Console())
    raise typer.Exit(1 if work.failed else 0)


def _protocols(text: str) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())) or EVERY_PROTOCOL
    for name in wanted:
        if name not in EVERY_PROTOCOL:
            raise ConfigError(f"unknown protocol {name!r}; choose one of: {', '.join(EVERY_PROTOCOL)}")
    return wanted


def _kept(work: "Soak") -> list[Path]:
    """What failed, each as the configuration that it was, and made small: a file to replay, and a test."""
    from ordercast.pipeline.soak.soak import FAILURES  # noqa: PLC0415

    folder, kept = work.out / FAILURES, []
    for number in work.failed:
        config = work.config(number)
        name = f"{config.protocol}-{number}"
        whole, small = folder / f"{name}.json", folder / f"{name}.toml"
        if not small.exists():
            try:
                folder.mkdir(exist_ok=True)
                whole.write_text(config.to_json(), encoding="utf-8")
            except OSError as error:
                raise TraceError(f"cannot keep the run {name} that failed: {reason_of(error)}") from error
            _say(f"number {number} failed, and is made small")
            try:
                small, _ = write_story(folder, name, story_of_shrunk(name, shrink(config)))
            except DoesNotFailError:  # it took too long there, or did so under another ordercast
                small = whole
        kept.append(small)
    return kept


def _note(work: "Soak") -> None:
    """A line for each round."""
    tally = work.tally
    _say(
        f"{counted(tally.runs, 'run')}, {tally.deliveries:,} deliveries judged, "
        f"{counted(tally.failed, 'run')} failed, {work.seconds:,.0f} s"
    )


def _say(line: str) -> None:
    """How far it is, on standard error even if that is a file: whoever waits for hours may look there."""
    typer.echo(f"soak: {line}", err=True)


def _document(work: "Soak") -> dict[str, object]:
    failed = {
        number: [{"kind": kind, "sentence": told} for kind, told in wrong] for number, wrong in work.failed.items()
    }
    return {**msgspec.structs.asdict(work.tally), "seconds": work.seconds, "failures": failed}


def _print(work: "Soak", kept: list[Path], console: Console) -> None:
    tally = work.tally
    console.print(
        f"{counted(tally.runs, 'run')}, {tally.deliveries:,} deliveries judged "
        f"({tally.with_levels:,} with what nodes knew), {counted(tally.failed, 'run')} failed; {work.seconds:,.0f} s",
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


def _what_to_do(kept: Path) -> str:
    place = quote(str(kept))
    if kept.suffix == ".toml":
        return f"made small: ordercast replay {place} --draw"
    return f"not so when it was run here; once more: ordercast shrink {place}"


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(first, min_width=32)
    for name in numbers:
        table.add_column(name, justify="right")
    return table
