"""The checks that a breakage is held against: the tests of some modules, one by one, the quickest first.

They are called as they are, without a test runner: a breakage is noticed in hundredths of a second, and there are
thousands. Parameters are filled in, and the two fixtures that tests here use; a test that asks for another is left out.
"""

import inspect
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutations.awake import TICK, Awake

settings.register_profile(
    "mutations",
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.target],  # that it fails is enough: nobody reads the example
    suppress_health_check=list(HealthCheck),
)


def load_profile() -> None:
    """Decides for hypothesis, which asks when a test is imported, too."""
    settings.load_profile("mutations")


PATIENCE = 8
"""How many times longer than it should a check, or a battery, may take until a mutation is known to have no end."""
WAITING = 10
"""Seconds that a check may wait of its own accord, beyond the limit of its processor time."""
_CASE: Any = type(pytest.param())  # a case with a name or marks of its own


class Check(NamedTuple):
    """A test with its parameters, by name: so it can be found again in modules that were imported anew."""

    module: str
    test: str
    values: tuple[int, ...]
    """By parametrization: which of its cases."""
    limit: float = 0
    """In seconds of processor time, which other processes do not slow down: longer is a failure. 0 is no limit."""

    def __str__(self) -> str:
        case = f"[{','.join(map(str, self.values))}]" if self.values else ""
        return f"{self.module.rpartition('.')[2]}::{self.test}{case}"

    def parameters(self) -> dict[str, Any]:
        """The values of its parameters, by name."""
        found: dict[str, Any] = {}
        for mark, value in zip(_parametrizations(self._function()), self.values, strict=True):
            names, cases = _names(mark), list(mark.args[1])
            case = cases[value]
            values = case.values if isinstance(case, _CASE) else case if len(names) > 1 else (case,)
            found |= dict(zip(names, values, strict=True))
        return found

    def _function(self) -> Any:
        return getattr(import_module(self.module), self.test)

    def run(self) -> None:
        """Calls it; raises whatever it raises."""
        test, arguments = self._function(), self.parameters()
        with ExitStack() as stack:
            for name in set(inspect.signature(test).parameters) & _FIXTURES.keys():
                arguments[name] = stack.enter_context(_FIXTURES[name]())
            test(**arguments)


class Failed(NamedTuple):
    """What noticed a breakage."""

    check: str
    why: str


def checks_of(modules: Iterable[str]) -> Iterator[Check]:
    """All tests of some modules with all their cases; some are left out by name."""
    load_profile()
    for module in modules:
        for name, test in vars(import_module(module)).items():
            if name.startswith("test_") and callable(test) and _can_be_called(test):
                lengths = [range(len(list(mark.args[1]))) for mark in _parametrizations(test)]
                yield from (Check(module, name, values) for values in product(*lengths))


def first_failure(checks: Iterable[Check]) -> Failed | None:
    """The first check that does not pass, or not within its limit."""
    load_profile()
    for check in checks:
        try:
            with _limited(check.limit):
                check.run()
        except _TooLong as late:
            return Failed(str(check), f"no end after {late}")
        except (Exception, SystemExit, pytest.fail.Exception) as error:  # whatever goes wrong is noticed
            return Failed(str(check), f"{type(error).__name__}: {error}".splitlines()[0][:100])
    return None


class _TooLong(BaseException):
    """Not an Exception: neither the code nor hypothesis is to take it for one of a test."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises in the midst of it after so much processor time, or if it waits for what never comes."""

    awake, most = Awake(), seconds + WAITING
    tick = min(TICK, most / 8) if seconds else 0  # all that a pause of the whole run counts for

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise _TooLong(f"{seconds:.1f} s of processor time")

    def look(number: int, frame: FrameType | None) -> None:
        del number, frame
        if awake.look(tick) >= most:
            raise _TooLong(f"{most:.1f} s of waiting")

    signal.signal(signal.SIGPROF, end)
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, tick, tick)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


class _TemporaryPath(TemporaryDirectory[str]):
    def __enter__(self) -> Any:
        return Path(super().__enter__())


_FIXTURES: dict[str, Callable[[], Any]] = {
    "tmp_path": _TemporaryPath,
    "monkeypatch": pytest.MonkeyPatch.context,
}


def _parametrizations(test: Any) -> list[pytest.Mark]:
    return [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]


def _names(mark: pytest.Mark) -> list[str]:
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _can_be_called(test: Any) -> bool:
    marks = {mark.name for mark in getattr(test, "pytestmark", ())}
    given = {name for mark in _parametrizations(test) for name in _names(mark)}
    asked = set() if hasattr(test, "hypothesis") else set(inspect.signature(test).parameters)
    return not marks & {"soak", "cluster", "skip"} and asked <= given | _FIXTURES.keys()
