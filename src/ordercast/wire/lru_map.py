"""What was used last is kept, the rest forgotten: strangers must not be able to fill our memory."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

REMEMBERED = 4096
"""Many times the streams of the largest group: 64 members, each heard with its incarnation and with the session."""


class LruMap(OrderedDict[K, V]):
    """The `REMEMBERED` values that were recalled or kept last."""

    def recall(self, key: K) -> V | None:
        """The value of the key, if it is still here."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def keep(self, key: K, value: V) -> None:
        """Adds a value, or replaces it."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > REMEMBERED:
            self.popitem(last=False)
