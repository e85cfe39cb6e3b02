"""`ordercast shrink`: a run that fails, made as small as it can be; and such a run acted out again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from ordercast.cli.pictures import show_picture
from ordercast.cli.printing import print_promise_broken
from ordercast.cli.progress import status_line
from ordercast.drawing import MOST_TRANSMISSIONS
from ordercast.model.config import require
from ordercast.model.errors import ConfigError, reason_of
from ordercast.model.runs import RunConfig
from ordercast.protocols.registry import PROTOCOLS
from ordercast.swarm.draw import draw_config
from ordercast.swarm.files import Story, read_story, write_story
from ordercast.swarm.judging import attempt
from ordercast.swarm.shrink import DoesNotFailError, FailsOtherwiseError, Progress, Shrunk, shrink
from ordercast.trace.reader import read_runs
from ordercast.trace.schema import CONFIG, RUN, EventKind, EventRow

_MOVES = {kind.value for kind in (EventKind.SEND, EventKind.ACCEPT, EventKind.PREACK, EventKind.ACK, EventKind.DELIVER)}
_AFTERWARDS = 12  # events


def shrink_command(
    what: Annotated[
        str, typer.Argument(help="A number of the swarm, a run's configuration (.json, .toml), or a trace's folder.")
    ],
    out: Annotated[Path, typer.Option(help="Write the small run and its test there.")] = Path("shrunk"),
    protocol: Annotated[
        str | None, typer.Option(help=f"With a number: one of {', '.join(PROTOCOLS)}; if not said, spo.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="With a folder: which run; if not said, the first that fails so.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="The way of failing to keep, such as same_order; if not said, the gravest.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="The longest that the search may take.")] = 60.0,
    draw: Annotated[bool, typer.Option("--draw", help="Draw what is left here.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw it as SVG there.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Makes a run that fails small. Exit 0: it does not fail; 1: it does, and is written down; 2: bad input."""
    require(0 < seconds < 1e9, "--seconds must be positive")
    require(not (json and draw), "--json and --draw both want standard output; take --svg FILE for the picture")
    name, found, otherwise = "", None, ""
    for name, config in _configs(what, protocol, run):
        with _shown() as progress:
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
    story = story_of_shrunk(name, found)
    places = write_story(out, name, story)
    _print(found, story, places, as_json=json)
    if draw or svg:
        _draw(attempt(found.config).rows, found.config.group.nodes, Console() if draw else None, svg)
    raise typer.Exit(1)


def story_of_shrunk(name: str, found: Shrunk) -> Story:
    """What is told of a run that was made small."""
    rest = "" if found.minimal else "; there was no time to make it smaller"
    return Story(found.config, found.failure, f"{name}: made small from {found.before}{rest}")


def replay_simulation(file: Path, *, draw: bool, svg: Path | None) -> bool:
    """Runs what a file tells, and says whether it fails."""
    story = read_story(file)
    found = attempt(story.config)
    console = Console(highlight=False)
    if story.about:
        console.print(story.about, soft_wrap=True, markup=False)
    for failure in found.failures:
        print_promise_broken(console, failure)
    if not found.failures:
        console.print("no promise is broken", style="green")
    if story.failure.kind not in {failure.kind for failure in found.failures}:
        console.print(f"the file expects: {story.failure}", style="yellow", soft_wrap=True, markup=False)
    if draw or svg:
        _draw(found.rows, story.config.group.nodes, console if draw else None, svg)
    return bool(found.failures)


def _draw(rows: Sequence[EventRow], nodes: int, console: Console | None, svg: Path | None) -> None:
    """As much as a picture shows: of a run that does not end, until a little after something last moved."""
    moved = max((place for place, row in enumerate(rows) if row[3] in _MOVES), default=0)
    shown, transmissions = [], 0
    for place, row in enumerate(rows):
        transmissions += row[3] == EventKind.TRANSMIT
        if transmissions > MOST_TRANSMISSIONS or (place > moved + _AFTERWARDS):
            typer.echo("ordercast: the picture shows the beginning; what follows goes on like its end", err=True)
            break
        shown.append(row)
    show_picture(shown, nodes, console, svg)


def _configs(what: str, protocol: str | None, run: str | None) -> Iterator[tuple[str, RunConfig]]:
    """The runs that are meant, each with a name."""
    path, is_number = Path(what), what.isdecimal()
    require(protocol is None or is_number, f"--protocol is for a number of the swarm; {what} says which it has")
    require(run is None or (not is_number and path.is_dir()), f"--run is for the folder of a trace, and {what} is none")
    if is_number:
        protocol = protocol or "spo"
        require(protocol in PROTOCOLS, f"unknown protocol {protocol!r}; choose one of: {', '.join(PROTOCOLS)}")
        yield f"{protocol}-{what}", draw_config(int(what), protocol=protocol)
    elif path.is_dir():
        rows = [row for row in read_runs([path]) if run in {None, row[RUN]}]
        require(rows, f"{path} holds no run {run!r}" if run else f"{path} holds no runs")
        for row in rows:
            told = f"run {row[RUN]} of {path} is no simulation, which alone can be run again"
            yield row[RUN], _config(row[CONFIG] or "{}", told)
    elif path.suffix == ".toml":
        yield path.stem, read_story(path).config
    else:
        yield path.stem, _config(_text(path), str(path))


def _config(text: str, told: str) -> RunConfig:
    try:
        return RunConfig.from_json(text)
    except ConfigError as error:
        raise ConfigError(f"{told}: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is no number, no configuration and no trace: {reason_of(error)}; "
            "name a number of the swarm, a .json or .toml file, or a folder"
        ) from error


@contextmanager
def _shown() -> Iterator[Progress | None]:
    with status_line("runs once …") as tell:
        yield tell and (lambda what, size, tried: tell(f"{size} after {tried:,} runs; now: {what}"))


def _print(found: Shrunk, story: Story, places: tuple[Path, Path], *, as_json: bool) -> None:
    scenario, test = places
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
            "config": msgspec.to_builtins(found.config),
        }
        typer.echo(msgspec.json.encode(document))
        return
    console = Console(highlight=False)
    console.print(f"{found.before} → {found.after}, {found.tried:,} runs, {found.seconds:g} s", soft_wrap=True)
    if not found.minimal:
        console.print("It may become smaller yet: time was too short, or chance is needed; see --seconds.")
    print_promise_broken(console, story.failure)
    console.print(f"The run is in {scenario}, and its test in {test};", soft_wrap=True, markup=False)
    console.print(f"see it with: ordercast replay {quote(str(scenario))} --draw", soft_wrap=True, markup=False)
