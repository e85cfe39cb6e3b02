"""What the variables of a machine mean: what stands beside their declarations, the one source of it."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from io import StringIO
from itertools import pairwise
from textwrap import dedent
from tokenize import COMMENT, generate_tokens

from ordercast.explorer.state_values import parts_of
from ordercast.model.declared_state import DeclaredState


def variable_notes(machine: DeclaredState) -> dict[str, str]:
    """By the names that `state_values` gives them; variables that say nothing are left out."""
    return {name: note for part, prefix in parts_of(machine) for name, note in _named(type(part), prefix)}


def _named(kind: type, prefix: str) -> Iterator[tuple[str, str]]:
    for name, note in notes_of_class(kind).items():
        yield f"{prefix}{name.lstrip('_')}", note


@cache
def notes_of_class(kind: type) -> dict[str, str]:
    """By variable; those of a class come before those of its bases."""
    found: dict[str, str] = {}
    declaring: list[type] = [
        base for base in kind.__mro__ if base is not DeclaredState and issubclass(base, DeclaredState)
    ]
    for base in reversed(declaring):
        found |= _of_class(base)
    return found


@cache
def _of_class(kind: type) -> dict[str, str]:
    try:
        source = dedent(inspect.getsource(kind))
    except OSError:  # installed without sources
        return {}
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in generate_tokens(StringIO(source).readline)
        if token.type == COMMENT
    }
    [declared] = ast.parse(source).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for statement, following in pairwise([*declared.body, ast.Pass()]):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        note = comments.get(statement.end_lineno or 0, "")
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            note = str(following.value.value)
        if note:
            found[statement.target.id] = _sentence(" ".join(note.split()))
    return found


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ")")) else ".")
