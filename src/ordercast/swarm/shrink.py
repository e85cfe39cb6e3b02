"""Shrinking: reduces a failing run to a minimal one that fails in the same way.

First the configuration is reduced while losses are still random, with several seeds for each attempt. Then all random
decisions are made explicit and removed piece by piece (Zeller's delta debugging), until the run no longer fails in that
way without any single fault, message or node.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from ordercast.model.errors import ConfigError
from ordercast.model.machine import Machine
from ordercast.model.runs import RunConfig, TraceDetail
from ordercast.swarm.reductions import (
    RunSize,
    explicit,
    simpler,
    size_of,
    smaller,
    with_faults,
    with_fewer_destinations,
    with_sends,
    without_nodes,
)
from ordercast.swarm.run_audit import Failure, attempt

replace = msgspec.structs.replace

ShrinkProgress = Callable[[str, RunSize, int], None]
"""Called with the kind of the last reduction, the size of the run, and the number of runs tried."""

_SEEDS = 6  # for each attempt, while losses are random
_EXPLICIT_SEEDS = 24  # tried until an explicit run fails as the random one did
_POLLS_TO_STALL = 96  # in a row without progress, after which a run counts as stalled while it is shrunk


@dataclass(frozen=True)
class Shrunk:
    """A failing run after shrinking."""

    config: RunConfig
    failure: Failure
    before: RunSize
    after: RunSize
    minimal: bool
    """True if no single fault, scripted send or node can be removed without losing the failure; False: out of time."""
    tried: int
    """Runs."""
    seconds: float


class OutOfBudgetError(Exception):
    """No more runs, or no more time."""


class DoesNotFailError(ConfigError):
    """The run does not fail, so that there is nothing to shrink."""


class FailsOtherwiseError(ConfigError):
    """The run fails, but not in the way that was asked for."""


def shrink(
    config: RunConfig,
    *,
    machine: type[Machine] | None = None,
    kind: str | None = None,
    seconds: float = 60.0,
    most_runs: int = 100_000,
    progress: ShrinkProgress | None = None,
) -> Shrunk:
    """Shrinks a failing run; `kind`: of the failure to be kept; default: the most severe.

    Raises `DoesNotFailError`, or `FailsOtherwiseError` if it has no failure of that kind. The same run gives the same
    result, unless the search runs out of time.
    """
    config = replace(config, record=TraceDetail.ALL)
    found = attempt(config, machine)
    if not found.failures:
        raise DoesNotFailError("this run does not fail: it completes, and keeps all that its service promises")
    chosen = [failure for failure in found.failures if kind in {None, failure.kind}]
    if not chosen:
        kinds = ", ".join(sorted({failure.kind for failure in found.failures}))
        raise FailsOtherwiseError(f"this run does not fail by {kind}; it fails by: {kinds}")
    started = time.monotonic()
    search = _Search(config, machine, chosen[0], started + seconds, most_runs, progress)
    with suppress(OutOfBudgetError):
        search.run()
    return Shrunk(
        config=search.best,
        failure=search.failure,
        before=size_of(config),
        after=size_of(search.best),
        minimal=search.minimal,
        tried=search.tried,
        seconds=round(time.monotonic() - started, 2),
    )


@dataclass
class _Search:
    best: RunConfig
    machine: type[Machine] | None
    failure: Failure
    until: float
    most_runs: int
    progress: ShrinkProgress | None
    tried: int = 0
    minimal: bool = False
    been: set[str] = field(default_factory=set)
    """Configurations that were the best once: returning to one would be a cycle."""
    known: dict[str, Failure | None] = field(default_factory=dict)
    """By configuration: its failure of this kind, if any."""

    def run(self) -> None:
        """Reduces with a shorter stall timeout first; if the failure depends on that, again with the original one."""
        before, failure, stall_timeout = self.best, self.failure, self.best.stall_timeout
        self.been.add(before.to_json())
        shorter = min(stall_timeout, _POLLS_TO_STALL * self.best.group.timing.poll)
        if self._take(replace(before, stall_timeout=shorter), "stall timeout"):
            try:
                self._reduce()
            finally:
                if not self._restore(stall_timeout):
                    self.best, self.failure, self.minimal = before, failure, False
            if self.minimal:
                return
        self._reduce()

    def _restore(self, stall_timeout: int) -> bool:
        restored = replace(self.best, stall_timeout=stall_timeout)
        failure = self._try(restored)
        if failure is not None:
            self.best, self.failure = restored, failure
        return failure is not None

    def _reduce(self) -> None:
        self._reduce_random()
        if self.best.workload.scripted_sends() is None and not self._make_explicit():
            return
        while self._faults() + self._sends() + self._nodes() + self._destinations() + self._plain("script"):
            pass
        self.minimal = True

    # --- random runs ---

    def _reduce_random(self) -> None:
        if self.best.workload.scripted_sends() is not None:
            return
        while self._any(smaller, _SEEDS, "configuration") or self._plain("configuration"):
            pass

    def _make_explicit(self) -> bool:
        """Replaces random decisions by explicit ones."""
        for seed in (self.best.seed, *range(_EXPLICIT_SEEDS)):
            candidate = replace(self.best, seed=seed)
            if self._outcome(candidate) is not None and self._take(explicit(candidate, self.machine), "script"):
                return True
        return False

    # --- explicit runs, piece by piece ---

    def _faults(self) -> int:
        base = self.best
        return self._fewest(len(base.faults), lambda kept: with_faults(base, kept), "faults")

    def _sends(self) -> int:
        base = self.best
        script = base.workload.scripted_sends() or ()
        return self._fewest(len(script), lambda kept: with_sends(base, kept), "messages")

    def _nodes(self) -> int:
        taken = 0
        for node in reversed(range(self.best.group.nodes)):
            if self.best.group.nodes > (1 if self.best.group.views else 2):
                with suppress(ConfigError):  # without this one the others make no sense
                    taken += self._take(without_nodes(self.best, {node}), "nodes")
        return taken

    def _destinations(self) -> int:
        return self._any(with_fewer_destinations, 1, "destinations")

    def _plain(self, what: str) -> int:
        """Tries each simplification once, on top of those before it."""
        taken, place = 0, 0
        while True:
            candidates = list(simpler(self.best))
            if place >= len(candidates):
                return taken
            taken += candidates[place] != self.best and self._take(candidates[place], what)
            place += 1

    def _fewest(self, count: int, of: Callable[[Sequence[int]], RunConfig], what: str) -> int:
        """Delta debugging: removes pieces until no single one can be removed; returns how many were."""
        kept, parts = list(range(count)), 2
        while kept:
            size = -(-len(kept) // parts)
            for start in range(0, len(kept), size):
                rest = kept[:start] + kept[start + size :]
                taken = False
                with suppress(ConfigError):  # without these the others make no sense
                    taken = self._take(of(rest), what)
                if taken:
                    kept, parts = rest, max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    break
                parts = min(len(kept), 2 * parts)
        return count - len(kept)

    # --- attempts ---

    def _any(self, candidates: Callable[[RunConfig], Iterable[RunConfig]], seeds: int, what: str) -> int:
        """Takes candidates as long as one of them fails."""
        taken = 0
        while any(self._take(candidate, what, seeds) for candidate in candidates(self.best)):
            taken += 1
        return taken

    def _take(self, candidate: RunConfig, what: str, seeds: int = 1) -> bool:
        """Continues with a candidate if it fails in the same way, with its own seed or one of some others."""
        for seed in (candidate.seed, *range(seeds - 1)):
            seeded = replace(candidate, seed=seed)
            key = seeded.to_json()
            outcome = None if key in self.been else self._outcome(seeded)
            if outcome is not None:
                self.been.add(key)
                self.best, self.failure = seeded, outcome
                if self.progress is not None:
                    self.progress(what, size_of(seeded), self.tried)
                return True
        return False

    def _outcome(self, config: RunConfig) -> Failure | None:
        key = config.to_json()
        if key not in self.known:
            if self.tried >= self.most_runs or time.monotonic() > self.until:
                raise OutOfBudgetError
            self.known[key] = self._try(config)
        return self.known[key]

    def _try(self, config: RunConfig) -> Failure | None:
        self.tried += 1
        try:
            found = attempt(config, self.machine)
        except ConfigError:
            return None
        return next((failure for failure in found.failures if failure.kind == self.failure.kind), None)
