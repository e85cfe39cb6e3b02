"""Watches a run: takes what machines put out before anything is done with it, and changes only contents."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.model.kept import Kept, kept_by
from ordercast.model.machine import (
    Deliver,
    Machine,
    NotSent,
    Numbered,
    Reached,
    ReachedByView,
    Send,
    Submit,
    ViewInstalled,
)
from ordercast.model.runs import RunConfig
from ordercast.protocols.restart.node_log import Recovered, WritePacket
from ordercast.simulator.watch.contents import Contents
from ordercast.simulator.watch.copies import Copies
from ordercast.simulator.watch.flight import Flight
from ordercast.simulator.watch.receipts import Receipts

Handler = Callable[[int, int, Any], None]


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen."""

    wrong_contents: tuple[str, ...]
    """A sentence for each packet that was not what was submitted."""
    unsaid_copies: tuple[int, ...]
    """By node: data that it sent again without saying so."""
    in_flight: tuple[int, ...]
    """By node: the most packets of its own at one time that nobody else had accepted, and it had not delivered."""
    receipts: Receipts
    """What applications were told."""
    contents: Contents
    """What became of what they submitted."""
    kept: tuple[Kept, ...]
    """By node: what it kept in the end, but for what is in its durable log."""


class Watcher:
    """Watches the machines of one run."""

    def __init__(self, config: RunConfig, machines: Sequence[Machine]) -> None:
        nodes = config.group.nodes
        self._machines = machines
        self._contents = Contents(nodes, has_views=config.group.views)
        self._copies = Copies(nodes)
        self._flight, self._receipts = Flight(nodes), Receipts(nodes)
        self._logged: list[set[tuple[int, int]]] = [set() for _ in range(nodes)]

    def given(self, node: int, submissions: Iterator[tuple[int, Submit]]) -> Iterator[tuple[int, Submit]]:
        """What is submitted at a node instead of this, and when."""
        for time, submission in submissions:
            yield time, self._contents.submit(node, submission)

    def recover(self, node: int, found: Recovered) -> None:
        """A node is given what is in its log."""
        self._logged[node] |= {(packet.source, packet.first) for packet in found.packets}

    def before(self, handlers: dict[type, Handler]) -> dict[type, Handler]:
        """The same handlers, for the outputs that are watched."""
        watched: dict[type, Callable[[int, Any], None]] = {
            Deliver: self._deliver,
            NotSent: self._receipts.not_sent,
            Numbered: self._number,
            Reached: self._reach,
            ReachedByView: self._reach,
            Send: self._copies.send,
            ViewInstalled: lambda node, output: self._contents.install(node, output.members),
            WritePacket: self._write,
        }
        return {kind: _both(watched[kind], handlers[kind]) for kind in watched if kind in handlers}

    def _deliver(self, node: int, output: Deliver) -> None:
        self._contents.compare(node, "delivers", output.packet)
        self._flight.deliver(node, output)
        self._receipts.deliver(node, output)

    def _number(self, node: int, output: Numbered) -> None:
        self._contents.number(node, output.packet)
        self._flight.number(node, output.packet)
        self._receipts.number(node, output.packet)

    def _reach(self, node: int, output: Reached) -> None:
        self._flight.reach(node, output)
        self._receipts.reach(node, output)

    def _write(self, node: int, output: WritePacket) -> None:
        self._logged[node].add((output.packet.source, output.packet.first))
        self._contents.compare(node, "logs", output.packet)

    def observed(self) -> Observed:
        """What was seen until now."""
        kept = [kept_by(machine) for machine in self._machines]
        return Observed(
            wrong_contents=tuple(self._contents.wrong),
            unsaid_copies=tuple(self._copies.unsaid),
            in_flight=tuple(self._flight.most),
            receipts=self._receipts,
            contents=self._contents,
            kept=tuple(each._replace(packets=each.packets - self._logged[node]) for node, each in enumerate(kept)),
        )


def _both(first: Callable[[int, Any], None], second: Handler) -> Handler:
    def handle(time: int, node: int, output: Any) -> None:
        first(node, output)
        second(time, node, output)

    return handle
