"""The configuration of one simulated run: all that decides it, to the last byte of its trace."""

from enum import Enum
from hashlib import blake2b

import msgspec

from ordercast.model.config import MICROSECOND, SECOND, ConfigValue, GroupConfig, Timing, require
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Fault, nodes_named
from ordercast.model.nodes import name_of
from ordercast.model.units import LENGTH_SIZE, header_size


class Channel(Enum):
    """What the network below promises, apart from losing units."""

    ONE = "one"
    """1C: all nodes hear the units of all senders in one and the same order."""
    MANY = "many"
    """MC: each sender's units are heard in the order sent; different senders interleave differently."""
    ANY = "any"
    """Datagrams: each unit takes its own time to each receiver, so that any unit may overtake any other."""

    def serves(self, needed: "Channel") -> bool:
        """Whether it promises at least what another does: `one` promises most, `any` nothing."""
        strength = list(Channel)  # the strongest first
        return strength.index(self) <= strength.index(needed)


PROMISES = {
    Channel.ONE: "all nodes hear one order",
    Channel.MANY: "each sender's units arrive in the order sent",
    Channel.ANY: "units arrive in any order",
}
"""What holds on each channel, in words."""


class Network(ConfigValue, frozen=True, kw_only=True):
    """The simulated network and its receivers."""

    channel: Channel = Channel.MANY
    propagation: int = 50 * MICROSECOND
    """The least time from the end of a transmission to its arrival."""
    jitter: int = 50 * MICROSECOND
    """The most that is added to it: on `one` drawn once for each receiver, else for each unit and receiver."""
    bits_per_second: int = 0
    """The speed of the medium, shared by all on `one`, else each sender's own; 0 is without limit."""
    send_time: int = 0
    """How long a node is busy with each unit that it puts on the network; a node does one thing after the other."""
    receive_time: int = 0
    """How long a node is busy with each unit that it is handed."""
    receive_buffer: int = 0
    """Units that may wait at a node; what arrives when it is full is lost (overrun); 0 is without limit."""

    drained: bool = False
    """Tell a machine whenever nothing more waits for it, as a live host does; it then says at once what it owes."""

    def __post_init__(self) -> None:
        for name in ("propagation", "jitter", "bits_per_second", "send_time", "receive_time", "receive_buffer"):
            require(getattr(self, name) >= 0, f"network.{name} must not be negative")

    def transmission_time(self, size: int) -> int:
        """How long the medium is busy with so many bytes."""
        return size * 8 * SECOND // self.bits_per_second if self.bits_per_second else 0

    def round_trip(self, nodes: int, unit_bytes: int) -> int:
        """The longest way there and back when everybody on the medium has a unit to send."""
        turns = nodes if self.channel is Channel.ONE else 1
        medium = turns * self.transmission_time(unit_bytes)
        return 2 * (self.propagation + self.jitter + medium + self.send_time + self.receive_time)


class Pattern(Enum):
    """When the applications of a group send."""

    STEADY = "steady"
    """Each node at equal intervals."""
    POISSON = "poisson"
    """Each node at random, with the same mean."""
    BURSTY = "bursty"
    """Each node in bursts, with the same mean."""
    TALKER = "talker"
    """Node 0 alone, at equal intervals."""
    EVERYBODY = "everybody"
    """Each node everything at once, as fast as the protocol takes it."""


class Sending(ConfigValue, frozen=True, kw_only=True):
    """One submission of a script: a packet, with however many messages."""

    node: int
    to: tuple[int, ...] = ()
    """Its destinations; none named: everybody."""
    at: int = 0
    messages: int = 1
    priority: int = 0

    def __post_init__(self) -> None:
        require(self.at >= 0, "a sending needs `at` from 0 on")
        require(1 <= self.messages <= 1024, "a packet carries 1 to 1024 messages")
        require(0 <= self.priority <= 255, "a priority is at most 255, and 0 is none")


class Workload(ConfigValue, frozen=True, kw_only=True):
    """What the applications send."""

    messages: int = 100
    """Messages by each node that sends."""
    spread: float = 1.0
    """The share of the group that a message is addressed to, on average; the subset is drawn for each packet."""
    pattern: Pattern = Pattern.POISSON
    senders: tuple[int, ...] = ()
    """The nodes that send; none named: those that the pattern says."""
    gap: int = 200 * MICROSECOND
    """The mean time between two messages of a node."""
    burst: int = 16
    """Messages of a burst."""
    batch: int = 1
    """Messages that go into one packet."""
    size: int = 64
    """Payload bytes of a message."""
    priorities: int = 1
    """Priorities from 1 to so many are drawn for packets, all alike often; 1 is none at all."""
    urgent: float = 0.0
    """The share of packets that have the highest priority; 0: as often as any other."""
    script: tuple[Sending, ...] | msgspec.UnsetType = msgspec.UNSET
    """What is sent, one by one, in place of all that is said above but the size; what is not said is not written."""

    def __post_init__(self) -> None:
        require(self.messages >= 0, "the number of messages must not be negative")
        require(0 < self.spread <= 1, f"the spread must be above 0 and at most 1, not {self.spread:g}")
        require(self.gap >= 0, "workload.gap must not be negative")
        require(self.burst >= 1, "workload.burst must be at least 1")
        require(1 <= self.batch <= 1024, "a packet carries 1 to 1024 messages (workload.batch)")
        require(0 <= self.size <= 65_000, "a message has 0 to 65000 bytes (workload.size)")
        require(1 <= self.priorities <= 255, f"there are 1 to 255 priorities, not {self.priorities}")
        require(0 <= self.urgent < 1, f"the urgent share must be at least 0 and below 1, not {self.urgent:g}")

    def sendings(self) -> tuple[Sending, ...] | None:
        """The script, if there is one."""
        return None if self.script is msgspec.UNSET else self.script

    def timing(self, network: Network, nodes: int) -> Timing:
        """Timers that suit this work on a network."""
        unit_bytes = header_size(nodes) + self.batch * (self.size + LENGTH_SIZE)
        return Timing.for_round_trip(network.round_trip(nodes, unit_bytes), least_status=nodes * network.receive_time)


_PATIENT_POLLS = 1024  # more than a node leaves unanswered: where a unit takes seconds, so does patience


class TraceDetail(Enum):
    """How much of a run goes into its trace."""

    ALL = "all"
    DELIVERIES = "deliveries"
    """`send` and `deliver` only."""
    NONE = "none"
    """Only the counters."""


class RunConfig(ConfigValue, frozen=True, kw_only=True):
    """One run."""

    protocol: str
    group: GroupConfig
    network: Network = Network()
    workload: Workload = Workload()
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    record: TraceDetail = TraceDetail.ALL
    patience: int = SECOND
    """Virtual time without any progress after which a run is called stalled."""

    def __post_init__(self) -> None:
        for fault in self.faults:
            for node in nodes_named(fault):
                require(
                    0 <= node < self.group.nodes,
                    f"a fault names {name_of(node)}, but the group's nodes are E1 to {name_of(self.group.nodes - 1)}",
                )
        script = self.workload.sendings() or ()
        named = [node for sending in script for node in (sending.node, *sending.to)]
        for node in (*self.workload.senders, *named):
            require(
                0 <= node < self.group.nodes,
                f"the workload names {name_of(node)}, but the group's nodes are E1 to {name_of(self.group.nodes - 1)}",
            )
        require(self.patience > 0, "patience must be positive")

    def suited(self) -> "RunConfig":
        """The same run with timers and patience that suit its network and its work; the command line does this too."""
        timing = self.workload.timing(self.network, self.group.nodes)
        return msgspec.structs.replace(
            self,
            group=msgspec.structs.replace(self.group, timing=timing),
            patience=max(SECOND, _PATIENT_POLLS * timing.poll),
        )

    def to_json(self) -> str:
        """The whole configuration, enough to run it again."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @classmethod
    def from_json(cls, text: str) -> "RunConfig":
        """The configuration that `to_json` wrote."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise ConfigError(f"not a run configuration: {error}") from error

    def name(self) -> str:
        """A name that no other configuration has."""
        digest = blake2b(self.to_json().encode(), digest_size=8).hexdigest()
        return f"{self.protocol}-n{self.group.nodes}-s{self.seed}-{digest}"
