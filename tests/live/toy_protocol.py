"""The least protocol that needs others to come to rest: each message is numbered, repeated until all have it, and only
then *stable*; a receiver is not at rest before it knows that. Whoever stops too early leaves another one waiting.
"""

from typing import NamedTuple


class Data(NamedTuple):
    """A message, by number."""

    number: int


class Have(NamedTuple):
    """The sender has all of the receiver's messages below this."""

    below: int


class StableBelow(NamedTuple):
    """All members have the sender's messages below this."""

    below: int


class AskStable(NamedTuple):
    """Say what is stable."""


Unit = Data | Have | StableBelow | AskStable


class Toy:
    """One member; units go to one member each."""

    def __init__(self, me: int, nodes: int) -> None:
        self.me, self.others = me, [node for node in range(nodes) if node != me]
        self.sent = 0
        self.had_below = dict.fromkeys(self.others, 0)
        self.got_below = dict.fromkeys(self.others, 0)
        self.stable_below = dict.fromkeys(self.others, 0)

    def send(self) -> list[tuple[int, Unit]]:
        """A new message."""
        self.sent += 1
        return [(other, Data(self.sent - 1)) for other in self.others]

    def receive(self, source: int, unit: Unit) -> list[tuple[int, Unit]]:
        """What came from another member, in any order, perhaps twice."""
        match unit:
            case Data(number):
                if number == self.got_below[source]:
                    self.got_below[source] += 1
                return [(source, Have(self.got_below[source]))]
            case Have(below):
                self.had_below[source] = max(self.had_below[source], below)
            case AskStable():
                return [(source, StableBelow(self._own_stable()))]
            case StableBelow(below):
                self.stable_below[source] = max(self.stable_below[source], below)
        return []

    def repeat(self) -> list[tuple[int, Unit]]:
        """What a timer says again."""
        again: list[tuple[int, Unit]] = []
        for other in self.others:
            again += [(other, Data(number)) for number in range(self.had_below[other], self.sent)]
            if self.stable_below[other] < self.got_below[other]:
                again.append((other, AskStable()))
        return again

    def is_at_rest(self) -> bool:
        """Nothing of ours is missing anywhere, and all that we got is known to be everywhere."""
        return self._own_stable() == self.sent and self.stable_below == self.got_below

    def _own_stable(self) -> int:
        return min(self.had_below.values(), default=self.sent)
