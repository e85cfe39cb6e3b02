"""The links between the machines: queues of units, each queue a number, so that equal contents are one number.

On MC every pair of nodes has a queue. On 1C every receiver has one, into which all units are put when they are sent, so
that all nodes receive one order, each at its own time. On a channel without order a queue is a bag (multiset), kept
sorted so that equal bags are equal, and any of its units may be next. A loop-back is a queue without loss, and prompt:
its node does nothing else before it is empty.
"""

from ordercast.model.machine import Echo
from ordercast.model.runs import Channel

EMPTY = 0
"""The number of the empty queue."""


class Queues:
    """The contents of queues by number, and the results of adding and removing units."""

    def __init__(self, *, bags: bool = False) -> None:
        """`bags`: units have no order."""
        self.bags = bags
        self._numbers: dict[tuple[int, ...], int] = {(): EMPTY}
        self.contents: list[tuple[int, ...]] = [()]
        self.longer_by: list[dict[int, int]] = [{}]
        """By queue: those with one more unit, as far as they are known."""
        self.rest: list[int] = [EMPTY]
        """By queue: that without its head."""
        self._places: list[tuple[int, ...]] = [()]

    def of(self, units: tuple[int, ...]) -> int:
        """The number of the queue with these units, the next one first."""
        if self.bags:
            units = tuple(sorted(units))
        number = self._numbers.get(units)
        if number is None:
            rest = self.of(units[1:])
            number = self._numbers[units] = len(self.contents)
            self.contents.append(units)
            self.longer_by.append({})
            self.rest.append(rest)
            several = range(1, len(units)) if self.bags else ()
            self._places.append((0, *(place for place in several if units[place - 1] != units[place])))
        return number

    def longer(self, queue: int, unit: int) -> int:
        """The queue with one more unit at its end."""
        number = self.longer_by[queue].get(unit)
        if number is None:
            number = self.longer_by[queue][unit] = self.of((*self.contents[queue], unit))
        return number

    def places(self, queue: int) -> tuple[int, ...]:
        """The places of the units that may be next; of equal units only the first."""
        return self._places[queue]

    def without(self, queue: int, place: int) -> int:
        """The queue without the unit at a place."""
        if not place:
            return self.rest[queue]
        units = self.contents[queue]
        return self.of((*units[:place], *units[place + 1 :]))


class Links:
    """The queues of a group, by place in a global state, and those that a unit is put into."""

    def __init__(self, channel: Channel, echo: Echo, nodes: int) -> None:
        self.receivers: list[int] = []
        self.loses: list[bool] = []
        everybody = range(nodes)
        place: dict[tuple[int, int], int] = {}
        if channel is Channel.ONE:
            for receiver in everybody:
                made = self._add(receiver, loses=True)
                place |= {
                    (sender, receiver): made for sender in everybody if sender != receiver or echo is Echo.CHANNEL
                }
        else:
            for sender in everybody:
                for receiver in everybody:
                    if sender != receiver or echo is Echo.CHANNEL:
                        place[sender, receiver] = self._add(receiver, loses=True)
        self.loop_backs = [len(self) + node for node in everybody] if echo is Echo.SAFE else []
        """By node: its loop-back; empty if there are none."""
        if echo is Echo.SAFE:
            place |= {(node, node): self._add(node, loses=False) for node in everybody}
        self._to_all = [tuple(place[s, r] for r in everybody if (s, r) in place) for s in everybody]
        self._to_one = {
            (s, to): tuple(place[s, r] for r in everybody if (s, r) in place and r in {s, to})
            for s in everybody
            for to in everybody
        }

    def _add(self, receiver: int, *, loses: bool) -> int:
        self.receivers.append(receiver)
        self.loses.append(loses)
        return len(self.receivers) - 1

    def __len__(self) -> int:
        return len(self.receivers)

    def reached(self, sender: int, to: int | None) -> tuple[int, ...]:
        """The links that a unit is put into, with the sender's echo."""
        return self._to_all[sender] if to is None else self._to_one[sender, to]
