"""What is handed to people: the promise that was broken, and a schedule without a step that it does not need."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.notation import format_schedule
from ordercast.explorer.state_space import State, StateSpace


@dataclass(frozen=True)
class Counterexample:
    """A promise that was broken, and the schedule that breaks it."""

    sentence: str
    schedule: tuple[str, ...]
    live: bool
    """Whether it is the continuation of the schedule, rather than its last step, that breaks it."""

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
    """The counterexample that a schedule ends in; steps without which it would end in one too are left out.

    `given`: the first steps, which stay, whether they are needed or not.
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
    """What becomes of the state that a schedule led to, if it does not end well."""
    end = continuations.failure_from(state)
    if end is None:
        return None
    return shortened(space, continuations, steps if end.live else [*steps, *end.steps], live=end.live, given=given)


def _try(space: StateSpace, continuations: FairContinuations, steps: Sequence[int], *, live: bool) -> _Trial | None:
    """Follows a schedule until a promise is broken; None if none is, or not in the way asked for."""
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
