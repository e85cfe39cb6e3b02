"""A replicated dictionary: how often each member was started, which survives the kill of any of them.

    python examples/visits.py            three members in one process
    python examples/visits.py A          in three terminals, as A, B and C: kill one, and start it again

One that is started again is given what the others have, and counts on from there.
"""

import asyncio
import sys

from ordercast.replicated import Dict, join

MEMBERS = ("A", "B", "C")


async def visit(name: str, group: str = "visits") -> dict[str, int]:
    """Counts this start, and prints every change until all members are there."""
    visits: Dict[int] = Dict()
    async with join(group, visits, members=MEMBERS, name=name):
        changes = visits.watch()
        while not await visits.compare_and_set(name, old := visits.get(name), (old or 0) + 1):
            pass
        while len(sys.argv) > 1 or len(visits) < len(MEMBERS):
            change = await anext(changes)
            print(f"{name} sees {change.key} = {change.value}", flush=True)
        return await visits.items(fresh=True)


async def main() -> None:
    """All three at once."""
    found = await asyncio.gather(*map(visit, MEMBERS))
    print("all counted the same:", found[0] == found[1] == found[2] == dict.fromkeys(MEMBERS, 1))


if __name__ == "__main__":
    asyncio.run(visit(*sys.argv[1:]) if len(sys.argv) > 1 else main())
