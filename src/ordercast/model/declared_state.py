"""State that is declared once: snapshot, restore, equality and hash follow from the annotations of a class.

A machine, or a part of one, lists its variables in the body of its class, each with its type, and gives them their
first values in `__init__`:

    class Receiver(DeclaredState):
        me: Final[int]                      # never changes: not part of the state; the type checker sees to it
        received_below: int                 # LastSeqReceived
        ahead: dict[int, Packet]            # came ahead of a gap
        is_sequencer: Derived[bool]         # follows from the rest: computed anew by `derive`
        by_priority: Unordered[list[Entry]] # a heap, say: its arrangement is no part of the state
        sent: SendingLog                    # a part with a state of its own

What is neither a container nor a part is taken for a value that is never changed in place: numbers, texts, enums,
tuples and frozen structs are; anything else does not belong into a state.
"""

import ast
import sys
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from ordercast.model.compiled import mypyc_attr

Snapshot = tuple[object, ...]
"""The whole state of a machine as nested tuples: hashable, comparable, never changed."""

T = TypeVar("T")
_DERIVED, _UNORDERED = "derived", "unordered"
Derived = Annotated[T, _DERIVED]
"""A variable that follows from the others; `derive` computes it after every `restore`."""
Unordered = Annotated[T, _UNORDERED]
"""A list whose arrangement means nothing; its snapshot is sorted."""


@mypyc_attr(allow_interpreted_subclasses=True)  # not every machine is compiled
class DeclaredState:
    """A class whose annotations declare its state."""

    def snapshot(self) -> Snapshot:
        """The whole state; equal states give equal snapshots."""
        kind: Any = type(self)  # as a key, a class is hashed as a class and not as its instances are
        return _compiled(kind).snapshot(self)

    def restore(self, snapshot: Snapshot) -> None:
        """Makes the state what it was when the snapshot was taken."""
        kind: Any = type(self)
        _compiled(kind).restore(self, snapshot)

    def derive(self) -> None:
        """Computes what is `Derived` from the rest."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.snapshot() == other.snapshot()

    def __hash__(self) -> int:
        return hash(self.snapshot())


def declared_names(kind: type[DeclaredState]) -> frozenset[str]:
    """All variables that a class declares, those that never change among them."""
    return frozenset(name for name, hint in hints_of(kind) if get_origin(hint) is not ClassVar and hint is not ClassVar)


# --- what a class declares, compiled: searches take and restore millions of snapshots ---


class _Compiled(NamedTuple):
    snapshot: Callable[[Any], Snapshot]
    restore: Callable[[Any, Snapshot], None]


class _Form(NamedTuple):
    """How a variable that can be changed in place is packed and unpacked: expressions, of "{0}"."""

    pack: str
    unpack: str
    """Empty for a part, which takes its state back in place."""


_PART = _Form("{0}.snapshot()", "")


@cache
def _compiled(kind: Any) -> _Compiled:
    """The two functions of a class, as hand-written code would have them."""
    packed, targets, lines = [], [], []
    for name, hint in hints_of(kind):
        if get_origin(hint) in {Final, ClassVar} or _has(hint, _DERIVED):
            continue
        form, variable = _form(hint, f"{kind.__name__}.{name}"), f"self.{name}"
        packed.append(form.pack.format(variable) if form else variable)
        targets.append(f"v_{name}" if form else variable)
        if form is _PART:
            lines.append(f"{variable}.restore(v_{name})")
        elif form and form.unpack:
            lines.append(f"{variable} = {form.unpack.format(f'v_{name}')}")
        elif form:  # several parts
            lines.append(f"for part, state in zip({variable}, v_{name}, strict=True): part.restore(state)")
    if targets:
        lines.insert(0, f"{', '.join(targets)}, = snapshot")
    lines.append("self.derive()")
    text = (
        f"def snapshot(self):\n    return ({''.join(f'{each}, ' for each in packed)})\n"
        "def restore(self, snapshot):\n" + "".join(f"    {line}\n" for line in lines)
    )
    made: dict[str, Any] = {"deque": deque}
    exec(compile(text, f"<state of {kind.__qualname__}>", "exec"), made)  # noqa: S102 - of names that classes declare
    return _Compiled(made["snapshot"], made["restore"])


def hints_of(kind: type[DeclaredState]) -> Iterable[tuple[str, Any]]:
    """The names that a class and its bases declare, each with what it declares of it."""
    if "__mypyc_attrs__" not in vars(kind):
        return get_type_hints(kind, include_extras=True).items()
    hints: dict[str, Any] = {}
    for base in kind.__mro__[-2::-1]:  # all bases but `object` are compiled, too
        hints |= get_type_hints(_as_in_source(base), include_extras=True)
    return hints.items()


def _as_in_source(kind: type) -> type:
    """A class with the annotations of a compiled one, which has none at run time: they are in the file beside it."""
    library = Path(str(sys.modules[kind.__module__].__file__))
    source = library.with_name(f"{kind.__module__.rpartition('.')[2]}.py")
    for node in ast.parse(source.read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            lines = [(line.target, line.annotation) for line in node.body if isinstance(line, ast.AnnAssign)]
            texts = {name.id: ast.unparse(hint) for name, hint in lines if isinstance(name, ast.Name)}
            return type(kind.__name__, (), {"__annotations__": texts, "__module__": kind.__module__})
    raise TypeError(f"{source} has no class {kind.__name__}, but {library} has: build it again")


def _has(hint: Any, mark: str) -> bool:
    return mark in getattr(hint, "__metadata__", ())


def _form(hint: Any, where: str, depth: int = 0) -> _Form | None:
    """How a variable that can be changed in place is packed and unpacked; None: its value never changes."""
    unordered = _has(hint, _UNORDERED)
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in {Union, UnionType}:
        if any(_form(each, where) for each in inner):
            raise TypeError(f"{where}: a container that may be absent cannot be declared; let it be empty instead")
        return None
    if kind is dict:
        return _dictionary(_form(inner[1], where, depth + 1), f"key_{depth}", f"item_{depth}")
    if kind is set:
        return _Form("tuple(sorted({0}))", "set({0})")
    if kind is list or kind is deque:
        if unordered:
            return _Form("tuple(sorted({0}))", f"{kind.__name__}({{0}})")
        return _sequence(kind.__name__, _form(inner[0], where, depth + 1), f"item_{depth}")
    return _PART if isinstance(kind, type) and issubclass(kind, DeclaredState) else None


def _sequence(kind: str, each: _Form | None, item: str) -> _Form:
    if each is None:
        return _Form("tuple({0})", f"{kind}({{0}})")
    pack = f"tuple([{each.pack.format(item)} for {item} in {{0}}])"
    return _Form(pack, f"{kind}([{each.unpack.format(item)} for {item} in {{0}}])" if each.unpack else "")


def _dictionary(each: _Form | None, key: str, item: str) -> _Form:
    if each is None:
        return _Form("tuple(sorted({0}.items()))", "dict({0})")
    return _Form(
        f"tuple([({key}, {each.pack.format(item)}) for {key}, {item} in sorted({{0}}.items())])",
        f"dict([({key}, {each.unpack.format(item)}) for {key}, {item} in {{0}}])",
    )
