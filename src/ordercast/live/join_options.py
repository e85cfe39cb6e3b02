"""The arguments of `join`, checked: what `join` makes of them and `open_group` carries out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ordercast.live.events import View
from ordercast.live.host.parameters import Parameters
from ordercast.live.log_settings import LogSettings
from ordercast.live.settings import Settings
from ordercast.live.state_transfer.application import State
from ordercast.live.transport.addresses import Address
from ordercast.wire.keys import GroupKeys

MIN_TIMEOUT, MAX_TIMEOUT = 0.5, 1e9  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class JoinOptions:
    """The checked arguments of `join`."""

    group: str
    name: str | None
    members: dict[str, Address]
    """Empty: they are discovered."""
    bind: Address | None
    """Our own address, if the members are discovered or the group is running already."""
    contacts: tuple[Address, ...] | None
    """Where a running group is looked for; empty: on this machine, by its name; None: a group is opened."""
    settings: Settings | None
    """None: whatever the running group has."""
    parameters: Parameters
    """What follows from the settings; replaced by those of a running group."""
    multicast: Address | None
    relay: Address | None
    one_clock: bool
    """All members are on this machine."""
    keys: GroupKeys | None
    timeout: float
    record: Path | None
    deliveries_only: bool
    busy_poll: bool
    rejoin: bool
    state: State | None
    state_timeout: float
    log: LogSettings | None
    on_view: Callable[[View], None] | None
    on_waiting: Callable[[str], None] | None
