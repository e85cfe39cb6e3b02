"""How far long work is: on standard error, and only where somebody looks at it.

It is written to a duplicate of standard error: while Spark starts, the first one goes to Spark's log.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_STANDARD_ERROR = 2


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """What is to be told how many of how many are done; None if nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    with _screen() as screen, Progress(*columns, console=screen, transient=True) as shown:
        task = shown.add_task(what)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None] | None]:
    """What is to be told a new text for a line that begins with this one; None if nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    with _screen() as screen, screen.status(text) as shown:
        yield shown.update


@contextmanager
def _screen() -> Iterator[Console]:
    with os.fdopen(os.dup(_STANDARD_ERROR), "w", encoding="utf-8") as screen:
        yield Console(file=screen)
