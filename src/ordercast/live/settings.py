"""The settings of a group: one value that all its members share.

Members compare their settings when they join; a member with other settings is rejected, with the names of the fields
that differ. What differs between members (name, address, recording), or is secret (the key), is an argument of
`ordercast.join`.
"""

import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from enum import StrEnum
from functools import wraps
from json import dumps
from math import isfinite
from pathlib import Path
from typing import Any, Self, TypeVar

from ordercast.live.transport.addresses import address_of, multicast_of
from ordercast.model.errors import ConfigError
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

MIN_FAILURE_TIMEOUT, MAX_FAILURE_TIMEOUT = 0.5, 600.0
MIN_SLOW_READER_TIMEOUT, MAX_SLOW_READER_TIMEOUT = 2.0, 86_400.0
MAX_ROUND_TRIP = 10.0
MIN_MTU = 512
MIN_DATAGRAM_SIZE = 512
MAX_MESSAGE_SIZE = 1 << 30
NETWORK_MTU = 1_352
"""Payload of an IP packet of 1400 bytes after the headers of IPv6 and UDP: fits through most tunnels and clouds."""
INTERNET_MTU = 1_232
"""The same for 1280 bytes, the smallest MTU that IPv6 allows."""
ROUND_TRIPS_PER_FAILURE_TIMEOUT = 4

RENAMED_SETTINGS = {"channel": "relay", "datagram": "max_datagram_size", "silence": "failure_timeout"}
"""Old names of settings, and the new ones."""

_T = TypeVar("_T")


class Order(StrEnum):
    """The order in which a group delivers messages."""

    PARTIAL = "partial"
    """Each sender's messages in the order sent (FIFO), to any subset of the group."""
    TOTAL = "total"
    """The same order at all members, to any subset of the group."""
    PRIORITY = "priority"
    """The same order at all members, urgent messages first; every message goes to all members."""
    SEQUENCED = "sequenced"
    """The same order at all members, assigned by one member, the sequencer; every message goes to all members.

    The fastest, and the only one in which the group continues when a member fails.
    """


QUORUMS = ("last_view", "static")
"""Who may agree on the next view: a majority of the current one; or that, and never fewer than one of the founders."""

RECOVERIES = ("agree", "place")
"""How the order "total" repairs losses."""
DELIVERIES = ("known_stable", "stable")
"""What a message must be when it is delivered."""

PROTOCOLS = {Order.PARTIAL: "spo", Order.TOTAL: "st", Order.PRIORITY: "prito", Order.SEQUENCED: "sequencer"}
"""The protocol that implements each order."""
OTHER_PROTOCOLS = frozenset({"po", "to", "prio"})
"""The papers' baselines: they can be chosen as an order by their own names."""
RELAYED_PROTOCOLS = frozenset({"st", "to", "prito", "prio"})
"""The protocols that need a relay: all members must receive all datagrams in the same order."""


def _refusing_unknown_names(kind: type[_T]) -> type[_T]:
    """Makes the class raise a `TypeError` that suggests a name, where Python's own has none."""
    init: Callable[..., None] = kind.__init__

    @wraps(init)
    def checked(self: _T, *values: object, **named: object) -> None:
        known = kind.__dataclass_fields__  # type: ignore[attr-defined]
        for name in named.keys() - known.keys():
            raise TypeError(_unknown_setting(name, list(known)))
        init(self, *values, **named)

    kind.__init__ = checked  # type: ignore[assignment, method-assign]
    return kind


@_refusing_unknown_names
@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of a group, equal at all its members. None: chosen automatically, for one machine or a network."""

    order: str = "total"
    """The order of deliveries: "partial", "total", "priority" or "sequenced"; see `Order`.

    The name of a protocol is accepted too: "po", "to" and "prio" are the papers' baselines.
    """
    window: int | None = None
    """Packets that a member may have in flight, at least 1. Default: as many as fill 1 MiB, 16 to 128."""
    resilience: int = 0
    """Members besides the sequencer that must hold a message before it is delivered anywhere (order "sequenced" only).

    A message survives the failure of so many members at once, the sequencer among them. The group goes on with a
    majority, and with all members but so many if these are more: with half of the members it is the majority.
    """
    delivery: str = "known_stable"
    """What a message must be when it is delivered (orders "partial" and "total"): "known_stable" or "stable".

    "known_stable": all destinations know that all have it, the papers' acknowledged. "stable": all have it. That is a
    third faster, needs three datagrams for each other member instead of five, and promises the same: what any member
    delivered, all that go on deliver, in that order. In "partial" it holds for messages to all members; others need
    what "known_stable" promises. Receipts reach `KNOWN_STABLE` later then.
    """
    recovery: str = "agree"
    """How lost messages are repaired (order "total" only): "agree" or "place".

    "agree": all members stop, and agree on the order of what they have. "place": nobody stops; a copy is put at its
    place, or its sender sends it again. That needs fewer datagrams where many members send and little is lost.
    """
    quorum: str = "last_view"
    """Who may continue without the others: "last_view", a majority of the current view, or "static".

    With "static" there must be a majority of the number of founders, too: else the group blocks. A group of five then
    never has fewer than three members; with "last_view" it may shrink step by step, down to one.
    """
    failure_timeout: float | None = None
    """Seconds without traffic from a member, 0.5 to 600, after which it counts as failed. Default: 3.

    At least four round trips.
    """
    pause_timeout: float | None = None
    """Seconds, up to 600, for which a member's event loop may be blocked before it counts as failed. Default: 10.

    Or the failure timeout, if that is longer. Meanwhile a thread says that it is alive. 0: it counts as failed as if
    its process had ended.
    """
    slow_reader_timeout: float | None = None
    """Seconds, 2 to 86,400, for which the others wait for a member whose application does not read. Default: for ever.

    Then that member leaves, and the others go on; it returns by itself when its application has read what it was
    delivered. A member is asked to leave by one that reads, so that never all of them leave; with a static quorum one
    stays, and is waited for, without which too few would be left.
    """
    round_trip: float | None = None
    """Seconds of a round trip to another member, up to 10: timers are derived from it. Default: measured at joining."""
    mtu: int | None = None
    """Bytes of UDP payload that fit into one IP packet, at least 512: longer datagrams are sent as fragments.

    0: no fragmentation by ordercast. Default: 0 on one machine, else 1352.
    """
    max_datagram_size: int | None = None
    """Bytes of a datagram before fragmentation, 512 to 65507. Default: 60000."""
    max_message_size: int = 64 << 20
    """Bytes of a message, up to 1 GiB. Messages larger than a datagram are sent in pieces."""
    multicast: str | None = None
    """A multicast address such as "239.7.7.7:7000", to send to all members at once. Default: unicast to each member."""
    relay: str | None = None
    """The address of an `ordercast relay` (orders "total" and "priority" only). Default: the first member relays."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", _order(self.order))
        for name in ("window", "resilience", "mtu", "max_datagram_size", "max_message_size"):
            require_whole(**{name: getattr(self, name)})
        if self.quorum not in QUORUMS:
            raise ConfigError(f"quorum must be one of {', '.join(QUORUMS)}, not {self.quorum!r}")
        if self.delivery not in DELIVERIES:
            raise ConfigError(f"delivery must be one of {', '.join(DELIVERIES)}, not {self.delivery!r}")
        if self.recovery not in RECOVERIES:
            raise ConfigError(f"recovery must be one of {', '.join(RECOVERIES)}, not {self.recovery!r}")
        require_seconds(
            failure_timeout=self.failure_timeout,
            pause_timeout=self.pause_timeout,
            slow_reader_timeout=self.slow_reader_timeout,
            round_trip=self.round_trip,
        )
        self._require_ranges()
        self._require_used()
        if self.multicast is not None:
            multicast_of(self.multicast)
        if self.relay is not None:
            address_of(self.relay)

    def _require_ranges(self) -> None:
        _require_range("window", self.window, 1, None)
        _require_range("resilience", self.resilience, 0, None)
        _require_range("failure_timeout", self.failure_timeout, MIN_FAILURE_TIMEOUT, MAX_FAILURE_TIMEOUT, "seconds")
        _require_range("pause_timeout", self.pause_timeout, 0, MAX_FAILURE_TIMEOUT, "seconds")
        least, most = MIN_SLOW_READER_TIMEOUT, MAX_SLOW_READER_TIMEOUT
        _require_range("slow_reader_timeout", self.slow_reader_timeout, least, most, "seconds")
        if self.round_trip is not None and not 0 < self.round_trip <= MAX_ROUND_TRIP:
            raise ConfigError(
                f"round_trip must be above 0 and at most {MAX_ROUND_TRIP:g} seconds, not {self.round_trip:g}"
            )
        if self.mtu != 0:
            _require_range("mtu", self.mtu, MIN_MTU, None, "bytes, or 0 for no fragmentation")
        _require_range("max_datagram_size", self.max_datagram_size, MIN_DATAGRAM_SIZE, MAX_DATAGRAM_SIZE, "bytes")
        _require_range("max_message_size", self.max_message_size, 1, MAX_MESSAGE_SIZE, "bytes")
        if self.failure_timeout is not None and self.round_trip is not None:
            least = ROUND_TRIPS_PER_FAILURE_TIMEOUT * self.round_trip
            if self.failure_timeout < least:
                raise ConfigError(
                    f"failure_timeout must be at least {ROUND_TRIPS_PER_FAILURE_TIMEOUT} round trips, "
                    f"{least:g} seconds, not {self.failure_timeout:g}: a slow answer would count as a failure"
                )

    def _require_used(self) -> None:
        """A setting without effect is an error: its user would rely on it."""
        if self.relay is not None and protocol_of(self.order) not in RELAYED_PROTOCOLS:
            raise ConfigError(f"relay has no effect for order {self.order!r}, only for 'total' and 'priority': omit it")
        if self.delivery != DELIVERIES[0] and self.order not in {Order.PARTIAL, Order.TOTAL}:
            raise ConfigError(
                f"delivery has no effect for order {self.order!r}, only for 'partial' and 'total': 'sequenced' does "
                "not wait for all members, and 'priority' lets urgent messages overtake those that are stable"
            )
        if self.recovery != RECOVERIES[0] and self.order != Order.TOTAL:
            raise ConfigError(f"recovery has no effect for order {self.order!r}, only for 'total': omit it")
        if self.resilience and self.order != Order.SEQUENCED:
            raise ConfigError(
                f"resilience has no effect for order {self.order!r}, only for 'sequenced': in other orders every "
                "destination has a message before it is delivered"
            )

    @classmethod
    def local(cls, **overrides: Any) -> Self:
        """For members on one machine: no fragmentation, short timers."""
        return cls(**{"mtu": 0, "round_trip": 0.002, "failure_timeout": 3.0, **overrides})

    @classmethod
    def lan(cls, **overrides: Any) -> Self:
        """For members in one data centre or office: packets of 1400 bytes, the round trip measured when joining."""
        return cls(**{"mtu": NETWORK_MTU, "failure_timeout": 3.0, **overrides})

    @classmethod
    def wan(cls, **overrides: Any) -> Self:
        """For members across the internet: packets that every IPv6 path carries, and patience with outages."""
        return cls(**{"mtu": INTERNET_MTU, "failure_timeout": 10.0, **overrides})

    @classmethod
    def from_toml(cls, path: Path | str) -> Self:
        """Settings from a TOML file: `name = value` lines, with the names of the fields. Checks them."""
        try:
            with Path(path).open("rb") as file:
                found = tomllib.load(file)
        except OSError as error:
            raise ConfigError(f"cannot read settings from {path}: {error.strerror}; check the path") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"invalid TOML in {path}: {error}") from error
        names = [field.name for field in fields(cls)]
        for name in sorted(found.keys() - set(names)):
            if isinstance(found[name], dict):
                raise ConfigError(f"{path}: [{name}]: the fields stand at the top, without a table")
            raise ConfigError(f"{path}: {_unknown_setting(name, names)}")
        try:
            return cls(**found)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    def to_toml(self) -> str:
        """The settings as TOML, without those that are chosen automatically."""
        chosen = {name: value for name, value in asdict(self).items() if value is not None}
        return "".join(f"{name} = {dumps(value, ensure_ascii=False)}\n" for name, value in chosen.items())


def _unknown_setting(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 1)
    if name in RENAMED_SETTINGS:
        hint = f"it is called {RENAMED_SETTINGS[name]!r}"
    elif close:
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = f"it has: {', '.join(known)}"
    return f"Settings has no {name!r}; {hint}"


def protocol_of(order: str) -> str:
    """The protocol that implements an order of valid settings."""
    return PROTOCOLS[Order(order)] if order in set(Order) else order


def order_of(protocol: str) -> str:
    """The order that a protocol implements, or its own name for the papers' baselines."""
    return next((str(order) for order, each in PROTOCOLS.items() if each == protocol), protocol)


def _order(order: object) -> str:
    found = order_of(order) if isinstance(order, str) else None
    if found is None or (found not in set(Order) and found not in OTHER_PROTOCOLS):
        raise ConfigError(f"unknown order {order!r}; choose one of: {', '.join(Order)}")
    return str(found)


def require_whole(**settings: object) -> None:
    """Rejects what is not an integer, such as text from a file or from the environment."""
    for name, value in settings.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ConfigError(f"{name} must be a whole number, not {value!r}")


def require_seconds(**settings: object) -> None:
    """Rejects what is not a finite number."""
    for name, value in settings.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value)):
            raise ConfigError(f"{name} must be a number of seconds, not {value!r}")


def _require_range(name: str, value: float | None, least: float, most: float | None, unit: str = "") -> None:
    if value is not None and not least <= value <= (value if most is None else most):
        bounds = f"at least {least:g}" if most is None else f"{least:g} to {most:g}"
        raise ConfigError(f"{name} must be {bounds}{unit and ' '}{unit}, not {value:g}")
