"""Trials of mutations, each in a process of its own, as many at once as there are cores."""

import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from tests.mutations.awake import TICK, Awake
from tests.mutations.battery import Check, Failed, first_failure
from tests.mutations.mutation import Mutation
from tests.mutations.systematic import Spot

_MEMORY = 6 << 30  # of addresses: who asks for more has lost its bounds
_FORK = get_context("fork")


class Trial(NamedTuple):
    """A mutation, and the checks that it is held against."""

    suite: str
    mutation: Mutation
    checks: Sequence[Check]
    seconds: float
    """How long they may take."""


class Outcome(NamedTuple):
    """What came of it."""

    trial: Trial
    noticed: Failed | None
    seconds: float


def outcomes(trials: Iterable[Trial], at_once: int = 0) -> Iterator[Outcome]:
    """Each trial's outcome, as they come; what is not asked for any more is not begun."""
    at_once = at_once or os.cpu_count() or 1
    running: dict[Connection, _Running] = {}
    waiting = iter(trials)
    try:
        while True:
            while len(running) < at_once and (trial := next(waiting, None)) is not None:
                here, there = _FORK.Pipe(duplex=False)
                process = _FORK.Process(target=_try, args=(trial, there))
                process.start()
                there.close()
                running[here] = _Running(trial, process, time.monotonic(), Awake(process.pid or "self"))
            if not running:
                return
            spoken = wait(list(running), timeout=TICK)
            late = [pipe for pipe, it in running.items() if it.is_late()]
            for pipe in [pipe for pipe in running if pipe in spoken or pipe in late]:
                yield running.pop(pipe).ended(pipe)
    finally:
        for it in running.values():
            it.process.kill()


class Controls:
    """What noticed a change passes when the same module is loaded in the same way without the change.

    Each check is tried so once for each module. One that fails says nothing of any change to it.
    """

    def __init__(self) -> None:
        self._passed: set[tuple[str, str]] = set()
        self.failed: dict[tuple[str, str], str] = {}
        """By module and check: how it fails without a change."""

    def believed(self, outcome: Outcome) -> Outcome:
        """The outcome, without what is noticed by checks that fail in any case."""
        while (noticed := outcome.noticed) is not None and not self._is_true(outcome):
            trial = outcome.trial
            left = [check for check in trial.checks if str(check) != noticed.check]
            [outcome] = outcomes([trial._replace(checks=left)])
        return outcome

    def _is_true(self, outcome: Outcome) -> bool:
        mutation, noticed = outcome.trial.mutation, outcome.noticed
        if not isinstance(mutation, Spot) or noticed is None:
            return True
        known = mutation.module, noticed.check
        if known not in self._passed and known not in self.failed:
            checks = [check for check in outcome.trial.checks if str(check) == noticed.check]
            [control] = outcomes([outcome.trial._replace(mutation=mutation.unchanged(), checks=checks)])
            if control.noticed is None:
                self._passed.add(known)
            else:
                self.failed[known] = control.noticed.why
        return known in self._passed


class _Running(NamedTuple):
    trial: Trial
    process: BaseProcess
    began: float
    awake: Awake

    def is_late(self) -> bool:
        return self.awake.look() > self.trial.seconds

    def ended(self, pipe: Connection) -> Outcome:
        """Its last word; a process that has none came to no end, or broke."""
        if pipe.poll():
            try:
                noticed = pipe.recv()
            except EOFError:
                noticed = Failed("the process", "it broke")
            if isinstance(noticed, Exception):
                raise RuntimeError(f"{self.trial.mutation.name} could not be tried") from noticed
        else:
            noticed = Failed("the clock", f"no end after {self.trial.seconds:.0f} s")
        self.process.kill()
        self.process.join()
        pipe.close()
        return Outcome(self.trial, noticed, time.monotonic() - self.began)


def _try(trial: Trial, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    for name in [name for name in sys.modules if name.startswith("tests.") and not name.startswith("tests.mutations")]:
        del sys.modules[name]  # hypothesis decides when a test is imported how long it may take: not by our clock
    try:
        with trial.mutation.applied():
            pipe.send(first_failure(trial.checks))
    except Exception as error:  # ours: what a mutation raises is a failure of a check
        pipe.send(error)
    os._exit(0)
