"""Where on the channel own packets are: between what of every other source my own packets came back to me.

They tell a node that lost one of my packets where it belongs among those that it has.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState, Derived

UNKNOWN = -1


class OwnPositions(DeclaredState):
    """Of my packets that are not known to be with all."""

    me: Final[int]
    nodes: Final[int]
    heard_below: list[int]
    """HREQ_j: the number after the last unit heard from E_j, accepted or not."""
    low: dict[int, tuple[int, ...]]
    """LO_j, by own seq: what I had heard when it came back."""
    high: dict[int, list[int]]
    """HI_j, by own seq: the number of the first unit of E_j that I heard later; `UNKNOWN`: none yet."""
    _open: Derived[list[list[int]]]
    """By source: own seqs that came back since its last unit."""

    def __init__(self, me: int, first: tuple[int, ...]) -> None:
        self.me, self.nodes = me, len(first)
        self.heard_below, self.low, self.high = list(first), {}, {}
        self.derive()

    def derive(self) -> None:
        """From what is not known yet."""
        self._open = [[] for _ in range(self.nodes)]
        for seq, numbers in self.high.items():
            for source, number in enumerate(numbers):
                if number == UNKNOWN and source != self.me:
                    self._open[source].append(seq)

    def heard(self, source: int, number: int, below: int) -> None:
        """A unit of a source, with this number, came; what the source sends next is not below `below`."""
        self.heard_below[source] = below
        waiting = self._open[source]
        if waiting:
            for seq in waiting:
                numbers = self.high.get(seq)
                if numbers is not None and numbers[source] == UNKNOWN:
                    numbers[source] = number
            self._open[source] = []

    def came_back(self, seq: int) -> None:
        """My packet came back to me at its place."""
        self.low[seq], self.high[seq] = tuple(self.heard_below), [UNKNOWN] * self.nodes
        for source, seqs in enumerate(self._open):
            if source != self.me:
                seqs.append(seq)

    def learn(self, seq: int, low: tuple[int, ...], high: tuple[int, ...], same: list[bool]) -> None:
        """Another node has told where my packet is; of some sources (not `same`) in another generation than I know."""
        self.low[seq] = tuple([below if same[source] else 0 for source, below in enumerate(low)])
        self.high[seq] = [number if same[source] else UNKNOWN for source, number in enumerate(high)]
        for source, number in enumerate(self.high[seq]):
            if number == UNKNOWN and source != self.me:  # whatever comes from now on is after it
                self._open[source].append(seq)

    def moved(self, source: int, first: int) -> None:
        """The source has sent its packets from this seq on again: they come after what I have heard.

        What is unknown stays so. Of the new generation a part may have been lost before my packet came back, if
        nothing of the old one came after it: only the next unit of the source tells.
        """
        self.heard_below[source] = min(self.heard_below[source], first)
        for seq, numbers in self.high.items():
            low = self.low[seq]
            self.low[seq] = (*low[:source], min(low[source], first), *low[source + 1 :])
            numbers[source] = min(numbers[source], first)  # `UNKNOWN` is less

    def forget_from(self, first: int) -> None:
        """My packets from this seq on get new places."""
        for seq in [seq for seq in self.low if seq >= first]:
            self.forget(seq)

    def forget(self, seq: int) -> None:
        """A packet of mine is with all."""
        if seq in self.low:
            del self.low[seq], self.high[seq]
