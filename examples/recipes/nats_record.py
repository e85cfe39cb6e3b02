"""Records what JetStream hands to three consumers, one of which acknowledges a message too late.

    nats-server -js & python nats_record.py nats://127.0.0.1:4222 OUT

writes OUT/ledger.log, OUT/europe.log and OUT/slow.log: the subject and the reply subject of each message, which say all
that an audit needs. In a program of your own the line is `print(message.subject, message.reply)`.
"""

import asyncio
import sys
from pathlib import Path

import nats
from nats.errors import TimeoutError as NoMore
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig

MESSAGES = 40
LATE = 9  # the number in the stream of the message that is acknowledged when it comes again


async def main(server: str, out: Path) -> None:
    """Publishes orders of two regions, then consumes them."""
    connection = await nats.connect(server)
    stream = connection.jetstream()
    await stream.add_stream(name="orders", subjects=["orders.>"])
    for number in range(MESSAGES):
        region = "us" if number % 3 == 0 else "eu"
        await stream.publish(f"orders.{region}.new", str(number).encode())
    out.mkdir(parents=True, exist_ok=True)
    for name, wanted, late in (("ledger", "orders.>", 0), ("europe", "orders.eu.>", 0), ("slow", "orders.eu.>", LATE)):
        lines = await consumed(stream, name, wanted, late)
        (out / f"{name}.log").write_text("\n".join(lines) + "\n")
    await connection.close()


async def consumed(stream: JetStreamContext, name: str, wanted: str, late: int) -> list[str]:
    """What a consumer is handed until nothing more comes."""
    asked = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=1)
    subscription = await stream.pull_subscribe(wanted, durable=name, stream="orders", config=asked)
    lines: list[str] = []
    while True:
        try:
            messages = await subscription.fetch(10, timeout=2)
        except NoMore:
            return lines
        for message in messages:
            lines.append(f"{message.subject} {message.reply}")
            if message.metadata.sequence.stream != late or message.metadata.num_delivered > 1:
                await message.ack()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
