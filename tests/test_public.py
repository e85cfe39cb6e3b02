"""The public names: all there, documented, typed, and nothing that they hand out is private."""

import enum
import inspect
import types
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mypy import api

import ordercast
import ordercast.gateway
import ordercast.log
import ordercast.pipeline
import ordercast.replicated
import ordercast.simulation

MODULES: list[ModuleType] = [
    ordercast,
    ordercast.simulation,
    ordercast.log,
    ordercast.replicated,
    ordercast.gateway,
    ordercast.pipeline,
]
NAMES = [(module, name) for module in MODULES for name in module.__all__ if name != "__version__"]
CLASSES = [(module, name) for module, name in NAMES if inspect.isclass(getattr(module, name))]
OPAQUE = {"Scenario"}
"""Made by a function, and only passed on: what it has is not public."""
PUBLIC = {getattr(module, name) for module, name in NAMES if inspect.isclass(getattr(module, name))}


def shown(value: object) -> str:
    return value.__name__.removeprefix("ordercast.") if isinstance(value, ModuleType) else str(value)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=shown)
def test_a_public_name_is_there_and_documented(module: ModuleType, name: str) -> None:
    found = getattr(module, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__doc__
        assert not found.__doc__.startswith(f"{found.__name__}("), "a dataclass without a docstring has its signature"


@pytest.mark.parametrize("module", MODULES, ids=shown)
def test_the_list_is_sorted_and_names_nothing_twice(module: ModuleType) -> None:
    assert list(module.__all__) == sorted(set(module.__all__))


def test_names_that_are_not_there_are_told() -> None:
    for module in MODULES:
        with pytest.raises(AttributeError, match="jion"):
            module.jion  # noqa: B018
    listed = [name for name in ordercast.__all__ if not name.startswith("_")]
    assert [name for name in dir(ordercast) if not name.startswith("_")] == listed


@pytest.mark.parametrize(("module", "name"), CLASSES, ids=shown)
def test_public_methods_and_properties_are_documented(module: ModuleType, name: str) -> None:
    found = getattr(module, name)
    for each, member in vars(found).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not each.startswith("_") and inspect.isfunction(function) and module is ordercast:
            assert inspect.getdoc(function), f"{name}.{each}"


def made() -> dict[str, object]:
    """One of each class that people look at, as it is when they do."""
    batch = types.SimpleNamespace(level=2)
    return {
        "Settings": ordercast.Settings(),
        "Message": ordercast.Message("A", b"x"),
        "View": ordercast.View(number=1, position=2, members=("A",)),
        "Receipt": ordercast.Receipt(typing.cast("Any", batch)),
        "GroupKeys": ordercast.GroupKeys({7: b"0123456789abcdef" * 2}),
        "Joining": ordercast.join("g", members=["A", "B"]),
        "GroupAborted": ordercast.GroupAborted("A failed", {"A": 1}, 2),
    }


def test_what_people_look_at_shows_what_it_is() -> None:
    for name, value in made().items():
        assert name in repr(value)
        assert " object at 0x" not in repr(value)
    assert "0123456789abcdef" not in repr(made()["GroupKeys"])
    for _, name in CLASSES:
        found = getattr(ordercast, name, None)
        protocol = getattr(found, "_is_protocol", False)  # which applications implement
        if found is not None and not protocol and not issubclass(found, Exception | enum.Enum):
            assert found.__repr__ is not object.__repr__, name


def handed_out(found: type) -> set[Any]:
    """The classes that a public class hands out: in its fields, its properties and what its methods return."""
    kinds: list[Any] = []
    for base in inspect.getmro(found):
        if not base.__module__.startswith("ordercast"):
            continue
        fields = hints(base)
        kinds += [kind for name, kind in fields.items() if not name.startswith("_")]
        for name, member in vars(base).items():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function) and (not name.startswith("_") or name in {"__aenter__", "__await__"}):
                kinds.append(hints(function).get("return"))
    return set().union(*map(parts, kinds))


def hints(found: Any) -> dict[str, Any]:
    """Annotations; of names that are imported for type checkers only, ours are looked up, and others are anything."""
    names: dict[str, Any] = {name: getattr(ordercast, name) for name in ordercast.__all__}
    while True:
        try:
            return typing.get_type_hints(found, localns=names)
        except NameError as error:
            if error.name is None or error.name in names:
                raise
            names[error.name] = Any


def parts(kind: Any) -> set[Any]:
    arguments = typing.get_args(kind)
    if arguments:
        return set().union(*map(parts, arguments))
    return {kind} if inspect.isclass(kind) else set()


@pytest.mark.parametrize(("module", "name"), [each for each in CLASSES if each[1] not in OPAQUE], ids=shown)
def test_what_a_public_class_hands_out_is_public(module: ModuleType, name: str) -> None:
    ours = {kind for kind in handed_out(getattr(module, name)) if kind.__module__.startswith("ordercast")}
    assert not {f"{kind.__module__}.{kind.__name__}" for kind in ours - PUBLIC}


MISTAKES = {
    "ordercast.jion('g', members=['A', 'B'])": 'Module has no attribute "jion"',
    "ordercast.join('g', members=['A', 'B'], window=3)": 'Argument "window" to "join" has incompatible type',
    "ordercast.Settings(windw=3)": 'Unexpected keyword argument "windw"',
    "ordercast.Settings.wan().window = 3": "read-only",
    "ordercast.Message('A', b'x').position = 3": "read-only",
    "x: int = ordercast.View(number=1, position=0, members=()).members": "Incompatible types in assignment",
}
CACHE = Path(__file__).parent.parent / ".mypy_cache" / "public"


def test_type_checkers_report_mistakes(tmp_path: Path) -> None:
    """All in one run: two at once would wait for the lock of one cache."""
    source = tmp_path / "mistakes.py"
    first_lines = ["import ordercast", "settings = ordercast.Settings(order='total')"]
    source.write_text("\n".join([*first_lines, *MISTAKES]) + "\n")
    told, _, status = api.run(["--strict", "--no-error-summary", f"--cache-dir={CACHE}", str(source)])
    assert status == 1, told
    errors = [each for each in told.splitlines() if ": error: " in each]
    assert len(errors) == len(MISTAKES), told
    for number, (error, problem) in enumerate(zip(errors, MISTAKES.values(), strict=True), 1 + len(first_lines)):
        assert f"mistakes.py:{number}: error: " in error
        assert problem in error
