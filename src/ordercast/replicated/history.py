"""Records what an application does with replicated objects, for `ordercast audit --history`."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from time import monotonic_ns
from typing import Any, TypeVar

import msgspec

from ordercast.model.history import Operation

_T = TypeVar("_T")


class History:
    """A history of operations, in memory until it is saved.

        found = await history.run(lambda: store.get("k", fresh=True), "register", "k", "get")

    Times are those of the machine's monotonic clock: histories of processes of one machine can be audited together, if
    each is saved to a file of one folder.
    """

    def __init__(self, process: str, run: str = "") -> None:
        """`process`: who does the operations; `run`: histories of different runs do not belong together."""
        self.process, self._run = process, run
        self.operations: list[Operation] = []

    async def run(
        self,
        call: Callable[[], Awaitable[_T]],
        model: str,
        key: str,
        kind: str,
        *arguments: object,
        object_name: str = "",
    ) -> _T:
        """Begins an operation, awaits it, and records it: its arguments without the key, as JSON, and its result.

        `call`: begins it. A command is sent by its call, so an operation that was begun before would have a wrong time.

        `model`: "register" (a key of a `Dict`), "element" (a value of a `Set`), "counter", "lock", "queue" or "barrier"
        (whose arrivals have `parties` as their argument); `kind`: the name of the command or query. One that raises an
        exception, or is cancelled, may have been done or not.
        """
        called = monotonic_ns()
        result, returned = "", None
        try:
            value = await call()
            result, returned = as_json(value), monotonic_ns()
            return value
        finally:
            texts = tuple(map(as_json, arguments))
            fields = (self.process, model, object_name, key, kind, texts, result, called, returned)
            self.operations.append(Operation(*fields, self._run))

    def lost(self, model: str, key: str, token: int, since: int, *, object_name: str = "") -> None:
        """The group may have taken a lock, an item or a ticket from it, at any time since then, in nanoseconds."""
        fields = (self.process, model, object_name, key, "lost", (str(token),), "", since, None)
        self.operations.append(Operation(*fields, self._run))

    def save(self, path: Path | str) -> None:
        """Writes it to a Parquet file."""
        import_module("ordercast.trace.history").write_history(Path(path), self.operations)


def as_json(value: Any) -> str:
    """For comparison: the same text for the same value."""
    if isinstance(value, tuple) and len(value) == 2:  # a token and an item
        return f"{value[0]} {as_json(value[1])}"
    return msgspec.json.encode(value, order="deterministic").decode()
