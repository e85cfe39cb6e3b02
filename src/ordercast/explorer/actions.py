"""Actions: all steps of one kind at one place, each action a bit, and which actions are independent of each other.

The order of the bits is the order in which actions are explored: faults, crashes and timers first.
"""

from ordercast.explorer.state_space import KIND_BITS, StateSpace, StepKind

EXPANDED = 1
"""A bit beside the actions of a sleep set: the state has been expanded."""

_FAULTS = (StepKind.LOSE, StepKind.TWICE, StepKind.LATER)


class Actions:
    """The actions of a state space."""

    def __init__(self, space: StateSpace) -> None:
        size, links, patient = space.size, len(space.links), space.scenario.patient
        bits = iter(1 << place for place in range(1, 1 + 2 * links + 8 * size))
        self.faults = [next(bits) for _ in range(links)]
        """By link: the action of losing or duplicating its units."""
        asked = space.scenario
        crashing, firing = ([next(bits) for _ in range(size)] for _ in range(2))
        suspecting, leaving = ([next(bits) for _ in range(size)] if n else [] for n in (asked.suspicions, asked.leaves))
        syncing = [next(bits) for _ in range(size)] if asked.logs else []
        giving_up = [next(bits) for _ in range(size)] if asked.give_ups else []
        draining, submitting = ([next(bits) for _ in range(size)] for _ in range(2))
        receiving = [next(bits) for _ in range(links)]
        self.of_link = [one | other for one, other in zip(self.faults, receiving, strict=True)]
        own = {StepKind.CRASH: crashing, StepKind.FIRE: firing, StepKind.DRAIN: draining, StepKind.SUBMIT: submitting}
        own |= {
            StepKind.SUSPECT: suspecting,
            StepKind.LEAVE: leaving,
            StepKind.SYNC: syncing,
            StepKind.GIVE_UP: giving_up,
        }  # none, if there are no such steps
        self.of_step: dict[int, int] = {}
        """The action of each step; the key is the step without its timer, or its place in a bag."""
        for kind in StepKind:
            for place in range(len(own.get(kind, receiving))):
                action = own.get(kind, self.faults if kind in _FAULTS else receiving)[place]
                self.of_step[kind | (place if kind in own else space.first_link + place) << KIND_BITS] = action
        self.of_node = [sum(actions[node] for actions in own.values() if actions) for node in range(size)]
        for link, receiver in enumerate(space.links.receivers):
            self.of_node[receiver] |= self.of_link[link]
        self.independent_of = self._independent(space, set(firing), set(crashing), patient=patient)
        for node, old in asked.returning.items():  # it returns only when the incarnation before has crashed
            self.independent_of[crashing[old]] &= ~submitting[node]
            self.independent_of[submitting[node]] &= ~crashing[old]
        """By action: those that its steps are independent of, as long as they send nothing."""

    def _independent(self, space: StateSpace, firing: set[int], crashing: set[int], *, patient: bool) -> dict[int, int]:
        every = sum(set(self.of_step.values()))
        waits = (
            sum(firing) if patient else 0
        )  # every step may enable or disable timers that wait until no unit is in flight
        independent = {}
        for link, action in enumerate(self.faults):
            crash = next(bit for bit in crashing if bit & self.of_node[space.links.receivers[link]])
            independent[action] = every & ~(self.of_link[link] | crash | waits)
        faults = sum(self.faults)
        for actions in self.of_node:
            for action in (bit for bit in self.of_step.values() if bit & actions & ~faults):
                shared = next((both for both in self.of_link if both & action), 0)
                theirs = actions if action in crashing else actions & ~faults
                independent[action] = 0 if patient and action in firing else every & ~(theirs | shared | waits)
        return independent
