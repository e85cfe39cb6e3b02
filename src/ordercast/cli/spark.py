"""What commands that work on Spark have in common: a session, and a bar that shows how far its jobs are."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from ordercast.model.errors import ConfigError

MASTER = typer.Option(help="Where Spark is: local[4], spark://HOST:PORT or sc://HOST:PORT; if not said, in here.")
"""The option --master."""


@contextmanager
def pipeline_extra() -> Iterator[None]:
    """Turns the absence of the pipeline's packages into a sentence; they are imported when a command needs them."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this needs Spark, and {error.name} is not there: pip install 'ordercast[pipeline]'"
        ) from error


@contextmanager
def opened(master: str | None) -> Iterator[Any]:
    """A session, to be handed on as it is: only the pipeline knows Spark. Whoever watches is told while it starts."""
    with pipeline_extra():
        from ordercast.pipeline.session import session  # noqa: PLC0415
    if not sys.stderr.isatty():
        with session(master) as spark:
            yield spark
        return
    waiting = Console(stderr=True).status("Spark starts …")
    waiting.start()
    try:
        with session(master) as spark:
            waiting.stop()
            yield spark
    finally:
        waiting.stop()


@contextmanager
def shown(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error, where somebody looks at it."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
