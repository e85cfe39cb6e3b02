"""What is wrong with a class of objects, told when one joins and not by its first command; what must be alike."""

import re
from collections.abc import Iterable
from typing import Any, get_type_hints

import msgspec

from ordercast.model.errors import ConfigError
from ordercast.replicated.objects import CommandSpec, Replicated, commands_of, runs_when_called

_MODULE = re.compile(r"\b(?:[A-Za-z_]\w*\.)+")
_HOOKS = ("left", "tick", "deadline", "loaded")
_MUTABLE = (list, dict, set, bytearray)


def require_sound(kind: type[Replicated]) -> None:
    """Raises an error if objects of this class could not live in a group."""
    name = kind.__name__
    if kind.__struct_config__.frozen:
        raise ConfigError(f"the class {name} is frozen: commands could not change its fields")
    own = set(dir(Replicated))
    for each in [*kind.__struct_fields__, *commands_of(kind)]:
        if each in own:
            raise ConfigError(f"{name}.{each} has the name of something that Replicated has: give it another one")
    for each in _HOOKS:
        if not runs_when_called(getattr(kind, each)):
            raise ConfigError(f"{name}.{each} must be a plain method: it is called at one place of the order")
    for each, value in vars(kind).items():
        if isinstance(value, _MUTABLE) and not each.startswith("_"):
            raise ConfigError(
                f"{name}.{each} has no annotation, so it would not be a part of the state: write {each}: "
                f"{type(value).__name__}[...] = ..."
            )
    fields = [(f"the field {name}.{each.name}", each.type) for each in _fields(kind)]
    require_encodable(fields)


def hints_of(owner: str, spec: CommandSpec) -> dict[str, Any]:
    """The types of the parameters of a command, and of its result."""
    try:
        hints = get_type_hints(spec.method, include_extras=True)
    except NameError as error:
        raise ConfigError(f"the types of the command {owner}.{spec.name} are not known: {error}") from None
    for name in spec.names:
        if name not in hints:
            raise ConfigError(f"the parameter {name} of the command {owner}.{spec.name} has no type: annotate it")
    require_encodable([(f"the parameter {name} of {owner}.{spec.name}", hints[name]) for name in spec.names])
    require_encodable([(f"the result of {owner}.{spec.name}", hints.get("return", Any))])
    return hints


def require_encodable(named: Iterable[tuple[str, Any]]) -> None:
    """Raises an error if values of a type could not travel."""
    for what, kind in named:
        try:
            info = msgspec.inspect.type_info(kind)
        except TypeError as error:
            raise ConfigError(f"{what} has a type that cannot be encoded: {error}") from None
        found = _custom(info, set())
        if found is not None:
            raise ConfigError(
                f"{what} has the type {found.__name__}, which cannot be encoded: use built-in types, dataclasses or "
                "msgspec.Struct"
            )


def described(name: str, kind: type[Replicated], on: frozenset[str] | None) -> str:
    """What must be equal at all members, besides the commands: whichever module they have the class from."""
    fields = [(each.name, str(each.type)) for each in _fields(kind)]
    return without_modules(f"{name} {fields} {sorted(on) if on is not None else 'all'}")


def without_modules(text: str) -> str:
    """One member may have run the module that another one has imported."""
    return _MODULE.sub("", text)


def _fields(kind: type[Replicated]) -> tuple[msgspec.structs.FieldInfo, ...]:
    try:
        return msgspec.structs.fields(kind)
    except NameError as error:
        raise ConfigError(f"the types of the fields of {kind.__name__} are not known: {error}") from None


def _custom(info: Any, seen: set[int]) -> type | None:
    """A type within this one that the encoder does not know."""
    if isinstance(info, msgspec.inspect.CustomType):
        return info.cls
    if id(info) in seen:
        return None
    seen.add(id(info))
    parts: Iterable[Any] = ()
    if isinstance(info, msgspec.Struct):
        parts = (getattr(info, field) for field in info.__struct_fields__)
    elif isinstance(info, tuple | list):
        parts = info
    return next((found for each in parts if (found := _custom(each, seen)) is not None), None)
