"""Every type in the signature of a public name is public itself: users can import what functions take and return."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import ParamSpec, TypeVar

import pytest

from tests.test_public import OPAQUE

HANDED_OUT = {"Group", "Joining", "Member", "Receipt", "SyncGroup"}
"""Users do not make these: their constructors take what is not public."""
PUBLIC = ("ordercast", "ordercast.simulation", "ordercast.log", "ordercast.replicated", "ordercast.pipeline")


def our_names(module: ModuleType) -> set[str]:
    """The names of a module that are ours: defined in it, or imported from our modules."""
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "ordercast":
            found |= {alias.asname or alias.name for alias in node.names}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if not isinstance(getattr(module, name, None), TypeVar | ParamSpec)}


def annotations_of(definition: ast.AST) -> Iterator[ast.expr]:
    """The annotations of a function; of a class those of its constructor, and of its public fields and methods."""
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        given = definition.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        yield from [each.annotation for each in arguments if each is not None and each.annotation is not None]
        if definition.returns is not None:
            yield definition.returns
    if isinstance(definition, ast.ClassDef):
        for part in definition.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id[0] != "_":
                yield part.annotation
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and (
                part.name[0] != "_" or (part.name == "__init__" and definition.name not in HANDED_OUT)
            ):
                yield from annotations_of(part)


def names_in(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from names_in(ast.parse(node.value, mode="eval").body)


def public_names() -> set[str]:
    return {name for module in PUBLIC for name in importlib.import_module(module).__all__}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_types_of_public_names_are_public(module: str) -> None:
    public = public_names()
    leaks: set[str] = set()
    loaded = importlib.import_module(module)
    for name in set(loaded.__all__) - OPAQUE - {"__version__"}:
        value = getattr(loaded, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        home = inspect.getmodule(value)
        assert home is not None
        *_, definition = [  # the last of those of an overloaded function
            node
            for node in ast.parse(inspect.getsource(home)).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == value.__name__
        ]
        ours = our_names(home)
        for annotation in annotations_of(definition):
            leaks |= {f"{name}: {used}" for used in names_in(annotation) if used in ours - public}
    assert leaks == set()
