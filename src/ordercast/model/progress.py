"""How long work reports its progress."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called now and then with how many parts of the work are done, and how many there are."""
