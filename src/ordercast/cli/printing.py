"""Standard output for people."""

import re

from rich.console import Console

BROKEN_PIPE = 141
"""The status that a shell gives a program that wrote to a reader that had gone."""

_BEFORE_A_NODE = re.compile(r"(?<=[:;]) (?=E\d+(?:: | has set ))")


def counted(number: int, of: str) -> str:
    """So many of something: 1 run, 2 runs."""
    return f"{number:,} {of}" if number == 1 else f"{number:,} {of}s"


def in_lines(sentence: str) -> list[str]:
    """A sentence on what is broken; what each node still waits for is a line of its own."""
    return _BEFORE_A_NODE.split(sentence)


def print_promise_broken(console: Console, what: object) -> None:
    """The sentence of a violation or a failure."""
    console.print("\n  ".join(in_lines(f"broken: {what}")), style="red", markup=False, soft_wrap=True)
