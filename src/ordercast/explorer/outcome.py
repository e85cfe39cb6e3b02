"""What a schedule comes to: what its last step breaks, or what is broken though nothing is lost any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.explorer.completion import Completion
from ordercast.explorer.replay import Replay
from ordercast.explorer.world import World

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


def outcome_of(world: World, steps: Sequence[int]) -> Outcome:
    """Acts a schedule out, and then lets everything happen that can."""
    replay = Replay(world)
    taken = []
    for happening in replay.run(steps):
        taken.append(happening.step)
        if happening.problem:
            return Outcome(tuple(taken), (), happening.problem)
    end = Completion(world).bad_end(replay.state)
    return Outcome(tuple(taken), end.steps, end.sentence, end.live) if end else Outcome(tuple(taken), (), "")
