"""Objects changed by what simulated groups deliver: histories of every block, under loss, splits, crashes, joins.

Each message of a run stands for a command, drawn when it is sent by what its sender has; or for the mark of a
linearizable read. Views change objects as in live groups: before the first message in them. A node that joins is given
the state of one that was there before.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ordercast.model.config import MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.faults import Crash, Fault, Join, Leave, Loss, Split
from ordercast.model.history import Operation
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols.membership.by_node import by_node
from ordercast.replicated import Barrier, Leader, Replicated
from ordercast.replicated.frames import encode
from ordercast.replicated.history import as_json
from ordercast.replicated.replica import Replica
from ordercast.replicated.results import Result
from ordercast.simulator import simulate
from ordercast.trace.schema import EventField, EventRow
from tests.replicated.alone import MAKE

FOUNDERS, NODES, PARTIES = 4, 5, 3
KEYS = ("a", "b", "c", "d")
FAULTS: dict[str, tuple[Fault, ...]] = {
    "loss": (Loss(rate=0.1),),
    "crash": (Loss(rate=0.02), Crash(node=1, at=3 * MILLISECOND)),
    "split": (Split(side=(2,), at=2 * MILLISECOND, lasting=4 * MILLISECOND),),
    "exclusion": (Split(side=(2,), at=2 * MILLISECOND, lasting=300 * MILLISECOND),),
    "join": (Loss(rate=0.02), Join(node=4, at=2 * MILLISECOND)),
    "changes": (Crash(node=1, at=3 * MILLISECOND), Join(node=4, at=MILLISECOND), Leave(node=2, at=5 * MILLISECOND)),
}
PROTOCOLS = ("sequencer", "st", "prito")
MODELS: Mapping[str, Callable[[], Replicated]] = {**MAKE, "barrier": lambda: Barrier(parties=PARTIES)}
Drawn = tuple[str, tuple[Any, ...], str]
"""What is done (a query if the object has no such command), its arguments, and the key."""
AT_ONCE = 3
"""Operations of a client that have not returned: more of them make the search long."""
NOTHING: Drawn = ("", (), "")
"""The client waits: it does one thing after the other."""
TAKING = {"enqueue": "acquire", "ask": "get"}
"""Commands that ask for what is given later, and the operation as the models know it."""


def simulated(protocol: str, faults: tuple[Fault, ...], seed: int, messages: int = 30) -> list[EventRow]:
    rows: list[EventRow] = []
    nodes = NODES if any(isinstance(fault, Join) for fault in faults) else FOUNDERS
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, views=True, sequencer=SequencerConfig(resilience=nodes // 2)),
        network=Network(channel=by_node(protocol).needs),
        workload=Workload(messages=messages, gap=5 * MILLISECOND),
        faults=faults,
        seed=seed,
    )
    simulate(config, rows=rows)
    return rows


class Node:
    """One replica, and the operations of its client."""

    def __init__(self, group: "SimulatedObjects", number: int) -> None:
        self.group, self.number, self.name = group, number, f"n{number}"
        self.replica = Replica({"": group.make()}, {}, None)  # type: ignore[arg-type]
        self.sequence, self.tokens, self.past, self.asks = 0, set[int](), list[int](), False
        self.sent: dict[int, tuple[Drawn, bytes, int]] = {}
        self.given: dict[int, int] = {}  # by token of what is asked for: the time of the call
        self.held_back: list[EventRow] | None = None  # what comes before the state

    @property
    def target(self) -> Any:
        return self.replica.hosted[""].target

    def sends(self, seq: int, time: int) -> None:
        kind, arguments, key = self.group.draw(self)
        payload = b""
        if kind in (frames := self.replica.hosted[""].frames):
            frame = frames[kind]
            self.sequence += 1
            values = frame.spec.values(self.target, arguments, {})
            payload = encode((frame.tag, self.sequence, self.sequence - 1, float(time), *values))
        self.sent[seq] = (kind, arguments, key), payload, time

    def delivers(self, source: "Node", seq: int, time: int) -> None:
        (kind, arguments, key), payload, called = source.sent[seq]
        if not kind:
            source.sent[seq] = NOTHING, b"", -1
            return
        result = self.apply(source.name, payload) if payload else None
        if source is self:
            if kind == "arrive":
                self.asks = False
            if not payload:
                value: Any = getattr(self.target, kind)(*arguments)
                self.group.returned(self, (kind, arguments, key), value, called, time)
            elif result is not None:
                assert result.error is None
                if kind in TAKING:
                    self.given[result.value], self.asks = called, False
                else:
                    self.group.returned(self, (kind, arguments, key), result.value, called, time)
            self.sent[seq] = (kind, arguments, key), payload, -1
        self.look(time)

    def apply(self, sender: str, payload: bytes) -> Result | None:
        sent = self.replica.decode(payload)
        hosted, frame = self.replica.frames[type(sent)]
        stream = self.replica.stream(hosted, sender, 0)
        assert stream is not None
        return hosted.apply(frame, sent, sender, stream)

    def look(self, time: int) -> None:
        """Locks and items are given when they are free, and this client sees it at its own replica."""
        target = self.target
        for token, called in list(self.given.items()):
            if self.group.model == "lock" and target.is_held(token):
                self.group.returned(self, ("acquire", (), ""), token, called, time)
            elif self.group.model == "queue" and token in target.assigned:
                value = (token, target.items[target.assigned[token].item])
                self.group.returned(self, ("get", (), ""), value, called, time)
            else:
                continue
            del self.given[token]
            self.tokens.add(token)


class SimulatedObjects:
    """All nodes of a run."""

    def __init__(self, model: str, seed: int) -> None:
        self.model, self.seed = model, seed
        self.make = Leader if model == "lock" and seed % 2 else MODELS[model]  # which has the same model
        self.rng = random.Random(f"{model} {seed}")
        self.nodes: dict[int, Node] = {}
        self.snapshots: dict[int, bytes] = {}
        self.operations: list[Operation] = []
        self.excluded: dict[str, int] = {}
        self._waiting: tuple[Node, int, tuple[str, ...]] | None = None  # for a state

    def run(self, rows: list[EventRow]) -> None:
        for row in rows:
            self._row(row)
        self._open_operations()

    def _row(self, row: EventRow) -> None:
        event, number, time = row[EventField.EVENT], row[EventField.NODE], row[EventField.TIME]
        node, source, seq = self.nodes.get(number), row[EventField.SOURCE], row[EventField.SEQ]
        if event == "view":
            assert seq is not None
            self._view(number, seq, row[EventField.DESTINATIONS] or (), time)
        elif node is not None and node.held_back is not None and event in {"send", "deliver"}:
            node.held_back.append(row)
        elif event == "send" and node is not None and source == number and seq is not None:
            node.sends(seq, time)
        elif event == "deliver" and node is not None and source is not None and seq is not None:
            node.delivers(self.nodes[source], seq, time)

    def _view(self, number: int, view: int, places: tuple[int, ...], time: int) -> None:
        names = tuple(f"n{place}" for place in places)
        node = self.nodes.get(number)
        if node is None:
            node = self.nodes[number] = Node(self, number)
            if view:
                node.held_back = []
                self._enter(node, view, names, time)
                return
        elif node.held_back is not None:
            raise AssertionError("no view follows before a state")
        else:
            self.snapshots.setdefault(view, node.replica.save())
        self._enter(node, view, names, time)

    def _enter(self, node: Node, view: int, names: tuple[str, ...], time: int) -> None:
        """As live members do: they are at the same place, so it does not matter that no message is waited for."""
        if node.held_back is not None:
            if view not in self.snapshots:
                self._waiting = node, view, names
                return
            held, node.held_back = node.held_back, None
            node.replica.load(self.snapshots[view])
        else:
            held = []
        for name in node.replica.members:
            if name not in names:
                self.excluded.setdefault(name, time)
        joined = [name for name in names if name not in node.replica.members]
        node.replica.enter_view(view, names)
        for name in joined:
            node.replica.hello(name, int(name[1:]) + 1)
        for row in held:
            self._row(row)
        node.look(time)
        waiting = self._waiting
        if waiting is not None and waiting[1] in self.snapshots:
            self._waiting = None
            self._enter(waiting[0], waiting[1], waiting[2], time)

    # --- what clients do ---

    def draw(self, node: Node) -> Drawn:  # noqa: PLR0911 (one for each block)
        """The next operation of a client."""
        rng, target = self.rng, node.target
        if sum(called >= 0 for _, _, called in node.sent.values()) >= AT_ONCE:
            return NOTHING
        key, value = rng.choice(KEYS), rng.randrange(100)
        if self.model == "register":
            kind = rng.choice(["put", "put", "delete", "pop", "compare_and_set", "get"])
            given = {"put": (key, value), "compare_and_set": (key, rng.choice([None, target.get(key)]), value)}
            return kind, given.get(kind, (key,)), key
        if self.model == "counter":
            kind = rng.choice(["add", "set", "compare_and_set", "value"])
            return kind, {"compare_and_set": (target.value(), value), "value": ()}.get(kind, (value,)), ""
        if self.model == "element":
            return rng.choice(["add", "discard", "has"]), (key,), key
        if self.model == "barrier":
            if node.asks:
                return NOTHING
            mine = [ticket for ticket, name in target.arrived.items() if name == node.name]
            node.asks = not (mine and rng.random() < 0.3)
            return ("arrive", (), "") if node.asks else ("give_up", (rng.choice(mine),), "")
        if node.tokens and rng.random() < 0.7:
            token = rng.choice(sorted(node.tokens))
            node.tokens.discard(token)
            node.past.append(token)  # and may be given back once more
            return rng.choice(["done", "give_back"]) if self.model == "queue" else "release", (token,), ""
        if self.model == "queue" and rng.random() < 0.5:
            return "put", (value,), ""
        if node.given or node.asks:
            if not node.past or rng.random() < 0.5:
                return NOTHING
            return ("give_back" if self.model == "queue" else "release"), (rng.choice(node.past),), ""
        node.asks = True
        return "ask" if self.model == "queue" else "enqueue", (), ""

    def add(self, node: Node, drawn: Drawn, result: str, called: int, returned: int | None) -> None:
        kind, arguments, key = drawn
        given = (PARTIES,) if kind == "arrive" else arguments[1:] if key else arguments
        texts = tuple(map(as_json, given))
        fields = (node.name, self.model, "", key, TAKING.get(kind, kind), texts, result, called, returned)
        self.operations.append(Operation(*fields, str(self.seed)))

    def returned(self, node: Node, drawn: Drawn, value: Any, called: int, time: int) -> None:
        self.add(node, drawn, as_json(value), called, time)

    def _open_operations(self) -> None:
        """What did not return may have been done; what a node had is taken from it when it is excluded."""
        for node in self.nodes.values():
            open_calls = [(drawn, called) for drawn, _, called in node.sent.values() if called >= 0 and drawn[0]]
            asked = ("enqueue" if self.model == "lock" else "ask", (), "")
            open_calls += [(asked, called) for called in node.given.values()]
            for drawn, called in open_calls:
                self.add(node, drawn, "", called, None)
        taken = defaultdict(list)
        for each in self.operations:
            if self.model in {"lock", "queue", "barrier"} and each.kind in {"acquire", "get", "arrive"}:
                known = each.result.split(" ")[-1 if each.kind == "arrive" else 0]
                taken[each.process].append(int(known) if known else -each.called)
        for node in self.nodes.values():
            since = self.excluded.get(node.name)
            if since is not None:
                for token in taken[node.name]:
                    self.add(node, ("lost", (token,), ""), "", since, None)

    def digests(self) -> set[bytes]:
        """Of nodes that were not excluded: one, if all are equal."""
        return {node.replica.hosted[""].digest() for node in self.nodes.values() if node.name not in self.excluded}


def history_of(model: str, rows: list[EventRow], seed: int) -> SimulatedObjects:
    found = SimulatedObjects(model, seed)
    found.run(rows)
    return found
