"""A small story of the selective partial order, told by hand: one loss, one repair, one poll.

E1's message to E2 and E3 is lost at E3. What E2 sends to E3 alone shows E3 the loss; it asks, E1 sends a copy. At the
end a status is lost as well, and a poll brings it again.
"""

from ordercast.drawing import Row
from ordercast.trace.schema import EventField

_A = (0, 0)
_B = (1, 0)


def story() -> list[Row]:
    """The rows of the story."""
    told = Teller()
    told.send(0, 10_000, _A, (1, 2), transmission=0)
    told.arrive(1, 72_400, 0, _A, "accept")
    told.say(2, 91_000, "lose", _A, detail="loss", transmission=0)
    told.send(1, 130_000, _B, (2,), transmission=1)
    told.arrive(2, 185_500, 1, _B, "accept", "preack", "ack", "deliver")
    told.say(2, 185_500, "request", _A)
    told.transmit(2, 185_500, "request", 2)
    told.arrive(0, 198_250, 1, _B)
    told.say(0, 198_250, "discard", _B, detail="foreign")
    told.hear(1, 240_000, 2, _B, "preack", "ack")
    told.hear(0, 262_700, 2)
    told.say(0, 262_700, "retransmit", _A)
    told.transmit(0, 262_700, "copy", 3, _A)
    told.arrive(1, 322_000, 3, _A)
    told.say(1, 322_000, "discard", _A, detail="duplicate")
    told.arrive(2, 338_800, 3, _A, "accept", "preack")
    told.say(2, 439_000, "timeout", detail="status")
    told.transmit(2, 439_000, "status", 4)
    told.hear(1, 495_100, 4, _A, "preack", "ack", "deliver")
    told.hear(0, 512_000, 4, _A, "preack")
    told.say(1, 595_000, "timeout", detail="status")
    told.transmit(1, 595_000, "status", 5)
    told.say(2, 651_000, "lose", detail="loss", transmission=5)
    told.hear(0, 672_000, 5, _A, "ack")
    told.say(2, 1_303_000, "timeout", detail="poll")
    told.transmit(2, 1_303_000, "poll", 6)
    told.hear(1, 1_365_000, 6)
    told.transmit(1, 1_365_000, "status", 7)
    told.hear(0, 1_371_000, 6)
    told.hear(2, 1_421_500, 7, _A, "ack", "deliver")
    told.hear(0, 1_440_000, 7)
    return told.rows


class Teller:
    """Writes rows, and counts the steps of each node."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def say(
        self,
        node: int,
        time: int,
        event: str,
        message: tuple[int, int] | tuple[None, None] = (None, None),
        *,
        detail: str | None = None,
        transmission: int | None = None,
        destinations: tuple[int, ...] | None = None,
    ) -> None:
        step = sum(row[EventField.NODE] == node for row in self.rows)
        size = 64 if event == "send" else None
        self.rows.append((node, step, time, event, *message, destinations, None, size, detail, transmission))

    def send(self, node: int, time: int, message: tuple[int, int], to: tuple[int, ...], *, transmission: int) -> None:
        self.say(node, time, "send", message, destinations=to)
        self.transmit(node, time, "data", transmission, message)

    def transmit(
        self, node: int, time: int, kind: str, number: int, message: tuple[int, int] | tuple[None, None] = (None, None)
    ) -> None:
        self.say(node, time, "transmit", message, detail=kind, transmission=number)

    def arrive(self, node: int, time: int, number: int, message: tuple[int, int], *then: str) -> None:
        self.say(node, time, "receive", message, transmission=number)
        for event in then:
            self.say(node, time, event, message)

    def hear(
        self,
        node: int,
        time: int,
        number: int,
        message: tuple[int, int] | tuple[None, None] = (None, None),
        *then: str,
    ) -> None:
        self.say(node, time, "hear", transmission=number)
        for event in then:
            self.say(node, time, event, message)
