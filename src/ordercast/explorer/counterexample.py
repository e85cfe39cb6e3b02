"""Counterexamples: a broken promise, and a schedule without unnecessary steps that breaks it."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.notation import format_schedule
from ordercast.explorer.state_space import State, StateSpace


@dataclass(frozen=True)
class Counterexample:
    """A broken promise, and the schedule that breaks it."""

    sentence: str
    schedule: tuple[str, ...]
    live: bool
    """True if the fair continuation of the schedule breaks it, rather than its last step."""

    def __str__(self) -> str:
        then = ["from there on nothing is lost, and yet:"] if self.live else []
        return "\n".join([*self.schedule, *then, f"=> {self.sentence}"])


@dataclass(frozen=True)
class _Trial:
    steps: Sequence[int]
    sentence: str


def shortened(
    space: StateSpace, continuations: FairContinuations, steps: Sequence[int], *, live: bool, given: int = 0
) -> Counterexample:
    """The counterexample at the end of a schedule, without the steps that it does not need.

    `given`: the number of first steps that are kept even if they are not needed.
    """
    best = _try(space, continuations, steps, live=live)
    assert best is not None, "only a schedule that breaks a promise is shortened"
    at = given
    while at < len(best.steps):
        shorter = _try(space, continuations, [*best.steps[:at], *best.steps[at + 1 :]], live=live)
        if shorter is None:
            at += 1
        else:
            best, at = shorter, given
    return Counterexample(best.sentence, tuple(format_schedule(space, best.steps)), live)


def counterexample_from(
    space: StateSpace, continuations: FairContinuations, steps: Sequence[int], state: State, given: int = 0
) -> Counterexample | None:
    """The counterexample in the fair continuations of a schedule that led to this state; None if they succeed."""
    end = continuations.failure_from(state)
    if end is None:
        return None
    return shortened(space, continuations, steps if end.live else [*steps, *end.steps], live=end.live, given=given)


def _try(space: StateSpace, continuations: FairContinuations, steps: Sequence[int], *, live: bool) -> _Trial | None:
    """Follows a schedule until a promise is broken; None if none is, or not of the kind asked for."""
    state = space.initial_state()
    for count, step in enumerate(steps, start=1):
        if not space.is_enabled(state, step):
            return None
        state, effect = space.successor(state, step)
        problem = space.problem(state, effect) if effect is not None else ""
        if problem:
            return None if live else _Trial(steps[:count], problem)
    end = continuations.failure_from(state) if live else None
    return _Trial(steps, end.sentence) if end is not None and end.live else None
