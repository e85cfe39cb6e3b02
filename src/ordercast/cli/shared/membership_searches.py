"""`ordercast check --views` without bounds: the named searches of a group whose membership changes, as a table."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from ordercast.model.config import require

if TYPE_CHECKING:
    from rich.table import Table

    from ordercast.explorer.explore import SearchReport
    from ordercast.explorer.scenario import Scenario

Searched = dict[str, tuple["Scenario", "SearchReport"]]
"""By the name of the search."""
_COUNTS = {2: "two", 3: "three"}


def chosen_scenarios(
    protocol: str, names: list[str] | None, group: Mapping[str, Any], *, logs: bool
) -> dict[str, "Scenario"]:
    """The searches of these names, or all; `group`: fields of the group's configuration; `logs`: with logs."""
    from ordercast.explorer.log_scenarios import LOG_SCENARIOS, log_scenario
    from ordercast.explorer.membership_scenarios import SCENARIOS, membership_scenario
    from ordercast.model.config import Rules
    from ordercast.protocols.registry import machine_class

    machine_class(protocol, Rules.SOUND)  # refuses one that does not exist
    known, made = (LOG_SCENARIOS, log_scenario) if logs else (SCENARIOS, membership_scenario)
    kind = " with --logs" if logs else ""
    for name in names or ():
        require(name in known, f"--scenario{kind} is one of {', '.join(known)}, not {name!r}")
    return {name: made(protocol, name, **group) for name in names or known}


def search_all(scenarios: Mapping[str, "Scenario"], search: Callable[["Scenario"], "SearchReport"]) -> Searched:
    """Searches one after the other, each on all processes; ends after the first that breaks a promise."""
    found: Searched = {}
    for name, scenario in scenarios.items():
        found[name] = (scenario, search(scenario))
        if found[name][1].counterexample is not None:
            break
    return found


def print_searches(protocol: str, searched: Searched, document: Callable[..., dict[str, Any]], *, json: bool) -> None:
    """The table, or one JSON object; exits with 1 if a promise is broken, which is shown by the caller."""
    import msgspec
    from rich.console import Console

    if json:
        rows = [{"scenario": name, **document(protocol, *each)} for name, each in searched.items()]
        typer.echo(msgspec.json.encode({"protocol": protocol, "scenarios": rows}))
        return
    console = Console(highlight=False)
    scenario = next(iter(searched.values()))[0]
    resilience = f", resilience {scenario.group.sequencer.resilience}" if protocol == "sequencer" else ""
    several = {each.founders() for each, _ in searched.values()}
    founders = f"{' or '.join(_COUNTS[size] for size in sorted(several))} founders, E2 sends one message to all"
    kind = "logs" if scenario.logs else "views"
    console.print(f"{protocol} with {kind}, channel {scenario.channel.value}{resilience}: {founders}", soft_wrap=True)
    console.print(_table(searched))
    if all(report.exhausted for _, report in searched.values()):
        console.print("[green]no promise is broken[/] by any schedule within these bounds")
    elif all(report.counterexample is None for _, report in searched.values()):
        console.print(
            "[yellow]cut off[/]: no promise is broken so far; raise --max-states to search on", soft_wrap=True
        )


def _table(searched: Searched) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    table.add_column("scenario", no_wrap=True)
    for name in ("states", "transitions", "depth", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("extent", no_wrap=True)
    for name, (_, report) in searched.items():
        extent = "exhaustive" if report.exhausted else "cut off" if report.counterexample is None else "broken"
        figures = (f"{report.states:,}", f"{report.edges:,}", f"{report.depth}", f"{report.seconds:.1f}")
        table.add_row(name, *figures, extent)
    return table
