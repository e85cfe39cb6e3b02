"""`ordercast replay`: a file that tells how something breaks, acted out step by step."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ordercast.cli.check_output import print_broken, print_figures, searching
from ordercast.cli.pictures import show_picture
from ordercast.cli.printing import print_promise_broken
from ordercast.cli.shrink import replay_simulation
from ordercast.explorer.execution import Execution
from ordercast.explorer.notation import format_effects, format_step, parse_schedule
from ordercast.explorer.outcome import Outcome, outcome_of
from ordercast.explorer.paper_counterexamples import MOST, search_again, search_sound
from ordercast.explorer.rows import names_of_messages, rows_of
from ordercast.explorer.schedule_files import KIND, read_schedule
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import require
from ordercast.model.errors import ConfigError
from ordercast.model.toml import read_toml
from ordercast.swarm.files import KIND as SIMULATION


def replay_command(
    file: Annotated[Path, typer.Argument(help="A schedule or a simulation that was kept.")],
    draw: Annotated[bool, typer.Option("--draw", help="Draw what happens here.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw it as SVG there.")] = None,
    search: Annotated[bool, typer.Option("--search", help="Of a schedule: search its bounds for one anew.")] = False,
    sound: Annotated[bool, typer.Option("--sound", help="Search them under the sound rules instead.")] = False,
    most: Annotated[int, typer.Option(min=1, help="States after which such a search is cut.")] = MOST,
) -> None:
    """Acts out what a file tells. Exit 0: no promise is broken; 1: one is; 2: the file cannot be read."""
    replays = {KIND: _replay_schedule, SIMULATION: replay_simulation}
    kind = read_toml(file).get("kind")
    if kind not in replays:
        found = f"is of kind {kind!r}" if kind is not None else "does not say of which kind it is"
        raise ConfigError(f"{file} {found}; there are: {', '.join(replays)}")
    if search or sound:
        require(kind == KIND, f"{file} tells of a {kind}; only the bounds of a {KIND} can be searched")
        require(
            not (draw or svg), "--search and --sound find schedules, but draw none: write them down, and replay them"
        )
        broken = _search(file, most, sound=sound)
    else:
        broken = replays[kind](file, draw=draw, svg=svg)
    if broken:
        raise typer.Exit(1)


def _search(file: Path, most: int, *, sound: bool) -> bool:
    """Whether a promise can be broken within the bounds of a schedule."""
    told = read_schedule(file)
    with searching() as progress:
        report = (search_sound if sound else search_again)(told, most, progress)
    console = Console(highlight=False)
    print_figures(console, report)
    rules = "sound rules" if sound else "rules of the file"
    if report.counterexample is not None:
        print_broken(console, report.counterexample)
        verdict, style = f"the {rules} break a promise within the bounds of the file", "red"
    elif report.exhausted:
        verdict, style = (
            f"nothing is broken: under the {rules} no schedule within these bounds breaks a promise",
            "green",
        )
    else:
        verdict, style = f"nothing is broken so far under the {rules}; the search was cut, --most searches on", "yellow"
    console.print(verdict, style=style, soft_wrap=True)
    return report.counterexample is not None


def _replay_schedule(file: Path, *, draw: bool, svg: Path | None) -> bool:
    """Whether a promise is broken."""
    told = read_schedule(file)
    space = StateSpace(told.scenario)
    outcome = outcome_of(space, parse_schedule(space, told.schedule))
    console = Console(highlight=False)
    if told.about:
        console.print(told.about, markup=False, soft_wrap=True)
    _tell(console, space, outcome)
    if outcome.sentence:
        print_promise_broken(console, outcome.sentence)
    else:
        console.print("no promise is broken", style="green")
    if outcome.sentence != told.sentence:
        expected = told.sentence or "nothing"
        console.print(f"the file expects: {expected}", style="yellow", markup=False, soft_wrap=True)
    if draw or svg:
        names = names_of_messages(space)
        rows = rows_of(space, outcome.shown())
        show_picture(rows, space.size, console if draw else None, svg, names=names, steps=True)
    return bool(outcome.sentence)


def _tell(console: Console, space: StateSpace, outcome: Outcome) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("step", "what happens", "what follows from it"):
        table.add_column(column, justify="right" if column == "step" else "left")
    replay = Execution(space)
    for number, step in enumerate(outcome.shown(), start=1):
        words = format_step(replay, step)
        if number == len(outcome.steps) + 1:
            table.add_row("", "[dim]from here on nothing is lost[/dim]", "")
        follows = ", ".join(format_effects(space, replay.take(step)))
        table.add_row(str(number), escape(words), escape(follows))
    left = len(outcome.continuation) + len(outcome.steps) - len(outcome.shown())
    if left:
        table.add_row("", f"[dim]and so on, {left} steps more[/dim]", "")
    console.print(table)
