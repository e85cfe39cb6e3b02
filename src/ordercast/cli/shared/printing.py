"""Formatting that several commands share."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

BROKEN_PIPE = 141
"""The exit status that a shell reports for a program whose reader closed the pipe (128 + SIGPIPE)."""

_BEFORE_A_NODE = re.compile(r"(?<=[:;]) (?=E\d+(?:: | has set ))")


def counted(number: int, of: str) -> str:
    """A number with its noun: 1 run, 2 runs."""
    return f"{number:,} {noun(number, of)}"


def noun(number: int, of: str) -> str:
    """The noun alone, as it follows a number: run, runs; key, keys; delivery, deliveries."""
    if number == 1:
        return of
    return f"{of[:-1]}ies" if of.endswith("y") and of[-2:-1] not in "aeiou" else f"{of}s"


def in_lines(sentence: str) -> list[str]:
    """A sentence about a broken promise, split so that each node's waiting state is on a line of its own."""
    return _BEFORE_A_NODE.split(sentence)


def print_promise_broken(console: "Console", what: object) -> None:
    """Prints the sentence of a counterexample or a failure."""
    console.print("\n  ".join(in_lines(f"broken: {what}")), style="red", markup=False, soft_wrap=True)
