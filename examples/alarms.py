"""Alarms that overtake a backlog of readings, at every member alike.

    python examples/alarms.py

A sensor sends readings faster than the group takes them. Then something happens, and the alarm is sent with a higher
priority: it does not wait behind the readings. All members see it at the same place among them.
"""

import asyncio

import ordercast

MEMBERS = ("sensor", "display", "archive")
READINGS = 20_000
READING, ALARM = 0, 9


async def sense() -> int:
    """Sends readings as fast as the group takes them, and then the alarm; some thousands still wait."""
    async with ordercast.join("alarms", members=MEMBERS, name="sensor", order="priority") as group:
        for number in range(READINGS):
            await group.send(b"reading %d: %b" % (number, b"." * 100), priority=READING)
        await group.send(b"fire!", priority=ALARM)
        return await place_of_the_alarm(group)


async def watch(name: str) -> int:
    """Only listens."""
    async with ordercast.join("alarms", members=MEMBERS, name=name, order="priority") as group:
        return await place_of_the_alarm(group)


async def place_of_the_alarm(group: ordercast.Group) -> int:
    """How many readings came before it."""
    place = -1
    for number in range(READINGS + 1):
        message = await group.receive()
        if message.priority == ALARM:
            place = number
    return place


async def main() -> None:
    """The sensor and those that watch it."""
    places = await asyncio.gather(sense(), watch("display"), watch("archive"))
    print(f"the alarm was sent after {READINGS:,} readings")
    for name, place in zip(MEMBERS, places, strict=True):
        print(f"{name:8}was given it after {place:,}")
    print("it overtook the others, and everywhere alike:", len(set(places)) == 1 and places[0] < READINGS)


if __name__ == "__main__":
    asyncio.run(main())
