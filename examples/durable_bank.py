"""A bank whose money is neither lost nor made: its members are killed at any moment, all of them too, and go on.

    python examples/durable_bank.py               starts three members as processes, and kills one, all and two of them

Each transfer is a message. A member tells its customer that a transfer is done when it is durable: on the disks of a
majority. A process that was killed is started again with the same arguments: its accounts are those of its newest
snapshot and of its log, and it goes on with the next position of the order.
"""

import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import ordercast
import ordercast.log

MEMBERS = ("A", "B", "C")
ACCOUNTS, EACH = 10, 100
SETTINGS = ordercast.Settings(order="total", failure_timeout=0.6)
KILLED = (("B",), MEMBERS, ("A", "C"))


class Bank:
    """Accounts, as all members have them."""

    def __init__(self) -> None:
        self.accounts = [EACH] * ACCOUNTS

    def save(self) -> bytes:
        """For snapshots, and for a member that joins."""
        return json.dumps(self.accounts).encode()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """What was saved, here or by another member."""
        self.accounts = json.loads(b"".join([part async for part in parts]))

    def transfer(self, payload: bytes) -> str:
        """Applies a message; the name of the transfer."""
        name, giver, taker, amount = json.loads(payload)
        if self.accounts[giver] >= amount:
            self.accounts[giver] -= amount
            self.accounts[taker] += amount
        return str(name)


async def member(name: str, folder: Path, group: str) -> None:
    """Transfers money until it is told to end, or killed; prints what is done."""
    bank = Bank()
    log = ordercast.LogSettings(folder / name)
    joined = await ordercast.join(group, members=MEMBERS, name=name, settings=SETTINGS, state=bank, log=log)
    print("open", flush=True)
    working = asyncio.create_task(_transfers(joined))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    following = asyncio.create_task(_follow(joined, bank))
    await asyncio.wait([working])
    await joined.close()
    await following
    print("sum", sum(bank.accounts), flush=True)


async def _follow(group: ordercast.Group, bank: Bank) -> None:
    async for message in group:
        bank.transfer(message.payload)


async def _transfers(group: ordercast.Group) -> None:
    while True:
        name = f"{group.me}-{time.time_ns()}"
        giver, taker = random.sample(range(ACCOUNTS), 2)
        transfer = json.dumps([name, giver, taker, random.randint(1, 50)]).encode()
        try:
            await group.send(transfer, until="durable")
        except ordercast.Undelivered:
            continue  # nobody knows whether it was delivered: the customer is told nothing
        print("done", name, flush=True)


class Process:
    """A member, as a process."""

    def __init__(self, name: str, folder: Path, group: str) -> None:
        arguments = [sys.executable, __file__, name, str(folder), group]
        self.output = (folder / f"{name}.txt").open("ab")
        self.process = subprocess.Popen(arguments, stdout=self.output)  # noqa: S603

    def end(self, number: signal.Signals) -> None:
        """Kills it, or tells it to end, and waits until it has."""
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()
            self.output.close()


def main(group: str = "bank") -> None:
    """Starts them, kills them, and looks at what is in their logs."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        running = {name: Process(name, folder, group) for name in MEMBERS}
        for killed in KILLED:
            wait_for_work(folder)
            for name in killed:
                running[name].end(signal.SIGKILL)
            print("killed:", ", ".join(killed))
            running |= {name: Process(name, folder, group) for name in killed}
        wait_for_work(folder)
        for one in running.values():
            one.end(signal.SIGTERM)
        closed = [name for name, one in running.items() if one.process.wait() == 0]
        for one in running.values():
            one.output.close()
        examine(folder, closed)


def wait_for_work(folder: Path) -> None:
    """Returns when each member has done something more."""
    before = [len(done(folder, name)) for name in MEMBERS]
    while any(len(done(folder, name)) <= count for name, count in zip(MEMBERS, before, strict=True)):
        time.sleep(0.05)


def done(folder: Path, name: str) -> list[str]:
    """Transfers that a member has told to be done."""
    path = folder / f"{name}.txt"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [line.split()[1] for line in lines if line.startswith("done ")]


def examine(folder: Path, closed: list[str]) -> None:
    """Prints whether all is as it should be. One that was excluded while the others closed lacks the end."""
    sums, orders = set(), {}
    for name in MEMBERS:
        bank = Bank()
        orders[name] = [bank.transfer(message.payload) for message in ordercast.log.read(folder / name)]
        sums.add(sum(bank.accounts))
        assert len(orders[name]) == len(set(orders[name])), "none is done twice"
    order = max(orders.values(), key=len)
    for name in MEMBERS:
        assert orders[name] == (order if name in closed else order[: len(orders[name])]), f"{name} has another order"
    told = {each for name in MEMBERS for each in done(folder, name)}
    print(f"{len(order)} transfers in one order, {len(told)} of them told to be done")
    print(f"nothing that was done is missing, and the sum is right: {told <= set(order) and sums == {ACCOUNTS * EACH}}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(member(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
    else:
        main()
