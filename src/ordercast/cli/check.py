"""`ordercast check`: every schedule of a small group, within bounds, and the first that breaks a promise."""

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from ordercast.cli.heeded import tell_unheeded, tell_unread
from ordercast.cli.pictures import show_picture
from ordercast.cli.searched import print_broken, print_figures, searching
from ordercast.cli.spark import MASTER, opened, pipeline_extra
from ordercast.explorer.explore import Report
from ordercast.explorer.files import ScheduleFile, write_schedule
from ordercast.explorer.outcome import outcome_of
from ordercast.explorer.parallel import explore_on
from ordercast.explorer.rows import names_of_messages, rows_of
from ordercast.explorer.scenario import Scenario, script_in_words
from ordercast.explorer.scenarios import scenario, usual_lines
from ordercast.explorer.wording import schedule_from_words
from ordercast.explorer.world import World
from ordercast.model import values
from ordercast.model.config import GroupConfig, Recovery, Rules, require
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level
from ordercast.model.runs import Channel
from ordercast.protocols.registry import PROTOCOLS, machine_class

_GROUP, _BOUNDS, _HOW, _SHOW = "The group", "How bad it may be", "The search", "What is shown and kept"
_ENDS = {"nothing": None, **{level.name.lower(): level for level in Level}}
_SILENT = "–"  # a node that sends nothing, as it is printed and may be written
_NOTHING_OWED = "But in the end nothing is owed here, not even that messages arrive"
_MOST_WAIT = ": most printed rules wait for ever"
_TO_ASK = "--owed accepted asks for that, --owed acknowledged for all."
_VIEWS: dict[str, Any] = {
    "suspect_after": 1,
    "polls_to_abort": 12,
    "rounds": 120,
}  # so that a crash is noticed within few timers


def _option(panel: str, text: str, *names: str, least: int | None = None) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, min=least)


_Script = Annotated[
    list[str] | None,
    _option(_GROUP, "What each node sends, a line for each, or lines with ';' between: 'x{2,3} y{1}', 'h[5]', 'a b'."),
]
_Reading = Annotated[list[str] | None, _option(_GROUP, "A reading of the printed rules, such as condition_2=others.")]
_Owed = Annotated[
    str | None, _option(_BOUNDS, f"What is owed in the end: {', '.join(_ENDS)}; printed rules owe nothing if not said.")
]


def check_command(
    protocol: Annotated[str, typer.Argument(help=f"One of: {', '.join(PROTOCOLS)}.")],
    nodes: Annotated[int | None, _option(_GROUP, "Nodes; if not said, 3, or as many as lines.")] = None,
    script: _Script = None,
    rules: Annotated[Rules, _option(_GROUP, "The mended rules, or the printed ones.")] = Rules.SOUND,
    reading: _Reading = None,
    window: Annotated[int, _option(_GROUP, "Packets a source may have under way.")] = 32,
    quota: Annotated[int, _option(_GROUP, "Places a node keeps for each source.")] = 256,
    log_limit: Annotated[int, _option(_GROUP, "ST: packets of one epoch.")] = 400,
    recovery: Annotated[Recovery, _option(_GROUP, "What ST sends again.")] = Recovery.SELECTIVE,
    hearsay: Annotated[bool, _option(_GROUP, "Ask early about losses that others' words show.")] = False,
    history: Annotated[int, _option(_GROUP, "Broadcasts that the sequencer keeps.")] = 1024,
    resilience: Annotated[int, _option(_GROUP, "Nodes that hold a broadcast besides the sequencer.")] = 0,
    channel: Annotated[Channel | None, _option(_BOUNDS, "If not said, what the protocol needs.")] = None,
    losses: Annotated[int, _option(_BOUNDS, "Units that are lost.", least=0)] = 1,
    duplicates: Annotated[int, _option(_BOUNDS, "Units that come again.", least=0)] = 0,
    firings: Annotated[int, _option(_BOUNDS, "Timers that fire on the way.", least=0)] = 0,
    crashes: Annotated[int, _option(_BOUNDS, "Nodes that stop for ever.", least=0)] = 0,
    patient: Annotated[bool, _option(_BOUNDS, "Timers fire only when nothing is under way.")] = False,
    drained: Annotated[bool, _option(_BOUNDS, "Nodes may be told that nothing waits.")] = False,
    owed: _Owed = None,
    most: Annotated[int, _option(_HOW, "States after which the search is cut.", least=1)] = 1_000_000,
    every: Annotated[bool, _option(_HOW, "Search equivalent interleavings too.", "--every-interleaving")] = False,
    jobs: Annotated[int | None, _option(_HOW, "Processes; if not said, all cores.", least=1)] = None,
    master: Annotated[str | None, MASTER] = None,
    json: Annotated[bool, _option(_SHOW, "Print one JSON object.", "--json")] = False,
    draw: Annotated[bool, _option(_SHOW, "Draw the schedule that breaks something.", "--draw/--no-draw")] = True,
    svg: Annotated[Path | None, _option(_SHOW, "Draw it as SVG there.")] = None,
    write: Annotated[Path | None, _option(_SHOW, "Write it there, for `ordercast replay`.")] = None,
) -> None:
    """Explores every schedule within bounds. Exit 0: nothing is broken; 1: something is, and how; 2: bad arguments."""
    require(jobs is None or master is None, "--jobs are processes in here, --master says where Spark is: take one")
    how: dict[str, Any] = {"window": window, "quota": quota, "log_limit": log_limit, "recovery": recovery}
    how |= {"hearsay": hearsay, "history": history, "resilience": resilience, "paper": values.readings(reading or [])}
    how |= {"losses": losses, "duplicates": duplicates, "firings": firings, "crashes": crashes}
    how |= {"patient": patient, "drained": drained}
    how |= {"channel": channel} if channel is not None else {}
    if owed is not None:
        require(owed in _ENDS, f"--owed is one of {', '.join(_ENDS)}, not {owed!r}")
        how["in_the_end"] = _ENDS[owed]
    asked = _asked(protocol, script or [], nodes, rules, how)
    group, usual = asked.group, GroupConfig(nodes=2)
    tell_unheeded(
        protocol,
        {
            "--log-limit": group.log_limit != usual.log_limit,
            "--recovery": group.recovery is not usual.recovery,
            "--hearsay": group.hearsay,
            "--history": group.sequencer.history != usual.sequencer.history,
            "--resilience": group.sequencer.resilience != usual.sequencer.resilience,
            "a priority in --script": any(item.submission.priority for item in asked.items),
        },
    )
    tell_unread(group)
    report = _searched(asked, most, reduced=not every, jobs=jobs, master=master)
    _show(protocol, asked, report, json=json, draw=draw, svg=svg, write=write)


def _asked(protocol: str, script: list[str], nodes: int | None, rules: Rules, how: dict[str, Any]) -> Scenario:
    kind = machine_class(protocol, rules)
    lines = [line.strip() for text in script for line in text.split(";")]
    lines = ["" if line == _SILENT else line for line in lines]
    require(not lines or any(lines), "nobody sends anything, and so nothing could break: say it with --script 'a; b'")
    size = nodes if nodes is not None else max(3, len(lines))
    require(2 <= size <= 16, f"a group has 2 to 16 nodes here, not {size}: nobody could wait for the schedules of more")
    require(len(lines) <= size, f"{len(lines)} lines say what nodes send, but there are {size} nodes")
    lines = lines + [""] * (size - len(lines)) if lines else usual_lines(protocol, size)
    channel: Channel = how.get("channel", kind.needs)
    require(channel.serves(kind.needs), f"{protocol} needs the channel `{kind.needs.value}`")
    require(
        not (how["losses"] and how["duplicates"] and kind.needs is Channel.ONE),
        f"{protocol} needs one order, and a unit that is lost and comes again later has changed its place in it; "
        "take --losses or --duplicates, and 0 of the other",
    )
    made = scenario(protocol, lines, rules, **(_VIEWS if how["crashes"] and kind.has_views else {}), **how)
    require(
        not how["crashes"] or kind.has_views or made.promise.in_the_end is None,
        f"the {rules.value} {protocol} gives the group up when a node crashes; "
        "--crashes is for the sound sequencer, or with --owed nothing",
    )
    return made


def _searched(asked: Scenario, most: int, *, reduced: bool, jobs: int | None, master: str | None) -> Report:
    if master is not None:
        with pipeline_extra():
            from ordercast.pipeline import explore_on_spark  # noqa: PLC0415
        with opened(master) as session, searching() as progress:
            return explore_on_spark(session, asked, most, reduced=reduced, progress=progress)
    with searching() as progress:
        return explore_on(jobs or os.cpu_count() or 1, asked, most, reduced=reduced, progress=progress)


def _show(
    protocol: str, asked: Scenario, report: Report, *, json: bool, draw: bool, svg: Path | None, write: Path | None
) -> None:
    violation = report.violation
    console = Console(highlight=False)
    if json:
        typer.echo(msgspec.json.encode(_document(protocol, asked, report)))
    else:
        _print(console, protocol, asked, report)
    if violation is not None:
        if write is not None:
            told = ScheduleFile(
                scenario=asked, schedule=violation.schedule, sentence=violation.sentence, live=violation.live
            )
            write_schedule(write, told)
        _draw(asked, violation.schedule, console if draw and not json else None, svg)
    elif svg is not None or write is not None:
        typer.echo("ordercast: nothing is broken, so there is no schedule to draw or to write", err=True)
    raise typer.Exit(0 if violation is None else 1)


def _draw(asked: Scenario, schedule: tuple[str, ...], console: Console | None, svg: Path | None) -> None:
    """Draws what `replay` would: what goes wrong afterwards too, if it is that."""
    world = World(asked)
    outcome = outcome_of(world, schedule_from_words(world, schedule))
    rows, names = rows_of(world, outcome.shown()), names_of_messages(world)
    show_picture(rows, world.size, None, svg, names=names, steps=True)
    if console is not None:
        try:
            show_picture(rows, world.size, console, None, names=names, steps=True)
        except ConfigError as error:  # too large a picture is no reason to hide what was found
            console.print(f"no picture: {error}", markup=False, soft_wrap=True)


def _document(protocol: str, asked: Scenario, report: Report) -> dict[str, Any]:
    bounds = ("losses", "duplicates", "firings", "crashes", "patient", "drained")
    counted = ("states", "edges", "exhausted", "depth", "node_states", "continued", "longest", "seconds")
    found = report.violation
    return {
        "protocol": protocol,
        "rules": asked.group.rules.value,
        "group": msgspec.to_builtins(asked.group),
        "scripts": [script_in_words(script) for script in asked.scripts],
        "channel": asked.channel.value,
        "owed": next(name for name, level in _ENDS.items() if level is asked.promise.in_the_end),
        **{name: getattr(asked, name) for name in bounds},
        **{name: getattr(report, name) for name in counted},
        "violation": found
        and {"sentence": found.sentence, "schedule": found.schedule, "after_the_schedule": found.live},
    }


def _print(console: Console, protocol: str, asked: Scenario, report: Report) -> None:
    scripts = "; ".join(script_in_words(script) or _SILENT for script in asked.scripts)
    what = f"{protocol}, {asked.group.rules.value} rules, channel {asked.channel.value}: {scripts}"
    console.print(what, markup=False, soft_wrap=True)
    bounds = [f"{name} {getattr(asked, name)}" for name in ("losses", "duplicates", "firings", "crashes")]
    bounds += ["patient timers"] * asked.patient + ["drained nodes"] * asked.drained
    console.print(f"bounds: {', '.join(bounds)}")
    print_figures(console, report)
    if report.violation is not None:
        print_broken(console, report.violation)
        return
    if report.exhausted:
        console.print("[green]nothing is broken[/]: no schedule within these bounds breaks a promise")
    else:
        console.print("[yellow]cut[/]: nothing is broken so far; --most searches on")
    if asked.promise.in_the_end is None:
        printed = _MOST_WAIT if asked.group.rules is Rules.PAPER else ""
        console.print(f"{_NOTHING_OWED}{printed}. {_TO_ASK}", style="yellow", markup=False, soft_wrap=True)
