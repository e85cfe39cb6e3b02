"""Random operations on objects of live groups under faults, recorded as histories.

A member crashes and another one joins; a member is cut off, excluded, and returns; or datagrams are lost.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic_ns
from typing import Any, NamedTuple

from ordercast import GroupError, Settings
from ordercast.audit.linearizability import KeyVerdict, audit_history
from ordercast.model.history import Operation
from ordercast.replicated import Barrier, Counter, Dict, History, Leader, Lock, Queue, Replicated, Set
from tests.live.groups import member_of
from tests.replicated.groups import Cluster, cluster, cut_off, until

SETTINGS = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
KEYS = ("a", "b", "c")
PARTIES = 3
FAULTS = ("crash", "split", "loss")
LOST = 0.1
"""Of all datagrams."""


class Client:
    """A process that does one thing after the other at one member."""

    def __init__(self, target: Any, name: str, seed: int, fault: str | None) -> None:
        self.target, self.rng, self.fault = target, random.Random(f"{name} {seed}"), fault
        self.history = History(name, str(seed))

    async def run(self, one: Callable[["Client"], Awaitable[None]], count: int) -> None:
        try:
            for _ in range(count):
                await one(self)
        except GroupError:
            return  # this member is gone

    def excluded(self, since: int, until: int) -> None:
        """What it asked for until then, and may have been given, the group takes from it at some time since then."""
        for each in [each for each in self.history.operations if each.called < until]:
            kind, place = TAKING.get(each.model, ("", 0))
            if each.kind != kind:
                continue
            token = int(each.result.split(" ")[place]) if each.result else -each.called
            self.history.lost(each.model, "", token, max(since, each.called))

    def value(self) -> int:
        return self.rng.randrange(1000)


TAKING = {"lock": ("acquire", 0), "queue": ("get", 0), "barrier": ("arrive", -1)}
"""By model: what gives something that the group may take back, and where its token stands in the result."""


class OverError(Exception):
    """What was asked for will not be given: the member was excluded meanwhile."""


async def taken(queue: Queue[int]) -> tuple[int, int]:
    """`Queue.get`, without asking again: then the attempt before may have had an item for a while."""
    token = await queue.ask()
    await queue.until(lambda: token not in queue.waiting)
    if token not in queue.assigned:
        raise OverError
    return token, queue.items[queue.assigned[token].item]


async def on_dictionary(client: Client) -> None:
    store: Dict[int] = client.target
    key, value, old = client.rng.choice(KEYS), client.value(), store.get(client.rng.choice(KEYS))
    done: Mapping[str, tuple[Callable[[], Awaitable[Any]], tuple[Any, ...]]] = {
        "get": (lambda: store.get(key, fresh=True), ()),
        "put": (lambda: store.put(key, value), (value,)),
        "delete": (lambda: store.delete(key), ()),
        "pop": (lambda: store.pop(key), ()),
        "compare_and_set": (lambda: store.compare_and_set(key, old, value), (old, value)),
    }
    kind = client.rng.choice(["get", "get", *done])
    call, arguments = done[kind]
    await client.history.run(call, "register", key, kind, *arguments)


async def on_counter(client: Client) -> None:
    counter: Counter = client.target
    kind = client.rng.choice(["add", "value", "compare_and_set", "set"])
    old, value = counter.value(), client.value()
    done: Mapping[str, tuple[Callable[[], Awaitable[Any]], tuple[Any, ...]]] = {
        "add": (lambda: counter.add(1), (1,)),
        "value": (lambda: counter.value(fresh=True), ()),
        "compare_and_set": (lambda: counter.compare_and_set(old, value), (old, value)),
        "set": (lambda: counter.set(value), (value,)),
    }
    call, arguments = done[kind]
    await client.history.run(call, "counter", "", kind, *arguments)


async def on_set(client: Client) -> None:
    found: Set[str] = client.target
    key, kind = client.rng.choice(KEYS), client.rng.choice(["add", "discard", "has"])
    options = {"fresh": True} if kind == "has" else {}
    await client.history.run(lambda: getattr(found, kind)(key, **options), "element", key, kind)


async def on_lock(client: Client) -> None:
    lock: Lock = client.target
    take, give = (lock.campaign, lock.resign) if isinstance(lock, Leader) else (lock.acquire, lock.release)
    token = await client.history.run(take, "lock", "", "acquire")
    if client.rng.random() < 0.3:
        await asyncio.sleep(0.001)
    for _ in range(1 + (client.rng.random() < 0.2)):  # once more than it should
        await client.history.run(lambda: give(token), "lock", "", "release", token)


async def on_queue(client: Client) -> None:
    queue: Queue[int] = client.target
    value = client.value()
    await client.history.run(lambda: queue.put(value), "queue", "", "put", value)
    token = 0
    while not token:
        with suppress(OverError):
            get = queue.get if client.fault != "split" else lambda: taken(queue)
            token, _ = await client.history.run(get, "queue", "", "get")
    kind = client.rng.choice(["done", "done", "give_back"])
    await client.history.run(lambda: getattr(queue, kind)(token), "queue", "", kind, token)


async def on_barrier(client: Client) -> None:
    barrier: Barrier = client.target
    number, ticket = await client.history.run(barrier.arrive, "barrier", "", "arrive", PARTIES)
    try:
        async with asyncio.timeout(0.05):
            await barrier.until(lambda: barrier.round > number or ticket not in barrier.arrived)
    except TimeoutError:
        await client.history.run(lambda: barrier.give_up(ticket), "barrier", "", "give_up", ticket)


class Block(NamedTuple):
    """What is tried."""

    make: Callable[[], Replicated]
    one: Callable[[Client], Awaitable[None]]
    """What a client does."""
    times: int
    """How often."""


BLOCKS = {
    "dictionary": Block(Dict, on_dictionary, 30),
    "counter": Block(Counter, on_counter, 15),
    "set": Block(Set, on_set, 30),
    "lock": Block(Lock, on_lock, 5),
    "leader": Block(Leader, on_lock, 5),
    "queue": Block(Queue, on_queue, 4),
    "barrier": Block(lambda: Barrier(parties=PARTIES), on_barrier, 5),
}


async def history_of(
    name: str, seed: int, *, fault: str | None = "crash", settings: Settings = SETTINGS
) -> list[Operation]:
    """Two clients at each of three members work on a block."""
    block = BLOCKS[name]
    async with cluster(block.make, settings=settings) as group:
        clients = [Client(group[each], f"{each}{place}", seed, fault) for each in "ABC" for place in range(2)]
        working = [asyncio.create_task(client.run(block.one, block.times)) for client in clients]
        victim = random.Random(seed).choice("ABC")
        if fault == "crash":
            await asyncio.sleep(0.01)
            since = monotonic_ns()
            group.crash(victim)
            rest = next(iter(group.members.values()))
            await until(lambda: victim not in rest.members)
            clients.append(await joined(group, seed))
            working.append(asyncio.create_task(clients[-1].run(block.one, block.times)))
        elif fault == "split":
            await asyncio.sleep(0.01)
            since = monotonic_ns()
            await cut_off(group, victim)
        elif fault == "loss":
            for each in "ABC":
                lose(group, each, random.Random(f"{each} {seed}"))
        ended = monotonic_ns()
        await asyncio.wait_for(asyncio.gather(*working), 20)
        await next(iter(group.members.values())).check()
        if fault in {"crash", "split"}:
            for client in clients:
                if client.history.process[0] == victim:
                    client.excluded(since, ended)
    return [operation for client in clients for operation in client.history.operations]


def lose(group: Cluster[Any], name: str, rng: random.Random) -> None:
    """From now on it does not hear some datagrams."""
    endpoint = member_of(group.members[name].group).transport.endpoint
    heard = endpoint.receive

    def hear(datagram: Any) -> None:
        if rng.random() >= LOST:
            heard(datagram)

    endpoint.receive = hear


async def joined(group: Cluster[Any], seed: int) -> Client:
    return Client(await group.join("D"), "D", seed, "crash")


def violations(operations: list[Operation]) -> list[KeyVerdict]:
    return [verdict for verdict in audit_history(operations) if not verdict.linearizable]
