"""A replicated dictionary."""

import math
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

import msgspec

from ordercast.model.errors import LocalProtocolError
from ordercast.replicated.objects import Replicated, command, query

_V = TypeVar("_V")


class Change(msgspec.Struct, frozen=True):
    """A key has another value, or none any more."""

    key: str
    value: Any
    """None if the key is gone."""
    deleted: bool = False
    expired: bool = False
    """It is gone since its time to live had passed."""


class Dict(Replicated, Generic[_V]):
    """A dictionary from strings to values of built-in types, the same at all members.

    `values` must only be changed by commands. Keys with a time to live expire by the time of the group: at all members
    at the same place of the order, up to a fraction of a second late.
    """

    values: dict[str, _V] = {}
    expiries: dict[str, float] = {}
    """Keys with a time to live, and when they expire."""
    next_expiry: float = 0.0
    """Nothing expires before it; 0: nothing has a time to live."""

    @command
    def put(self, key: str, value: _V, ttl: float | None = None) -> None:
        """Sets a key; `ttl`: for so many seconds."""
        if ttl is None and not self.expiries and not self.is_watched and value is not None:
            self.values[key] = value  # what most calls come to
            return
        self.tick()
        self._put(key, value, ttl)

    @command
    def delete(self, key: str) -> bool:
        """Removes a key; whether it was there."""
        self.tick()
        return self._remove(key, expired=False)

    @command
    def compare_and_set(self, key: str, expected: _V | None, value: _V | None, ttl: float | None = None) -> bool:
        """Sets a key if it has the expected value; whether it had. None: the key is not there, or is removed."""
        self.tick()
        if self.values.get(key) != expected:
            return False
        if value is None:
            self._remove(key, expired=False)
        else:
            self._put(key, value, ttl)
        return True

    @command
    def pop(self, key: str) -> _V | None:
        """Removes a key; its value, or None."""
        self.tick()
        found = self.values.get(key)
        self._remove(key, expired=False)
        return found

    @query
    def get(self, key: str) -> _V | None:
        """The value of a key, or None."""
        return self.values.get(key)

    @query
    def items(self, prefix: str = "") -> dict[str, _V]:
        """All keys that begin with this, and their values: a copy."""
        return {key: value for key, value in self.values.items() if key.startswith(prefix)}

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def watch(self, prefix: str = "") -> AsyncIterator[Change]:
        """Changes of keys that begin with this, from now on, in their order.

        If this member is excluded and returns, changes that it missed come as one for each key that differs.
        """
        return self.changes(lambda change: change.key.startswith(prefix))

    def deadline(self) -> float | None:
        """When the next key expires."""
        return self.next_expiry or None

    def tick(self) -> None:
        """Removes what has expired."""
        now = self.context.time
        if not self.next_expiry or now < self.next_expiry:
            return
        for key in [key for key, expiry in self.expiries.items() if expiry <= now]:
            self._remove(key, expired=True)
        self.next_expiry = min(self.expiries.values(), default=0.0)

    def loaded(self, old: "Dict[_V]") -> None:
        """Tells what has changed while this member was away."""
        for key, value in self.values.items():
            if key not in old.values or old.values[key] != value:
                self.tell(Change(key, value))
        for key in old.values.keys() - self.values.keys():
            self.tell(Change(key, None, deleted=True))

    def _put(self, key: str, value: _V, ttl: float | None) -> None:
        if value is None:
            raise LocalProtocolError("a value must not be None, which stands for a key that is not there")
        if ttl is not None and not 0 < ttl < math.inf:
            raise LocalProtocolError(f"a time to live is a number of seconds above 0, not {ttl}")
        self.values[key] = value
        if ttl is not None:
            self.expiries[key] = expiry = self.context.time + ttl
            self.next_expiry = min(self.next_expiry or expiry, expiry)
        elif self.expiries:
            self.expiries.pop(key, None)
        if self.is_watched:
            self.tell(Change(key, value))

    def _remove(self, key: str, *, expired: bool) -> bool:
        if self.values.pop(key, None) is None:
            return False
        self.expiries.pop(key, None)
        self.tell(Change(key, None, deleted=True, expired=expired))
        return True
