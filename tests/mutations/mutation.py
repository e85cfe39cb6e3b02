"""A mutation: our own code with one thing wrong. Tests that do not notice it do not test it.

There are two kinds. A *semantic* mutant (`Mutant`) breaks one rule by replacing a method or a function of the loaded
code: it names what it breaks by the code's own names, so that it survives moves and rewrites, and the type checker
follows it. A *systematic* one (`tests.mutations.systematic.Spot`) changes the text of one expression or statement.

Nothing is written to a file. Every trial runs in a process of its own, forked for it, which ends afterwards.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

ROOT = Path(__file__).parent.parent.parent
PLACES = {"ordercast": ROOT / "src", "tests": ROOT}


class Mutation(Protocol):
    """Something that is wrong with one module."""

    @property
    def name(self) -> str:
        """The change in words."""
        ...

    @property
    def module(self) -> str:
        """Below `ordercast`, such as "protocols.spo.machine"."""
        ...

    def applied(self) -> AbstractContextManager[None]:
        """Within, our code is wrong in this way."""
        ...


class Mutant(NamedTuple):
    """A rule broken on purpose: `change` replaces methods or functions of the code that is loaded."""

    name: str
    """The rule, and what it is broken into."""
    module: str
    change: Callable[[], None]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Never undone: the process of a trial ends with it."""
        self.change()
        yield


class Mutants:
    """The semantic mutants of one part of the code, collected by a decorator."""

    def __init__(self, module: str) -> None:
        """`module`: the one that they break, unless one says otherwise."""
        self._module = module
        self.found: list[Mutant] = []

    def add(self, name: str, module: str | None = None) -> Callable[[Callable[[], None]], Callable[[], None]]:
        """Decorates a function that breaks something."""

        def added(change: Callable[[], None]) -> Callable[[], None]:
            self.found.append(Mutant(name, module or self._module, change))
            return change

        return added


def replace(owner: type | ModuleType, name: str, new: Callable[..., Any]) -> None:
    """Replaces a method of a class, or a function of a module and wherever it was imported from there."""
    old = getattr(owner, name)  # which must be there: a mutant of nothing would be noticed by nobody
    setattr(owner, name, new)
    if isinstance(owner, ModuleType):
        for module in list(sys.modules.values()):
            if module.__name__.startswith("ordercast.") and getattr(module, name, None) is old:
                setattr(module, name, new)


def wrap(owner: type | ModuleType, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """The same, by something that is handed what it replaces."""
    replace(owner, name, around(getattr(owner, name)))


@contextmanager
def imported_from(target: str, text: str) -> Iterator[None]:
    """Within, a module is imported from this text, and anew all that lead to it, so that they see the change."""
    target = f"ordercast.{target}"
    finder = _Changed(target, text)
    touched = {name: module for name, module in sys.modules.items() if leads_to(name, target)}
    nested = [_parted(name) for name in touched if "." in name]
    parents = [(parent, child, getattr(sys.modules[parent], child, None)) for parent, child in nested]
    for parent, child, module in parents:
        if isinstance(module, ModuleType):  # else `from package import module` would find the one without the change
            delattr(sys.modules[parent], child)
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
    return module not in PLACES and target in reached(module)


def read_imports() -> None:
    """Reads which of our loaded modules lead where. Done before a fork, this spares each trial a second of parsing."""
    for name in list(sys.modules):
        if path_of(name) is not None:
            reached(name)


@cache
def reached(module: str) -> frozenset[str]:
    """Our modules that importing one of ours imports, by whatever way; itself among them."""
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
