"""`ordercast audit`: whether the promises of a service are kept in a trace."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ordercast.audit.judge import Verdict, audit
from ordercast.model.errors import TraceError
from ordercast.model.services import Service

_SHOWN = 3  # witnesses of each property on the screen; the JSON file has more


def audit_command(
    folders: Annotated[list[Path], typer.Argument(help="Traces; the members of one live group are judged together.")],
    service: Annotated[
        Service | None, typer.Option(help="Judge by this service instead of the one that each run promises.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the verdict there.")] = None,
) -> None:
    """Judges traces. Exit 0: every property of the service holds; 1: one is violated; 2: unreadable input."""
    verdict = audit(folders, service)
    if json is not None:
        try:
            json.write_bytes(msgspec.json.encode(verdict.as_document()))
        except OSError as error:
            raise TraceError(f"cannot write the verdict {json}: {error}; choose another place") from error
    print_verdict(verdict, Console())
    raise typer.Exit(0 if verdict.holds else 1)


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The table that `ordercast audit` prints."""
    table = Table("property", "verdict", "runs", "violations", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name, finding in verdict.findings.items():
        word = "[green]holds[/]" if finding.holds else "[bold red]violated[/]"
        table.add_row(name, word, f"{finding.runs:,}", f"{finding.violations:,}")
    for name, runs in verdict.not_recorded.items():
        table.add_row(name, "[yellow]not recorded[/]", f"{runs:,}", "")
    console.print(f"{verdict.runs:,} runs, {verdict.deliveries:,} deliveries")
    console.print(table)
    for name, finding in verdict.findings.items():
        for witness in finding.witnesses[:_SHOWN]:
            console.print(f"  {name}, run {witness.run}: {witness.violation.sentence}", soft_wrap=True, markup=False)
