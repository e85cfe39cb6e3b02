"""Total order: a chat in which all members read the same conversation in the same order.

    python examples/chat.py            three members in one process
    python examples/chat.py ann        in three terminals, as ann, bob and cy: what you type is sent

Without total order, bob could read an answer before its question.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import ordercast

MEMBERS = ("ann", "bob", "cy")


async def type_and_read(name: str) -> None:
    """One member in its own terminal."""
    async with ordercast.join("chat", members=MEMBERS, name=name, on_waiting=print) as group:
        print(f"you are {group.me}; type; control-D ends what you say, and the chat ends when all have", flush=True)
        await asyncio.gather(read_all(group), type_all(group))


async def type_all(group: ordercast.Group) -> None:
    """Sends what is typed, then waits until all members have closed."""
    async for line in typed():
        await group.send(line.strip())
    await group.close()


async def typed() -> AsyncIterator[bytes]:
    """The lines of standard input, without a thread: a thread that waits for input cannot be interrupted."""
    loop, ready, chunk, rest = asyncio.get_running_loop(), asyncio.Event(), b" ", b""
    loop.add_reader(0, ready.set)
    try:
        while chunk:
            await ready.wait()
            ready.clear()
            chunk = os.read(0, 4096)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line
    finally:
        loop.remove_reader(0)


async def read_all(group: ordercast.Group) -> list[str]:
    """Prints all messages until the group is closed."""
    lines = []
    async for message in group:
        lines.append(f"{message.sender}: {message.payload.decode()}")
        print(lines[-1], flush=True)
    return lines


async def converse(name: str) -> list[str]:
    """A member that asks once, answers each question of the others, and returns what it read."""
    log: list[str] = []
    async with ordercast.join("conversation", members=MEMBERS, name=name) as group:
        await group.send(b"shall we?")
        while len(log) < len(MEMBERS) ** 2:  # each asks once, and the other two answer
            message = await group.receive()
            log.append(f"{message.sender}: {message.payload.decode()}")
            if message.payload.endswith(b"?") and message.sender != name:
                await group.send(f"yes, {message.sender}".encode())
    return log


async def main() -> None:
    """Three members at once."""
    logs = await asyncio.gather(*map(converse, MEMBERS))
    print(*logs[0], sep="\n")
    print("all three read the same, in the same order:", logs[0] == logs[1] == logs[2])


if __name__ == "__main__":
    try:
        asyncio.run(type_and_read(sys.argv[1]) if len(sys.argv) > 1 else main())
    except KeyboardInterrupt:
        sys.exit("interrupted: you have left the chat")
    except ordercast.OrdercastError as error:
        sys.exit(f"the chat is over: {error}")
