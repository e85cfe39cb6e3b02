"""A queue of jobs without a broker: every member works out by itself who does what, and all agree.

    python examples/work_queue.py

All members are given the same messages in the same order: "job" and "done". A job is for the member that has been free
for longest, in that order; so everybody knows whose it is, and each job is done once, though nobody hands them out.
"""

import asyncio
from collections import Counter, deque

import ordercast

WORKERS = ("w1", "w2", "w3")
JOBS = 30


class Queue:
    """What everybody works out from the messages, each for itself."""

    def __init__(self) -> None:
        self.free = deque(WORKERS)
        self.waiting: deque[str] = deque()

    def take(self, sender: str, words: list[str]) -> list[tuple[str, str]]:
        """A message: gives back the jobs that begin now, and who does them."""
        if words[0] == "job":
            self.waiting.append(words[1])
        else:
            self.free.append(sender)
        begun = []
        while self.waiting and self.free:
            begun.append((self.waiting.popleft(), self.free.popleft()))
        return begun


async def worker(name: str) -> Counter[str]:
    """Brings a third of the jobs, and does those that fall to it; counts who did how many."""
    async with ordercast.join("jobs", members=WORKERS, name=name, order="sequenced") as group:
        queue, done = Queue(), Counter[str]()

        async def do(job: str) -> None:
            await asyncio.sleep(0.002 * (1 + len(job) % 3))  # the work
            await group.send(f"done {job}".encode())

        for number in range(WORKERS.index(name), JOBS, len(WORKERS)):
            await group.send(f"job {number}".encode())
        working = set()
        while done.total() < JOBS:
            message = await group.receive()
            words = message.payload.decode().split()
            done.update([message.sender] if words[0] == "done" else [])
            for job, whose in queue.take(message.sender, words):
                if whose == name:
                    working.add(asyncio.create_task(do(job)))
        await asyncio.gather(*working)
    return done


async def main() -> None:
    """All workers; each counted for itself."""
    counts = await asyncio.gather(*map(worker, WORKERS))
    for name, jobs in sorted(counts[0].items()):
        print(f"{name} did {jobs} jobs")
    print(
        f"{counts[0].total()} jobs were done once each, and all agree on by whom:", counts[0] == counts[1] == counts[2]
    )


if __name__ == "__main__":
    asyncio.run(main())
