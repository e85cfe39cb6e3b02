"""What is wrong with a class of objects, told when one joins and not by its first command; what must be alike."""

from collections.abc import Iterable
from typing import Any, get_type_hints

import msgspec

from ordercast.model.errors import ConfigError
from ordercast.replicated.objects import CommandSpec, Replicated, commands_of, runs_when_called

_HOOKS = ("left", "tick", "deadline", "loaded")
_MUTABLE = (list, dict, set, bytearray)
_NOT_SENT = {"default", "default_factory", "extra", "extra_json_schema"}
"""What a type has besides: each member may have its own."""


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


def types_of(owner: str, spec: CommandSpec) -> dict[str, Any]:
    """The types of the parameters of a command, in their order, and `return`: that of its result."""
    try:
        hints = get_type_hints(spec.method, include_extras=True)
    except NameError as error:
        raise ConfigError(f"the types of the command {owner}.{spec.name} are not known: {error}") from None
    for name in spec.names:
        if name not in hints:
            raise ConfigError(f"the parameter {name} of the command {owner}.{spec.name} has no type: annotate it")
    found = {name: hints[name] for name in spec.names}
    require_encodable([(f"the parameter {name} of {owner}.{spec.name}", kind) for name, kind in found.items()])
    found["return"] = hints.get("return", Any)
    require_encodable([(f"the result of {owner}.{spec.name}", found["return"])])
    return found


def require_encodable(named: Iterable[tuple[str, Any]]) -> None:
    """Raises an error if values of a type could not travel."""
    for what, kind in named:
        try:
            shape(kind)
        except TypeError as error:
            raise ConfigError(f"{what} has a type that cannot be encoded: {error}") from None


def state_shape(kind: type[Replicated]) -> Any:
    """Of the fields of a class."""
    return [(each.name, shape(each.type)) for each in _fields(kind)]


def shape(kind: Any) -> Any:
    """What must be equal at all members that send each other values of a type: not the modules of its classes.

    Raises a `TypeError` for a type whose values cannot be encoded.
    """
    return _shape(msgspec.inspect.type_info(kind), ())


def _shape(info: Any, within: tuple[type, ...]) -> Any:
    if isinstance(info, msgspec.inspect.CustomType):
        raise TypeError(f"{info.cls.__name__} is unknown to msgspec: use built-in types, dataclasses or msgspec.Struct")
    if isinstance(info, type):
        return info.__name__
    if isinstance(info, tuple):
        return [_shape(each, within) for each in info]
    if not isinstance(info, msgspec.Struct):
        return info if isinstance(info, str | int | float | bool) else str(info)
    cls = getattr(info, "cls", None)
    if cls is not None and cls in within:
        return cls.__name__  # values in values
    within = within if cls is None else (*within, cls)
    parts = {name: getattr(info, name) for name in info.__struct_fields__ if name not in _NOT_SENT}
    return [type(info).__name__, {name: _shape(part, within) for name, part in parts.items() if part is not None}]


def _fields(kind: type[Replicated]) -> tuple[msgspec.structs.FieldInfo, ...]:
    try:
        return msgspec.structs.fields(kind)
    except NameError as error:
        raise ConfigError(f"the types of the fields of {kind.__name__} are not known: {error}") from None
