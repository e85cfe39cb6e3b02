"""Replicas without a group: commands are applied by all of them, one after the other."""

from collections.abc import Callable
from typing import Any

from ordercast.model.history import Operation
from ordercast.replicated import Counter, Dict, Lock, Queue, Replicated, Set
from ordercast.replicated.frames import encode
from ordercast.replicated.history import as_json
from ordercast.replicated.replica import Replica
from ordercast.replicated.results import Result

MEMBERS = ("A", "B", "C")
MAKE: dict[str, Callable[[], Replicated]] = {
    "register": Dict,
    "counter": Counter,
    "element": Set,
    "lock": Lock,
    "queue": Queue,
}
"""By model."""


class Alone:
    """One object at each of some members."""

    def __init__(
        self,
        make: Callable[[], Replicated],
        members: tuple[str, ...] = MEMBERS,
        host: Callable[[str], Any] = lambda _: None,
    ) -> None:
        self.replicas = {name: Replica({"": make()}, {}, host(name)) for name in members}
        self.sequences = dict.fromkeys(members, 0)
        self.time = 1.0
        for replica in self.replicas.values():
            replica.enter_view(0, members)
            for session, name in enumerate(members):
                replica.hello(name, session + 1)

    def __getitem__(self, name: str) -> Any:
        return self.replicas[name].hosted[""].target

    def payload(self, sender: str, command: str, *arguments: Any) -> bytes:
        """The next command of a member."""
        self.sequences[sender] += 1
        hosted = self.replicas[sender].hosted[""]
        frame = hosted.frames[command]
        values = frame.spec.values(hosted.target, arguments, {})
        return encode(frame.kind(self.sequences[sender], self.sequences[sender] - 1, self.time, *values))

    def apply(self, at: str, sender: str, payload: bytes) -> Result | None:
        """A command, at one member."""
        replica = self.replicas[at]
        sent = replica.decode(payload)
        hosted, frame = replica.frames[type(sent)]
        stream = replica.stream(hosted, sender, 0)
        assert stream is not None
        return hosted.apply(frame, sent, sender, stream)

    def do(self, sender: str, command: str, *arguments: Any) -> Any:
        """A command, at all members; its result."""
        payload = self.payload(sender, command, *arguments)
        results = {at: self.apply(at, sender, payload) for at in self.replicas}
        found = results[sender]
        assert found is not None
        if found.error is not None:
            raise found.error
        return found.value

    def leaves(self, name: str) -> None:
        """A view without it."""
        del self.replicas[name]
        for replica in self.replicas.values():
            replica.enter_view(replica.view + 1, tuple(self.replicas))

    def tick(self, time: float) -> None:
        """Time passes."""
        self.time = time
        for replica in self.replicas.values():
            replica.hosted[""].tick(time)

    def digests(self) -> set[bytes]:
        """One, if all are equal."""
        return {replica.hosted[""].digest() for replica in self.replicas.values()}


def draw(model: str, target: Any, rng: Any) -> tuple[str, str, tuple[Any, ...]]:
    """A command and its arguments; the first is the key, if there are keys."""
    key, value = rng.choice("ab"), rng.randrange(3)
    if model == "register":
        kind = rng.choice(["put", "put", "delete", "pop", "compare_and_set"])
        expected = rng.choice([None, 0, 1, 2])
        return kind, key, {"put": (key, value), "compare_and_set": (key, expected, value or None)}.get(kind, (key,))
    if model == "counter":
        kind = rng.choice(["add", "set", "compare_and_set"])
        return kind, "", {"compare_and_set": (value, rng.randrange(3))}.get(kind, (value,))
    if model == "element":
        return rng.choice(["add", "discard"]), key, (key,)
    if model == "lock":
        waits = [each.token for each in target.queue]
        return ("enqueue", "", ()) if rng.random() < 0.5 else ("release", "", (rng.choice([*waits, 1, 2]),))
    tokens = [*target.assigned, 1, 2]
    kind = rng.choice(["put", "put", "ask", "ask", "done", "give_back"])
    return kind, "", {"put": (value,), "ask": ()}.get(kind, (rng.choice(tokens),))


def operation(
    model: str, key: str, kind: str, arguments: tuple[Any, ...], result: Any, at: tuple[int, int]
) -> Operation:
    """As a client would record it."""
    texts = tuple(map(as_json, arguments[1:] if key else arguments))
    return Operation("p", model, "", key, kind, texts, as_json(result), *at)
