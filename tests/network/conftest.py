"""Laboratories for tests, where the machine lets us make them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.network.lab import Lab, laboratory, why_not
from tests.network.switch import Weather

NewLab = Callable[..., Lab]


@pytest.fixture(scope="session")
def possible() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(f"no network can be made here: {reason}")


@pytest.fixture
def new_lab(possible: None, tmp_path: Path) -> Iterator[NewLab]:
    """Makes networks of so many members, each with its weather; all are taken away in the end."""
    with ExitStack() as stack:
        numbers = iter(range(1_000_000))

        def make(size: int, weather: Weather | None = None) -> Lab:
            folder = tmp_path / f"lab{next(numbers)}"
            folder.mkdir()
            return stack.enter_context(laboratory(size, folder, weather))

        yield make
