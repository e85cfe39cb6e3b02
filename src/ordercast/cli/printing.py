"""Standard output for people."""

BROKEN_PIPE = 141
"""The status that a shell gives a program that wrote to a reader that had gone."""


def counted(number: int, of: str) -> str:
    """So many of something: 1 run, 2 runs."""
    return f"{number:,} {of}" if number == 1 else f"{number:,} {of}s"
