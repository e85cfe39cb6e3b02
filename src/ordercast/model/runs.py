"""The configuration of one simulated run, which determines it to the last byte of its trace."""

from enum import Enum
from hashlib import blake2b

import msgspec

from ordercast.model.config import MICROSECOND, SECOND, ConfigValue, GroupConfig, Rules, Timing, require
from ordercast.model.errors import ConfigError
from ordercast.model.faults import (
    Crash,
    Fault,
    Join,
    LogFault,
    MembershipFault,
    NodeFault,
    Restart,
    Return,
    founders_of,
    nodes_named,
    returned_nodes,
    start_times,
)
from ordercast.model.nodes import name_of
from ordercast.model.units import LENGTH_SIZE, header_size


class Channel(Enum):
    """The order that the network guarantees; it may lose units."""

    ONE = "one"
    """1C: all nodes receive the units of all senders in one order."""
    MANY = "many"
    """MC: FIFO for each sender; units of different senders interleave differently at each node."""
    ANY = "any"
    """Datagrams: any unit may overtake any other."""

    def serves(self, needed: "Channel") -> bool:
        """True if it guarantees at least the order of another: `one` is the strongest, `any` the weakest."""
        strength = list(Channel)  # the strongest first
        return strength.index(self) <= strength.index(needed)


CHANNEL_GUARANTEES = {
    Channel.ONE: "all nodes receive one order",
    Channel.MANY: "each sender's units arrive in the order sent",
    Channel.ANY: "units arrive in any order",
}
"""The guarantee of each channel, as text."""


class Network(ConfigValue, frozen=True, kw_only=True):
    """The simulated network and its receivers."""

    channel: Channel = Channel.MANY
    propagation: int = 50 * MICROSECOND
    """Minimum time from the end of a transmission to its arrival."""
    jitter: int = 50 * MICROSECOND
    """Maximum random time added to it: on `one` drawn once for each receiver, else for each unit and receiver."""
    bits_per_second: int = 0
    """Bandwidth of the medium, which all share on `one`, else of each sender; 0: unlimited."""
    line_bits_per_second: int = 0
    """Bandwidth of the line from the network to each node; 0: unlimited."""
    queue_bytes: int = 0
    """Bytes that may wait for the medium, and for each line; a unit that finds more waiting is lost; 0: unlimited."""
    send_time: int = 0
    """Time that a node takes to send a unit; a node does one task at a time."""
    receive_time: int = 0
    """Time that a node takes to receive a unit."""
    receive_buffer: int = 0
    """Units that may wait at a node; units that arrive when it is full are lost (overrun); 0: unlimited."""

    drained: bool = False
    """Pass `Drained` to a machine whenever no unit is waiting for it, as a live host does."""

    def __post_init__(self) -> None:
        for name in (
            *("propagation", "jitter", "bits_per_second", "line_bits_per_second", "queue_bytes"),
            *("send_time", "receive_time", "receive_buffer"),
        ):
            require(getattr(self, name) >= 0, f"network.{name} must not be negative: {getattr(self, name)}")

    def transmission_time(self, size: int) -> int:
        """Transmission time of this number of bytes on the medium."""
        return _time(size, self.bits_per_second)

    def line_time(self, size: int) -> int:
        """The same on the line to a node."""
        return _time(size, self.line_bits_per_second)

    def is_full(self, waiting: int, *, line: bool = False) -> bool:
        """Whether a queue is full that takes so many nanoseconds to empty: that of the medium, or of a line."""
        if not self.queue_bytes:
            return False
        return waiting > (self.line_time(self.queue_bytes) if line else self.transmission_time(self.queue_bytes))

    def may_lose(self) -> bool:
        """Whether units are lost without a fault: at full receive buffers, or in full queues."""
        return self.receive_buffer > 0 or self.queue_bytes > 0

    def round_trip(self, nodes: int, unit_bytes: int) -> int:
        """Maximum round-trip time when all nodes on the medium have a unit to send."""
        turns = nodes if self.channel is Channel.ONE else 1
        medium = turns * self.transmission_time(unit_bytes)
        line = nodes * self.line_time(unit_bytes)  # which everything comes by
        return 2 * (self.propagation + self.jitter + medium + line + self.send_time + self.receive_time)


def _time(size: int, bits_per_second: int) -> int:
    return size * 8 * SECOND // bits_per_second if bits_per_second else 0


class Pattern(Enum):
    """When the applications of a group send."""

    STEADY = "steady"
    """Each node at equal intervals."""
    POISSON = "poisson"
    """Each node at random, with the same mean."""
    BURSTY = "bursty"
    """Each node in bursts, with the same mean."""
    TALKER = "talker"
    """Only node 0, at equal intervals."""
    EVERYBODY = "everybody"
    """Each node everything at once, as fast as the protocol accepts it."""


class ScriptedSend(ConfigValue, frozen=True, kw_only=True):
    """One submission of a script: a packet with one or more messages."""

    node: int
    to: tuple[int, ...] = ()
    """Its destinations; empty: all nodes."""
    at: int = 0
    messages: int = 1
    priority: int = 0

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a scripted send needs at >= 0, not {self.at}")
        require(1 <= self.messages <= 1024, f"a packet carries 1 to 1024 messages, not {self.messages}")
        require(0 <= self.priority <= 255, f"a priority is 0 (none) to 255, not {self.priority}")


class Workload(ConfigValue, frozen=True, kw_only=True):
    """What the applications send."""

    messages: int = 100
    """Messages by each node that sends."""
    spread: float = 1.0
    """Mean share of the group that a message is addressed to; the subset is drawn for each packet."""
    pattern: Pattern = Pattern.POISSON
    senders: tuple[int, ...] = ()
    """The nodes that send; empty: given by the pattern."""
    gap: int = 200 * MICROSECOND
    """Mean time between two messages of a node."""
    burst: int = 16
    """Messages in a burst."""
    batch: int = 1
    """Messages in one packet."""
    size: int = 64
    """Payload bytes of a message."""
    priorities: int = 1
    """Priorities are drawn uniformly from 1 to this; 1: no priorities."""
    urgent: float = 0.0
    """Share of packets with the highest priority; 0: as often as any other."""
    script: tuple[ScriptedSend, ...] | msgspec.UnsetType = msgspec.UNSET
    """What is sent, one by one; it replaces all fields above but the size. Left out of the JSON if unset."""

    def __post_init__(self) -> None:
        require(self.messages >= 0, f"the number of messages must not be negative: {self.messages}")
        require(0 < self.spread <= 1, f"the spread must be above 0 and at most 1, not {self.spread:g}")
        require(self.gap >= 0, f"workload.gap must not be negative: {self.gap}")
        require(self.burst >= 1, f"workload.burst must be at least 1, not {self.burst}")
        require(1 <= self.batch <= 1024, f"a packet carries 1 to 1024 messages, not {self.batch} (workload.batch)")
        require(0 <= self.size <= 65_000, f"a message has 0 to 65000 bytes, not {self.size} (workload.size)")
        require(1 <= self.priorities <= 255, f"there are 1 to 255 priorities, not {self.priorities}")
        require(0 <= self.urgent < 1, f"the urgent share must be at least 0 and below 1, not {self.urgent:g}")

    def scripted_sends(self) -> tuple[ScriptedSend, ...] | None:
        """The script, if there is one."""
        return None if self.script is msgspec.UNSET else self.script

    def timing(self, network: Network, nodes: int) -> Timing:
        """Timeouts for this workload on a network."""
        unit_bytes = header_size(nodes) + self.batch * (self.size + LENGTH_SIZE)
        return Timing.for_round_trip(network.round_trip(nodes, unit_bytes), least_status=nodes * network.receive_time)


_STALL_POLLS = 1024  # more than `polls_to_abort`; scales the timeout on slow networks
_STALLS_WITH_VIEWS = 4  # as often: one that joins asks seldom, and what it asks may be lost several times
WITH_LOGS = frozenset({"st", "to", "prito", "sequencer"})
"""Protocols in whose order a message has one position, the same at all nodes: these can have logs."""
MOST_MEMBERS = 64
"""Of a group with views."""


class TraceDetail(Enum):
    """How much of a run its trace contains."""

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
    stall_timeout: int = msgspec.field(default=SECOND, name="patience")
    """Virtual time without progress after which a run is stalled. In files: `patience`."""
    logs: bool = False
    """Each node has a durable log, on a disk of its own."""

    def __post_init__(self) -> None:
        for fault in self.faults:
            for node in nodes_named(fault):
                require(
                    0 <= node < self.group.nodes,
                    f"a fault names {name_of(node)}, but the group's nodes are E1 to {name_of(self.group.nodes - 1)}",
                )
        script = self.workload.scripted_sends() or ()
        named = [node for sending in script for node in (sending.node, *sending.to)]
        for node in (*self.workload.senders, *named):
            require(
                0 <= node < self.group.nodes,
                f"the workload names {name_of(node)}, but the group's nodes are E1 to {name_of(self.group.nodes - 1)}",
            )
        require(self.stall_timeout > 0, f"stall_timeout must be positive, not {self.stall_timeout}")
        require(
            not self.group.delivers_stable or self.protocol in {"spo", "st"},
            f"delivers_stable is for spo and st, not {self.protocol}",
        )
        _check_membership(self.group, self.faults)
        _check_logs(self)

    def with_default_timeouts(self) -> "RunConfig":
        """The same run with the timeouts of the command line, computed from its network and workload."""
        timing = self.workload.timing(self.network, self.group.nodes)
        return msgspec.structs.replace(
            self,
            group=msgspec.structs.replace(self.group, timing=timing),
            stall_timeout=max(SECOND, _STALL_POLLS * timing.poll) * (_STALLS_WITH_VIEWS if self.group.views else 1),
        )

    def to_json(self) -> str:
        """The whole configuration, enough to run it again."""
        content = msgspec.to_builtins(self, order="deterministic")
        if not self.group.views:  # a run without views is named as it was before there were any
            del content["group"]["views"]
        if not self.logs:  # likewise
            del content["logs"]
        if not self.group.polls_late:  # likewise
            del content["group"]["polls_late"]
        if not self.group.sequencer.history_bytes:
            del content["group"]["sequencer"]["history_bytes"]
        return msgspec.json.encode(content).decode()

    @classmethod
    def from_json(cls, text: str) -> "RunConfig":
        """The configuration that `to_json` wrote. Raises `ConfigError`."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise ConfigError(f"invalid run configuration: {error}") from error

    def name(self) -> str:
        """A unique name, derived from the configuration."""
        digest = blake2b(self.to_json().encode(), digest_size=8).hexdigest()
        return f"{self.protocol}-n{self.group.nodes}-s{self.seed}-{digest}"


def wants_views(protocol: str, rules: Rules, faults: tuple[Fault, ...]) -> bool:
    """Whether a run has views if nothing else is said: its members change, or one crashes and the others shall go on.

    The sequencer's protocol, which has views of its own, goes on without a node that crashes anyway.
    """
    if any(isinstance(fault, MembershipFault) for fault in faults):
        return True
    crashes = any(isinstance(fault, Crash) for fault in faults)
    return crashes and protocol != "sequencer" and rules is Rules.SOUND


def with_later_nodes(nodes: int, faults: tuple[Fault, ...]) -> int:
    """How many nodes a run has in all: those of the group, those that join beyond them, and those that return.

    A number that is no group's is returned as it is, for the refusal to name it.
    """
    if nodes < 1:
        return nodes
    joining = max((fault.node + 1 for fault in faults if isinstance(fault, Join)), default=0)
    return max(nodes, joining) + sum(isinstance(fault, Return | Restart) for fault in faults)


def wants_logs(faults: tuple[Fault, ...]) -> bool:
    """Whether a run has logs if nothing else is said: some of its faults are about them."""
    return any(isinstance(fault, LogFault) for fault in faults)


def _check_logs(config: RunConfig) -> None:
    """That a run with logs has one position for each message, the same at all nodes."""
    if not config.logs:
        named = next((fault for fault in config.faults if isinstance(fault, LogFault)), None)
        if named is not None:
            raise ConfigError(f"the fault {type(named).__struct_config__.tag!r} needs a run with logs")
        return
    require(config.group.views, "a run with logs needs a group with views: group.views must be true")
    require(
        config.protocol in WITH_LOGS,
        f"{config.protocol} has no log: its nodes deliver different messages, or in different orders; "
        f"logs are of {', '.join(sorted(WITH_LOGS))}",
    )
    script = config.workload.scripted_sends()
    to_some = config.workload.spread < 1 if script is None else any(each.to for each in script)
    require(not to_some, "a log has all messages: in a run with logs every message goes to all nodes (spread=1)")


def _check_membership(group: GroupConfig, faults: tuple[Fault, ...]) -> None:
    """That faults of members make sense: they need views, and happen to a node that is there."""
    nodes = group.nodes
    for fault in faults:
        require(
            group.views or not isinstance(fault, MembershipFault),
            f"the fault {type(fault).__struct_config__.tag!r} needs a group with views: group.views must be true",
        )
    if not group.views:
        return
    returned = returned_nodes(faults, nodes)
    joins = [fault.node for fault in faults if isinstance(fault, Join)]
    for node in joins:
        require(joins.count(node) == 1, f"{name_of(node)} joins twice; a node that was there before returns")
        require(
            node not in returned, f"{name_of(node)} is the node of a process that returns; it does not join besides"
        )
    require(founders_of(faults, nodes), "all nodes join or return, and none founds the group; the first must be there")
    require(
        nodes - len(returned) <= MOST_MEMBERS,
        f"a group with views has at most {MOST_MEMBERS} members, not {nodes - len(returned)}",
    )
    require(not group.first_seq, "in a group with views each view counts from 0: first_seq must be empty")
    starts = start_times(faults, nodes)
    for fault in faults:
        if not isinstance(fault, NodeFault) or isinstance(fault, Join):
            continue
        for node in nodes_named(fault):
            require(
                fault.at >= starts.get(node, 0),
                f"the fault {type(fault).__struct_config__.tag!r} of {name_of(node)} is too early: "
                f"{name_of(node)} starts at {starts.get(node, 0):,} ns",
            )
