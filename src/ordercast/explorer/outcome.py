"""The outcome of a schedule: the promise that its last step breaks, or that its fair continuation breaks."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.execution import Execution
from ordercast.explorer.state_space import StateSpace

_SHOWN = 24  # steps of a continuation


@dataclass(frozen=True)
class Outcome:
    """The outcome of a schedule."""

    steps: tuple[int, ...]
    """The schedule, up to the step that breaks a promise."""
    continuation: tuple[int, ...]
    """The fair continuation that fails, if one does."""
    sentence: str
    """The promise that is broken; empty if none is."""
    stuck: bool = False
    """The continuation misses the liveness goal, rather than breaking a promise by its last step."""

    def shown(self) -> tuple[int, ...]:
        """The steps to show: of an endless continuation only the beginning."""
        return (*self.steps, *(self.continuation[:_SHOWN] if self.stuck else self.continuation))


def outcome_of(space: StateSpace, steps: Sequence[int]) -> Outcome:
    """Executes a schedule, and then the fair continuations."""
    execution = Execution(space)
    taken = []
    for executed in execution.run(steps):
        taken.append(executed.step)
        if executed.problem:
            return Outcome(tuple(taken), (), executed.problem)
    end = FairContinuations(space).failure_from(execution.state)
    return Outcome(tuple(taken), end.steps, end.sentence, end.live) if end else Outcome(tuple(taken), (), "")
