"""Commands with priority: an alarm passes a bulk load that was sent before it.

    python examples/urgent_commands.py

The order "priority" delivers urgent messages first, at all members at the same place.
"""

import asyncio
from time import perf_counter

from ordercast.replicated import Replicated, command, join

MEMBERS = ("A", "B", "C")
READINGS = 3000


class Plant(Replicated):
    """What all members know of a plant."""

    readings: int = 0
    alarm_after: int = -1

    @command
    def read(self, value: bytes) -> int:
        """A reading, of which there are many."""
        self.readings += 1
        return len(value)

    @command(priority=200)
    def alarm(self) -> int:
        """It must not wait for them; how many were before it."""
        self.alarm_after = self.readings
        return self.readings


async def member(name: str) -> Plant:
    """A sends many readings, and then an alarm."""
    plant = Plant()
    async with join("plant", plant, members=MEMBERS, name=name, order="priority"):
        if name == "A":
            begun = perf_counter()
            readings = [plant.read(bytes(1000)) for _ in range(READINGS)]
            await plant.alarm()
            alarm = perf_counter() - begun
            await readings[-1]
            print(f"the alarm took {1000 * alarm:.0f} ms, the last reading {1000 * (perf_counter() - begun):.0f} ms")
        await plant.until(lambda: plant.readings == READINGS and plant.alarm_after >= 0)
    return plant


async def main() -> None:
    """Runs all members, and compares."""
    plants = await asyncio.gather(*map(member, MEMBERS))
    places = {plant.alarm_after for plant in plants}
    print("it passed readings, at all members alike:", len(places) == 1 and READINGS not in places)


if __name__ == "__main__":
    asyncio.run(main())
