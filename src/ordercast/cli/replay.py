"""`ordercast replay`: a file that records how something breaks, executed step by step."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.model.config import require
from ordercast.model.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.explorer.outcome import Outcome
    from ordercast.explorer.state_space import StateSpace

_SCHEDULE, _SIMULATION = "schedule", "simulation"


def replay_command(
    file: Annotated[Path, typer.Argument(help="A schedule or a simulation, as `check` or `shrink` wrote it.")],
    draw: Annotated[bool, typer.Option("--draw", help="Print a space-time diagram.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Write the diagram to this SVG file.")] = None,
    view: Annotated[
        bool, typer.Option("--view", help="Go through it in the browser, step by step, with the machines' states.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Write that as one HTML file, which opens without a server or a network.")
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="For a schedule: search within its bounds for a counterexample.")
    ] = False,
    sound: Annotated[bool, typer.Option("--sound", help="The same search with the sound rules.")] = False,
    max_states: Annotated[
        int, typer.Option(min=1, help="Stop such a search when more states than this are found.")
    ] = 1_000_000,
) -> None:
    """Run a recorded counterexample step by step.

    Exit 0: no promise is broken; 1: one is; 2: the file cannot be read.
    """
    from ordercast.trace.small_files import read_toml

    kind = read_toml(file).get("kind")
    if kind not in {_SCHEDULE, _SIMULATION}:
        found = f"has the kind {kind!r}" if kind is not None else "has no `kind`"
        raise ConfigError(f"{file} {found}; `ordercast replay` reads: {_SCHEDULE}, {_SIMULATION}")
    if search or sound:
        require(kind == _SCHEDULE, f"{file} is a {kind}; --search and --sound need a {_SCHEDULE}")
        require(not (draw or svg), "--search and --sound draw nothing; omit --draw and --svg")
        require(not (view or page), "--search and --sound open no steps; omit --view and --page")
        broken = _search(file, max_states, sound=sound)
    elif kind == _SCHEDULE:
        broken = _replay_schedule(file, draw=draw, svg=svg, view=view, page=page)
    else:
        broken = _replay_simulation(file, draw=draw, svg=svg, view=view, page=page)
    if broken:
        raise typer.Exit(1)


def _search(file: Path, max_states: int, *, sound: bool) -> bool:
    """True if a promise can be broken within the bounds of a schedule."""
    from rich.console import Console

    from ordercast.cli.shared.search_output import print_counterexample, print_figures, search_progress
    from ordercast.explorer.paper_counterexamples import search_again, search_sound
    from ordercast.explorer.schedule_files import read_schedule

    schedule = read_schedule(file)
    with search_progress() as progress:
        report = (search_sound if sound else search_again)(schedule, max_states, progress)
    console = Console(highlight=False)
    print_figures(console, report)
    rules = "sound rules" if sound else "rules of the file"
    if report.counterexample is not None:
        print_counterexample(console, report.counterexample)
        verdict, style = f"the {rules} break a promise within the bounds of the file", "red"
    elif report.exhausted:
        verdict, style = f"no promise is broken: exhaustive search with the {rules}", "green"
    else:
        verdict, style = f"no promise is broken so far with the {rules}; raise --max-states to search on", "yellow"
    console.print(verdict, style=style, soft_wrap=True)
    return report.counterexample is not None


def _replay_schedule(file: Path, *, draw: bool, svg: Path | None, view: bool, page: Path | None) -> bool:
    """True if a promise is broken."""
    from rich.console import Console

    from ordercast.cli.shared.diagrams import show_diagram
    from ordercast.cli.shared.printing import print_promise_broken
    from ordercast.explorer.notation import parse_schedule
    from ordercast.explorer.outcome import outcome_of
    from ordercast.explorer.rows import names_of_messages, rows_of
    from ordercast.explorer.schedule_files import read_schedule
    from ordercast.explorer.state_space import StateSpace

    schedule = read_schedule(file)
    space = StateSpace(schedule.scenario)
    outcome = outcome_of(space, parse_schedule(space, schedule.schedule))
    console = Console(highlight=False)
    if schedule.about:
        console.print(schedule.about, markup=False, soft_wrap=True)
    _print_steps(console, space, outcome)
    if outcome.sentence:
        print_promise_broken(console, outcome.sentence)
    else:
        console.print("no promise is broken", style="green")
    if outcome.sentence != schedule.sentence:
        expected = schedule.sentence or "nothing"
        console.print(f"the file expects: {expected}", style="yellow", markup=False, soft_wrap=True)
    if draw or svg:
        rows = rows_of(space, outcome.shown())
        names = names_of_messages(space)
        show_diagram(rows, space.size, console if draw else None, svg, names=names, steps=True)
    if view or page is not None:
        from ordercast.cli.shared.stories import Told, show_story

        told = Told(file.stem, schedule.about, schedule.notes)
        show_story(schedule.scenario, schedule.schedule, told, view=view, page=page)
    return bool(outcome.sentence)


def _print_steps(console: "Console", space: "StateSpace", outcome: "Outcome") -> None:
    from rich.markup import escape
    from rich.table import Table

    from ordercast.explorer.execution import Execution
    from ordercast.explorer.notation import format_effects, format_step

    table = Table(box=None, pad_edge=False)
    for column in ("step", "what happens", "what follows from it"):
        table.add_column(column, justify="right" if column == "step" else "left")
    execution = Execution(space)
    for number, step in enumerate(outcome.shown(), start=1):
        words = format_step(execution, step)
        if number == len(outcome.steps) + 1:
            table.add_row("", "[dim]from here on nothing is lost[/dim]", "")
        effects = ", ".join(format_effects(space, execution.take(step)))
        table.add_row(str(number), escape(words), escape(effects))
    left = len(outcome.continuation) + len(outcome.steps) - len(outcome.shown())
    if left:
        table.add_row("", f"[dim]… {left} more steps[/dim]", "")
    console.print(table)


def _replay_simulation(file: Path, *, draw: bool, svg: Path | None, view: bool, page: Path | None) -> bool:
    """True if the run fails."""
    from rich.console import Console

    from ordercast.cli.shared.printing import print_promise_broken
    from ordercast.cli.shrink import draw_run
    from ordercast.swarm.failing_runs import read_failing_run
    from ordercast.swarm.run_audit import attempt

    recorded = read_failing_run(file)
    found = attempt(recorded.config)
    console = Console(highlight=False)
    if recorded.about:
        console.print(recorded.about, soft_wrap=True, markup=False)
    for failure in found.failures:
        print_promise_broken(console, failure)
    if not found.failures:
        console.print("no promise is broken", style="green")
    if recorded.failure.kind not in {failure.kind for failure in found.failures}:
        console.print(f"the file expects: {recorded.failure}", style="yellow", soft_wrap=True, markup=False)
    if draw or svg:
        draw_run(found.rows, recorded.config.group.nodes, console if draw else None, svg)
    if view or page is not None:
        from ordercast.cli.shared.stories import show_rows

        columns = {"protocol": recorded.config.protocol, "nodes": recorded.config.group.nodes, "complete": False}
        show_rows(found.rows, file.stem, columns, view=view, page=page)
    return bool(found.failures)
