"""Runs written down as people write them: letters for messages, one string for each log."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ordercast.audit.logs import COLUMNS, RunLogs, logs_of
from ordercast.audit.violations import Message, Violation

GOLDEN = Path(__file__).parent.parent / "golden"

Row = tuple[int, int, int, str, int | None, int | None, tuple[int, ...] | None, int | None]
"""node, step, time, event, source, seq, destinations, priority."""


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def columns(rows: Iterable[Row]) -> dict[str, list[Any]]:
    table = list(rows)
    return {column: [row[index] for row in table] for index, column in enumerate(COLUMNS)}


def logs_from(nodes: int, rows: Iterable[Row]) -> RunLogs:
    return logs_of("r", nodes, [columns(rows)])


class Figure:
    """A figure of a paper: what each entity sent, as in "a23 b3 c13", and what each received, as in "c x p"."""

    def __init__(
        self, sent: Sequence[str], received: Sequence[str], priorities: Mapping[str, int] | None = None
    ) -> None:
        self.names: dict[str, Message] = {}
        self.rows: list[Row] = []
        self.steps = [0] * len(sent)
        self.nodes = len(sent)
        for source, log in enumerate(sent):
            for seq, word in enumerate(log.split()):
                self.names[word[0]] = (source, seq)
                priority = priorities[word[0]] if priorities else None
                self.add(source, "send", word[0], to=tuple(int(digit) - 1 for digit in word[1:]), priority=priority)
        for node, log in enumerate(received):
            for letter in log.split():
                self.add(node, "deliver", letter)

    def add(
        self,
        node: int,
        kind: str,
        letter: str | None = None,
        *,
        time: int = 0,
        to: tuple[int, ...] | None = None,
        priority: int | None = None,
    ) -> None:
        # A letter that nobody sent names a message of a source that has none.
        source, seq = self.names.get(letter, (self.nodes, ord(letter))) if letter else (None, None)
        self.rows.append((node, self.steps[node], time, kind, source, seq, to, priority))
        self.steps[node] += 1

    def logs(self) -> RunLogs:
        return logs_from(self.nodes, self.rows)

    def letters(self, violation: Violation) -> str:
        named = {message: letter for letter, message in self.names.items()}
        return " ".join(named.get(message, "?") for message in violation.messages)


def figure_of(sending: Mapping[str, list[list[str]]], receiving: Mapping[str, list[str]]) -> Figure:
    """A figure as the golden files of the selective services hold it."""
    return Figure(
        [" ".join(letter + to for letter, to in sending[name]) for name in sorted(sending)],
        [" ".join(receiving[name]) for name in sorted(receiving)],
    )
