"""Total order: a chat in which all members read the same conversation in the same order.

    python examples/chat.py            three members in one process
    python examples/chat.py ann        in three terminals, as ann, bob and cy: what you type is sent

Without total order, bob could read an answer before its question. Who comes back is given the conversation so far, and
goes on reading from there.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator

import ordercast

MEMBERS = ("ann", "bob", "cy")


class Conversation:
    """What was said, for those that join later."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def save(self) -> bytes:
        """All of it."""
        return json.dumps(self.lines).encode()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """What another member has."""
        self.lines = json.loads(b"".join([part async for part in parts]))


async def type_and_read(name: str, chat: str = "chat") -> None:
    """One member in its own terminal. SIGTERM is like control-C."""
    said = Conversation()
    async with ordercast.join(chat, members=MEMBERS, name=name, state=said, on_waiting=print) as group:
        print(f"you are {group.me}; type; control-D ends what you say, and the chat ends when all have", flush=True)
        print(*said.lines, sep="\n", end="\n" * bool(said.lines), flush=True)
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await asyncio.gather(read_all(group, said), type_all(group))


async def type_all(group: ordercast.Group) -> None:
    """Sends what is typed, then waits until all members have closed."""
    async for line in typed():
        await group.send(line.strip())
    await group.close()


async def typed() -> AsyncIterator[bytes]:
    """The lines of standard input, without a thread: a thread that waits for input cannot be interrupted.

    It is read where the event loop says that there is something: to read later could wait, and the member with it.
    """
    loop, chunks, rest = asyncio.get_running_loop(), asyncio.Queue[bytes](), b""
    loop.add_reader(0, lambda: chunks.put_nowait(os.read(0, 4096)))
    try:
        while chunk := await chunks.get():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line
    finally:
        loop.remove_reader(0)


async def read_all(group: ordercast.Group, said: Conversation) -> None:
    """Prints all messages until the group is closed."""
    async for message in group:
        said.lines.append(f"{message.sender}: {message.payload.decode()}")
        print(said.lines[-1], flush=True)


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
        asyncio.run(type_and_read(*sys.argv[1:3]) if len(sys.argv) > 1 else main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("interrupted: you have left the chat")
    except ordercast.OrdercastError as error:
        sys.exit(f"the chat is over: {error}")
