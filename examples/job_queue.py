"""A replicated queue: each job goes to one worker, and to another one if that dies.

    python examples/job_queue.py         three workers in one process
    python examples/job_queue.py A       in three terminals, as A, B and C: kill one

What a worker had when it died comes first for the others.
"""

import asyncio
import sys

from ordercast.replicated import Queue, join

WORKERS = ("A", "B", "C")
JOBS = 30


async def worker(name: str, group: str = "jobs") -> int:
    """Does jobs until all are done; how many it did."""
    jobs: Queue[str] = Queue()
    done = 0
    async with join(group, jobs, members=WORKERS, name=name):
        if name == "A" and not jobs.last_item:
            await asyncio.gather(*(jobs.put(f"job {number}") for number in range(JOBS)))
        await jobs.until(lambda: jobs.last_item == JOBS)
        while jobs.items:  # those that others work on may come back
            asked = asyncio.create_task(jobs.get())
            over = asyncio.create_task(jobs.until(lambda: not jobs.items))
            await asyncio.wait([asked, over], return_when=asyncio.FIRST_COMPLETED)
            over.cancel()
            if not asked.cancel():
                token, job = asked.result()
                await asyncio.sleep(0.01)
                print(f"{name} did {job}", flush=True)
                done += await jobs.done(token)
    return done


async def main() -> None:
    """Three workers."""
    done = await asyncio.gather(*map(worker, WORKERS))
    print(f"{sum(done)} jobs were done once each, by {sum(map(bool, done))} workers")


if __name__ == "__main__":
    asyncio.run(worker(*sys.argv[1:]) if len(sys.argv) > 1 else main())
