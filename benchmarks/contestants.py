"""Which peers can be run on this machine, and how."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A program that prints its figures as `ordercast_group.py` does."""

    name: str
    command: tuple[str, ...]
    missing: str = ""
    """What has to be installed first."""


def peers(python: str) -> list[Peer]:
    """All that we know; `python` is one that has the packages of peers that are Python's."""
    return [*_python_peers(python)]


def _python_peers(python: str) -> list[Peer]:
    return []
