"""Random operations on objects of live groups while members crash and join, recorded as histories."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic_ns
from typing import Any

from ordercast import GroupError, Settings
from ordercast.audit.linearizability import KeyVerdict, audit_history
from ordercast.model.history import Operation
from ordercast.replicated import Counter, Dict, History, Lock, Queue, Replicated, Set
from tests.replicated.groups import Cluster, cluster, until

SETTINGS = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
KEYS = ("a", "b", "c")


class Client:
    """A process that does one thing after the other at one member."""

    def __init__(self, target: Any, name: str, seed: int) -> None:
        self.target, self.rng = target, random.Random(f"{name} {seed}")
        self.history = History(name, str(seed))

    async def run(self, one: Callable[["Client"], Awaitable[None]], count: int) -> None:
        try:
            for _ in range(count):
                await one(self)
        except GroupError:
            return  # this member is gone

    def crashed(self, model: str, since: int) -> None:
        """What it held, or may have been given, is taken by the group some time later."""
        if model in {"lock", "queue"}:
            for each in [each for each in self.history.operations if each.kind in TAKING]:
                token = int(each.result.split(" ")[0]) if each.result else -each.called
                self.history.lost(model, "", token, since)

    def value(self) -> int:
        return self.rng.randrange(1000)


TAKING = {"acquire", "get"}


async def on_dictionary(client: Client) -> None:
    store: Dict[int] = client.target
    key, value, old = client.rng.choice(KEYS), client.value(), store.get(client.rng.choice(KEYS))
    done: Mapping[str, Callable[[], tuple[Awaitable[Any], tuple[Any, ...]]]] = {
        "get": lambda: (store.get(key, fresh=True), ()),
        "put": lambda: (store.put(key, value), (value,)),
        "delete": lambda: (store.delete(key), ()),
        "pop": lambda: (store.pop(key), ()),
        "compare_and_set": lambda: (store.compare_and_set(key, old, value), (old, value)),
    }
    kind = client.rng.choice(["get", "get", *done])
    call, arguments = done[kind]()
    await client.history.run(call, "register", key, kind, *arguments)


async def on_counter(client: Client) -> None:
    counter: Counter = client.target
    kind = client.rng.choice(["add", "value", "compare_and_set", "set"])
    old, value = counter.value(), client.value()
    done: Mapping[str, Callable[[], tuple[Awaitable[Any], tuple[Any, ...]]]] = {
        "add": lambda: (counter.add(1), (1,)),
        "value": lambda: (counter.value(fresh=True), ()),
        "compare_and_set": lambda: (counter.compare_and_set(old, value), (old, value)),
        "set": lambda: (counter.set(value), (value,)),
    }
    call, arguments = done[kind]()
    await client.history.run(call, "counter", "", kind, *arguments)


async def on_set(client: Client) -> None:
    found: Set[str] = client.target
    key, kind = client.rng.choice(KEYS), client.rng.choice(["add", "discard", "has"])
    call = found.has(key, fresh=True) if kind == "has" else getattr(found, kind)(key)
    await client.history.run(call, "element", key, kind)


async def on_lock(client: Client) -> None:
    lock: Lock = client.target
    token = await client.history.run(lock.acquire(), "lock", "", "acquire")
    if client.rng.random() < 0.3:
        await asyncio.sleep(0.001)
    await client.history.run(lock.release(token), "lock", "", "release", token)
    if client.rng.random() < 0.2:
        await client.history.run(lock.release(token), "lock", "", "release", token)


async def on_queue(client: Client) -> None:
    queue: Queue[int] = client.target
    value = client.value()
    await client.history.run(queue.put(value), "queue", "", "put", value)
    token, _ = await client.history.run(queue.get(), "queue", "", "get")
    kind = client.rng.choice(["done", "done", "give_back"])
    await client.history.run(getattr(queue, kind)(token), "queue", "", kind, token)


BLOCKS: dict[str, tuple[type[Replicated], Callable[[Client], Awaitable[None]], int]] = {
    "register": (Dict, on_dictionary, 30),
    "counter": (Counter, on_counter, 15),
    "element": (Set, on_set, 30),
    "lock": (Lock, on_lock, 5),
    "queue": (Queue, on_queue, 4),
}
"""By model: the class, what a client does, and how often."""


async def history_of(model: str, seed: int, *, crash: bool = True, settings: Settings = SETTINGS) -> list[Operation]:
    """Two clients at each of three members; one member crashes, and another one joins, while they work."""
    kind, one, count = BLOCKS[model]
    async with cluster(kind, settings=settings) as group:
        clients = [Client(group[name], f"{name}{place}", seed) for name in "ABC" for place in range(2)]
        working = [asyncio.create_task(client.run(one, count)) for client in clients]
        if crash:
            victim = random.Random(seed).choice("ABC")
            await asyncio.sleep(0.01)
            since = monotonic_ns()
            group.crash(victim)
            rest = next(iter(group.members.values()))
            await until(lambda: victim not in rest.members)
            clients.append(await joined(group, seed))
            working.append(asyncio.create_task(clients[-1].run(one, count)))
        await asyncio.wait_for(asyncio.gather(*working), 20)
        await next(iter(group.members.values())).check()
        if crash:
            for client in clients:
                if client.history.process[0] == victim:
                    client.crashed(model, since)
    return [operation for client in clients for operation in client.history.operations]


async def joined(group: Cluster[Any], seed: int) -> Client:
    return Client(await group.join("D"), "D", seed)


def violations(operations: list[Operation]) -> list[KeyVerdict]:
    return [verdict for verdict in audit_history(operations) if not verdict.linearizable]
