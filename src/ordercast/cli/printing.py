"""Standard output for people."""

import os
import sys
from typing import NoReturn

from rich.console import Console

BROKEN_PIPE = 141  # as a shell counts a program that wrote to a reader that had gone


def counted(number: int, of: str) -> str:
    """So many of something: 1 run, 2 runs."""
    return f"{number:,} {of}" if number == 1 else f"{number:,} {of}s"


class Printer(Console):
    """A console whose reader may leave early, as `head` does: that says nothing about the outcome."""

    def on_broken_pipe(self) -> NoReturn:
        """Ends with a status that no verdict has; what is still in buffers goes nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE)
