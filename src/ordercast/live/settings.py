"""What the members of a live group agree on, and what each decides for itself."""

from enum import Enum
from math import isfinite
from typing import NamedTuple

import msgspec

from ordercast.live.host.congestion import MAX_BYTES_IN_FLIGHT, DatagramSizes
from ordercast.live.session.events import heartbeat_interval
from ordercast.live.transport.fragmentation import MIN_SEGMENT_SIZE
from ordercast.model.config import (
    MICROSECOND,
    MILLISECOND,
    SECOND,
    ConfigValue,
    GroupConfig,
    SequencerConfig,
    Timing,
    require,
)
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE


class Order(Enum):
    """Which order a group keeps; each value is the protocol that keeps it."""

    PARTIAL = "spo"
    """Each sender's order, to any subset of the group."""
    TOTAL = "st"
    """One order for all, to any subset of the group."""
    PRIORITY = "prito"
    """One order for all, the urgent first; to everybody."""
    SEQUENCED = "sequencer"
    """One order for all, given by one member; to everybody. The fastest, and the only one that survives a failure."""


def protocol_of(order: str) -> str:
    """The protocol that keeps an order; a protocol may be named itself, too."""
    names = {each.name.lower(): each.value for each in Order}
    protocol = names.get(order, order)
    if protocol not in {*names.values(), "to", "po", "prio"}:
        raise ConfigError(f"there is no order {order!r}; there are: {', '.join(names)}")
    return protocol


PRIORITISED = frozenset({"prito", "prio"})
"""The protocols that let the urgent overtake."""
HIGHEST = {"sequencer": Level.PREACKNOWLEDGED}
"""The highest level that a protocol tells, where it is not the third."""

DATAGRAM = 60_000
"""Bytes of a datagram, where nothing is lost."""
NETWORK_MTU = 1_352
"""What a packet of 1400 bytes holds besides the headers of IPv6 and UDP: tunnels and clouds have no larger ones."""
SEGMENTS = 8
"""Packets of the network that a datagram takes at first: with more of them a loss costs more than the length gains."""
LOOPBACK_ROUND_TRIP = 2 * MILLISECOND
NETWORK_ROUND_TRIP = 10 * MILLISECOND
"""What is expected of a network; where it is more than twice as long, timers suit what was measured."""
_LONGEST_ROUND_TRIP = SECOND
_LONGEST_WISHED = 10  # seconds, of a round trip
SILENCE = 3 * SECOND
_SHORTEST_SILENCE, _LONGEST_SILENCE = 0.5, 600  # seconds
_ROUND_TRIPS_OF_SILENCE = 4

_BUFFERED = 3 << 20  # bytes under way that the socket buffers of a member hold, with what they cost the system

_FIXED = 150  # headers of the datagram, of a relay, of the record and of the unit, with room to spare
_EACH_MEMBER = 16  # in a unit with three vectors of numbers
_LEAST_ROOM = 64  # for messages: pieces that are shorter would be nearly all headers


class Agreement(ConfigValue, frozen=True, kw_only=True):
    """What all members must have alike. Who differs is refused, and told in what."""

    protocol: str
    config: GroupConfig
    datagram: int
    """The bytes that a datagram should not have more of."""
    mtu: int = 0
    """The bytes that fit into a packet of the network: longer datagrams go as trains; 0: as they are."""
    round_trip: int = NETWORK_ROUND_TRIP
    """How long a datagram to another member and back takes."""
    measures: bool = False
    """Each member makes its timers longer when it measures a longer round trip."""
    largest_message: int = 64 << 20
    silence: int = SILENCE
    """How long nothing may be heard from a member before it is taken for failed."""

    def __post_init__(self) -> None:
        _require_datagram(self.datagram)
        require(
            self.mtu == 0 or self.mtu >= MIN_SEGMENT_SIZE,
            f"a packet of the network has at least {MIN_SEGMENT_SIZE} bytes, not {self.mtu} (mtu)",
        )
        enough = _FIXED + _EACH_MEMBER * self.config.nodes + _LEAST_ROOM
        require(
            self.datagram >= enough,
            f"datagrams of {self.datagram} bytes have no room for messages among {self.config.nodes} members; "
            f"{enough} do (datagram)",
        )
        require(
            self.silence >= _ROUND_TRIPS_OF_SILENCE * self.round_trip,
            f"silence must be at least {_ROUND_TRIPS_OF_SILENCE} round trips, or a slow answer is a death: "
            f"{_ROUND_TRIPS_OF_SILENCE * self.round_trip / SECOND:g} seconds, not {self.silence / SECOND:g}",
        )

    @property
    def beat(self) -> int:
        """How often a member shows that it lives."""
        return heartbeat_interval(self.silence)

    def sizes(self, buffer: int) -> DatagramSizes:
        """What datagrams may have; on a network without packets there is no choice.

        `buffer`: bytes that may wait at a receiver. Of what takes more than half of it some part would always be lost.
        """
        least = min(self.mtu or self.datagram, self.datagram)
        most = max(least, min(self.datagram, buffer // 2))
        return DatagramSizes(least, min(_at_first(self.datagram, self.mtu), most), most)

    def room_in(self, datagram: int) -> int:
        """Bytes of messages, with their lengths, that a packet takes: the rest of a datagram is for the protocol."""
        return max(datagram - _FIXED - _EACH_MEMBER * self.config.nodes, _LEAST_ROOM)

    def config_for(self, measured: int | None) -> GroupConfig:
        """With timers that suit the round trip that was measured, if that is much longer than was expected."""
        if not self.measures or measured is None or measured <= 2 * self.round_trip:
            return self.config
        timers = _timers(self.protocol, min(measured, _LONGEST_ROUND_TRIP), self.silence)
        sequencer = msgspec.structs.replace(self.config.sequencer, suspect_after=timers.suspect_after)
        return msgspec.structs.replace(
            self.config, timing=timers.timing, polls_to_abort=timers.polls_to_abort, sequencer=sequencer
        )

    def terms(self) -> dict[str, object]:
        """The same, in the words in which members are asked for it, and all that follows."""
        orders = {each.value: each.name.lower() for each in Order}
        return {
            "order": orders.get(self.protocol, self.protocol),
            "window": self.config.window,
            "resilience": self.config.sequencer.resilience,
            "mtu": self.mtu,
            "datagram": self.datagram,
            "round_trip": self.round_trip / SECOND,
            "silence": self.silence / SECOND,
            "in full": self.parameters(),
        }

    def parameters(self) -> dict[str, object]:
        """All of it, for comparison."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found


class Wishes(ConfigValue, frozen=True, kw_only=True):
    """What a user may say about the network; None is what suits it."""

    mtu: int | None = None
    datagram: int | None = None
    window: int | None = None
    resilience: int = 0
    round_trip: int | None = None
    """Nanoseconds; so is silence."""
    silence: int | None = None


def longest_wait(round_trip: int) -> int:
    """How long a datagram may wait for those that it has overtaken: beyond that they count as lost."""
    return round_trip // 2


def require_whole(**settings: object) -> None:
    """Who reads settings from a file, or from the environment, may hand us text."""
    for name, value in settings.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ConfigError(f"{name} is a whole number, not {value!r}")


def require_seconds(**settings: object) -> None:
    """Likewise."""
    for name, value in settings.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value)):
            raise ConfigError(f"{name} is a number of seconds, not {value!r}")


def round_trip_of(seconds: float | None) -> int | None:
    """As a user says it, in nanoseconds."""
    if seconds is not None and not 0 < seconds < _LONGEST_WISHED:
        raise ConfigError(f"a round trip takes up to {_LONGEST_WISHED} seconds, not {seconds} (round_trip)")
    return None if seconds is None else int(seconds * SECOND)


def silence_of(seconds: float | None) -> int | None:
    """Likewise."""
    if seconds is None:
        return None
    if not _SHORTEST_SILENCE <= seconds <= _LONGEST_SILENCE:
        raise ConfigError(
            "silence is the seconds without a sign of life after which a member is taken for dead, "
            f"{_SHORTEST_SILENCE} to {_LONGEST_SILENCE}, not {seconds:g}"
        )
    return int(seconds * SECOND)


class _Timers(NamedTuple):
    """What follows from a round trip."""

    timing: Timing
    polls_to_abort: int
    suspect_after: int


def _timers(protocol: str, round_trip: int, silence: int) -> _Timers:
    timing = Timing.for_round_trip(round_trip, least_status=500 * MICROSECOND)
    # The session notices who is silent, and each member whether the channel is; both know better who it is. A
    # protocol's own count is for what nobody thought of, and must not come first: what it counts is in ST its statuses.
    asked = timing.status if protocol == Order.TOTAL.value else timing.poll
    return _Timers(timing, _times(6 * silence, asked), _times(silence, timing.repeat))


def agreement(protocol: str, nodes: int, wishes: Wishes, *, loopback: bool) -> Agreement:
    """What suits the network: large datagrams where nothing but this machine is between the members."""
    mtu = wishes.mtu if wishes.mtu is not None else 0 if loopback else NETWORK_MTU
    datagram = _or(wishes.datagram, DATAGRAM)
    _require_datagram(datagram)
    at_first = _at_first(datagram, mtu)
    window = _or(wishes.window, min(128, max(16, MAX_BYTES_IN_FLIGHT // at_first)))
    round_trip = wishes.round_trip or (LOOPBACK_ROUND_TRIP if loopback else NETWORK_ROUND_TRIP)
    silence = _or(wishes.silence, max(SILENCE, _ROUND_TRIPS_OF_SILENCE * round_trip))
    timers = _timers(protocol, round_trip, silence)
    history = max(16, min(1024, _BUFFERED // at_first))
    config = GroupConfig(
        nodes=nodes,
        window=window,
        quota=4 * window,
        timing=timers.timing,
        polls_to_abort=timers.polls_to_abort,
        sequencer=SequencerConfig(
            history=history,
            says_after=history // 4,
            resilience=wishes.resilience,
            suspect_after=timers.suspect_after,
            heartbeat=heartbeat_interval(silence),
        ),
    )
    return Agreement(
        protocol=protocol,
        config=config,
        datagram=datagram,
        mtu=mtu,
        round_trip=round_trip,
        measures=wishes.round_trip is None and not loopback,
        silence=silence,
    )


def _at_first(datagram: int, mtu: int) -> int:
    return min(datagram, SEGMENTS * mtu) if mtu > 0 else datagram


def _require_datagram(size: int) -> None:
    require(512 <= size <= MAX_DATAGRAM_SIZE, f"a datagram has 512 to {MAX_DATAGRAM_SIZE} bytes, not {size} (datagram)")


def _or(wish: int | None, usual: int) -> int:
    """What is wished, also if that is a 0, which is refused then."""
    return usual if wish is None else wish


def _times(duration: int, each: int) -> int:
    """How often a question is asked in vain in so much time, when it is asked ever more patiently."""
    return max(8, duration // (3 * each))
