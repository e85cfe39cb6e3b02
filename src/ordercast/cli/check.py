"""`ordercast check`: every schedule of a small group, within bounds, and the first counterexample."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.shared.check_output import GOALS, SILENT, document, print_search, show_counterexample
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
from ordercast.model.config import GroupConfig, RecoveryPolicy, Rules, require
from ordercast.model.option_parsing import parse_readings
from ordercast.model.runs import Channel

if TYPE_CHECKING:
    from rich.console import Console

    from ordercast.explorer.explore import SearchReport
    from ordercast.explorer.scenario import Scenario

_BOUNDS, _SEARCH, _VIEW_PANEL = "Bounds of the schedules", "Search", "Membership"
_PROBED_STATES = 2_000
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
    recovery: RecoveryOption = RecoveryPolicy.SELECTIVE,
    infer_losses: InferLosses = False,
    history: History = 1024,
    resilience: Resilience = 0,
    reading: Reading = None,
    channel: Annotated[
        Channel | None, option(_BOUNDS, "Order of the channel (default: the weakest that the protocol works on).")
    ] = None,
    losses: Annotated[int | None, option(_BOUNDS, "Maximum number of lost units (default: 1).", least=0)] = None,
    duplicates: Annotated[int, option(_BOUNDS, "Maximum number of duplicated units.", least=0)] = 0,
    firings: Annotated[int, option(_BOUNDS, "Maximum number of timers that fire.", least=0)] = 0,
    crashes: Annotated[int, option(_BOUNDS, "Maximum number of nodes that crash.", least=0)] = 0,
    give_ups: Annotated[
        int, option(_BOUNDS, "Maximum number of nodes whose hosts give the group up.", "--give-ups", least=0)
    ] = 0,
    views: Annotated[
        bool,
        option(
            _VIEW_PANEL,
            "The membership of the group changes: members that fail are left out, others join and leave. "
            "Without bounds, all scenarios are searched, and a table is printed.",
            "--views",
        ),
    ] = False,
    scenario_names: Annotated[
        list[str] | None,
        option(
            _VIEW_PANEL, "With --views: search only this scenario, repeatable, by its name in the table.", "--scenario"
        ),
    ] = None,
    joins: Annotated[int, option(_VIEW_PANEL, "Nodes besides the group that join it.", least=0)] = 0,
    returns: Annotated[
        list[str] | None,
        option(
            _VIEW_PANEL,
            "This member, such as E3, may crash and return under its name, as a new node; repeatable. New nodes come "
            "after all others, and may be named, too.",
        ),
    ] = None,
    leaves: Annotated[int, option(_VIEW_PANEL, "Maximum number of members that leave.", least=0)] = 0,
    logs: Annotated[
        bool,
        option(
            _VIEW_PANEL,
            "With --views: members have durable logs, which are synced at any moment, and who returns has what was on "
            "its disk. Without bounds, all scenarios of members that are started again are searched.",
            "--logs",
        ),
    ] = False,
    damages: Annotated[
        int, option(_VIEW_PANEL, "With --logs: maximum number of disks that are damaged or lost in a crash.", least=0)
    ] = 0,
    suspicions: Annotated[
        int, option(_VIEW_PANEL, "Maximum number of times that a member suspects another, rightly or not.", least=0)
    ] = 0,
    at_once: Annotated[
        int, option(_VIEW_PANEL, "How many members one suspicion may name, at most.", "--at-once", least=1)
    ] = 1,
    fires: Annotated[
        list[str] | None, option(_BOUNDS, "Only this timer fires, repeatable, such as view.round (default: all).")
    ] = None,
    patient: Annotated[bool, option(_BOUNDS, "Timers fire only when no unit is in flight.")] = False,
    drained: Annotated[bool, option(_BOUNDS, "Nodes may be told that no unit is waiting for them.")] = False,
    liveness_goal: Annotated[
        str | None,
        option(
            _BOUNDS,
            f"Level that every message must reach once no more units are lost: {', '.join(GOALS)} "
            "(default: acknowledged for sound rules, nothing for most paper rules).",
        ),
    ] = None,
    max_states: Annotated[
        int,
        option(
            _SEARCH,
            "Stop when more states than this are found; all schedules of the length in progress are searched first.",
            least=1,
        ),
    ] = 1_000_000,
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
    view: Annotated[
        bool, option(OUTPUT, "Go through the counterexample in the browser, with the machines' states.", "--view")
    ] = False,
    page: Annotated[Path | None, option(OUTPUT, "Write that as one HTML file, which opens without a server.")] = None,
) -> None:
    """Search every schedule of a small group for a counterexample.

    Exit 0: no promise is broken; 1: one is, and the schedule is shown; 2: bad arguments.
    """
    import msgspec
    from rich.console import Console

    require(jobs is None or master is None, "--jobs searches in local processes, --master on Spark; give only one")
    group: dict[str, Any] = {"window": window, "quota": quota, "log_limit": log_limit, "recovery": recovery}
    group |= {"infer_losses": infer_losses, "history": history}
    group |= {"paper": parsed("--reading", parse_readings, reading or [])}
    bounds: dict[str, Any] = {
        "duplicates": duplicates,
        "firings": firings,
        "crashes": crashes,
        "give_ups": give_ups,
        "patient": patient,
        "drained": drained,
    }
    bounds |= {"joins": joins, "leaves": leaves, "suspicions": suspicions}
    bounds |= {"returns": tuple(returns or ()), "fires": tuple(fires or ()), "damages": damages}
    require(
        suspicions > 0 or at_once == 1, "--at-once has no effect without --suspicions: how many members one may name"
    )
    asked = bool(script or any(bounds.values()) or losses is not None or nodes is not None or liveness_goal is not None)
    require(views or not scenario_names, "--scenario needs --views")
    require(views or not logs, "--logs needs --views")
    require(logs or not damages, "--damages needs --logs: a disk that is damaged")
    require(firings > 0 or not fires, "--fires has no effect without --firings: give the number of timers that fire")
    require(not views or rules is Rules.SOUND, f"--views needs sound rules, not the {rules.value} rules")
    require(
        not (scenario_names and asked), "--scenario has bounds of its own; leave out --script, --nodes and all bounds"
    )
    how = group | bounds | {"losses": 1 if losses is None else losses, "resilience": resilience}
    how |= {"channel": channel} if channel is not None else {}
    how |= {"logs": True} if logs else {}
    how |= {"at_once": at_once}
    if liveness_goal is not None:
        require(liveness_goal in GOALS, f"--liveness-goal is one of {', '.join(GOALS)}, not {liveness_goal!r}")
        how["liveness_goal"] = GOALS[liveness_goal]
    search = partial(_search, max_states=max_states, reduced=not no_reduction, jobs=jobs, master=master)
    show = partial(show_counterexample, draw=draw and not json, svg=svg, write=write, view=view, page=page)
    if views and not asked:
        group |= {"channel": channel} if channel is not None else {}
        group |= {"resilience": resilience} if resilience else {}
        _check_membership(protocol, scenario_names, group, search, show, logs=logs, json=json)
        return
    scenario = _scenario(protocol, script or [], nodes, rules, how, views=views)
    _require_used(protocol, scenario)
    _warn_of_unknown_timers(scenario)
    report = search(scenario)
    console = Console(highlight=False)
    if json:
        typer.echo(msgspec.json.encode(document(protocol, scenario, report)))
    else:
        print_search(console, protocol, scenario, report)
    show(console, scenario, report)


def _check_membership(
    protocol: str,
    names: list[str] | None,
    group: dict[str, Any],
    search: Callable[["Scenario"], "SearchReport"],
    show: Callable[["Console", "Scenario", "SearchReport"], None],
    *,
    logs: bool,
    json: bool,
) -> None:
    """All scenarios of a group with views, or those named."""
    from rich.console import Console

    from ordercast.cli.shared.membership_searches import chosen_scenarios, print_searches, search_all
    from ordercast.cli.shared.search_output import print_counterexample

    scenarios = chosen_scenarios(protocol, names, group, logs=logs)
    _require_used(protocol, next(iter(scenarios.values())))
    searched = search_all(scenarios, search)
    print_searches(protocol, searched, document, json=json)
    console, (scenario, report) = Console(highlight=False), list(searched.values())[-1]
    if report.counterexample is not None and not json:
        print_counterexample(console, report.counterexample)
    show(console, scenario, report)


def _scenario(
    protocol: str, script: list[str], nodes: int | None, rules: Rules, how: dict[str, Any], *, views: bool
) -> "Scenario":
    from ordercast.explorer.scenarios import default_scripts, scenario
    from ordercast.protocols.registry import machine_class

    kind = machine_class(protocol, rules)
    lines = [line.strip() for text in script for line in text.split(";")]
    lines = ["" if line == SILENT else line for line in lines]
    require(not lines or any(lines), "--script: no node sends anything; give at least one message, such as 'a; b'")
    joins = how["joins"] + len(how["returns"])
    require(
        views or not (joins or how["leaves"]),
        "--joins, --returns and --leaves need --views",
    )
    size = nodes if nodes is not None else max(3, len(lines) - joins)
    require(2 <= size <= 16, f"--nodes must be 2 to 16, not {size}: larger groups have too many schedules to search")
    require(
        len(lines) <= size + joins,
        f"--script has {len(lines)} lines, one for each node, but there are {size + joins} nodes",
    )
    lines = lines or default_scripts(protocol, size)
    lines += [""] * (size + joins - len(lines))
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
    require(
        views or kind.has_views or not how["suspicions"],
        "--suspicions needs --views, or the sound sequencer, which has views of its own",
    )
    fails = how["crashes"] or how["give_ups"]
    own_views = _VIEWS if (fails or how["suspicions"]) and kind.has_views and not views else {}
    how = {**how, "views": True} if views else how
    made = scenario(protocol, lines, rules, **own_views, **how)
    require(
        not how["crashes"] or kind.has_views or views or made.promise.liveness_goal is None,
        f"the {rules.value} {protocol} gives the group up when a node crashes; "
        "use --crashes with --views, with the sound sequencer, or with --liveness-goal nothing",
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


def _warn_of_unknown_timers(scenario: "Scenario") -> None:
    """A timer that is never set cannot fire: the search would say nothing about it."""
    if not scenario.fires:
        return
    from ordercast.explorer.explore import Search

    short = Search(scenario, _PROBED_STATES)
    short.run()
    known = set(short.space.nodes.timer_names)
    for name in scenario.fires:
        if name not in known:
            typer.echo(
                f"ordercast: --fires {name}: no timer of this name was set in the first {_PROBED_STATES:,} states; "
                f"those that were: {', '.join(sorted(known)) or 'none'}",
                err=True,
            )


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
