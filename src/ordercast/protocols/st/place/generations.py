"""Generations: how often each source has sent packets again at new places on the channel.

The place of a packet is that of its transmission in the newest generation that contains it. Whoever lacks a packet
keeps everybody from pre-acknowledging it, and all that its source sent after it: so the source may still move them.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.protocols.st.units import PlacedStatus, Start


class Generations(DeclaredState):
    """What one node knows of the generations of all sources."""

    me: Final[int]
    own: int
    """GEN: mine."""
    starts: tuple[Start, ...]
    """Of my generations that some node may not know."""
    known: tuple[int, ...]
    """GENV_j: by source; mine as the channel brought it back."""
    starts_of: list[tuple[Start, ...]]
    """By source: `starts` of its newest unit."""
    confirmed: list[int]
    """By node: which of my generations it knows."""

    def __init__(self, me: int, nodes: int) -> None:
        self.me, self.own, self.starts = me, 0, ()
        self.known, self.starts_of, self.confirmed = (0,) * nodes, [()] * nodes, [0] * nodes

    def begin(self, first: int) -> None:
        """A new generation of mine: my packets from this seq on get new places."""
        self.own += 1
        self.starts = (*self.starts, (self.own, first))

    def first_moved(self, source: int, status: PlacedStatus) -> int | None:
        """The lowest seq that generations up to that of the status have moved; None: the status does not say it.

        The lowest of *all* generations that this node has not known: a later one may have begun with a higher seq.
        """
        known = self.known[source]
        if source == self.me and status.generation > self.own:
            return None
        firsts = [first for generation, first in status.starts if known < generation <= status.generation]
        return min(firsts) if len(firsts) == status.generation - known else None

    def note(self, source: int, status: PlacedStatus) -> None:
        """What a unit of a source in its known generation says of generations."""
        self.starts_of[source] = status.starts
        if self.starts and status.generations[self.me] > self.confirmed[source]:
            self.confirmed[source] = status.generations[self.me]
            everywhere = min(self.confirmed)
            self.starts = tuple([start for start in self.starts if start[0] > everywhere])

    def enter(self, source: int, generation: int) -> None:
        """The source is in this generation."""
        self.known = (*self.known[:source], generation, *self.known[source + 1 :])

    def own_moved_from(self, generation: int, nothing: int) -> int:
        """The lowest of my seqs that I have sent again since this generation; else `nothing`."""
        return min([first for number, first in self.starts if number > generation], default=nothing)
