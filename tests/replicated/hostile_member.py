"""A member as a process whose clients write down what they do: it may be killed, stopped or cut off at any time.

    python -m tests.replicated.hostile_member NAME GROUP FOLDER LOGGED

Lines of standard input: `deaf` and `hear`, `mute` and `speak`, and `end`. A line of the file for each call, and one for
each return.
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Any

import ordercast.replicated
from ordercast import GroupError, Settings
from ordercast.replicated import Call, Counter, Dict, Lock, Member, Queue
from ordercast.replicated.history import as_json
from tests.live.groups import member_of
from tests.replicated.histories import OverError, taken

MEMBERS = ("A", "B", "C")
SETTINGS = Settings(order="total", failure_timeout=0.7)


def say(line: str) -> None:
    """To the test."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Written:
    """The file."""

    def __init__(self, name: str, folder: Path) -> None:
        self.process = f"{name}{monotonic_ns()}"
        self._file = (folder / f"{self.process}.jsonl").open("w")
        self.members: Member
        self.logged = False

    def line(self, **fields: Any) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()

    async def run(
        self, client: str, call: Callable[[], Awaitable[Any]], model: str, key: str, kind: str, *arguments: object
    ) -> Any:
        number = monotonic_ns()
        done = call()
        given = list(map(as_json, arguments))
        call_id = list(done.id) if isinstance(done, Call) else None
        process = f"{self.process} {client}"
        self.line(number=number, process=process, model=model, key=key, kind=kind, arguments=given, id=call_id)
        value = await done
        if self.logged:  # also what was read: what nobody has on a disk may be gone when all are killed
            await self.members.durable()
        self.line(number=number, result=as_json(value), returned=monotonic_ns())
        return value


async def read(store: Dict[int], key: str) -> int | None:
    return await store.get(key, fresh=True)


async def on_store(written: Written, store: Dict[int], client: str, rng: random.Random) -> None:
    while True:
        key, value = rng.choice("abc"), rng.randrange(1000)
        if rng.random() < 0.5:
            await written.run(client, partial(read, store, key), "register", key, "get")
        elif rng.random() < 0.5:
            await written.run(client, partial(store.put, key, value), "register", key, "put", value)
        else:
            old = store.get(key)
            await written.run(
                client, partial(store.compare_and_set, key, old, value), "register", key, "compare_and_set", old, value
            )
        await asyncio.sleep(0.02 * rng.random())


async def on_counter(written: Written, counter: Counter, client: str, rng: random.Random) -> None:
    while True:
        await written.run(client, partial(counter.add, 1), "counter", "", "add", 1)
        await asyncio.sleep(0.05 * rng.random())


async def on_lock(written: Written, lock: Lock, client: str, rng: random.Random) -> None:
    while True:
        token = await written.run(client, lock.acquire, "lock", "", "acquire")
        await asyncio.sleep(0.02 * rng.random())
        await written.run(client, partial(lock.release, token), "lock", "", "release", token)
        await asyncio.sleep(0.05 * rng.random())


async def on_queue(written: Written, queue: Queue[int], client: str, rng: random.Random) -> None:
    while True:
        value, token = rng.randrange(1000), 0
        await written.run(client, partial(queue.put, value), "queue", "", "put", value)
        while not token:
            with suppress(OverError):  # an attempt that did not return
                token, _ = await written.run(client, partial(taken, queue), "queue", "", "get")
        await asyncio.sleep(0.02 * rng.random())
        await written.run(client, partial(queue.done, token), "queue", "", "done", token)
        await asyncio.sleep(0.05 * rng.random())


async def main(name: str, group: str, folder: Path, *, logged: bool) -> None:
    written = Written(name, folder)
    written.logged = logged
    store, counter, lock, queue = Dict[int](), Counter(), Lock(), Queue[int]()
    objects = {"store": store, "counter": counter, "lock": lock, "queue": queue}
    log: dict[str, Any] = {"log": folder / f"{name}.log"} if logged else {}
    joining = ordercast.replicated.join(
        group, objects, members=MEMBERS, name=name, settings=SETTINGS, check_interval=1.0, timeout=180, **log
    )
    async with joining as members:
        written.members = members
        say("open")
        rng = random.Random(written.process)
        clients = [
            asyncio.ensure_future(work)
            for work in (
                on_store(written, store, "s1", rng),
                on_store(written, store, "s2", rng),
                on_counter(written, counter, "c", rng),
                on_lock(written, lock, "l", rng),
                on_queue(written, queue, "q", rng),
            )
        ]
        obeying = asyncio.ensure_future(obey(member_of(members.group).transport.endpoint))
        await asyncio.wait([obeying, *clients], return_when=asyncio.FIRST_COMPLETED)
        for each in clients:
            each.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        word = obeying.result() if obeying.done() else "end"
        asked = json.loads(word) if word.startswith("[") else []
        if asked:
            ids = [ordercast.replicated.CommandId(*each) for each in asked[1:]]
            applied = [await members.applied(each) for each in ids]
            await members.check()
            say(json.dumps([applied, await counter.value(fresh=True), members.members]))


async def obey(endpoint: Any) -> str:
    """Until it is told to end, with what it is asked then."""
    receive, send = endpoint.receive, endpoint.send
    while True:
        word: str = (await asyncio.to_thread(sys.stdin.readline)).strip()
        if word == "deaf":
            endpoint.receive = lambda _: None
        elif word == "hear":
            endpoint.receive = receive
        elif word == "mute":
            endpoint.send = lambda *_: None
        elif word == "speak":
            endpoint.send = send
        else:
            return word


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), logged=sys.argv[4] == "1"))
    except GroupError as error:
        sys.exit(f"ended: {error}")
