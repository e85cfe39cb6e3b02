"""A schedule of a group as a state machine of hypothesis: each rule is one kind of thing that may happen.

What may happen, what follows, and what is wrong with it are the explorer's: one judgement, reached by search or by
chance. After each step every promise holds that can be broken by then; when the schedule ends, nothing is lost any
more, and the group must come to rest with everything delivered.
"""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ordercast.explorer.completion import Completion
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.wording import schedule_in_words
from ordercast.explorer.world import Kind, World

F = TypeVar("F", bound=Callable[..., Any])
WHICH = st.integers(0, 63)
"""Of the steps of a kind; the first is the simplest."""


def _possible(kind: Kind) -> Callable[[F], F]:
    made: Callable[[F], F] = precondition(lambda self: kind in self.possible)
    return made


class Schedule(RuleBasedStateMachine):
    """Some schedule of some group."""

    scenarios: ClassVar[st.SearchStrategy[Scenario]]

    def __init__(self) -> None:
        super().__init__()
        self.possible: dict[Kind, list[int]] = {}
        self.taken: list[int] = []
        self.steps = 0
        self.world: World | None = None
        self.wrong = False

    @initialize(data=st.data())
    def begins(self, data: st.DataObject) -> None:
        scenario = data.draw(self.scenarios)
        self.world = World(scenario)
        self.state = self.world.start()
        self._look()

    def _look(self) -> None:
        assert self.world is not None
        self.possible = {}
        for step in self.world.steps(self.state):
            self.possible.setdefault(Kind(step & 7), []).append(step)

    def _happens(self, kind: Kind, which: int) -> None:
        assert self.world is not None
        steps = self.possible[kind]
        step = steps[which % len(steps)]
        self.taken.append(step)
        self.steps += 1
        self.state, effect = self.world.take(self.state, step)
        problem = self.world.problem(self.state, effect) if effect is not None else ""
        self._judge(problem)
        self._look()

    def _judge(self, problem: str) -> None:
        """A broken promise, with the schedule that broke it."""
        if problem:
            assert self.world is not None
            self.wrong = True
            for line in schedule_in_words(self.world, self.taken):
                note(line)
            raise AssertionError(f"after {self.steps} steps: {problem}")

    def teardown(self) -> None:
        """From here on nothing is lost."""
        if self.world is None or self.wrong:
            return
        end = Completion(self.world).bad_end(self.state)
        if end is not None:
            if not end.live:
                self.taken += end.steps
            self._judge(f"and when nothing is lost any more: {end.sentence}")

    @_possible(Kind.SUBMIT)
    @rule(which=WHICH)
    def submits(self, which: int) -> None:
        self._happens(Kind.SUBMIT, which)

    @_possible(Kind.RECEIVE)
    @rule(which=WHICH)
    def receives(self, which: int) -> None:
        self._happens(Kind.RECEIVE, which)

    @rule(which=WHICH, count=st.integers(2, 12))
    def receive_many(self, which: int, count: int) -> None:
        """Half of what happens to a group is receipt. It may always happen: nothing may be under way."""
        for _ in range(count):
            if Kind.RECEIVE in self.possible:
                self._happens(Kind.RECEIVE, which)

    @_possible(Kind.LOSE)
    @rule(which=WHICH)
    def loses(self, which: int) -> None:
        self._happens(Kind.LOSE, which)

    @_possible(Kind.TWICE)
    @rule(which=WHICH)
    def receives_twice(self, which: int) -> None:
        self._happens(Kind.TWICE, which)

    @_possible(Kind.LATER)
    @rule(which=WHICH)
    def receives_again_later(self, which: int) -> None:
        self._happens(Kind.LATER, which)

    @_possible(Kind.FIRE)
    @rule(which=WHICH)
    def fires(self, which: int) -> None:
        self._happens(Kind.FIRE, which)

    @_possible(Kind.DRAIN)
    @rule(which=WHICH)
    def is_drained(self, which: int) -> None:
        self._happens(Kind.DRAIN, which)

    @_possible(Kind.CRASH)
    @rule(which=WHICH)
    def crashes(self, which: int) -> None:
        self._happens(Kind.CRASH, which)


def schedules_of(drawn: st.SearchStrategy[Scenario]) -> type[Schedule]:
    """Schedules of these groups."""

    class Drawn(Schedule):
        scenarios = drawn

    return Drawn
