"""What `ordercast check` prints of a search, and the files that it writes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ordercast.model.config import Rules
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.explorer.explore import SearchReport
    from ordercast.explorer.scenario import Scenario

GOALS = {"nothing": None, **{level.name.lower(): level for level in Level}}
"""Liveness goals by name."""
SILENT = "–"  # a node that sends nothing, in what is printed and in --script
_OF_VIEWS = ("joins", "returns", "leaves", "suspicions", "at_once", "fires", "suspects")
_OF_LOGS = ("damages",)
_NO_GOAL = "Liveness was not checked: no liveness goal is set, so messages need not even arrive"
_SET_A_GOAL = "Set one with --liveness-goal accepted, or acknowledged."


def show_counterexample(
    console: "Console",
    scenario: "Scenario",
    report: "SearchReport",
    *,
    draw: bool,
    svg: Path | None,
    write: Path | None,
    view: bool,
    page: Path | None,
) -> None:
    """Draws the counterexample and writes it to files, if there is one; exits with its status."""
    from ordercast.explorer.schedule_files import ScheduleFile, write_schedule

    found = report.counterexample
    if found is not None:
        if write is not None:
            file = ScheduleFile(scenario=scenario, schedule=found.schedule, sentence=found.sentence, live=found.live)
            write_schedule(write, file)
        _draw(scenario, found.schedule, console if draw else None, svg)
        if view or page is not None:
            from ordercast.cli.shared.stories import Told, show_story

            show_story(scenario, found.schedule, Told("counterexample", found.sentence), view=view, page=page)
    elif view or any(path is not None for path in (svg, write, page)):
        typer.echo(
            "ordercast: no counterexample was found, so --svg, --write, --view and --page have no effect", err=True
        )
    raise typer.Exit(0 if found is None else 1)


def _draw(scenario: "Scenario", schedule: tuple[str, ...], console: "Console | None", svg: Path | None) -> None:
    """Draws what `ordercast replay` draws: with the continuation, if that is what breaks the promise."""
    from ordercast.cli.shared.diagrams import show_diagram
    from ordercast.explorer.notation import parse_schedule
    from ordercast.explorer.outcome import outcome_of
    from ordercast.explorer.rows import names_of_messages, rows_of
    from ordercast.explorer.state_space import StateSpace

    space = StateSpace(scenario)
    outcome = outcome_of(space, parse_schedule(space, schedule))
    rows, names = rows_of(space, outcome.shown()), names_of_messages(space)
    show_diagram(rows, space.size, None, svg, names=names, steps=True)
    if console is not None:
        try:
            show_diagram(rows, space.size, console, None, names=names, steps=True)
        except ConfigError as error:  # the counterexample is shown even if its picture would be too large
            console.print(f"no picture: {error}", markup=False, soft_wrap=True)


def document(protocol: str, scenario: "Scenario", report: "SearchReport") -> dict[str, Any]:
    """What `--json` prints of a search."""
    import msgspec

    from ordercast.explorer.scenario import format_script

    bounds = ["losses", "duplicates", "firings", "crashes", "give_ups", "patient", "drained"]
    bounds += _OF_VIEWS if scenario.group.views else ()
    bounds += ("logs", *_OF_LOGS) if scenario.logs else ()
    counted = ("states", "edges", "exhausted", "depth", "node_states", "continued", "longest", "seconds")
    found = report.counterexample
    return {
        "protocol": protocol,
        "rules": scenario.group.rules.value,
        "group": msgspec.to_builtins(scenario.group),
        "scripts": [format_script(script) for script in scenario.scripts],
        "channel": scenario.channel.value,
        "liveness_goal": next(name for name, level in GOALS.items() if level is scenario.promise.liveness_goal),
        **{name: getattr(scenario, name) for name in bounds},
        **{name: getattr(report, name) for name in counted},
        "counterexample": found
        and {"sentence": found.sentence, "schedule": found.schedule, "after_the_schedule": found.live},
    }


def print_search(console: "Console", protocol: str, scenario: "Scenario", report: "SearchReport") -> None:
    """What is printed of a search, for people."""
    from ordercast.cli.shared.search_output import print_counterexample, print_figures
    from ordercast.explorer.scenario import format_script

    scripts = "; ".join(format_script(script) or SILENT for script in scenario.scripts)
    rules = "logs" if scenario.logs else "views" if scenario.group.views else f"{scenario.group.rules.value} rules"
    what = f"{protocol}, {rules}, channel {scenario.channel.value}: {scripts}"
    console.print(what, markup=False, soft_wrap=True)
    named: tuple[str, ...] = ("losses", "duplicates", "firings", "crashes")
    named += tuple(name for name in _OF_VIEWS if scenario.group.views or (name == "suspicions" and scenario.suspicions))
    named += _OF_LOGS if scenario.logs else ()
    bounds = [
        f"{name} {getattr(scenario, name)}" for name in named if name not in {"fires", "suspects", "returns", "at_once"}
    ]
    bounds += [f"suspicions of up to {scenario.at_once}"] * (scenario.at_once > 1)
    bounds += [f"hosts that give up {scenario.give_ups}"] * (scenario.give_ups > 0)
    bounds += [f"{name} may crash and return" for name in scenario.returns]
    bounds += [f"only {text}" for text in (*scenario.fires, *scenario.suspects)]
    bounds += ["patient timers"] * scenario.patient + ["drained nodes"] * scenario.drained
    console.print(f"bounds: {', '.join(bounds)}")
    print_figures(console, report)
    if report.counterexample is not None:
        print_counterexample(console, report.counterexample)
        return
    if report.exhausted:
        console.print("[green]no promise is broken[/] by any schedule within these bounds")
    else:
        console.print(
            "[yellow]cut off[/]: no promise is broken so far; more than --max-states were found: raise it to search on",
            soft_wrap=True,
        )
    if scenario.promise.liveness_goal is None:
        printed = " (most printed rules wait forever)" if scenario.group.rules is Rules.PAPER else ""
        console.print(f"{_NO_GOAL}{printed}. {_SET_A_GOAL}", style="yellow", markup=False, soft_wrap=True)
