"""A map of bounded size that forgets what was not used for longest (LRU): strangers must not fill our memory."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

REMEMBERED = 4096
"""Many times what the largest group needs: 64 members, each with its incarnation and with the session."""


class LruMap(OrderedDict[K, V]):
    """The `REMEMBERED` entries that were used last."""

    def recall(self, key: K) -> V | None:
        """The value of the key, if there is one; it counts as used."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def keep(self, key: K, value: V) -> None:
        """Adds or replaces a value, and forgets the oldest if there are too many."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > REMEMBERED:
            self.popitem(last=False)
