"""Sources and receivers become nodes: sources first, each group in the order of its names."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.audit.profiles import SHIPPED, Asked, asked_by
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.trace.schema import COMPLETE, CONFIG, NODES, PROTOCOL, RUN

MOST_NODES = 1 << 16


@dataclass(frozen=True)
class Nodes:
    """The nodes of a log."""

    sources: tuple[str, ...]
    receivers: tuple[str, ...]

    @classmethod
    def of(cls, sources: Iterable[str], receivers: Iterable[str]) -> "Nodes":
        """Numbers them, so that `orders[2]` comes before `orders[10]`. Raises `TraceError` if there are too many."""
        nodes = cls(tuple(sorted(set(sources), key=_natural)), tuple(sorted(set(receivers), key=_natural)))
        count = len(nodes.sources) + len(nodes.receivers)
        if not nodes.sources or not nodes.receivers:
            raise TraceError("the log has no rows, so there is nothing to audit")
        if count > MOST_NODES:
            raise TraceError(
                f"the log has {len(nodes.sources):,} sources and {len(nodes.receivers):,} receivers, and a run has at "
                f"most {MOST_NODES:,} nodes; name by `source` what has an order of its own, as a partition, a queue"
            )
        return nodes

    @property
    def names(self) -> tuple[str, ...]:
        """By node."""
        return (*self.sources, *self.receivers)

    def subscribers(self, subscriptions: Mapping[str, Sequence[str]] | None) -> list[list[int]]:
        """By source: the receivers that its messages are for; None: all.

        A subscription names a source, or what stands before its bracket, as a topic before a partition.
        """
        first = len(self.sources)
        everyone = list(range(first, first + len(self.receivers)))
        if subscriptions is None:
            return [everyone for _ in self.sources]
        return [
            [
                node
                for node, receiver in enumerate(self.receivers, start=first)
                if receiver not in subscriptions
                or any(source == name or source.startswith(f"{name}[") for name in subscriptions[receiver])
            ]
            for source in self.sources
        ]


def run_row(run: str, nodes: Nodes, service: Asked | str, mark: str, *, one_clock: bool) -> dict[str, Any]:
    """The row of `runs`: the service, and what the nodes are called."""
    asked = asked_by(service) if isinstance(service, str) else service
    log: dict[str, Any] = {"names": list(nodes.names), "mark": mark, "one_clock": one_clock}
    name = asked.value if isinstance(asked, Service) else asked.name
    if not isinstance(asked, Service) and name not in SHIPPED:
        log["profile"] = asked.as_document()
    return {
        RUN: run,
        PROTOCOL: name,
        NODES: len(nodes.names),
        COMPLETE: True,
        CONFIG: json.dumps({"log": log}, separators=(",", ":")),
    }


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
