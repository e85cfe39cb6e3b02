"""What a schedule comes to: what its last step breaks, or what is broken though nothing is lost any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.execution import Execution
from ordercast.explorer.state_space import StateSpace

_SHOWN = 24  # steps of a continuation


@dataclass(frozen=True)
class Outcome:
    """What became of a schedule."""

    steps: tuple[int, ...]
    """The schedule, as far as it went."""
    continuation: tuple[int, ...]
    """The fair continuation that ends badly, if it is that which does."""
    sentence: str
    """The promise that is broken; empty if none is."""
    stuck: bool = False
    """What is broken is that the continuation does not end well, rather than its last step."""

    def shown(self) -> tuple[int, ...]:
        """What is worth showing: what goes on for ever need not be shown for ever."""
        return (*self.steps, *(self.continuation[:_SHOWN] if self.stuck else self.continuation))


def outcome_of(space: StateSpace, steps: Sequence[int]) -> Outcome:
    """Acts a schedule out, and then lets everything happen that can."""
    replay = Execution(space)
    taken = []
    for executed in replay.run(steps):
        taken.append(executed.step)
        if executed.problem:
            return Outcome(tuple(taken), (), executed.problem)
    end = FairContinuations(space).failure_from(replay.state)
    return Outcome(tuple(taken), end.steps, end.sentence, end.live) if end else Outcome(tuple(taken), (), "")
