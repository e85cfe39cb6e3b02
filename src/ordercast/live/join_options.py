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
    """Where our socket is bound; None: at our address among the members."""
    advertise: Address | None
    """Where others send to, if that is another address; port 0: that of the socket."""
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
    named: "JoinOptions | None" = None
    """As they were given, with names of hosts instead of addresses; None: there are no names."""

    def own_address(self, port: int) -> Address:
        """Ours, as others use it, if the socket is bound at this port."""
        shown = self.advertise or self.bind
        assert shown is not None, "our address is among those of the members, or given"
        return Address(shown.host, shown.port or port)
