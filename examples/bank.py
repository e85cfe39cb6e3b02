"""Transfers between accounts that live on different members, in one order and without locks.

    python examples/bank.py                   three members in one process
    python examples/bank.py A                 in three terminals, as A, B and C: kill A, and start it again
    python examples/bank.py --record traces   the first again; `ordercast audit traces/*` judges what it recorded

Ann's account lives at A and B, Bob's at B and C. A transfer is one message to all three: B, which has both, never sees
money that has left one account and not reached the other. Visits to one account go to its holders alone. The audit
proves that all messages have one order at the members that they have in common.
"""

import asyncio
import sys

from ordercast import Settings
from ordercast.replicated import Counter, join

MEMBERS = ("A", "B", "C")
SETTINGS = Settings(order="total", failure_timeout=1.0)
ON = {"ann": {"A", "B"}, "bob": {"B", "C"}}


async def branch(name: str, group: str = "bank", *, transfers: int = 10**6, record: str | None = None) -> list[int]:
    """Transfers 1 from Ann to Bob, again and again; the balances that this member has."""
    ann, bob = Counter(), Counter()
    joining = join(group, {"ann": ann, "bob": bob}, on=ON, members=MEMBERS, name=name, settings=SETTINGS, record=record)
    async with joining as members:
        print(f"{name} begins with {ann.value()} and {bob.value()}", flush=True)
        for _ in range(transfers):
            await asyncio.gather(ann.add(0), bob.add(0))  # visits
            with members.together():
                transfer = ann.add(-1), bob.add(1)
            await asyncio.gather(*transfer)
            if name == "B":
                print(f"{ann.value()} and {bob.value()} are {ann.value() + bob.value()}", flush=True)
            await asyncio.sleep(0.01)
        await bob.until(lambda: bob.value() == 3 * transfers or name == "A")
        await ann.until(lambda: ann.value() == -3 * transfers or name == "C")
    return [ann.value(), bob.value()]


async def main(record: str | None = None) -> None:
    """Ten transfers of each member."""
    found = await asyncio.gather(
        *(branch(name, transfers=10, record=record and f"{record}/{name}") for name in MEMBERS)
    )
    print("who has an account has all 30 transfers:", found == [[-30, 0], [-30, 30], [0, 30]])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[2:]) if sys.argv[1:2] in ([], ["--record"]) else branch(*sys.argv[1:]))
