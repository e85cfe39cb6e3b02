"""A disk that is really small, for whoever may mount one."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_BLOCK = 4096


def mount(*arguments: object) -> bool:
    """Whether it could be done."""
    command = ["mount", "-t", "tmpfs", *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
    except FileNotFoundError:
        return False


@contextmanager
def small_disk(place: Path, kilobytes: int = 300) -> Iterator[Path]:
    """A disk of so many kilobytes at this place, which is made."""
    place.mkdir()
    if not mount("-o", f"size={kilobytes}k", "tmpfs", place):
        pytest.skip("only who may mount a small disk can fill one")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)  # noqa: S603, S607


def fill(disk: Path) -> None:
    """Nothing more goes onto it."""
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(_BLOCK))
