"""`ordercast report`: the page of an evaluation, from stored results alone."""

from pathlib import Path
from typing import Annotated

import typer

from ordercast.cli.shared.spark_session import pipeline_extra


def report_command(
    folder: Annotated[Path, typer.Argument(help="The folder that `ordercast evaluate` wrote.")],
    verdict: Annotated[
        list[Path] | None, typer.Option(help="A file that `ordercast audit --json` wrote, repeatable.")
    ] = None,
) -> None:
    """Build the report page of an evaluation from its stored results.

    Each plot is also written as SVG and PNG. Exit 0: built; 2: the folder has no results.
    """
    from rich.console import Console

    with pipeline_extra():
        from ordercast.report import build
    page = build(folder, verdict or [])
    Console().print(f"The page is {page}", soft_wrap=True, markup=False, highlight=False)
