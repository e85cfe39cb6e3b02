"""A replicated store that loses and regains members: each copy comes back with everything that it missed.

    python examples/replicated_store.py            three members in one process, restarted one after the other
    python examples/replicated_store.py A          in three terminals, as A, B and C: type `key value`

Kill a member, write something at the others, and start it again: it joins the running group, and is given the store as
it was at one place of the order, and every write after that place. Control-D leaves; the others go on.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator

import ordercast

MEMBERS = ("A", "B", "C")


class Store:
    """What all members hold: the same writes, applied in the same order."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def apply(self, message: ordercast.Message) -> None:
        """Applies a write."""
        key, value = json.loads(message.payload)
        self.values[key] = value

    def save(self) -> bytes:
        """The state for a member that joins; called between two writes."""
        return json.dumps(self.values).encode()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """The state that another member saved."""
        self.values = json.loads(b"".join([part async for part in parts]))


class Replica:
    """One member, and its copy of the store."""

    def __init__(self, group: ordercast.Group, store: Store) -> None:
        self.group, self.store = group, store
        self._applying = asyncio.create_task(self._apply())

    async def put(self, key: str, value: str) -> None:
        """Returns when every member has the write."""
        await self.group.send(json.dumps([key, value]).encode(), until="stable")

    async def leave(self) -> None:
        """The others go on."""
        await self.group.leave()
        await self._applying

    async def _apply(self) -> None:
        async for event in self.group.events():
            if isinstance(event, ordercast.Message):
                self.store.apply(event)
            else:
                print(f"{self.group.me}: {_told(event)}", flush=True)


def _told(event: object) -> str:
    match event:
        case ordercast.View(number=number, members=members):
            return f"view {number}: {', '.join(members)}"
        case ordercast.Blocked(lacks=lacks):
            return f"blocked: {', '.join(lacks)} cannot be reached"
        case ordercast.Excluded(why=why):
            return f"excluded: {why}"
    return "not blocked any more"


async def replica(name: str, group: str = "store") -> Replica:
    """Opens the group with the others, or joins it if it is running: the program does not have to know which."""
    store = Store()
    opened = await ordercast.join(group, members=MEMBERS, name=name, state=store, on_waiting=print)
    print(f"{name} starts with {len(store.values)} values", flush=True)
    return Replica(opened, store)


async def in_terminal(name: str, group: str) -> None:
    """One member in its own terminal; SIGTERM ends its input, too."""
    own = await replica(name, group)
    writing = asyncio.create_task(_write_lines(own))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, writing.cancel)
    await asyncio.wait([writing])
    await own.leave()
    print(json.dumps(own.store.values, sort_keys=True))


async def _write_lines(own: Replica) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        key, _, value = line.decode().strip().partition(" ")
        await own.put(key, value)
        print(f"everybody has: {key} {value}", flush=True)


async def main() -> None:
    """Restarts all members, one after the other; nothing is lost, though no member was there all the time."""
    members = dict(zip(MEMBERS, await asyncio.gather(*map(replica, MEMBERS)), strict=True))
    await members["A"].put("color", "green")
    for name in MEMBERS:
        await members.pop(name).leave()
        await next(iter(members.values())).put(f"without {name}", "written")
        members[name] = await replica(name)
    for own in members.values():
        await own.leave()
    stores = [own.store.values for own in members.values()]
    print(*sorted(stores[0]), sep=", ")
    print(
        "all members were restarted, and have all four values:",
        len(stores[0]) == 4 and stores[0] == stores[1] == stores[2],
    )


if __name__ == "__main__":
    try:
        asyncio.run(
            in_terminal(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "store") if len(sys.argv) > 1 else main()
        )
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except ordercast.OrdercastError as error:
        sys.exit(f"the store is closed: {error}")
