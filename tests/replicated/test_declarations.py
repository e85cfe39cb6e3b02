"""Classes that could not live in a group are refused when one joins, with what to do."""

import re
from typing import Annotated, Any

import msgspec
import pytest

from ordercast import ConfigError
from ordercast.replicated import Counter, Dict, Lock, Replicated, command
from ordercast.replicated.replica import Replica


class Odd:
    """A class that nobody knows how to encode."""


class Item(msgspec.Struct):
    """A value of a user, which may have values like itself."""

    name: str
    parts: "list[Item]" = []


class Sound(Replicated):
    """A class as it should be."""

    LIMIT = 10
    _cache = {}  # type: ignore[var-annotated]
    items: dict[str, Item] = {}

    @command
    def put(self, item: Item, count: Annotated[int, msgspec.Meta(ge=0)] = 1) -> Item | None:
        return self.items.get(item.name, item) if count else None


def replica(**objects: Replicated) -> Replica:
    return Replica(objects, {}, None)  # type: ignore[arg-type]


def test_sound_classes_are_accepted() -> None:
    assert set(replica(x=Sound()).hosted["x"].frames) == {"put"}


def frozen() -> Any:
    class Frozen(Replicated, frozen=True):  # type: ignore[misc]
        x: int = 0

    return Frozen()


def named_as_a_hook() -> Any:
    class Named(Replicated):
        @command
        def left(self, member: str) -> None: ...  # type: ignore[override]

    return Named()


def named_as_the_context() -> Any:
    class Named(Replicated):
        context: int = 5  # type: ignore[assignment]

    return Named()


def hook_that_waits() -> Any:
    class Waits(Replicated):
        async def tick(self) -> None: ...  # type: ignore[override]

    return Waits()


def command_that_waits() -> Any:
    class Waits(Replicated):
        @command
        async def put(self) -> None: ...

    return Waits()


def command_that_yields() -> Any:
    class Yields(Replicated):
        @command
        def put(self) -> Any:
            yield 5

    return Yields()


def no_annotation() -> Any:
    class Votes(Replicated):
        votes = {}  # type: ignore[var-annotated]

    return Votes()


def odd_field() -> Any:
    class Keeps(Replicated):
        odd: dict[str, list[Odd]] = {}

    return Keeps()


def odd_parameter() -> Any:
    class Takes(Replicated):
        @command
        def put(self, odd: Odd | None) -> None: ...

    return Takes()


def odd_result() -> Any:
    class Gives(Replicated):
        @command
        def put(self) -> Odd:
            return Odd()

    return Gives()


def two_lists() -> Any:
    class Two(Replicated):
        @command
        def put(self, values: list[int] | set[int]) -> None: ...

    return Two()


def unknown_field() -> Any:
    class Unknown(Replicated):
        x: "Missing" = 0  # type: ignore[name-defined] # noqa: F821

    return Unknown()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (frozen, "the class Frozen is frozen: commands could not change its fields"),
        (named_as_a_hook, "Named.left has the name of something that Replicated has: give it another one"),
        (named_as_the_context, "Named.context has the name of something that Replicated has"),
        (hook_that_waits, "Waits.tick must be a plain method: it is called at one place of the order"),
        (command_that_waits, "the command put must be a plain method: it is applied in one go"),
        (command_that_yields, "the command put must be a plain method"),
        (no_annotation, "Votes.votes has no annotation, so it would not be a part of the state: write votes: dict["),
        (odd_field, "the field Keeps.odd has a type that cannot be encoded: Odd is unknown to msgspec: use built-in"),
        (odd_parameter, "the parameter odd of x.put has a type that cannot be encoded: Odd is unknown"),
        (odd_result, "the result of x.put has a type that cannot be encoded: Odd is unknown"),
        (two_lists, "the parameter values of x.put has a type that cannot be encoded: Type unions may not contain"),
        (unknown_field, "the types of the fields of Unknown are not known: name 'Missing' is not defined"),
    ],
)
def test_what_could_not_live_in_a_group_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        replica(x=make())


def test_members_must_agree_on_fields_commands_and_holders_and_not_on_modules_or_defaults() -> None:
    def made(default: int) -> Any:
        class Point(msgspec.Struct):
            x: int
            y: int = default

        class Points(Replicated):
            points: dict[str, Point] = {}

            @command
            def put(
                self, point: Annotated[Point, msgspec.Meta(description=str(default))], count: int = default
            ) -> Point:
                return point if count else Point(count)

        return Points()

    assert type(made(1)) is not type(made(2))
    assert replica(x=made(1)).interface == replica(x=made(2)).interface

    class Longer(msgspec.Struct):
        name: str
        more: int = 0

    class Values(Replicated):
        items: dict[str, Longer] = {}

    class OtherValues(Replicated):
        items: dict[str, Item] = {}

    class Other(Replicated):
        number: float = 0.0
        add, set, compare_and_set = Counter.add, Counter.set, Counter.compare_and_set

    found = {
        replica(x=Values()).interface,
        replica(x=OtherValues()).interface,  # another field of a value
        replica(x=Counter()).interface,
        replica(x=Other()).interface,  # another type of the field
        replica(y=Counter()).interface,  # another name
        replica(x=Dict()).interface,
        replica(x=Lock(), y=Counter()).interface,
        Replica({"x": Counter()}, {"x": frozenset("AB")}, None).interface,  # type: ignore[arg-type]
        Replica({"x": Counter()}, {"x": frozenset("AC")}, None).interface,  # type: ignore[arg-type]
    }
    assert len(found) == 9
