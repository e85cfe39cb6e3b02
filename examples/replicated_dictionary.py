"""A dictionary spread over five members: each key is kept by three of them, and written by anybody.

    python examples/replicated_dictionary.py

A write goes to the three replicas of its key only. All replicas of a key are given its writes in one order, so they
hold the same value however the writes cross each other on the network; and no member is bothered with keys of others.
"""

import asyncio
import json
from zlib import crc32

import ordercast

MEMBERS = ("n1", "n2", "n3", "n4", "n5")
COPIES = 3


def replicas(key: str) -> list[str]:
    """The members that keep a key: anybody can work it out."""
    first = crc32(key.encode()) % len(MEMBERS)
    return [MEMBERS[(first + place) % len(MEMBERS)] for place in range(COPIES)]


class Replica:
    """One member's part of the dictionary."""

    def __init__(self, group: ordercast.Group) -> None:
        self.group = group
        self.values: dict[str, str] = {}
        self.writes = 0

    async def put(self, key: str, value: str) -> None:
        """Writes at all replicas of the key; comes back when all of them have the write."""
        receipt = await self.group.send(json.dumps([key, value]).encode(), to=replicas(key))
        await receipt.stable()

    async def apply(self) -> None:
        """Applies what is written here until the group is closed."""
        async for message in self.group:
            key, value = json.loads(message.payload)
            self.values[key] = value
            self.writes += 1


async def member(name: str) -> Replica:
    """Writes every fruit, like everybody else, at the same time."""
    async with ordercast.join("dictionary", members=MEMBERS, name=name, order="total") as group:
        replica = Replica(group)
        applying = asyncio.create_task(replica.apply())
        for fruit in ("apple", "pear", "plum", "quince"):
            await replica.put(fruit, f"as {name} likes it")
        await group.close()
        await applying
    return replica


async def main() -> None:
    """All members; then what each replica of each key holds."""
    found = dict(zip(MEMBERS, await asyncio.gather(*map(member, MEMBERS)), strict=True))
    for fruit in ("apple", "pear", "plum", "quince"):
        held = {name: found[name].values[fruit] for name in replicas(fruit)}
        print(f"{fruit:8}{', '.join(held)} all have it {' / '.join(set(held.values()))}")
    writes = sum(replica.writes for replica in found.values())
    print(f"20 writes were applied {writes} times: each by {COPIES} members of {len(MEMBERS)}")


if __name__ == "__main__":
    asyncio.run(main())
