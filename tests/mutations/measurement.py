"""How long each check takes, and which lines of our code it runs, on the code as it is.

A mutation is held against the checks that run its lines: what does not run them cannot notice it. Each check is
measured in processes of its own, forked for it, so that nothing which an earlier one left behind, such as a cached
result, shortens it or hides a line. What is measured can be kept in a file; it is measured anew when any of our code
changes, or a test, or what the test imports.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tests.mutations.battery import PATIENCE, Check, load_profile
from tests.mutations.mutation import PLACES, path_of, reached

Lines = Mapping[str, frozenset[int]]
"""By module, named as in a mutation."""
_FORK = get_context("fork")
TRACED_BELOW = 0.3
"""Seconds of processor time: which lines a longer check runs is not looked at, which would take several times as long;
it is held against every mutation that no quicker one notices."""
_IS_OF_A_FUNCTION = 1  # CO_OPTIMIZED, which code of modules and classes has not


class Measured(NamedTuple):
    """What is known of a check."""

    check: Check
    """With its limit."""
    seconds: float
    lines: Lines | None
    """Of functions; also those that run when its module is imported. None: it takes so long that nobody looked."""

    def runs(self, module: str, lines: Collection[int]) -> bool:
        """Whether it runs one of these lines, as far as is known."""
        return self.lines is None or not self.lines.get(module, frozenset()).isdisjoint(lines)


def measured(checks: Iterable[Check], code: Sequence[str], file: Path | None = None) -> list[Measured]:
    """All checks, the quickest first. A check that fails on the code as it is, is an error."""
    kept = _Kept(file)
    found: list[Measured] = []
    for module, group in groupby(checks, key=lambda check: check.module):
        here = list(group)
        if (known := kept.of(module, code, here)) is None:
            load_profile()
            at_import, needed = apart(lambda module=module: _lines_at_import(module, code))  # type: ignore[misc]
            known = [_measure(check, code, at_import, needed) for check in here]
            kept.add(module, code, known, needed)
        found += known
    return sorted(found, key=lambda it: it.seconds)


def _measure(check: Check, code: Sequence[str], at_import: Lines, needed: set[str]) -> Measured:
    try:
        seconds, on_processor, loaded = apart(lambda: _times(check))
    except RuntimeError:  # once may be the machine's fault: a run of hours is not to end for it
        seconds, on_processor, loaded = apart(lambda: _times(check))
    needed |= loaded
    limited = check._replace(limit=2 + PATIENCE * on_processor)
    if on_processor > TRACED_BELOW:
        return Measured(limited, seconds, None)
    try:
        lines, _ = apart(lambda: _lines(check.run, code))
    except RuntimeError:  # it depends on the time, which is another one when it is traced
        return Measured(limited, seconds, None)
    both = {module: lines.get(module, frozenset()) | at_import.get(module, frozenset()) for module in code}
    return Measured(limited, seconds, both)


def _times(check: Check) -> tuple[float, float, set[str]]:
    began, processor_began = time.perf_counter(), time.process_time()
    check.run()
    return time.perf_counter() - began, time.process_time() - processor_began, _loaded()


def _lines_at_import(module: str, code: Sequence[str]) -> tuple[Lines, set[str]]:
    """Lines of functions that run while a test module and all that it needs are imported."""
    for name in [name for name in sys.modules if _is_measured(name)]:
        del sys.modules[name]
    return _lines(lambda: import_module(module), code)


def _lines(work: Callable[[], object], code: Sequence[str]) -> tuple[Lines, set[str]]:
    """Also which of our modules were loaded then: what is measured holds until one of them changes."""
    tracer = _Tracer(code)
    threading.settrace(tracer)
    sys.settrace(tracer)
    try:
        work()
    finally:
        sys.settrace(None)
    lines = {module: frozenset(lines) for module, lines in tracer.found.items()}
    return lines, _loaded()


def _loaded() -> set[str]:
    return {name for name in sys.modules if _is_measured(name)}


def _is_measured(name: str) -> bool:
    return path_of(name) is not None and not name.startswith("tests.mutations")


class _Tracer:
    """Notes each line of some modules when it runs for the first time."""

    def __init__(self, code: Sequence[str]) -> None:
        self.found: dict[str, set[int]] = {module: set() for module in code}
        self._modules = {str(path_of(f"ordercast.{module}")): module for module in code}
        self._left: dict[int, tuple[CodeType, set[int]]] = {}  # by identity: to compare code compares its contents

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A function begins: is there anything in it that did not run yet?"""
        del event, argument
        code = frame.f_code
        known = self._left.get(id(code))
        if known is None:
            lines: set[int] = set()
            if code.co_filename in self._modules and code.co_flags & _IS_OF_A_FUNCTION:
                lines = {line for _, _, line in code.co_lines() if line is not None}
            known = self._left[id(code)] = code, lines
        return self._line if known[1] else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line":
            code = frame.f_code
            self._left[id(code)][1].discard(frame.f_lineno)
            self.found[self._modules[code.co_filename]].add(frame.f_lineno)
        return self._line


# --- in a process of its own ---


def apart(work: Callable[[], Any]) -> Any:
    """What this comes to, in a process forked for it; what it raises is raised here."""
    here, there = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_tell, args=(work, there))
    process.start()
    there.close()
    try:
        is_well, found = here.recv()
    finally:
        process.join()
        here.close()
    if not is_well:
        raise RuntimeError(f"a check does not pass on the code as it is: {found}")
    return found


def _tell(work: Callable[[], Any], pipe: Connection) -> None:
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    try:
        found = True, work()
    except BaseException as error:
        found = False, f"{type(error).__name__}: {error}"
    pipe.send(found)
    os._exit(0)


# --- kept in a file ---


class _Kept:
    """One line of JSON for each test module; a later one replaces an earlier one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[tuple[str, ...], dict[str, Any]] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                with suppress(ValueError):  # the run was ended while it wrote
                    row = json.loads(line)
                    self._known[row["module"], *row["code"]] = row

    def of(self, module: str, code: Sequence[str], checks: Sequence[Check]) -> list[Measured] | None:
        """Its checks, measured on the present code; None if they were not."""
        row = self._known.get((module, *code))
        if row is None or row["digest"] != _digest(row["needed"]):
            return None
        known = {
            (test, tuple(values)): (limit, seconds, lines) for test, values, limit, seconds, lines in row["checks"]
        }
        found = []
        for check in checks:
            if (check.test, check.values) not in known:
                return None
            limit, seconds, lines = known[check.test, check.values]
            by_module = {module: frozenset(numbers) for module, numbers in (lines or {}).items()}
            found.append(Measured(check._replace(limit=limit), seconds, None if lines is None else by_module))
        return found

    def add(self, module: str, code: Sequence[str], found: Iterable[Measured], needed: set[str]) -> None:
        """For the next run."""
        if self._file is not None:
            checks = [
                [
                    it.check.test,
                    it.check.values,
                    it.check.limit,
                    it.seconds,
                    None if it.lines is None else {name: sorted(lines) for name, lines in it.lines.items() if lines},
                ]
                for it in found
            ]
            names = sorted(needed)
            row = {"module": module, "code": list(code), "digest": _digest(names), "needed": names, "checks": checks}
            with self._file.open("a") as file:
                file.write(json.dumps(row) + "\n")


def _digest(modules: Iterable[str]) -> str:
    return sha256("\0".join(map(_text, modules)).encode()).hexdigest()


def digest_of_tests(module: str) -> str:
    """Of a test module, and of the tests that it imports."""
    texts = [_text(name) for name in sorted(reached(module)) if name.startswith("tests.")]
    return sha256("\0".join(texts).encode()).hexdigest()


@cache
def digest_of_code() -> str:
    """Of every file of our package."""
    files = sorted((PLACES["ordercast"] / "ordercast").rglob("*.py"))
    return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _text(module: str) -> str:
    path = path_of(module)
    return "" if path is None else path.read_text()
