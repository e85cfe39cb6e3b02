"""The parameters of a group, derived from its settings and from whether its members share one machine.

`session.parameter_comparison` compares them in the handshake.
"""

from typing import NamedTuple

import msgspec

from ordercast.live.host.congestion import MAX_BYTES_BY_LINKS, MAX_BYTES_IN_FLIGHT, CongestionControl, DatagramSizes
from ordercast.live.session.events import heartbeat_interval
from ordercast.live.settings import (
    DELIVERIES,
    NETWORK_MTU,
    RECOVERIES,
    RELAYED_PROTOCOLS,
    ROUND_TRIPS_PER_FAILURE_TIMEOUT,
    Order,
    Settings,
    order_of,
    protocol_of,
)
from ordercast.live.transport.addresses import Address, address_of
from ordercast.model.config import (
    MICROSECOND,
    MILLISECOND,
    SECOND,
    ConfigValue,
    GroupConfig,
    RecoveryPolicy,
    SequencerConfig,
    Timing,
    require,
)
from ordercast.model.machine import Level

HIGHEST_LEVEL = {"sequencer": Level.PREACKNOWLEDGED}
"""The highest level that a protocol reports, where it is not the third."""

DEFAULT_MAX_DATAGRAM_SIZE = 60_000
"""Of `Settings.max_datagram_size`; the size of datagrams without loss."""
INITIAL_SEGMENTS = 8
"""Packets of the network per datagram at first, without links: with more a loss costs more than the length gains."""
LOOPBACK_ROUND_TRIP = 2 * MILLISECOND
NETWORK_ROUND_TRIP = 10 * MILLISECOND
"""Expected of a network; if the measured round trip is more than twice as long, timers are derived from that."""
_MAX_MEASURED_ROUND_TRIP = SECOND
FAILURE_TIMEOUT = 3 * SECOND
PAUSE_TIMEOUT = 10 * SECOND

LONG_WINDOW = 1024
"""Packets of a sender that may be under way where links control how many bytes are: a bound of memory."""
SHORT_LOG, LONG_LOG = 400, 2400
"""Packets after which `total` agrees on its order and begins anew: without links, and with."""
MAX_SIZE_BY_LINKS = 48_000
"""Of datagrams in links: they are sent by one call, and one as long as that needs half the work of two."""
GATHERS_FROM = 5
"""Members from which on acknowledgments go by a relay, if the order needs none."""
BESIDE_IN = 3
"""Members of a group whose acknowledgments go beside the relay that the order needs.

With more they are gathered there; of two, one is the relay.
"""
_WORK_OF_MEMBER = 150 * MICROSECOND  # to receive something and acknowledge it, on a core that it shares

_MAX_HISTORY = 8192  # packets that a sequencer keeps, if they are short

_BUFFERED = 3 << 20  # bytes in flight that the socket buffers of a member hold, with the system's overhead

_FIXED_OVERHEAD = 150  # headers of the datagram, the relay, the record and the unit, with room to spare
_OVERHEAD_PER_MEMBER = 16  # in a unit with three vectors of numbers
_MIN_ROOM = 64  # for messages: shorter pieces would be nearly all headers


class Parameters(ConfigValue, frozen=True, kw_only=True):
    """What all members must have in common; times are nanoseconds. A member that differs is rejected."""

    protocol: str
    config: GroupConfig
    max_datagram_size: int
    mtu: int = 0
    """Bytes that fit into one packet of the network: longer datagrams are fragmented; 0: never."""
    round_trip: int = NETWORK_ROUND_TRIP
    measures_round_trip: bool = False
    """Each member makes its timers longer if it measures a longer round trip."""
    max_message_size: int = 64 << 20
    failure_timeout: int = FAILURE_TIMEOUT
    pause_timeout: int = 0
    """How long a member says that it is alive while something blocks its event loop."""
    slow_reader_timeout: int = 0
    """How long the others wait for a member whose application does not read; 0: for ever."""
    quorum: str = "last_view"
    least_members: int = 1
    """No view has fewer: a majority of the founders, if the quorum is static."""
    multicast: str = ""
    has_state: bool = False
    """Members that join get the application's state."""
    has_log: bool = False
    """Members write a durable log, and those that join get that of the group."""
    relay: str = ""
    """The address of a relay process; empty: the first member relays, if the protocol needs a relay."""

    def __post_init__(self) -> None:
        enough = _FIXED_OVERHEAD + _OVERHEAD_PER_MEMBER * self.config.nodes + _MIN_ROOM
        require(
            self.max_datagram_size >= enough,
            f"max_datagram_size must be at least {enough} bytes for {self.config.nodes} members, "
            f"not {self.max_datagram_size}",
        )
        require(
            self.failure_timeout >= ROUND_TRIPS_PER_FAILURE_TIMEOUT * self.round_trip,
            f"failure_timeout must be at least {ROUND_TRIPS_PER_FAILURE_TIMEOUT} round trips, "
            f"{ROUND_TRIPS_PER_FAILURE_TIMEOUT * self.round_trip / SECOND:g} seconds, "
            f"not {self.failure_timeout / SECOND:g}: a slow answer would count as a failure",
        )

    @property
    def has_links(self) -> bool:
        """Units travel in links: not on one machine, and not by multicast."""
        return self.mtu > 0 and not self.multicast

    @property
    def measures_rounds(self) -> bool:
        """Timers follow measured rounds: on one machine, where handshakes show little, and hardly anything is lost."""
        return not self.measures_round_trip and self.round_trip == LOOPBACK_ROUND_TRIP

    @property
    def gathers(self) -> bool:
        """Only acknowledgments go by a relay."""
        return self.protocol == "spo"

    @property
    def heartbeat(self) -> int:
        """The interval of a member's heartbeats."""
        return heartbeat_interval(self.failure_timeout)

    def datagram_sizes(self, buffer: int) -> DatagramSizes:
        """The range of datagram sizes; without fragmentation there is only one.

        In links a datagram costs no more if a part is lost, so that they are long from the beginning. `buffer`: bytes
        that a receiver's socket holds. A datagram above half of it would always lose a part.
        """
        least = min(self.mtu or self.max_datagram_size, self.max_datagram_size)
        most = max(least, min(self.max_datagram_size, buffer // 2))
        if self.has_links:
            most = max(least, min(most, MAX_SIZE_BY_LINKS))
            return DatagramSizes(least, most, most)
        return DatagramSizes(least, min(_initial_size(self.max_datagram_size, self.mtu), most), most)

    def room_in(self, datagram: int, members: int | None = None) -> int:
        """Bytes of messages, with their lengths, that a packet carries in a datagram of this size.

        `members`: of the group; None: those that open it.
        """
        count = self.config.nodes if members is None else members
        return max(datagram - _FIXED_OVERHEAD - _OVERHEAD_PER_MEMBER * count, _MIN_ROOM)

    def config_for(self, measured: int | None) -> GroupConfig:
        """The protocol's configuration; timers suit the measured round trip if that is much longer than expected."""
        if not self.measures_round_trip or measured is None or measured <= 2 * self.round_trip:
            return self.config
        timers = _timers(self.protocol, min(measured, _MAX_MEASURED_ROUND_TRIP), self.failure_timeout)
        sequencer = msgspec.structs.replace(self.config.sequencer, suspect_after=timers.suspect_after)
        return msgspec.structs.replace(
            self.config, timing=timers.timing, polls_to_abort=timers.polls_to_abort, sequencer=sequencer
        )

    def compared(self) -> dict[str, object]:
        """What members compare in the handshake: the fields of `Settings` by name, and all that is derived."""
        compared = {
            "order": order_of(self.protocol),
            "window": self.config.window,
            "resilience": self.config.sequencer.resilience,
            "delivery": DELIVERIES[self.config.delivers_stable],
            "recovery": RECOVERIES[self.config.recovery is RecoveryPolicy.PLACE],
            "quorum": self.quorum,
            "failure_timeout": self.failure_timeout / SECOND,
            "pause_timeout": self.pause_timeout / SECOND,
            "slow_reader_timeout": self.slow_reader_timeout / SECOND or None,
            "round_trip": self.round_trip / SECOND,
            "mtu": self.mtu,
            "max_datagram_size": self.max_datagram_size,
            "max_message_size": self.max_message_size,
            "multicast": self.multicast or None,
            "relay": self.relay or None,
            "state": self.has_state or None,
            "log": self.has_log or None,
            "derived": self.as_dict(),
        }
        return {name: value for name, value in compared.items() if value is not None}

    def as_dict(self) -> dict[str, object]:
        """All fields, as JSON has them."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found


class _Timers(NamedTuple):
    """Timers for a round trip."""

    timing: Timing
    polls_to_abort: int
    suspect_after: int


def _timers(protocol: str, round_trip: int, failure_timeout: int) -> _Timers:
    timing = Timing.for_round_trip(round_trip, least_status=500 * MICROSECOND)
    # The session detects failed members, and each member a failed relay; both can name who failed. A protocol's own
    # count is the last resort, and must not fire first: ST counts its statuses, the others their polls.
    interval = timing.status if protocol == "st" else timing.poll
    return _Timers(timing, _attempts(6 * failure_timeout, interval), _attempts(failure_timeout, timing.repeat))


def parameters_for(
    settings: Settings, nodes: int, *, loopback: bool, has_state: bool = False, has_log: bool = False
) -> Parameters:
    """Derives all parameters. `loopback`: all members are on this machine; `has_state`: the application has one."""
    mtu = settings.mtu if settings.mtu is not None else 0 if loopback else NETWORK_MTU
    datagram = settings.max_datagram_size or DEFAULT_MAX_DATAGRAM_SIZE
    initial = _initial_size(datagram, mtu)
    has_links = mtu > 0 and not settings.multicast
    window = settings.window or (LONG_WINDOW if has_links else min(128, max(16, MAX_BYTES_IN_FLIGHT // initial)))
    expected = LOOPBACK_ROUND_TRIP if loopback else NETWORK_ROUND_TRIP
    round_trip = _nanoseconds(settings.round_trip, expected)
    timeout = _nanoseconds(settings.failure_timeout, max(FAILURE_TIMEOUT, ROUND_TRIPS_PER_FAILURE_TIMEOUT * round_trip))
    protocol = protocol_of(settings.order)
    require(
        settings.order != Order.SEQUENCED or settings.resilience < nodes,
        f"resilience must be at most {nodes - 1} for {nodes} members (all besides the sequencer), "
        f"not {settings.resilience}",
    )
    timers = _timers(protocol, round_trip, timeout)
    largest = max(16, min(1024, _BUFFERED // initial))  # packets of the largest size that the buffers hold
    config = GroupConfig(
        nodes=nodes,
        window=window,
        quota=4 * window,
        log_limit=LONG_LOG if has_links else SHORT_LOG,
        timing=timers.timing,
        polls_to_abort=timers.polls_to_abort,
        polls_late=True,
        delivers_stable=settings.delivery == "stable",
        recovery=RecoveryPolicy.PLACE if settings.recovery == "place" else RecoveryPolicy.SELECTIVE,
        sequencer=SequencerConfig(
            history=_MAX_HISTORY,
            history_bytes=MAX_BYTES_BY_LINKS if has_links else _BUFFERED,
            acknowledge_after=largest // 4,
            resilience=settings.resilience,
            suspect_after=timers.suspect_after,
            heartbeat=4 * heartbeat_interval(timeout),  # the failure detector has its own
        ),
    )
    return Parameters(
        protocol=protocol,
        config=config,
        max_datagram_size=datagram,
        mtu=mtu,
        round_trip=round_trip,
        measures_round_trip=settings.round_trip is None and not loopback,
        max_message_size=settings.max_message_size,
        failure_timeout=timeout,
        pause_timeout=_nanoseconds(settings.pause_timeout, max(PAUSE_TIMEOUT, timeout)),
        slow_reader_timeout=_nanoseconds(settings.slow_reader_timeout, 0),
        quorum=settings.quorum,
        least_members=nodes // 2 + 1 if settings.quorum == "static" else 1,
        multicast=_comparable(settings.multicast),
        has_state=has_state,
        has_log=has_log,
        relay=_comparable(settings.relay) if protocol in RELAYED_PROTOCOLS else "",
    )


def congestion_control(parameters: Parameters, buffer: int) -> CongestionControl:
    """Of a member whose socket holds so many bytes."""
    return CongestionControl(parameters.datagram_sizes(buffer), has_links=parameters.has_links)


def gathering_time(timing: Timing, members: int) -> int:
    """How long acknowledgments wait at the relay for those of others, if some do not come."""
    return max(timing.status, _WORK_OF_MEMBER * members) if members > BESIDE_IN else 0


def longest_wait(round_trip: int) -> int:
    """How long a datagram waits for those that it has overtaken: beyond that they count as lost."""
    return round_trip // 2


def _nanoseconds(seconds: float | None, default: int) -> int:
    return default if seconds is None else int(seconds * SECOND)


def _comparable(text: str | None) -> str:
    """An address without its zone: each machine has its own names for its interfaces."""
    if text is None:
        return ""
    address = address_of(text)
    return str(Address(address.host.partition("%")[0], address.port))


def _initial_size(datagram: int, mtu: int) -> int:
    return min(datagram, INITIAL_SEGMENTS * mtu) if mtu > 0 else datagram


def _attempts(duration: int, interval: int) -> int:
    """How often a question that is repeated less and less often is asked in so much time."""
    return max(8, duration // (3 * interval))
