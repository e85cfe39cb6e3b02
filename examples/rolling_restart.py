"""Restarts all members of an example, one after the other, while they are used; then checks that nothing was lost.

    python examples/rolling_restart.py store
    python examples/rolling_restart.py counter --kill            without a chance to say good-bye
    python examples/rolling_restart.py chat --rounds 100         each member so often

What a member has reported to be at all members must be in what every member holds in the end, and all must hold the
same, although no process was there from the beginning to the end.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
REPORTED = "everybody has: "
PATIENCE = 60.0


class Store:
    """`replicated_store.py`: each line is a write of a key of its own."""

    program, members, ready = "replicated_store.py", ("A", "B", "C"), " starts with "
    repeats = False
    """The same line is typed more than once."""

    def line(self, number: int) -> str:
        """What is typed."""
        return f"key{number} {number}"

    def report(self, line: str, name: str) -> str:
        """What a member reports when a line that was typed at it is at all members."""
        del name
        return line

    def reported(self, printed: str, name: str) -> str | None:
        """What a printed line reports to be at all members."""
        del name
        return printed.removeprefix(REPORTED) if printed.startswith(REPORTED) else None

    def held(self, printed: list[str]) -> Counter[str]:
        """What a member held when it ended."""
        values: dict[str, str] = json.loads(printed[-1])
        return Counter(f"{key} {value}" for key, value in values.items())


class Additions(Store):
    """`counter.py`: each line adds 1."""

    program, ready, repeats = "counter.py", " starts at ", True

    def line(self, number: int) -> str:
        """What is typed."""
        del number
        return "1"

    def held(self, printed: list[str]) -> Counter[str]:
        """What a member held when it ended."""
        return Counter({"1": int(printed[-1])})


class Chat(Store):
    """`chat.py`: each line is a message, and is at all members when its sender reads it."""

    program, members, ready = "chat.py", ("ann", "bob", "cy"), "you are "

    def line(self, number: int) -> str:
        """What is typed."""
        return f"line {number}"

    def report(self, line: str, name: str) -> str:
        """The line as it is printed."""
        return f"{name}: {line}"

    def reported(self, printed: str, name: str) -> str | None:
        """What a printed line reports to be at all members; after a restart a member prints old lines again."""
        return printed if printed.startswith(f"{name}: line ") else None

    def held(self, printed: list[str]) -> Counter[str]:
        """What a member held when it ended."""
        return Counter(line for line in printed if ": line " in line)


EXAMPLES = {"store": Store, "counter": Additions, "chat": Chat}


class Member:
    """A member and its process, which is another one after each restart."""

    def __init__(self, example: Store, name: str, group: str) -> None:
        self.example, self.name, self.group = example, name, group
        self.printed: list[str] = []
        """By the process that runs now."""
        self.reported = Counter[str]()
        """By all of its processes."""
        self.unreported = Counter[str]()
        """Of lines that were typed at the process that runs now; it may report those of the one before, too."""
        self.is_ready = asyncio.Event()

    async def start(self) -> None:
        """Returns when it is in the group."""
        self.printed, self.unreported = [], Counter()
        command = [sys.executable, str(HERE / self.example.program), self.name, self.group]
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        self._reading = asyncio.create_task(self._read())
        ready = asyncio.create_task(self.is_ready.wait())
        await asyncio.wait([ready, self._reading], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not self.is_ready.is_set():
            raise SystemExit(f"{self.name} is not in the group; it printed {self.printed}")

    def type(self, line: str) -> None:
        """Types a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.unreported[self.example.report(line, self.name)] += 1

    async def settled(self) -> None:
        """Returns when all that was typed at this process is reported to be at all members."""
        until = time.monotonic() + PATIENCE
        while self.unreported:
            if time.monotonic() > until:
                raise SystemExit(f"{self.name} has not reported {shown(self.unreported)} after {PATIENCE:g} s")
            await asyncio.sleep(0.05)

    async def stop(self, by: signal.Signals) -> None:
        """Returns when it has ended."""
        self.is_ready.clear()
        self.process.send_signal(by)
        await asyncio.wait_for(self._reading, PATIENCE)
        await self.process.wait()

    async def end(self) -> Counter[str]:
        """Ends its input; returns what it held when it ended."""
        self.is_ready.clear()
        assert self.process.stdin is not None
        self.process.stdin.close()
        await asyncio.wait_for(self._reading, PATIENCE)
        if await self.process.wait():
            raise SystemExit(f"{self.name} failed with exit status {self.process.returncode}")
        return self.example.held(self.printed)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for raw in self.process.stdout:
            line = raw.decode().rstrip("\n")
            self.printed.append(line)
            if self.example.ready in line:
                self.is_ready.set()
            reported = self.example.reported(line, self.name)
            if reported is not None and (self.example.repeats or reported not in self.reported):
                self.unreported -= Counter([reported])
                self.reported[reported] += 1


async def use(members: list[Member], gap: float) -> int:
    """Types lines at the members that are there, in turn, until it is cancelled; how many."""
    number = 0
    try:
        while True:
            for member in members:
                if member.is_ready.is_set():
                    number += 1
                    member.type(member.example.line(number))
            await asyncio.sleep(gap)
    except asyncio.CancelledError:
        return number


async def rolling_restart(example: Store, rounds: int, gap: float, by: signal.Signals, group: str) -> None:
    """Restarts all members so often, and checks what they hold."""
    members = [Member(example, name, group) for name in example.members]
    await asyncio.gather(*(member.start() for member in members))
    using = asyncio.create_task(use(members, gap))
    begun = time.monotonic()
    for number in range(rounds):
        for member in members:
            await asyncio.sleep(10 * gap)
            await member.stop(by)
            await asyncio.sleep(10 * gap)
            await member.start()
        print(f"round {number + 1}: {time.monotonic() - begun:.1f} s", flush=True)
    using.cancel()
    typed = await using
    await asyncio.gather(*(member.settled() for member in members))
    held = await asyncio.gather(*(member.end() for member in members))
    reported = sum((member.reported for member in members), Counter[str]())
    for member, own in zip(members, held, strict=True):
        for what, wrong in (
            ("lacks", reported - own),
            ("lacks what others have:", held[0] - own),
            ("has more:", own - held[0]),
        ):
            if wrong:
                raise SystemExit(f"{member.name} {what} {shown(wrong)}")
    print(f"{typed} lines were typed, {reported.total()} reported to be at all members, {held[0].total()} are there")
    print(f"all {len(members)} members were restarted {rounds} times, hold the same, and nothing was lost")


def shown(lines: Counter[str]) -> str:
    """Some of them, and how many there are."""
    return f"{lines.total()} lines, such as {', '.join(map(repr, list(lines)[:3]))}"


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description="Restart all members of an example, one after the other.")
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("--rounds", type=int, default=1, help="how often each member is restarted")
    parser.add_argument("--gap", type=float, default=0.02, help="seconds between two lines at each member")
    parser.add_argument("--kill", action="store_true", help="by SIGKILL instead of SIGTERM")
    given = parser.parse_args()
    by = signal.SIGKILL if given.kill else signal.SIGTERM
    group = f"rolling {given.example} {os.getpid()}"
    asyncio.run(rolling_restart(EXAMPLES[given.example](), given.rounds, given.gap, by, group))


if __name__ == "__main__":
    main()
