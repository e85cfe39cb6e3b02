"""The arguments of a benchmark, and its help, which says what it measures and how long that takes."""

import argparse


def parser_for(description: str | None, takes: str) -> argparse.ArgumentParser:
    """A parser without arguments yet. `description`: the docstring of the benchmark; `takes`: how long, in words."""
    return argparse.ArgumentParser(
        description=f"{description}\nIt takes {takes}, on a quiet machine.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
