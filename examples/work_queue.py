"""A replicated state machine: a queue of jobs without a broker, and without a lost job when a worker fails.

    python examples/work_queue.py

All members receive the same events in the same order: messages "job" and "done", and views. From these each computes
which worker is to do which job: the one that has been free for longest. So every job is done once, although nobody
assigns them. If a worker fails, its view says so at the same position at all members, and its jobs go to others.
"""

import asyncio
from collections import Counter, deque

import ordercast

WORKERS = ("w1", "w2", "w3")
JOBS = 30


class Queue:
    """The state that all members compute, each for itself, from the same events."""

    def __init__(self) -> None:
        self.free = deque(WORKERS)
        self.waiting: deque[str] = deque()
        self.begun: dict[str, str] = {}
        """Jobs that are being done, and by which worker."""
        self.done = Counter[str]()
        """Jobs that each worker has done."""

    def apply(self, event: object) -> list[str]:
        """Applies an event; returns the jobs that begin now."""
        match event:
            case ordercast.View(left=left):
                self.free = deque(worker for worker in self.free if worker not in left)
                lost = [job for job, worker in self.begun.items() if worker in left]
                self.waiting.extendleft(reversed(lost))
            case ordercast.Message(sender=sender, payload=payload):
                word, job = payload.decode().split()
                if word == "job":
                    self.waiting.append(job)
                elif self.begun.pop(job, None) == sender:
                    self.done[sender] += 1
                    self.free.append(sender)
        beginning = []
        while self.waiting and self.free:
            job = self.waiting.popleft()
            self.begun[job] = self.free.popleft()
            beginning.append(job)
        return beginning


async def worker(name: str) -> Counter[str]:
    """Submits a third of the jobs, does its own, and returns how many each worker has done."""
    async with ordercast.join("jobs", members=WORKERS, name=name, order="sequenced") as group:
        queue, working = Queue(), set()

        async def do(job: str) -> None:
            await asyncio.sleep(0.002 * (1 + len(job) % 3))  # the work
            await group.send(f"done {job}".encode())

        for number in range(WORKERS.index(name), JOBS, len(WORKERS)):
            await group.send(f"job {number}".encode())
        async for event in group.events():
            for job in queue.apply(event):
                if queue.begun[job] == name:
                    working.add(asyncio.create_task(do(job)))
            if queue.done.total() == JOBS:
                break
        await asyncio.gather(*working)
    return queue.done


async def main() -> None:
    """Runs all workers, and compares what they counted."""
    counts = await asyncio.gather(*map(worker, WORKERS))
    for name, jobs in sorted(counts[0].items()):
        print(f"{name} did {jobs} jobs")
    print(
        f"{counts[0].total()} jobs were done once each, and all agree on by whom:", counts[0] == counts[1] == counts[2]
    )


if __name__ == "__main__":
    asyncio.run(main())
