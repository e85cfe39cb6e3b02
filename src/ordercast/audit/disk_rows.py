"""The durable logs of a run's nodes, as the rows of its trace tell of them: what is on the disk of each, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.audit.violations import Message
from ordercast.trace.schema import EventKind

ABOUT_LOGS = frozenset({EventKind.DURABLE, EventKind.RESTART, EventKind.DROP})
"""The kinds of rows about logs."""


class DiskRow(NamedTuple):
    """A row about the log of a node, in the order of the node's steps."""

    step: int
    kind: str
    source: int | None
    number: int | None

    @property
    def message(self) -> Message:
        """Of a `durable` row."""
        return (self.source or 0, self.number or 0)


class StartedAgain(NamedTuple):
    """A process that was started again."""

    node: int
    old: int
    """The node that it was."""
    found: tuple[Message, ...]
    """What was in its log."""
    missing: int
    """Messages that were in its log by its own account, and of which there is no row."""


@dataclass(frozen=True)
class DiskLogs:
    """The logs of all nodes."""

    rows: Mapping[int, Sequence[DiskRow]] = field(default_factory=dict)
    """By node."""

    def __bool__(self) -> bool:
        return bool(self.rows)

    def of(self, node: int, before: int | None = None) -> list[Message]:
        """What is in a node's log, before one of its steps, or at the end."""
        found: list[Message] = []
        for row in self.rows.get(node, ()):
            if before is not None and row.step >= before:
                break
            if row.kind == EventKind.DURABLE:
                found.append(row.message)
            elif row.kind == EventKind.DROP:
                del found[row.number or 0 :]
        return found

    def started_again(self) -> list[StartedAgain]:
        """All processes that were."""
        found = []
        for node, rows in sorted(self.rows.items()):
            for at, row in enumerate(rows):
                if row.kind == EventKind.RESTART:
                    count = row.number or 0
                    named = [each for each in rows[at + 1 : at + 1 + count] if each.kind == EventKind.DURABLE]
                    messages = tuple(each.message for each in named)
                    found.append(StartedAgain(node, row.source or 0, messages, count - len(messages)))
        return found


def disk_logs(rows: Mapping[int, list[DiskRow]]) -> DiskLogs:
    """From the rows of a trace, in any order."""
    return DiskLogs({node: sorted(mine) for node, mine in sorted(rows.items()) if mine})
