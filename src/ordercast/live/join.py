"""Joining a group: arguments are checked at once; sockets, protocols and the other members follow when it is awaited.

Little is imported here: what a member runs with is loaded in a thread when the first group is awaited, so that a
running event loop is not held up.
"""

import asyncio
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never

from ordercast.live.events import View
from ordercast.live.host.parameters import parameters_for
from ordercast.live.join_options import MAX_TIMEOUT, MIN_TIMEOUT, JoinOptions
from ordercast.live.log_settings import LogSettings, log_settings, require_one_order
from ordercast.live.settings import RENAMED_SETTINGS, Settings, require_seconds, require_whole
from ordercast.live.state_transfer.application import State
from ordercast.live.transport.addresses import (
    LOOPBACK,
    Address,
    address_of,
    members_of,
    multicast_of,
    place_of,
    reachable,
    require_group_name,
    require_member_name,
    require_one_network,
)
from ordercast.live.user_key import is_shared, user_keys
from ordercast.model.errors import ConfigError, GroupError
from ordercast.wire.control import MAX_MEMBERS
from ordercast.wire.keys import GroupKeys, keys_from_environment, keys_from_file

if TYPE_CHECKING:
    from ordercast.live.group import Group
    from ordercast.live.sync_group import SyncGroup

_OPENS = "ordercast.live.open_group"
_RENAMED = {**RENAMED_SETTINGS, "recorded": "record_detail"}


class KeyRequiredError(ConfigError):
    """Members are on other machines, and there is no key."""

    def __init__(self, how: str) -> None:
        """`how`: to do without a key."""
        super().__init__(
            "members on other machines need a key: give all members the same key file (`ordercast key` makes one), "
            f"or {how} if nobody else can reach this network"
        )


class Joining:
    """A group that is being joined: await it, or enter it with `async with`.

    It joins once: awaited again, it gives the same group, or raises the same error. If it is cancelled while it joins,
    it has not joined, and may be awaited again. If the members of a running group were just asked to take it in, that
    takes up to a second: if they have done so, it leaves.
    """

    def __init__(self, options: JoinOptions) -> None:
        self._options = options
        self._lock = asyncio.Lock()
        self._group: Group | None = None
        self._error: GroupError | ConfigError | None = None

    def __repr__(self) -> str:
        state = "joined" if self._group is not None else "failed" if self._error is not None else "not joined yet"
        return f"<Joining {self._options.group!r}: {state}>"

    def __await__(self) -> Generator[Any, None, "Group"]:
        return self._joined().__await__()

    async def __aenter__(self) -> "Group":
        return await self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        await self._group.__aexit__(kind, error, trace)

    def sync(self) -> "SyncGroup":
        """Joins in an event loop of its own, in a thread, for a program that has none; returns when it has joined.

        Used with `with`, at the end of which the thread ends.
        """
        from ordercast.live.sync_group import LoopThread, SyncGroup, call_in  # noqa: PLC0415 (few need it)

        thread = LoopThread(f"ordercast {self._options.group}")
        try:
            group = call_in(thread.loop, lambda _: self._joined(), None)
        except BaseException:
            thread.stop()
            raise
        return SyncGroup(group, thread.loop, thread)

    async def _joined(self) -> "Group":
        async with self._lock:
            if self._error is not None:
                raise self._error.with_traceback(None)
            if self._group is None:
                try:
                    self._group = await _open(self._options)
                except (GroupError, ConfigError) as error:
                    self._error = error
                    raise
            return self._group


def join(  # noqa: PLR0913 (its options are its arguments)
    group: str,
    *,
    members: Mapping[str, str] | Iterable[str] | None = None,
    size: int | None = None,
    contacts: Iterable[str] | Literal["local"] | None = None,
    name: str | None = None,
    bind: str | None = None,
    advertise: str | None = None,
    settings: Settings | None = None,
    order: str | None = None,
    key: GroupKeys | Path | str | None = None,
    insecure: bool = False,
    timeout: float = 60.0,
    record: Path | str | None = None,
    record_detail: Literal["all", "deliveries"] = "all",
    busy_poll: bool = True,
    rejoin: bool = True,
    state: State | None = None,
    state_timeout: float = 600.0,
    log: LogSettings | Path | str | None = None,
    on_view: Callable[[View], None] | None = None,
    on_waiting: Callable[[str], None] | None = None,
    **unknown: Never,
) -> Joining:
    """Opens a group together with its other members, or joins one that is running.

        async with ordercast.join("orders", members=["A", "B", "C"], order="total") as group:
            await group.send(b"hello", to={"B", "C"})
            async for message in group:
                print(message.sender, message.payload)

    A group is opened by all of its first members, and is open when all of them are there. They give, all the same:

    - `group`: the name of the group.
    - `members`: names of members on this machine, or a mapping from names to addresses such as "10.0.0.1:7000" or
      "orders-0.orders:7000". Names of hosts are looked up when the group is awaited, and again until it is open.
    - `size`, instead of `members`: the number of members; they discover each other at `settings.multicast`.
    - `settings`: see `Settings`; `order` is short for `Settings(order=...)`. Default: the order "total".

    A running group is joined with `contacts`, instead of these:

    - `contacts`: addresses of some members, of which one must be there, or the group's multicast address; a name of a
      host may stand for several; or "local", for a group of this name on this machine. Order and settings are those of
      the group; if they are given, they must be equal. Who was one of the first members may also give `members` again:
      it joins the group if that is running.

    This member:

    - `name`: which of `members` this is. Default: the first whose address is free on this machine. With `size` or
      `contacts`, a name that no other member has.
    - `bind`: with `size` or `contacts`, our own address, such as "10.0.0.1:0"; port 0 is any free port. May be left out
      for a group on this machine. With `members`, where this one binds its socket if that is not the address at which
      the others reach it, such as "0.0.0.0:7000" in a container.
    - `advertise`: with `size` or `contacts`, the address at which the others reach this member, if that is not `bind`.
    - `key`: the group's keys, or the path of a file with them. Default: the variable ORDERCAST_KEY. Without a key only
      members on this machine are allowed, and those of this user: a key of the user's own is made and used.
      `insecure`: without a key anybody who can reach a member can take part.
    - `timeout`: seconds for all members to join, or for this one to be taken in; then `JoinError` is raised.
    - `record`: a folder for a trace of this member; `ordercast audit` checks those of all members together.
      `record_detail`: "all", or "deliveries", which takes less time and space.
    - `busy_poll`: poll the socket for up to 80 µs after a single message, where measurements show that it shortens
      the round trip; it keeps the event loop busy for that time.
    - `rejoin`: if the others continue without this member, because it was not heard for too long, it joins again by
      itself; else `GroupAborted` is raised. See `Excluded`.
    - `state`: an object that saves the application's state for members that join, and loads it in one that joins; see
      `State`. All members have one, or none has. A member that joins is in the group when it has loaded the state, and
      is then handed everything after it. Without it, a member that joins gets the messages after its first view.
      `state_timeout`: seconds for that; then `JoinError` is raised.
    - `log`: a folder of this member alone, or `LogSettings`: everything that is delivered is written there, in its
      order, and a process that is started again with the same arguments goes on where it was. All members have one, or
      none has. Messages go to all members then; the order "partial" has no log. See `Receipt.durable`.
    - `on_view`: called with each new `View` as soon as it is known, before the messages before it are read; see
      `Group.events` for views in their order. `on_waiting`: called with a sentence that names the missing members, if
      the group is not open after two seconds. An exception in either is logged and has no other effect.
    """
    if unknown:
        raise TypeError(_unknown_argument(next(iter(unknown))))
    require_group_name(group)
    require_whole(size=size)
    require_seconds(timeout=timeout, state_timeout=state_timeout)
    _require_state(state)
    kept = log_settings(log)
    given = None if contacts is not None and settings is None and order is None else _settings(settings, order)
    settings = given or Settings(order="total")
    if kept is not None:
        require_one_order(settings.order)
        if name is None:
            raise ConfigError("a log is that of one member: give its name")
        if size is not None:
            raise ConfigError("a log needs the members (members) or contacts: with size, no member has a fixed address")
    at = None if contacts is None else _contacts(contacts, members, size)
    given_bind = _bound(members, name, bind, advertise)
    shown = None if advertise is None else reachable(place_of(advertise, any_port=True))
    if at is None:
        own = _own_address(members, size, name, given_bind, settings.multicast)
    else:
        own = _joiner(at, name, given_bind)
    found = {} if members is None else members_of(group, members, shared=is_shared(key, insecure=insecure))
    if found and name is not None and name not in found:
        raise ConfigError(f"{name!r} is not a member; members are: {', '.join(found)}")
    if name is None and any(address.is_name for address in found.values()):
        raise ConfigError("members have names of hosts: give the name of this member (name)")
    addresses = [shown or own] if own is not None and not found else list(found.values())
    loopback = all(address.is_loopback() for address in addresses)
    relay = address_of(settings.relay) if settings.relay else None
    if relay is not None:
        others = found or {str(name): address for address in addresses}
        require_one_network({**others, "the relay": relay})
    _require_timeout(timeout, "timeout")
    _require_timeout(state_timeout, "state_timeout")
    if record_detail not in {"all", "deliveries"}:
        raise ConfigError(f"record_detail must be 'all' or 'deliveries', not {record_detail!r}")
    return Joining(
        JoinOptions(
            group=group,
            name=name,
            members=found,
            bind=own,
            advertise=shown,
            contacts=at,
            settings=given,
            parameters=parameters_for(
                *(settings, size or len(found) or MAX_MEMBERS),
                loopback=loopback,
                has_state=state is not None,
                has_log=kept is not None,
            ),
            multicast=multicast_of(settings.multicast, addresses[0]) if settings.multicast and addresses else None,
            relay=relay,
            one_clock=loopback,
            keys=keys_for(addresses, key, insecure=insecure),
            timeout=timeout,
            record=Path(record) if record is not None else None,
            deliveries_only=record_detail == "deliveries",
            busy_poll=busy_poll,
            rejoin=rejoin,
            state=state,
            state_timeout=state_timeout,
            log=kept,
            on_view=on_view,
            on_waiting=on_waiting,
        )
    )


def _require_timeout(timeout: object, name: str) -> None:
    if not isinstance(timeout, int | float) or not MIN_TIMEOUT <= timeout <= MAX_TIMEOUT:
        raise ConfigError(f"{name} must be {MIN_TIMEOUT:g} to {MAX_TIMEOUT:,.0f} seconds, not {timeout}")


def _require_state(state: object) -> None:
    for method in ("save", "load"):
        if state is not None and not callable(getattr(state, method, None)):
            raise ConfigError(
                f"state must be an object with the methods save and load (see ordercast.State); "
                f"{type(state).__name__} has no {method}"
            )


def keys_for(addresses: Iterable[Address], key: GroupKeys | Path | str | None, *, insecure: bool) -> GroupKeys | None:
    """The keys that are given, in a file or by the environment; on this machine those of the user."""
    if key is None:
        keys = keys_from_environment(os.environ)
    else:
        keys = key if isinstance(key, GroupKeys) else keys_from_file(Path(key))
    if keys is not None or insecure:
        return keys
    if not all(address.is_loopback() for address in addresses):
        raise KeyRequiredError("set insecure=True")
    return user_keys()


async def _open(options: JoinOptions) -> "Group":
    """Loads what a member needs, in a thread, and joins."""
    await asyncio.to_thread(lambda: import_module(_OPENS).load(options))
    group: Group = await import_module(_OPENS).open_group(options)
    return group


def _settings(settings: Settings | None, order: str | None) -> Settings:
    if settings is None:
        return Settings(order="total" if order is None else order)
    if not isinstance(settings, Settings):
        raise ConfigError(f"settings must be an ordercast.Settings, not {type(settings).__name__}")
    if order is not None and replace(settings, order=order) != settings:
        raise ConfigError(f"order is {order!r}, and settings.order is {settings.order!r}: give one of them")
    return settings


def _unknown_argument(name: str) -> str:
    settings = {field.name for field in fields(Settings)}
    new = _RENAMED.get(name, name)
    if new in settings:
        return f"join() has no argument {name!r}; it is a setting: join(..., settings=ordercast.Settings({new}=...))"
    if new != name:
        return f"join() has no argument {name!r}; it is called {new!r}"
    known = [each for each in signature(join).parameters if each != "unknown"]
    close = get_close_matches(name, [*known, *settings], 1)
    if close and close[0] in settings - set(known):
        hint = f"; did you mean settings=ordercast.Settings({close[0]}=...)?"
    elif close:
        hint = f"; did you mean {close[0]!r}?"
    else:
        hint = f"; it has: {', '.join(known)}"
    return f"join() has no argument {name!r}{hint}"


def _contacts(contacts: object, members: object, size: object) -> tuple[Address, ...]:
    """Where to ask; empty: at the members on this machine."""
    if members is not None or size is not None:
        raise ConfigError(
            "contacts are for a group that is running, members or size for one that is opened: give one of them"
        )
    if contacts == "local":
        return ()
    if isinstance(contacts, str) or not isinstance(contacts, Iterable):
        raise ConfigError(f"contacts must be addresses of members, or 'local', not {contacts!r}")
    found = tuple(reachable(place_of(text)) for text in contacts)
    if not found:
        raise ConfigError("contacts is empty: give the address of at least one member, or 'local'")
    if len({":" in address.host for address in found if not address.is_name}) > 1:
        raise ConfigError("contacts must be addresses of one kind: IPv4 for all, or IPv6 for all")
    return found


def _bound(members: object, name: str | None, bind: str | None, advertise: str | None) -> Address | None:
    """Where our socket is to be bound, if that is given."""
    if advertise is not None and (members is not None or bind is None):
        raise ConfigError(
            "advertise is the address at which others reach a member that is bound elsewhere: it goes with bind, and "
            "with size or contacts; members has the addresses of all members already"
        )
    if bind is None:
        return None
    own = address_of(bind, any_port=True)
    if members is not None and not own.port:
        raise ConfigError(f"the others send to a port that all members know, and {bind} would be any: give it a port")
    if members is not None and name is None:
        raise ConfigError("bind is where one of the members binds its socket: give the name of this member (name)")
    if members is None and advertise is None:
        return reachable(own)
    if advertise is not None:
        shown = place_of(advertise, any_port=True)
        if shown.port and not own.port:
            raise ConfigError(
                f"others send to {shown}, and {bind} would be bound at any port: give bind the port that arrives"
            )
        if not shown.is_name and (":" in own.host) != (":" in shown.host):
            raise ConfigError(f"{own} and {shown} are one member: use IPv4 for both, or IPv6 for both")
    return own


def _joiner(contacts: tuple[Address, ...], name: str | None, own: Address | None) -> Address | None:
    """Our own address, if a running group is joined; None: any on this machine."""
    if name is None:
        raise ConfigError("to join a running group (contacts), give a name that none of its members has")
    require_member_name(name)
    if own is not None:
        numbers = [contact for contact in contacts if not contact.is_name]
        if numbers and (":" in own.host) != (":" in numbers[0].host):
            raise ConfigError(f"{own} cannot send to {numbers[0]}: use IPv4 for both, or IPv6 for both")
        return own
    if not all(contact.is_loopback() for contact in contacts):
        raise ConfigError("the group may be on other machines: give our own address (bind), such as 10.0.0.4:7000")
    return Address("::1" if ":" in contacts[0].host else LOOPBACK, 0) if contacts else None


def _own_address(
    members: Mapping[str, str] | Iterable[str] | None,
    size: int | None,
    name: str | None,
    bind: Address | None,
    multicast: str | None,
) -> Address | None:
    """Our own address, if the members are discovered; if they are given, that of the socket, if it is another one."""
    if members is None and size is None:
        raise ConfigError(
            "the members are missing; give them (members), the number of members to discover (size), or addresses at "
            "which a running group can be joined (contacts)"
        )
    if members is not None and size is not None:
        raise ConfigError("members and size exclude each other; give the members, or the number of members to discover")
    if size is None:
        return bind
    if name is None or bind is None or multicast is None:
        raise ConfigError("to discover members (size), give a name, our own address (bind), and settings.multicast")
    if not 2 <= size <= MAX_MEMBERS:
        raise ConfigError(f"a group has 2 to {MAX_MEMBERS} members, not {size}")
    require_member_name(name)
    return bind
