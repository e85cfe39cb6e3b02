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

from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

Snapshot = tuple[object, ...]
"""The whole state of a machine as nested tuples: hashable, comparable, never changed."""

T = TypeVar("T")
_DERIVED, _UNORDERED = "derived", "unordered"
Derived = Annotated[T, _DERIVED]
"""A variable that follows from the others; `derive` computes it after every `restore`."""
Unordered = Annotated[T, _UNORDERED]
"""A list whose arrangement means nothing; its snapshot is sorted."""


class DeclaredState:
    """A class whose annotations declare its state."""

    def snapshot(self) -> Snapshot:
        """The whole state; equal states give equal snapshots."""
        plan = self._plan()
        return (plan.values(self), *[pack(getattr(self, name)) for name, pack, _ in plan.packed])

    def restore(self, snapshot: Snapshot) -> None:
        """Makes the state what it was when the snapshot was taken."""
        plan = self._plan()
        parts: Any = snapshot
        for name, value in zip(plan.names, parts[0], strict=True):
            setattr(self, name, value)
        for (name, _, unpack), part in zip(plan.packed, parts[1:], strict=True):
            setattr(self, name, unpack(part, getattr(self, name)))
        self.derive()

    def derive(self) -> None:
        """Computes what is `Derived` from the rest."""

    def _plan(self) -> "_Plan":
        kind: Any = type(self)  # as a key, a class is hashed as a class and not as its instances are
        return _plan_of(kind)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.snapshot() == other.snapshot()

    def __hash__(self) -> int:
        return hash(self.snapshot())


def declared_names(kind: type[DeclaredState]) -> frozenset[str]:
    """All variables that a class declares, those that never change among them."""
    return frozenset(name for name, hint in _hints(kind) if get_origin(hint) is not ClassVar and hint is not ClassVar)


_Pack = Callable[[Any], Any]
_Unpack = Callable[[Any, Any], Any]
"""What was packed, and what the variable holds now: a part takes its state back in place."""


class _Plan(NamedTuple):
    names: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    packed: tuple[tuple[str, _Pack, _Unpack], ...]


@cache
def _plan_of(kind: Any) -> _Plan:
    names: list[str] = []
    packed: list[tuple[str, _Pack, _Unpack]] = []
    for name, hint in _hints(kind):
        if get_origin(hint) in {Final, ClassVar} or _has(hint, _DERIVED):
            continue
        found = _container(hint, f"{kind.__name__}.{name}")
        if found is None:
            names.append(name)
        else:
            packed.append((name, *found))
    return _Plan(tuple(names), _getter(names), tuple(packed))


def _hints(kind: type[DeclaredState]) -> Iterable[tuple[str, Any]]:
    return get_type_hints(kind, include_extras=True).items()


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)  # gives a tuple of two or more only
    return lambda part: tuple([getattr(part, name) for name in names])


def _has(hint: Any, mark: str) -> bool:
    return mark in getattr(hint, "__metadata__", ())


def _container(hint: Any, where: str) -> tuple[_Pack, _Unpack] | None:
    """How a variable that can be changed in place is packed and unpacked; None: its value never changes."""
    unordered = _has(hint, _UNORDERED)
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in {Union, UnionType}:
        if any(_container(each, where) for each in inner):
            raise TypeError(f"{where}: a container that may be absent cannot be declared; let it be empty instead")
        return None
    if kind is dict:
        return _dictionary(_container(inner[1], where))
    if kind is set:
        return _sorted, lambda part, _: set(part)
    if kind is list or kind is deque:
        return _sequence(kind, _container(inner[0], where), unordered=unordered)
    return (_snapshot, _restored) if isinstance(kind, type) and issubclass(kind, DeclaredState) else None


def _sequence(kind: type[Any], each: tuple[_Pack, _Unpack] | None, *, unordered: bool) -> tuple[_Pack, _Unpack]:
    if each is None:
        return _sorted if unordered else tuple, lambda part, _: kind(part)
    pack, unpack = each
    if pack is _snapshot:  # parts stay, and take their states back

        def refilled(part: Any, now: Any) -> Any:
            for each_part, each_now in zip(part, now, strict=True):
                each_now.restore(each_part)
            return now

        return lambda value: tuple([item.snapshot() for item in value]), refilled
    return lambda value: tuple(map(pack, value)), lambda part, _: kind([unpack(item, None) for item in part])


def _dictionary(each: tuple[_Pack, _Unpack] | None) -> tuple[_Pack, _Unpack]:
    if each is None:
        return lambda value: tuple(sorted(value.items())), lambda part, _: dict(part)
    pack, unpack = each
    return (
        lambda value: tuple([(key, pack(value[key])) for key in sorted(value)]),
        lambda part, _: {key: unpack(item, None) for key, item in part},
    )


def _sorted(value: Any) -> Any:
    return tuple(sorted(value))


def _snapshot(value: Any) -> Any:
    return value.snapshot()


def _restored(part: Any, now: Any) -> Any:
    now.restore(part)
    return now
