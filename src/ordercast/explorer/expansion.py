"""The core of every search: expands states, checks them, and keeps what is known of each state found.

A search adds the order in which states are expanded, and how it records the way to a state.
"""

import struct
from collections.abc import Iterator

from ordercast.explorer.actions import EXPANDED, Actions
from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.reduction import NoReduction, Reduction, Selection
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import KIND, State, StateSpace, StepKind

SAMPLE = 61
"""When a search is cut off, liveness is checked in one state of the frontier in so many."""

NO_STEP = -1
"""Of a failure: no step breaks a promise, but the fair continuations from the state miss the liveness goal."""

TO_EXPAND, EXPANDED_BEFORE = 1, 2
"""Bits of an arrival: the state must be expanded, perhaps again; it was expanded before."""


class Expansion:
    """Expands states of a scenario, and checks promises and liveness."""

    def __init__(self, scenario: Scenario, *, reduced: bool, eager: bool = False) -> None:
        """`reduced`: with partial-order reduction. `eager`: check liveness in every state that is expanded."""
        self.space = StateSpace(scenario)
        self.selection: Selection = Reduction(self.space) if reduced else NoReduction(self.space)
        self.continuations = FairContinuations(self.space)
        self.edges = 0
        self.failure: int | None = None
        """What the last expansion found: the step that breaks a promise, NO_STEP, or None."""
        self._eager = eager

    def expand(self, state: State, sleep_set: int) -> Iterator[tuple[int, State, int]]:
        """The steps to explore from a state, each with its successor and the sleep set there.

        It ends at the first failure, see `failure`.
        """
        space, selection = self.space, self.selection
        successor, sleep_set_after = space.successor, selection.sleep_set_after
        self.failure = None
        free = space.progress_steps(state)
        if (self._eager or not free) and not self.reaches_goal(state):
            self.failure = NO_STEP
            return
        for step, action in selection.steps(state, free, sleep_set):
            self.edges += 1
            after, effect = successor(state, step)
            if effect is not None and effect.is_seen and space.problem(after, effect):
                self.failure = step
                return
            yield step, after, sleep_set and sleep_set_after(state, step, action, effect, sleep_set)
            sleep_set |= action

    def reaches_goal(self, state: State) -> bool:
        """True if the fair continuations from a state succeed."""
        return self.continuations.failure_from(state) is None

    def is_endless(self, step: int, after: State) -> bool:
        """True if a step to a state that was expanded before is a receipt, and receipts from there do not end."""
        return step & KIND == StepKind.RECEIVE and not self.continuations.settles(after)

    def highest_action(self) -> int:
        """The highest bit of a sleep set."""
        return max(Actions(self.space).of_step.values())


class KnownStates:
    """The states that a search has found. Keys are the states themselves, packed, not digests."""

    def __init__(self, start: State) -> None:
        """`start`: any state of the space; all have the same length."""
        packing = struct.Struct(f"{len(start)}I")
        self.pack, self.unpack = packing.pack, packing.unpack
        self.sleep_sets: dict[bytes, int] = {}
        """By state: its sleep set, and whether it has been expanded."""

    def arrive(self, key: bytes, sleep_set: int) -> int:
        """A search arrives at a state; returns the bits of an arrival."""
        known = self.sleep_sets.get(key)
        if known is None:
            self.sleep_sets[key] = sleep_set
            return TO_EXPAND
        if known <= EXPANDED:  # nothing sleeps there
            return EXPANDED_BEFORE if known else 0
        woken = known & ~sleep_set & ~EXPANDED
        if woken:
            self.sleep_sets[key] = known & ~woken & ~EXPANDED
        if not known & EXPANDED:
            return 0
        return EXPANDED_BEFORE | TO_EXPAND if woken else EXPANDED_BEFORE

    def begin_expansion(self, key: bytes) -> int:
        """Marks a state as expanded; returns its sleep set."""
        sleep_set = self.sleep_sets[key]
        self.sleep_sets[key] = sleep_set | EXPANDED
        return sleep_set
