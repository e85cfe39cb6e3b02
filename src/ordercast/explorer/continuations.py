"""Liveness: fair continuations, in which nothing more is lost, must reach the liveness goal.

A continuation submits and delivers everything, then fires every active timer in turn, and so on in rounds until no
unit is in flight and no timer is set. There are two of them, since a group might reach the goal in one of them only:
in one all timers fire before anything is delivered, in the other each timer's consequences end before the next fires.

Receipts that cause receipts without end (a broadcast storm: no timer fires in between) are detected by their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.explorer.node_state import NodeState
from ordercast.explorer.promise_checker import PromiseBroken
from ordercast.explorer.scenario import Item
from ordercast.explorer.state_space import State, StateSpace, fire_step
from ordercast.model.config import Rules
from ordercast.model.kept import kept_by
from ordercast.model.machine import Level
from ordercast.model.nodes import name_of

_MANNERS = ("all timers at once", "one timer after the other")
_STORM = 2_000  # receipts in a row for each node; a run that ends takes some dozens


@dataclass(frozen=True)
class ContinuationFailure:
    """How a continuation fails."""

    sentence: str
    steps: tuple[int, ...]
    """The continuation, as far as it went."""
    live: bool
    """It misses the liveness goal; otherwise its last step breaks a safety promise."""


class _StormError(Exception):
    """Receipts cause receipts without end."""


class FairContinuations:
    """Runs fair continuations, and caches the states from which they succeed."""

    def __init__(self, space: StateSpace) -> None:
        self._space, self._rounds = space, space.scenario.rounds
        self._rounds_from: tuple[dict[State, int], ...] = tuple({} for _ in _MANNERS)
        """By the states of all nodes: the rounds until the goal is reached."""
        self._steps: list[int] = []
        self.runs = 0
        self.longest = 0
        """The rounds of the longest continuation."""

    def failure_from(self, state: State) -> ContinuationFailure | None:
        """How a fair continuation from this state misses the goal or breaks a promise; None if it succeeds."""
        for apart, manner in enumerate(_MANNERS):
            self._steps = []
            try:
                problem = self._complete(self._settle(state), apart)
            except PromiseBroken as wrong:
                return ContinuationFailure(str(wrong), tuple(self._steps), live=False)
            except _StormError:
                problem = "units cause units without end, though no timer fires"
            if problem and self._space.scenario.promise.liveness_goal is not None:
                return ContinuationFailure(f"{problem} ({manner})", tuple(self._steps), live=True)
        return None

    def settles(self, state: State) -> bool:
        """True if receipts come to an end without timers; not checked if there is no liveness goal."""
        if self._space.scenario.promise.liveness_goal is None:
            return True
        self._steps = []
        try:
            self._settle(state)
        except PromiseBroken:
            return True  # the search finds it by itself
        except _StormError:
            return False
        return True

    def _complete(self, state: State, apart: int) -> str:
        size, known = self._space.size, self._rounds_from[apart]
        trail: dict[State, None] = {}
        while (here := state[:size]) not in known:
            if here in trail:
                return f"the group never becomes quiescent (its states repeat): {self.waits(state)}"
            if self._has_no_quorum(state):  # then it may wait for ever
                known[here] = 0
                break
            timers = self._timers(state)
            if timers and len(trail) == self._rounds:
                return self._not_quiescent(state)
            if timers:
                trail[here] = None
                state = self._round(state, timers, apart)
            elif problem := self._lacking(state):
                return problem
            else:
                known[here] = 0
        rounds = known[here]
        if rounds + len(trail) > self._rounds:  # whichever part of it was seen before
            return self._not_quiescent(state)
        for passed in reversed(trail):
            rounds += 1
            known[passed] = rounds
        self.runs += 1
        self.longest = max(self.longest, rounds)
        return ""

    def _not_quiescent(self, state: State) -> str:
        return f"the group is not quiescent after {self._rounds} rounds: {self._lacking(state) or self.waits(state)}"

    def _nodes(self, state: State) -> list[NodeState]:
        return [self._space.nodes.states[number] for number in state[: self._space.size]]

    def _has_no_quorum(self, state: State) -> bool:
        return self._space.views is not None and self._space.views.has_no_quorum(self._nodes(state))

    def _timers(self, state: State) -> list[tuple[int, int]]:
        nodes = self._space.nodes
        return [(node, timer) for node in range(self._space.size) for timer in nodes.timers[state[node]]]

    def _round(self, state: State, timers: Sequence[tuple[int, int]], apart: int) -> State:
        for node, timer in timers:
            state = self._settle(state, echo_of=node)
            if timer in self._space.nodes.timers[state[node]]:
                state = self._take(state, fire_step(node, timer))
                if apart:
                    state = self._settle(state)
        return self._settle(state)

    def _settle(self, state: State, echo_of: int | None = None) -> State:
        """Submits and delivers everything, or only a node's own echo, before which it does nothing else."""
        space = self._space
        for _ in range(_STORM * space.size):
            steps = space.progress_steps(state) if echo_of is None else space.echoes(state, echo_of)
            if not steps:
                return state
            state = self._take(state, steps[0])
        raise _StormError

    def _take(self, state: State, step: int) -> State:
        self._steps.append(step)
        after, effect = self._space.successor(state, step)
        assert effect is not None, "a continuation has no faults"
        problem = self._space.problem(after, effect)
        if problem:
            raise PromiseBroken(problem)
        return after

    def _lacking(self, state: State) -> str:
        """Why a quiescent group misses its goal; empty if it does not."""
        space = self._space
        if space.views is not None:
            problem = space.views.lacking(self._nodes(state))
            return problem and f"{problem}: {self.waits(state)}"
        if space.scenario.promise.views:
            return self._lacking_with_views(state)
        for node in range(space.size):
            here, name = space.nodes.states[state[node]], name_of(node)
            if here.numbered < len(space.scenario.scripts[node]):
                return f"{name} never sends all that was submitted to it: {self.waits(state)}"
            for item in space.scenario.items:
                verb = self._lacks(here, item)
                if verb:
                    return f"{item.describe()} is never {verb} at {name}: {self.waits(state)}"
        return self._kept(state)

    def _kept(self, state: State) -> str:
        """Who keeps packets, though everything is acknowledged everywhere."""
        scenario, nodes = self._space.scenario, self._space.nodes
        if scenario.promise.liveness_goal is not Level.ACKNOWLEDGED or scenario.group.rules is not Rules.SOUND:
            return ""  # the printed rules say nothing of it
        for node in range(self._space.size):
            here = nodes.states[state[node]]
            if here.crashed or here.left:
                continue
            machine = nodes.machine(node, here.snapshot)
            kept = machine.log_sizes().total()
            if kept:
                return f"{name_of(node)} keeps {kept} packets that nobody needs any more"
            elsewhere = len(kept_by(machine).packets)
            if elsewhere:
                return f"{name_of(node)} keeps {elsewhere} packets outside of its logs"
        return ""

    def _lacking_with_views(self, state: State) -> str:
        """The same with views: survivors deliver all messages of each other, and the same messages of the others."""
        space = self._space
        survivors = {node: space.nodes.states[state[node]] for node in space.survivors(state)}
        everybody = [space.nodes.states[state[node]] for node in range(space.size)]
        if not survivors and not any(here.crashed or here.gave_up for here in everybody):
            return "no node goes on, though none crashed"
        considered = everybody if space.scenario.promise.uniform else list(survivors.values())
        for node, here in survivors.items():
            if here.numbered < len(space.scenario.scripts[node]):
                return f"{name_of(node)} never sends all that was submitted to it: {self.waits(state)}"
            for item in space.scenario.items:
                due = item.source in survivors or any(other.delivered >> item.number & 1 for other in considered)
                verb = _lacks_with_views(here, item) if due else ""
                if verb:
                    return f"{item.describe()} is never {verb} at {name_of(node)}: {self.waits(state)}"
        return self._kept(state)

    def _lacks(self, here: NodeState, item: Item) -> str:
        promise = self._space.scenario.promise
        for_me, end = here.node in item.destinations, promise.liveness_goal or Level.ACKNOWLEDGED
        if end < Level.ACKNOWLEDGED:
            return end.name.lower() if for_me and not here.reached[end] >> item.number & 1 else ""
        if for_me and not here.delivered >> item.number & 1:
            return "delivered"
        concerned = for_me or here.node == item.source
        if concerned and promise.ladder and not here.reached[Level.ACKNOWLEDGED] >> item.number & 1:
            return "acknowledged"
        return ""

    def waits(self, state: State) -> str:
        """What each node waits for, as its machine says, and its active timers."""
        nodes = self._space.nodes
        lines = []
        for node in range(self._space.size):
            here = nodes.states[state[node]]
            if here.crashed:
                continue
            lines += [f"{name_of(node)}: {line}" for line in nodes.machine(node, here.snapshot).waits_for()]
            if here.timers:
                lines.append(f"{name_of(node)} has set {', '.join(here.timers)}")
        return "; ".join(lines) or "no node waits"


def _lacks_with_views(here: NodeState, item: Item) -> str:
    if not here.reached[Level.PREACKNOWLEDGED] >> item.number & 1:
        return "known as received by all"
    return "" if here.delivered >> item.number & 1 else "delivered"
