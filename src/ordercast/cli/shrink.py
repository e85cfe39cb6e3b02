"""`ordercast shrink`: a failing run, reduced to a small one that fails in the same way."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.shared.group_options import require_protocol
from ordercast.cli.shared.progress import status_line
from ordercast.model.config import require
from ordercast.model.errors import ConfigError, reason_of
from ordercast.model.runs import RunConfig
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.schema import CONFIG, RUN, EventField, EventKind, EventRow

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.swarm.failing_runs import FailingRun
    from ordercast.swarm.shrink import ShrinkProgress, Shrunk

_MOVES = {kind.value for kind in (EventKind.SEND, EventKind.ACCEPT, EventKind.PREACK, EventKind.ACK, EventKind.DELIVER)}
_AFTERWARDS = 12  # events


def shrink_command(
    what: Annotated[
        str,
        typer.Argument(help="A number of the swarm, a run's configuration (.json, .toml), or the folder of a trace."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the small run and its test.")] = Path("shrunk"),
    protocol: Annotated[
        str | None, typer.Option(help=f"For a number: one of {', '.join(PROTOCOLS)} (default: spo).")
    ] = None,
    run: Annotated[str | None, typer.Option(help="For a folder: the run (default: the first that fails).")] = None,
    kind: Annotated[
        str | None, typer.Option(help="The failure to preserve, such as same_order (default: the most serious).")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time limit of the search.")] = 60.0,
    draw: Annotated[bool, typer.Option("--draw", help="Print a space-time diagram of the small run.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Write the diagram to this SVG file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Reduce a failing run to a small one and write it with a test.

    Exit 0: the run does not fail; 1: it fails, and the small run is written; 2: bad input.
    """
    from rich.console import Console

    from ordercast.swarm.failing_runs import write_failing_run
    from ordercast.swarm.run_audit import attempt
    from ordercast.swarm.shrink import DoesNotFailError, FailsOtherwiseError, shrink

    require(0 < seconds < 1e9, f"--seconds must be positive, not {seconds:g}")
    require(not (json and draw), "--json and --draw both write to standard output; use --svg FILE for the picture")
    _require_kind(kind)
    name, found, otherwise = "", None, ""
    for name, config in _configs(what, protocol, run):
        with _progress() as progress:
            try:
                found = shrink(config, kind=kind, seconds=seconds, progress=progress)
            except DoesNotFailError as error:
                typer.echo(f"ordercast: {name}: {error}", err=True)
                continue
            except FailsOtherwiseError as error:
                otherwise = otherwise or f"{name}: {error}"
                continue
        break
    require(found or not otherwise, otherwise)
    if found is None:
        raise typer.Exit(0)
    recorded = shrunk_run(name, found)
    paths = write_failing_run(out, name, recorded)
    _print(found, recorded, paths, as_json=json)
    if draw or svg:
        draw_run(attempt(found.config).rows, found.config.group.nodes, Console() if draw else None, svg)
    raise typer.Exit(1)


def _require_kind(kind: str | None) -> None:
    from ordercast.audit.services import OF_VIEWS, PROMISES
    from ordercast.swarm.run_audit import OTHER_FAILURES, RAISES

    known = sorted({check.__name__ for checks in (*PROMISES.values(), OF_VIEWS) for check in checks})
    others = [*OTHER_FAILURES, f"{RAISES} EXCEPTION"]
    require(
        kind is None or kind in {*known, *OTHER_FAILURES} or kind.startswith(f"{RAISES} "),
        f"unknown failure {kind!r}; choose one of: {', '.join([*known, *others])}",
    )


def shrunk_run(name: str, found: "Shrunk") -> "FailingRun":
    """A shrunk run as it is written to a file."""
    from ordercast.swarm.failing_runs import FailingRun

    rest = "" if found.minimal else "; not minimal: the time limit was reached"
    return FailingRun(found.config, found.failure, f"{name}: shrunk from {found.before}{rest}")


def draw_run(rows: Sequence[EventRow], nodes: int, console: "Console | None", svg: Path | None) -> None:
    """Draws as much of a run as fits a picture: of one that does not end, until shortly after its last progress."""
    from ordercast.cli.shared.diagrams import show_diagram
    from ordercast.drawing import MOST_TRANSMISSIONS

    moved = max((place for place, row in enumerate(rows) if row[EventField.EVENT] in _MOVES), default=0)
    shown, transmissions = [], 0
    for place, row in enumerate(rows):
        transmissions += row[EventField.EVENT] == EventKind.TRANSMIT
        if transmissions > MOST_TRANSMISSIONS or (place > moved + _AFTERWARDS):
            typer.echo("ordercast: the picture shows the beginning; the rest repeats its end", err=True)
            break
        shown.append(row)
    show_diagram(shown, nodes, console, svg)


def _configs(what: str, protocol: str | None, run: str | None) -> Iterator[tuple[str, RunConfig]]:
    """The runs to try, each with a name."""
    from ordercast.swarm.draw import draw_config
    from ordercast.swarm.failing_runs import read_failing_run

    path, is_number = Path(what), what.isdecimal()
    require(protocol is None or is_number, f"--protocol has no effect for {what}, only for a number of the swarm")
    require(
        run is None or (not is_number and path.is_dir()),
        f"--run has no effect for {what}, only for the folder of a trace",
    )
    if is_number:
        protocol = protocol or "spo"
        require_protocol(protocol)
        yield f"{protocol}-{what}", draw_config(int(what), protocol=protocol)
    elif path.is_dir():
        from ordercast.trace.reader import read_runs

        rows = [row for row in read_runs([path]) if run in {None, row[RUN]}]
        require(rows, f"{path} has no run {run!r}" if run else f"{path} has no runs")
        for row in rows:
            cannot = f"run {row[RUN]} of {path} is not a simulation, and only simulations can be repeated"
            yield row[RUN], _config(row[CONFIG] or "{}", cannot)
    elif path.suffix == ".toml":
        yield path.stem, read_failing_run(path).config
    else:
        yield path.stem, _config(_text(path), str(path))


def _config(text: str, context: str) -> RunConfig:
    try:
        return RunConfig.from_json(text)
    except ConfigError as error:
        raise ConfigError(f"{context}: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not a number, a configuration or a trace: {reason_of(error)}; "
            "give a number of the swarm, a .json or .toml file, or a folder"
        ) from error


@contextmanager
def _progress() -> "Iterator[ShrinkProgress | None]":
    with status_line("running it once …") as show:
        yield show and (lambda what, size, tried: show(f"{size} after {tried:,} runs; trying: {what}"))


def _print(found: "Shrunk", recorded: "FailingRun", paths: tuple[Path, Path], *, as_json: bool) -> None:
    import msgspec
    from rich.console import Console

    from ordercast.cli.shared.printing import print_promise_broken

    scenario, test = paths
    if as_json:
        document = {
            "failure": {"kind": found.failure.kind, "sentence": found.failure.sentence},
            "before": found.before,
            "after": found.after,
            "minimal": found.minimal,
            "runs": found.tried,
            "seconds": found.seconds,
            "scenario": str(scenario),
            "test": str(test),
            "config": msgspec.Raw(found.config.to_json().encode()),
        }
        typer.echo(msgspec.json.encode(document))
        return
    console = Console(highlight=False)
    console.print(f"{found.before} → {found.after}, {found.tried:,} runs, {found.seconds:g} s", soft_wrap=True)
    if not found.minimal:
        console.print("It may not be minimal: the time limit was reached, or the failure is random; see --seconds.")
    print_promise_broken(console, recorded.failure)
    console.print(f"The run is in {scenario}, its test in {test};", soft_wrap=True, markup=False)
    console.print(f"replay it with: ordercast replay {quote(str(scenario))} --draw", soft_wrap=True, markup=False)
