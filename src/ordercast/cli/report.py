"""`ordercast report`: the page of an evaluation, from stored results alone."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ordercast.cli.spark import pipeline_extra


def report_command(
    folder: Annotated[Path, typer.Argument(help="Where `ordercast evaluate` wrote its results.")],
    verdict: Annotated[
        list[Path] | None, typer.Option(help="What `ordercast audit --json` wrote; as often as wanted.")
    ] = None,
) -> None:
    """Makes one page, and each plot as SVG and PNG. Exit 0: made; 2: no results there."""
    with pipeline_extra():
        from ordercast.report import build  # noqa: PLC0415
    page = build(folder, verdict or [])
    Console().print(f"The page is {page}", soft_wrap=True, markup=False, highlight=False)
