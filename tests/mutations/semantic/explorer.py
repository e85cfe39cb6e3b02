"""Semantic mutants of the explorer: promises that it does not check, steps that it leaves out, unsound reductions."""

from collections.abc import Callable
from typing import Any

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.expansion import Expansion
from ordercast.explorer.promise_checker import PromiseChecker
from ordercast.explorer.reduction import LocalFuture, Reduction
from ordercast.explorer.state_space import StateSpace, StepKind
from ordercast.explorer.view_promises import ViewPromises
from ordercast.model.machine import Abort
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("explorer.state_space")


@MUTANTS.add("a sender's order is not checked", "explorer.promise_checker")
def _any_order() -> None:
    replace(PromiseChecker, "_in_order", lambda *_: None)


@MUTANTS.add("a second delivery is not noticed", "explorer.promise_checker")
def _delivered_twice() -> None:
    def around(delivers: Callable[..., None]) -> Callable[..., None]:
        def changed(checker: Any, item: Any) -> None:
            checker.delivered &= ~(1 << item.number)
            delivers(checker, item)

        return changed

    wrap(PromiseChecker, "_delivers", around)


@MUTANTS.add("an abort breaks no promise", "explorer.promise_checker")
def _aborts() -> None:
    def around(take: Callable[..., None]) -> Callable[..., None]:
        return lambda checker, output: None if isinstance(output, Abort) else take(checker, output)

    wrap(PromiseChecker, "take", around)


@MUTANTS.add("a vector may decrease", "explorer.promise_checker")
def _decreases() -> None:
    replace(PromiseChecker, "never_less", lambda *_: None)


@MUTANTS.add("claims about other nodes are not checked")
def _claims() -> None:
    def around(problem: Callable[..., str]) -> Callable[..., str]:
        def changed(space: Any, state: Any, effect: Any) -> str:
            risen, effect.risen = effect.risen, ()
            try:
                return problem(space, state, effect)
            finally:
                effect.risen = risen

        return changed

    wrap(StateSpace, "problem", around)


@MUTANTS.add("orders of delivery may have a cycle")
def _cycle() -> None:
    replace(StateSpace, "_is_one_order", lambda *_: True)


@MUTANTS.add("survivors may have different logs")
def _different_logs() -> None:
    replace(StateSpace, "_is_one_log", lambda *_: True)


def _without(*kinds: StepKind) -> Callable[[], None]:
    def around(steps: Callable[..., list[int]]) -> Callable[..., list[int]]:
        return lambda space, state: [step for step in steps(space, state) if step & 7 not in kinds]

    return lambda: wrap(StateSpace, "environment_steps", around)


MUTANTS.add("no unit is ever lost")(_without(StepKind.LOSE))
MUTANTS.add("no timer fires during the search")(_without(StepKind.FIRE))
MUTANTS.add("no node crashes")(_without(StepKind.CRASH))
MUTANTS.add("no unit is received again later")(_without(StepKind.LATER))


@MUTANTS.add("a quiescent group always reaches the liveness goal", "explorer.continuations")
def _nothing_lacking() -> None:
    replace(FairContinuations, "_lacking", lambda *_: "")


@MUTANTS.add("a storm of receipts counts as an end", "explorer.continuations")
def _storms() -> None:
    replace(FairContinuations, "settles", lambda *_: True)


@MUTANTS.add("liveness is not checked in final states", "explorer.expansion")
def _not_continued() -> None:
    replace(Expansion, "reaches_goal", lambda *_: True)


@MUTANTS.add("all steps are independent of what was explored before", "explorer.reduction")
def _always_asleep() -> None:
    replace(Reduction, "sleep_set_after", lambda *arguments: arguments[-1])


@MUTANTS.add("what others claim does not forbid a persistent set", "explorer.reduction")
def _ignores_claims() -> None:
    def around(futures: Callable[..., list[LocalFuture]]) -> Callable[..., list[LocalFuture]]:
        def changed(reduction: Any, state: Any) -> list[LocalFuture]:
            found = futures(reduction, state)
            for future in found:
                future.claims = 0
            return found

        return changed

    wrap(Reduction, "_local_futures", around)


@MUTANTS.add("no node is known to send later", "explorer.reduction")
def _never_sends() -> None:
    def around(futures: Callable[..., list[LocalFuture]]) -> Callable[..., list[LocalFuture]]:
        def changed(reduction: Any, state: Any) -> list[LocalFuture]:
            found = futures(reduction, state)
            for future in found:
                future.sends = False
            return found

        return changed

    wrap(Reduction, "_local_futures", around)


@MUTANTS.add("what others lack at the end of a view is not compared", "explorer.view_promises")
def _ends_of_views() -> None:
    replace(ViewPromises, "_pair", lambda *_, **__: "")


@MUTANTS.add("a message may be delivered in two views", "explorer.view_promises")
def _in_two_views() -> None:
    replace(ViewPromises, "_in_one_view", lambda *_: "")


@MUTANTS.add("who joins may stay outside", "explorer.view_promises")
def _stays_outside() -> None:
    replace(ViewPromises, "_joining", lambda *_: "")


@MUTANTS.add("a group may wait though it has a quorum", "explorer.view_promises")
def _never_has_a_quorum() -> None:
    replace(ViewPromises, "has_no_quorum", lambda *_: True)


@MUTANTS.add("any view may follow", "explorer.promise_checker")
def _any_view_follows() -> None:
    replace(PromiseChecker, "_enters", lambda *_: None)
