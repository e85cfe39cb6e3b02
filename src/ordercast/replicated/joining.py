"""How objects come into a group."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ordercast.live.join import join as join_group
from ordercast.live.settings import Settings
from ordercast.model.errors import ConfigError
from ordercast.replicated.member import Member
from ordercast.replicated.object_host import ObjectHost
from ordercast.replicated.objects import Replicated

CHECK_INTERVAL = 30.0
"""Seconds between comparisons of the states of all members."""


@asynccontextmanager
async def join(
    group: str,
    objects: Replicated | Mapping[str, Replicated],
    *,
    on: Mapping[str, Collection[str]] | None = None,
    answer: Callable[[bytes, str], bytes | Awaitable[bytes]] | None = None,
    check_interval: float = CHECK_INTERVAL,
    **options: Any,
) -> AsyncIterator[Member]:
    """Makes objects live in a group, together with the same objects of its other members.

        store = Dict()
        async with ordercast.replicated.join("store", store, members=["A", "B", "C"]):
            await store.put("colour", "green")

    All members give the same group, objects of the same classes, and the same `on`. A member that joins a running group
    is given the state of the others before the block begins; if it was excluded, it is given it again when it returns.
    The block is left as that of `ordercast.join`.

    - `objects`: one object, or several by name.
    - `on`: the names of the members that hold an object (order "total"); all hold the others. Every member can send
      commands to every object; only those that hold it can read it.
    - `answer`: answers requests of `Member.call`: a function of the payload and the member that asks, or a coroutine
      function. It is called at the place of the request in the order.
    - `check_interval`: seconds between comparisons of the states of all members; 0: only by `Member.check`.
    - `options`: those of `ordercast.join`. Default of `settings`: the order "sequenced" with as much resilience as
      makes commands survive whatever the group survives (half of the members). With less, a command that was completed
      may be lost. The order "partial" is refused.
    """
    if "state" in options:
        raise ConfigError("the objects are the state: omit `state`")
    named = {"": objects} if isinstance(objects, Replicated) else dict(objects)
    for name, each in named.items():
        if not isinstance(each, Replicated):
            raise ConfigError(f"the object {name!r} is a {type(each).__name__}: derive it from Replicated")
    holders = {name: frozenset(names) for name, names in (on or {}).items()}
    for name, names in holders.items():
        if name not in named or not names:
            raise ConfigError(f"`on` has {name!r}: give the name of an object, and at least one member that holds it")
    has_log = options.get("log") is not None
    if holders and has_log:
        raise ConfigError("objects at some members only (`on`) have no log: omit `on`, or `log`")
    host = ObjectHost(named, holders, answer, check_interval, has_log=has_log)
    try:
        async with join_group(group, state=host, **_with_settings(options)) as joined:
            await host.begin(joined)
            yield Member(host)
    finally:
        await host.ended()
    host.raise_error()


def _with_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The same, with the order that suits replicated objects, unless another is given."""
    if options.get("settings") is not None or options.get("contacts") is not None:
        return options
    if options.get("order", "sequenced") != "sequenced":
        return options
    members, size = options.get("members"), options.get("size")
    count = size if size is not None else len(list(members or ()))
    rest = {name: value for name, value in options.items() if name != "order"}
    if members is not None:
        rest["members"] = members if isinstance(members, Mapping) else list(members)
    return {**rest, "settings": Settings(order="sequenced", resilience=count // 2)}
