"""Selective multicast: a dictionary with three replicas of each key among five members.

    python examples/replicated_dictionary.py

A write goes only to the three replicas of its key. All replicas of a key receive its writes in the same order, so they
hold the same value although all members write at the same time.
"""

import asyncio
import json
from zlib import crc32

import ordercast

MEMBERS = ("n1", "n2", "n3", "n4", "n5")
COPIES = 3


def replicas(key: str) -> list[str]:
    """The members that hold a key, computed by any member."""
    first = crc32(key.encode()) % len(MEMBERS)
    return [MEMBERS[(first + place) % len(MEMBERS)] for place in range(COPIES)]


class Replica:
    """One member's part of the dictionary."""

    def __init__(self, group: ordercast.Group) -> None:
        self.group = group
        self.values: dict[str, str] = {}
        self.writes = 0

    async def put(self, key: str, value: str) -> None:
        """Writes to all replicas of the key; returns when all of them have the write."""
        await self.group.send(json.dumps([key, value]).encode(), to=replicas(key), until="stable")

    async def apply(self) -> None:
        """Applies writes until the group is closed."""
        async for message in self.group:
            key, value = json.loads(message.payload)
            self.values[key] = value
            self.writes += 1


async def member(name: str) -> Replica:
    """Writes every fruit, at the same time as all other members."""
    async with ordercast.join("dictionary", members=MEMBERS, name=name, order="total") as group:
        replica = Replica(group)
        applying = asyncio.create_task(replica.apply())
        for fruit in ("apple", "pear", "plum", "quince"):
            await replica.put(fruit, f"as {name} likes it")
        await group.close()
        await applying
    return replica


async def main() -> None:
    """Runs all members; then prints what each replica of each key holds."""
    found = dict(zip(MEMBERS, await asyncio.gather(*map(member, MEMBERS)), strict=True))
    for fruit in ("apple", "pear", "plum", "quince"):
        held = {name: found[name].values[fruit] for name in replicas(fruit)}
        print(f"{fruit:8}{', '.join(held)} all have it {' / '.join(set(held.values()))}")
    writes = sum(replica.writes for replica in found.values())
    print(f"20 writes were applied {writes} times: each by {COPIES} members of {len(MEMBERS)}")


if __name__ == "__main__":
    asyncio.run(main())
