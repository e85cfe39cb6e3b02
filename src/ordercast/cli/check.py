"""`ordercast check`: every schedule of a small group, within bounds, and the first counterexample."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.shared.group_options import (
    GROUP,
    OUTPUT,
    PROTOCOL_PANEL,
    History,
    InferLosses,
    Json,
    Protocol,
    Quota,
    Reading,
    RecoveryOption,
    Resilience,
    RulesOption,
    Svg,
    Window,
    option,
    parsed,
)
from ordercast.cli.shared.spark_session import pipeline_extra, spark_session
from ordercast.model.config import GroupConfig, Recovery, Rules, require
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level
from ordercast.model.option_parsing import parse_readings
from ordercast.model.runs import Channel

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.explorer.explore import SearchReport
    from ordercast.explorer.scenario import Scenario

_BOUNDS, _SEARCH = "Bounds of the schedules", "Search"
_GOALS = {"nothing": None, **{level.name.lower(): level for level in Level}}
_SILENT = "–"  # a node that sends nothing, in what is printed and in --script
_NO_GOAL = "Liveness was not checked: no liveness goal is set, so messages need not even arrive"
_SET_A_GOAL = "Set one with --liveness-goal accepted, or acknowledged."
_VIEWS: dict[str, Any] = {
    "suspect_after": 1,
    "polls_to_abort": 12,
    "rounds": 120,
}  # so that a crash is noticed within few timers


def check_command(
    protocol: Protocol,
    nodes: Annotated[int | None, option(GROUP, "Number of nodes (default: 3, or one for each script).")] = None,
    script: Annotated[
        list[str] | None,
        option(
            GROUP,
            "What a node sends, repeatable, or several with ';' between them: 'x{2,3} y{1}' sends x to E2 and E3, "
            "then y to E1; 'a b' goes to everybody; 'h[5]' has priority 5 (default: two messages of two nodes).",
        ),
    ] = None,
    rules: RulesOption = Rules.SOUND,
    window: Window = 32,
    quota: Quota = 256,
    log_limit: Annotated[int, option(PROTOCOL_PANEL, "ST: packets of one epoch.")] = 400,
    recovery: RecoveryOption = Recovery.SELECTIVE,
    infer_losses: InferLosses = False,
    history: History = 1024,
    resilience: Resilience = 0,
    reading: Reading = None,
    channel: Annotated[
        Channel | None, option(_BOUNDS, "Order of the channel (default: the weakest that the protocol works on).")
    ] = None,
    losses: Annotated[int, option(_BOUNDS, "Maximum number of lost units.", least=0)] = 1,
    duplicates: Annotated[int, option(_BOUNDS, "Maximum number of duplicated units.", least=0)] = 0,
    firings: Annotated[int, option(_BOUNDS, "Maximum number of timers that fire.", least=0)] = 0,
    crashes: Annotated[int, option(_BOUNDS, "Maximum number of nodes that crash.", least=0)] = 0,
    patient: Annotated[bool, option(_BOUNDS, "Timers fire only when no unit is in flight.")] = False,
    drained: Annotated[bool, option(_BOUNDS, "Nodes may be told that no unit is waiting for them.")] = False,
    liveness_goal: Annotated[
        str | None,
        option(
            _BOUNDS,
            f"Level that every message must reach once no more units are lost: {', '.join(_GOALS)} "
            "(default: acknowledged for sound rules, nothing for most paper rules).",
        ),
    ] = None,
    max_states: Annotated[int, option(_SEARCH, "Stop when more states than this are found.", least=1)] = 1_000_000,
    no_reduction: Annotated[
        bool, option(_SEARCH, "Search equivalent interleavings too (no partial-order reduction).", "--no-reduction")
    ] = False,
    jobs: Annotated[int | None, option(_SEARCH, "Number of processes (default: one per core).", least=1)] = None,
    master: Annotated[
        str | None,
        option(_SEARCH, "Search on Spark at this master URL, such as local[4] (default: in local processes)."),
    ] = None,
    json: Json = False,
    draw: Annotated[bool, option(OUTPUT, "Print the counterexample as a diagram.", "--draw/--no-draw")] = True,
    svg: Svg = None,
    write: Annotated[Path | None, option(OUTPUT, "Write the counterexample there, for `ordercast replay`.")] = None,
) -> None:
    """Search every schedule of a small group for a counterexample.

    Exit 0: no promise is broken; 1: one is, and the schedule is shown; 2: bad arguments.
    """
    require(jobs is None or master is None, "--jobs searches in local processes, --master on Spark; give only one")
    how: dict[str, Any] = {"window": window, "quota": quota, "log_limit": log_limit, "recovery": recovery}
    how |= {"infer_losses": infer_losses, "history": history, "resilience": resilience}
    how |= {"paper": parsed("--reading", parse_readings, reading or [])}
    how |= {"losses": losses, "duplicates": duplicates, "firings": firings, "crashes": crashes}
    how |= {"patient": patient, "drained": drained}
    how |= {"channel": channel} if channel is not None else {}
    if liveness_goal is not None:
        require(liveness_goal in _GOALS, f"--liveness-goal is one of {', '.join(_GOALS)}, not {liveness_goal!r}")
        how["liveness_goal"] = _GOALS[liveness_goal]
    scenario = _scenario(protocol, script or [], nodes, rules, how)
    _require_used(protocol, scenario)
    report = _search(scenario, max_states, reduced=not no_reduction, jobs=jobs, master=master)
    _show(protocol, scenario, report, json=json, draw=draw, svg=svg, write=write)


def _scenario(protocol: str, script: list[str], nodes: int | None, rules: Rules, how: dict[str, Any]) -> "Scenario":
    from ordercast.explorer.scenarios import default_scripts, scenario
    from ordercast.protocols.registry import machine_class

    kind = machine_class(protocol, rules)
    lines = [line.strip() for text in script for line in text.split(";")]
    lines = ["" if line == _SILENT else line for line in lines]
    require(not lines or any(lines), "--script: no node sends anything; give at least one message, such as 'a; b'")
    size = nodes if nodes is not None else max(3, len(lines))
    require(2 <= size <= 16, f"--nodes must be 2 to 16, not {size}: larger groups have too many schedules to search")
    require(len(lines) <= size, f"--script has {len(lines)} lines, one for each node, but there are {size} nodes")
    lines = lines + [""] * (size - len(lines)) if lines else default_scripts(protocol, size)
    channel: Channel = how.get("channel", kind.needs)
    require(
        channel.serves(kind.needs),
        f"{protocol} needs --channel {kind.needs.value}, or a stronger one",
    )
    require(
        not (how["losses"] and how["duplicates"] and kind.needs is Channel.ONE),
        f"{protocol} needs one order of units, and a unit that is lost and duplicated later changes its place in it; "
        "set --losses or --duplicates to 0",
    )
    made = scenario(protocol, lines, rules, **(_VIEWS if how["crashes"] and kind.has_views else {}), **how)
    require(
        not how["crashes"] or kind.has_views or made.promise.liveness_goal is None,
        f"the {rules.value} {protocol} gives the group up when a node crashes; "
        "use --crashes with the sound sequencer, or with --liveness-goal nothing",
    )
    return made


def _require_used(protocol: str, scenario: "Scenario") -> None:
    from ordercast.cli.shared.unused_options import require_used_options, require_used_readings

    group, default = scenario.group, GroupConfig(nodes=2)
    require_used_options(
        protocol,
        {
            "--log-limit": group.log_limit != default.log_limit,
            "--recovery": group.recovery is not default.recovery,
            "--infer-losses": group.infer_losses,
            "--history": group.sequencer.history != default.sequencer.history,
            "--resilience": group.sequencer.resilience != default.sequencer.resilience,
            "a priority in --script": any(item.submission.priority for item in scenario.items),
        },
    )
    require_used_readings(group)


def _search(
    scenario: "Scenario", max_states: int, *, reduced: bool, jobs: int | None, master: str | None
) -> "SearchReport":
    from ordercast.cli.shared.search_output import search_progress
    from ordercast.explorer.parallel import explore_on

    if master is not None:
        with pipeline_extra():
            from ordercast.pipeline import explore_on_spark
        with spark_session(master) as session, search_progress() as progress:
            return explore_on_spark(session, scenario, max_states, reduced=reduced, progress=progress)
    with search_progress() as progress:
        return explore_on(jobs or os.cpu_count() or 1, scenario, max_states, reduced=reduced, progress=progress)


def _show(
    protocol: str,
    scenario: "Scenario",
    report: "SearchReport",
    *,
    json: bool,
    draw: bool,
    svg: Path | None,
    write: Path | None,
) -> None:
    import msgspec
    from rich.console import Console

    from ordercast.explorer.schedule_files import ScheduleFile, write_schedule

    found = report.counterexample
    console = Console(highlight=False)
    if json:
        typer.echo(msgspec.json.encode(_document(protocol, scenario, report)))
    else:
        _print(console, protocol, scenario, report)
    if found is not None:
        if write is not None:
            file = ScheduleFile(scenario=scenario, schedule=found.schedule, sentence=found.sentence, live=found.live)
            write_schedule(write, file)
        _draw(scenario, found.schedule, console if draw and not json else None, svg)
    elif svg is not None or write is not None:
        typer.echo("ordercast: no counterexample was found, so --svg and --write have no effect", err=True)
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


def _document(protocol: str, scenario: "Scenario", report: "SearchReport") -> dict[str, Any]:
    import msgspec

    from ordercast.explorer.scenario import format_script

    bounds = ("losses", "duplicates", "firings", "crashes", "patient", "drained")
    counted = ("states", "edges", "exhausted", "depth", "node_states", "continued", "longest", "seconds")
    found = report.counterexample
    return {
        "protocol": protocol,
        "rules": scenario.group.rules.value,
        "group": msgspec.to_builtins(scenario.group),
        "scripts": [format_script(script) for script in scenario.scripts],
        "channel": scenario.channel.value,
        "liveness_goal": next(name for name, level in _GOALS.items() if level is scenario.promise.liveness_goal),
        **{name: getattr(scenario, name) for name in bounds},
        **{name: getattr(report, name) for name in counted},
        "counterexample": found
        and {"sentence": found.sentence, "schedule": found.schedule, "after_the_schedule": found.live},
    }


def _print(console: "Console", protocol: str, scenario: "Scenario", report: "SearchReport") -> None:
    from ordercast.cli.shared.search_output import print_counterexample, print_figures
    from ordercast.explorer.scenario import format_script

    scripts = "; ".join(format_script(script) or _SILENT for script in scenario.scripts)
    what = f"{protocol}, {scenario.group.rules.value} rules, channel {scenario.channel.value}: {scripts}"
    console.print(what, markup=False, soft_wrap=True)
    bounds = [f"{name} {getattr(scenario, name)}" for name in ("losses", "duplicates", "firings", "crashes")]
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
