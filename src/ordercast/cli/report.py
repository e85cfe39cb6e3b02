"""`ordercast report`: the page of an evaluation, from stored results alone."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ordercast.cli.shared.spark_session import pipeline_extra
from ordercast.model.config import require
from ordercast.trace.storage import location
from ordercast.trace.working_folder import working_folder

_EVENTS = 20_000
"""The first events of a run that its page has."""


def report_command(
    folder: Annotated[
        Any,
        typer.Argument(
            help="The folder that `ordercast evaluate` wrote, also as a URL.", parser=location, metavar="FOLDER"
        ),
    ],
    verdict: Annotated[
        list[Path] | None, typer.Option(help="A file that `ordercast audit --json` wrote, repeatable.")
    ] = None,
    runs: Annotated[
        bool,
        typer.Option("--runs", help="Run the first run of each measured point again, as a page that its point opens."),
    ] = False,
) -> None:
    """Build the report page of an evaluation from its stored results.

    Each plot is also written as SVG and PNG. Exit 0: built; 2: the folder has no results.
    """
    from rich.console import Console

    with pipeline_extra():
        from ordercast.evaluation.results import SUMMARY
        from ordercast.report import build
    require(
        isinstance(folder, Path) or (folder / SUMMARY).exists(),
        f"cannot read {folder}/{SUMMARY}: there is no such file; make it with: ordercast evaluate --out {folder}",
    )
    with working_folder(folder, ".json") as here:
        page = build(here, verdict or [], make_page=_page_of_run if runs else None)
    Console().print(f"The page is {folder / page.name}", soft_wrap=True, markup=False, highlight=False)


def _page_of_run(config: str, title: str) -> bytes:
    """Simulates a run, and makes the viewer's page of it."""
    from tempfile import TemporaryDirectory

    from msgspec.structs import replace

    from ordercast.cli.shared.viewing import viewer_packages
    from ordercast.model.runs import RunConfig, TraceDetail
    from ordercast.simulator import simulate

    with viewer_packages():
        from ordercast.viewer.export import Range, exported
        from ordercast.viewer.traces import Traces
    with TemporaryDirectory() as folder:
        simulate(replace(RunConfig.from_json(config), record=TraceDetail.ALL), Path(folder))
        traces = Traces([Path(folder)], title=title)
        return exported(traces, list(traces.runs), Range(most=_EVENTS)).page
