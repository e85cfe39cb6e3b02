"""Priorities: an alarm overtakes a backlog of readings, and all members receive it at the same position.

    python examples/alarms.py

A sensor sends readings faster than the group delivers them. Then it sends an alarm with a higher priority, which does
not wait behind the readings.
"""

import asyncio

import ordercast

MEMBERS = ("sensor", "display", "archive")
SETTINGS = ordercast.Settings.local(order="priority")
READINGS = 20_000
READING, ALARM = 0, 9


async def sense() -> int:
    """Sends readings as fast as the group takes them, and then the alarm while thousands of readings are in flight."""
    async with ordercast.join("alarms", members=MEMBERS, name="sensor", settings=SETTINGS) as group:
        for number in range(READINGS):
            await group.send(b"reading %d: %b" % (number, b"." * 100), priority=READING)
        await group.send(b"fire!", priority=ALARM)
        return await position_of_the_alarm(group)


async def watch(name: str) -> int:
    """Only receives."""
    async with ordercast.join("alarms", members=MEMBERS, name=name, settings=SETTINGS) as group:
        return await position_of_the_alarm(group)


async def position_of_the_alarm(group: ordercast.Group) -> int:
    """Receives all messages; the position of the alarm is the number of readings before it."""
    position = -1
    for _ in range(READINGS + 1):
        message = await group.receive()
        if message.priority == ALARM:
            position = message.position
    return position


async def main() -> None:
    """The sensor and the members that watch it."""
    positions = await asyncio.gather(sense(), watch("display"), watch("archive"))
    print(f"the alarm was sent after {READINGS:,} readings")
    for name, position in zip(MEMBERS, positions, strict=True):
        print(f"{name:8}received it after {position:,}")
    print("it overtook readings, at all members alike:", len(set(positions)) == 1 and positions[0] < READINGS)


if __name__ == "__main__":
    asyncio.run(main())
