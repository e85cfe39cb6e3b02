"""A replicated counter and a replicated set."""

from typing import Generic, TypeVar

from ordercast.replicated.objects import Replicated, command, query

_V = TypeVar("_V")
_LIMIT = 1 << 63


class Counter(Replicated):
    """A number, the same at all members."""

    number: int = 0

    @command
    def add(self, amount: int = 1) -> int:
        """Adds to it; the new value."""
        self.number = _within_limits(self.number + amount)
        return self.number

    @command
    def set(self, number: int) -> int:
        """Sets it; the old value."""
        old, self.number = self.number, _within_limits(number)
        return old

    @command
    def compare_and_set(self, expected: int, number: int) -> bool:
        """Sets it if it has the expected value; whether it had."""
        if self.number != expected:
            return False
        self.number = _within_limits(number)
        return True

    @query
    def value(self) -> int:
        """The value."""
        return self.number


def _within_limits(number: int) -> int:
    if not -_LIMIT <= number < _LIMIT:
        raise OverflowError(f"a counter has 64 bits: {number} is too large")
    return number


class Set(Replicated, Generic[_V]):
    """A set of values of built-in types, the same at all members."""

    values: set[_V] = set()

    @command
    def add(self, value: _V) -> bool:
        """Adds a value; whether it is new."""
        if value in self.values:
            return False
        self.values.add(value)
        return True

    @command
    def discard(self, value: _V) -> bool:
        """Removes a value; whether it was there."""
        if value not in self.values:
            return False
        self.values.remove(value)
        return True

    @query
    def all(self) -> frozenset[_V]:
        """All values."""
        return frozenset(self.values)

    @query
    def has(self, value: _V) -> bool:
        """Whether a value is there."""
        return value in self.values

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, value: object) -> bool:
        return value in self.values
