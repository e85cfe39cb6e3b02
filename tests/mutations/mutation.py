"""A deliberate breakage: one change of text in one module.

What does not notice it does not test it. Nothing is written to the file: the changed text is what a module is imported
from, and every module that leads to it is imported anew, so that all of them see the breakage and nobody else does.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

ROOT = Path(__file__).parent.parent.parent
PLACES = {"ordercast": ROOT / "src", "tests": ROOT}


class Breakage(Protocol):
    """A change of one module."""

    @property
    def name(self) -> str:
        """The change in words."""
        ...

    @property
    def module(self) -> str:
        """Below `ordercast`, such as "protocols.spo"."""
        ...

    def text(self) -> str:
        """The whole module with the change."""
        ...


class Mutation(NamedTuple):
    """In which module which text, found once, becomes which other text."""

    name: str
    """The rule, and what it is broken into."""
    module: str
    old: str
    new: str
    in_runs: bool = False
    """Whole runs notice it too: it costs more than units and time."""

    def text(self) -> str:
        """The whole module with the change."""
        text = source_of(self.module)
        assert text.count(self.old) == 1, f"{self.name}: {self.old!r} is {text.count(self.old)} times in {self.module}"
        return text.replace(self.old, self.new)


def changes(module: str, *texts: tuple[str, str, str]) -> list[Mutation]:
    """Breakages of one module: name, text, other text."""
    return [Mutation(name, module, old, new) for name, old, new in texts]


def imported(module: str, change: Breakage) -> ModuleType:
    """A module as it is with a change; what was imported before is not touched."""
    with broken(change):
        return import_module(f"ordercast.{module}")


@contextmanager
def broken(change: Breakage) -> Iterator[None]:
    """Within, whatever is imported is imported with this change."""
    target = f"ordercast.{change.module}"
    finder = _Changed(target, change.text())
    touched = {name: module for name, module in sys.modules.items() if leads_to(name, target)}
    nested = [_parted(name) for name in touched if "." in name]
    parents = [(parent, child, getattr(sys.modules[parent], child, None)) for parent, child in nested]
    for name in touched:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if leads_to(name, target)]:
            del sys.modules[name]
        sys.modules.update(touched)
        for parent, child, module in parents:
            setattr(sys.modules[parent], child, module)


def _parted(name: str) -> tuple[str, str]:
    parent, _, child = name.rpartition(".")
    return parent, child


class _Changed(MetaPathFinder, Loader):
    """Imports one module from other text than that of its file."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Only of that module."""
        del path, target
        return spec_from_loader(name, self, origin=f"<{name}, changed>") if name == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        """Runs the changed text."""
        exec(compile(self._text, f"<{self._name}, changed>", "exec"), module.__dict__)  # noqa: S102


# --- which module leads to which ---


@cache
def path_of(module: str) -> Path | None:
    """The file of one of our modules; None if it is not ours."""
    top, *rest = module.split(".")
    if top not in PLACES:
        return None
    place = PLACES[top].joinpath(top, *rest)
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def source_of(module: str) -> str:
    """The text of a module, named as in a mutation."""
    path = path_of(f"ordercast.{module}")
    assert path is not None, f"there is no {module}"
    return path.read_text()


@cache
def leads_to(module: str, target: str) -> bool:
    """Whether importing a module imports the other, by whatever way. Our packages as a whole stay as they are."""
    return module not in PLACES and target in _reached(module)


@cache
def _reached(module: str) -> frozenset[str]:
    found, waiting = {module}, [module]
    while waiting:
        for name in _imports(waiting.pop()) - found:
            found.add(name)
            waiting.append(name)
    return frozenset(found)


@cache
def _imports(module: str) -> frozenset[str]:
    """Our modules that one of ours names in an import; the package that a module is in does not count."""
    path = path_of(module)
    if path is None:
        return frozenset()
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *[f"{node.module}.{alias.name}" for alias in node.names]}
    return frozenset(name for name in named if path_of(name) is not None)
