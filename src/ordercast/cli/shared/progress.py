"""Progress of long work, shown on standard error if that is a terminal.

It is written to a duplicate of standard error: while Spark starts, file descriptor 2 is redirected to Spark's log.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_STANDARD_ERROR = 2


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback that takes how many of how many are done; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    times = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    with _screen() as screen, Progress(*columns, console=screen, transient=True) as shown:
        task = shown.add_task(what)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None] | None]:
    """A callback that replaces the text of a status line; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with _screen() as screen, screen.status(text) as shown:
        yield shown.update


@contextmanager
def _screen() -> "Iterator[Console]":
    from rich.console import Console

    with os.fdopen(os.dup(_STANDARD_ERROR), "w", encoding="utf-8") as screen:
        yield Console(file=screen)
