"""A lock of a whole group, with a token that grows: what it protects can refuse one that comes too late.

    python examples/fenced_lock.py       three members in one process
    python examples/fenced_lock.py A     in three terminals, as A, B and C: kill the one that holds the lock

The next one gets it when the group has noticed, after the failure timeout of three seconds.
"""

import asyncio
import sys
from itertools import chain

from ordercast.replicated import Lock, join

MEMBERS = ("A", "B", "C")


async def member(name: str, group: str = "locked", *, turns: int = 1_000_000) -> list[int]:
    """Takes the lock again and again; the tokens that it had."""
    lock, tokens = Lock(), list[int]()
    async with join(group, lock, members=MEMBERS, name=name):
        for _ in range(turns):
            async with lock.hold() as token:
                print(f"{name} holds it with token {token}", flush=True)
                tokens.append(token)
                await asyncio.sleep(0.02)
    return tokens


async def main() -> None:
    """All three, three times each."""
    tokens = await asyncio.gather(*(member(name, turns=3) for name in MEMBERS))
    print("nine turns, each with its own token:", len(set(chain(*tokens))) == 9)


if __name__ == "__main__":
    asyncio.run(member(*sys.argv[1:]) if len(sys.argv) > 1 else main())
