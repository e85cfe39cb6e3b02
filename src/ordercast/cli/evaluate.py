"""`ordercast evaluate`: every table and figure of the papers, measured on Spark."""

import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.progress import progress_bar
from ordercast.cli.shared.spark_session import CONF, MASTER, pipeline_extra, spark_session
from ordercast.model.errors import ConfigError
from ordercast.model.runs import RunConfig
from ordercast.trace.storage import Location, location

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.evaluation.experiment import Experiment
    from ordercast.evaluation.results import ClaimResult, Result


def evaluate_command(
    out: Annotated[Any, typer.Option(help="Folder for the results, also as a URL.", parser=location, metavar="FOLDER")],
    master: Annotated[str | None, MASTER] = None,
    conf: Annotated[list[str] | None, CONF] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds: rough results, in a few minutes instead of ten.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this table or figure, such as st-figure8, repeatable.")
    ] = None,
) -> None:
    """Measure every table and figure of the papers on Spark.

    A comparison agrees with what was published, or differs from it, with the reason; that is a result and no failure.

    Exit 0: all runs are done; 1: some failed; 2: bad input.
    """
    from rich.console import Console

    with pipeline_extra():
        from ordercast.evaluation import Size
        from ordercast.evaluation.results import ClaimResult, Evaluation, store
        from ordercast.pipeline import measure

    size = Size.QUICK if quick else Size.FULL
    names, chosen = _choose(size, only)
    before = _commands_before(out, size.value)
    command = "\n".join([*(before if only else ()), shlex.join(["ordercast", *sys.argv[1:]])])
    evaluation = Evaluation(command, size.value, _versions(), names, _today())
    store(out, "evaluation.json", evaluation)
    console = Console()
    failed, findings = 0, list[ClaimResult]()
    with spark_session(master, conf) as spark:
        _say(console, "✓ agrees with what was published   ✗ differs from it, and why   – too few runs to compare")
        for experiment in chosen:
            with progress_bar(experiment.name) as progress:

                def on_spark(configs: Sequence[RunConfig], progress: Any = progress) -> list[dict[str, Any]]:
                    return measure(spark, configs, progress=progress)

                result = experiment.run(on_spark)
            store(out, f"{result.name}.json", result)
            failed += _print(result, console)
            findings += result.findings
    _say(console, _summary(findings))
    _say(console, f"The results are in {out}; build the page with: ordercast report {shlex.quote(str(out))}")
    raise typer.Exit(1 if failed else 0)


def _choose(size: Any, only: list[str] | None) -> tuple[tuple[str, ...], "list[Experiment]"]:
    from ordercast.evaluation import experiments

    every = experiments(size)
    names = tuple(experiment.name for experiment in every)
    for name in only or []:
        if name not in names:
            raise ConfigError(f"unknown table or figure {name!r}; choose one of: {', '.join(names)}")
    return names, [experiment for experiment in every if not only or experiment.name in only]


def _commands_before(out: Location, size: str) -> tuple[str, ...]:
    """The commands that wrote into this folder before; results of different sizes must not be mixed on a page."""
    from ordercast.evaluation.results import SUMMARY, Evaluation, load

    if not (out / SUMMARY).exists():
        return ()
    found = load(out / SUMMARY, Evaluation)
    if found.size != size:
        raise ConfigError(f"{out} holds {found.size} results, and these would be {size}; choose another folder")
    return tuple(found.command.splitlines())


def _print(result: "Result", console: "Console") -> int:
    """Prints the findings of a result; returns the number of failed runs."""
    console.print(f"[bold]{result.name}[/]  {result.title} ({result.source})", soft_wrap=True, highlight=False)
    for finding in result.findings:
        mark = "–" if finding.agrees is None else "✓" if finding.agrees else "✗"
        _say(console, f"  {mark} {finding.sentence}")
    failed = sum(point.failed for series in result.series for point in series.points)
    if failed:
        console.print(f"  {counted(failed, 'run')} raised an error", style="bold red")
    return failed


def _summary(findings: "Sequence[ClaimResult]") -> str:
    answers = [finding.agrees for finding in findings]
    text = f"{counted(len(answers), 'comparison')}: {answers.count(True)} agree, {answers.count(False)} differ"
    return f"{text}, {few} had too few runs" if (few := answers.count(None)) else text


def _say(console: "Console", sentence: str) -> None:
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for package in ("ordercast", "pyspark", "numpy", "scipy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
