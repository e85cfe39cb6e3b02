"""The command line: reads arguments, calls one package, prints. Exit 0: success; 1: failure found; 2: bad input."""

from ordercast.cli.app import main

__all__ = ["main"]
