"""Strands: all steps of one kind at one place, each a bit, and which of them have nothing to do with each other.

The order of the bits is the order in which strands are searched: disturbances, crashes and timers first.
"""

from ordercast.explorer.world import Kind, World

EXPANDED = 1
"""The bit that is no strand: it says of a state that what is awake in it has been searched."""

_DISTURBING = (Kind.LOSE, Kind.TWICE, Kind.LATER)


class Strands:
    """The strands of a world."""

    def __init__(self, world: World) -> None:
        size, links, patient = world.size, len(world.links), world.scenario.patient
        bits = iter(1 << place for place in range(1, 1 + 2 * links + 4 * size))
        self.disturbing = [next(bits) for _ in range(links)]
        """By link: what may become of its units."""
        crashing, firing, draining, submitting = ([next(bits) for _ in range(size)] for _ in range(4))
        receiving = [next(bits) for _ in range(links)]
        self.of_link = [one | other for one, other in zip(self.disturbing, receiving, strict=True)]
        own = {Kind.CRASH: crashing, Kind.FIRE: firing, Kind.DRAIN: draining, Kind.SUBMIT: submitting}
        self.of_step: dict[int, int] = {}
        """By step without its timer, or its place in a bag."""
        for kind in Kind:
            for place in range(len(own.get(kind, receiving))):
                strand = own.get(kind, self.disturbing if kind in _DISTURBING else receiving)[place]
                self.of_step[kind | (place if kind in own else world.first_link + place) << 3] = strand
        self.of_node = [sum(strands[node] for strands in own.values()) for node in range(size)]
        for link, receiver in enumerate(world.links.receivers):
            self.of_node[receiver] |= self.of_link[link]
        self.apart_from = self._apart(world, set(firing), set(crashing), patient=patient)
        """By strand: those that its steps do not bear on, as long as they send nothing."""

    def _apart(self, world: World, firing: set[int], crashing: set[int], *, patient: bool) -> dict[int, int]:
        every = sum(set(self.of_step.values()))
        waits = sum(firing) if patient else 0  # whatever happens may bear on timers that wait for silence
        apart = {}
        for link, strand in enumerate(self.disturbing):
            crash = next(bit for bit in crashing if bit & self.of_node[world.links.receivers[link]])
            apart[strand] = every & ~(self.of_link[link] | crash | waits)
        disturbing = sum(self.disturbing)
        for strands in self.of_node:
            for strand in (bit for bit in self.of_step.values() if bit & strands & ~disturbing):
                shared = next((both for both in self.of_link if both & strand), 0)
                theirs = strands if strand in crashing else strands & ~disturbing
                apart[strand] = 0 if patient and strand in firing else every & ~(theirs | shared | waits)
        return apart
