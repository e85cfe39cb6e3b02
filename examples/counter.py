"""A replicated counter: members add to it, fail and return, and all agree on its value.

    python examples/counter.py            three members in one process, one of which fails and returns
    python examples/counter.py A          in three terminals, as A, B and C: type numbers

The whole state is one number. A member that returns is given it with its place in the order, so that no addition is
counted twice or left out.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

import ordercast

MEMBERS = ("A", "B", "C")
SETTINGS = ordercast.Settings(order="sequenced", resilience=1, failure_timeout=1.0)


class Counter:
    """A number that all members add to."""

    def __init__(self) -> None:
        self.value = 0
        self.changed = asyncio.Event()

    def save(self) -> bytes:
        """For a member that joins."""
        return str(self.value).encode()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """What another member saved."""
        self.value = int(b"".join([part async for part in parts]))

    async def follow(self, group: ordercast.Group) -> None:
        """Adds what messages say, until the group ends."""
        async for message in group:
            self.value += int(message.payload)
            self.changed.set()

    async def reaches(self, value: int) -> None:
        """Returns when so much was added here."""
        while self.value < value:
            self.changed.clear()
            await self.changed.wait()


async def in_terminal(name: str, group: str) -> None:
    """One member in its own terminal."""
    counter = Counter()
    async with ordercast.join(group, members=MEMBERS, name=name, settings=SETTINGS, state=counter) as joined:
        print(f"{name} starts at {counter.value}", flush=True)
        following = asyncio.create_task(counter.follow(joined))
        adding = asyncio.create_task(_add_lines(joined))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, adding.cancel)
        await asyncio.wait([adding])
        await joined.leave()
        await following
    print(counter.value)


async def _add_lines(group: ordercast.Group) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        number = int(line)
        await group.send(b"%d" % number, until="stable")
        print(f"everybody has: {number}", flush=True)


async def member(name: str, until: int) -> int:
    """Adds 1 ten times, and returns the value when it is at least `until`."""
    counter = Counter()
    async with ordercast.join("counting", members=MEMBERS, name=name, settings=SETTINGS, state=counter) as group:
        following = asyncio.create_task(counter.follow(group))
        for _ in range(10):
            await group.send(b"1", until="stable")
        await counter.reaches(until)
        following.cancel()
    return counter.value


async def main() -> None:
    """C counts to ten with the others, leaves, returns, and goes on from where they are."""
    others = [asyncio.create_task(member(name, 40)) for name in ("A", "B")]
    first = await member("C", 10)
    second = await member("C", 40)
    values = [await other for other in others]
    print(f"C left at {first}, and returned")
    print("all counted to 40:", [*values, second] == [40, 40, 40])


if __name__ == "__main__":
    try:
        asyncio.run(
            in_terminal(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "counter") if len(sys.argv) > 1 else main()
        )
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except ordercast.OrdercastError as error:
        sys.exit(f"the counter stopped: {error}")
