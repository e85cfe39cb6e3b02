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

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.notation import format_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import KIND, StateSpace, StepKind

F = TypeVar("F", bound=Callable[..., Any])
WHICH = st.integers(0, 63)
"""Of the steps of a kind; the first is the simplest."""


def _possible(kind: StepKind) -> Callable[[F], F]:
    made: Callable[[F], F] = precondition(lambda self: kind in self.possible)
    return made


class Schedule(RuleBasedStateMachine):
    """Some schedule of some group."""

    scenarios: ClassVar[st.SearchStrategy[Scenario]]

    def __init__(self) -> None:
        super().__init__()
        self.possible: dict[StepKind, list[int]] = {}
        self.taken: list[int] = []
        self.steps = 0
        self.space: StateSpace | None = None
        self.wrong = False

    @initialize(data=st.data())
    def begins(self, data: st.DataObject) -> None:
        scenario = data.draw(self.scenarios)
        self.space = StateSpace(scenario)
        self.state = self.space.initial_state()
        self._look()

    def _look(self) -> None:
        assert self.space is not None
        self.possible = {}
        for step in self.space.steps(self.state):
            self.possible.setdefault(StepKind(step & KIND), []).append(step)

    def _happens(self, kind: StepKind, which: int) -> None:
        assert self.space is not None
        steps = self.possible[kind]
        step = steps[which % len(steps)]
        self.taken.append(step)
        self.steps += 1
        self.state, effect = self.space.successor(self.state, step)
        problem = self.space.problem(self.state, effect) if effect is not None else ""
        self._judge(problem)
        self._look()

    def _judge(self, problem: str) -> None:
        """A broken promise, with the schedule that broke it."""
        if problem:
            assert self.space is not None
            self.wrong = True
            for line in format_schedule(self.space, self.taken):
                note(line)
            raise AssertionError(f"after {self.steps} steps: {problem}")

    def teardown(self) -> None:
        """From here on nothing is lost."""
        if self.space is None or self.wrong:
            return
        end = FairContinuations(self.space).failure_from(self.state)
        if end is not None:
            if not end.live:
                self.taken += end.steps
            self._judge(f"and when nothing is lost any more: {end.sentence}")

    @_possible(StepKind.SUBMIT)
    @rule(which=WHICH)
    def submits(self, which: int) -> None:
        self._happens(StepKind.SUBMIT, which)

    @_possible(StepKind.RECEIVE)
    @rule(which=WHICH)
    def receives(self, which: int) -> None:
        self._happens(StepKind.RECEIVE, which)

    @rule(which=WHICH, count=st.integers(2, 12))
    def receive_many(self, which: int, count: int) -> None:
        """Half of what happens to a group is receipt. It may always happen: nothing may be under way."""
        for _ in range(count):
            if StepKind.RECEIVE in self.possible:
                self._happens(StepKind.RECEIVE, which)

    @_possible(StepKind.LOSE)
    @rule(which=WHICH)
    def loses(self, which: int) -> None:
        self._happens(StepKind.LOSE, which)

    @_possible(StepKind.TWICE)
    @rule(which=WHICH)
    def receives_twice(self, which: int) -> None:
        self._happens(StepKind.TWICE, which)

    @_possible(StepKind.LATER)
    @rule(which=WHICH)
    def receives_again_later(self, which: int) -> None:
        self._happens(StepKind.LATER, which)

    @_possible(StepKind.FIRE)
    @rule(which=WHICH)
    def fires(self, which: int) -> None:
        self._happens(StepKind.FIRE, which)

    @_possible(StepKind.DRAIN)
    @rule(which=WHICH)
    def is_drained(self, which: int) -> None:
        self._happens(StepKind.DRAIN, which)

    @_possible(StepKind.CRASH)
    @rule(which=WHICH)
    def crashes(self, which: int) -> None:
        self._happens(StepKind.CRASH, which)

    @_possible(StepKind.SUSPECT)
    @rule(which=WHICH)
    def suspects(self, which: int) -> None:
        self._happens(StepKind.SUSPECT, which)

    @_possible(StepKind.LEAVE)
    @rule(which=WHICH)
    def leaves(self, which: int) -> None:
        self._happens(StepKind.LEAVE, which)

    @_possible(StepKind.GIVE_UP)
    @rule(which=WHICH)
    def gives_up(self, which: int) -> None:
        self._happens(StepKind.GIVE_UP, which)


def schedules_of(drawn: st.SearchStrategy[Scenario]) -> type[Schedule]:
    """Schedules of these groups."""

    class Drawn(Schedule):
        scenarios = drawn

    return Drawn
