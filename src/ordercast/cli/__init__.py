"""The command line: reads arguments, calls one room, prints. Exit 0: it holds; 1: it does not; 2: bad input."""

from ordercast.cli.app import main

__all__ = ["main"]
