"""Configurations: frozen values, checked when they are created; errors are one sentence.

A `GroupConfig` is what all nodes of a group must agree on. Times are whole nanoseconds.
"""

from enum import Enum

import msgspec

from ordercast.model.errors import ConfigError

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


def require(condition: object, sentence: str) -> None:
    """Raises `ConfigError` with this sentence unless the condition holds."""
    if not condition:
        raise ConfigError(sentence)


class Rules(Enum):
    """Which rules a protocol follows."""

    SOUND = "sound"
    """The corrected rules: the default."""
    PAPER = "paper"
    """The printed rules with only their misprints corrected: for examples, evaluation and counterexamples."""


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value that can be converted to JSON and back; unknown names are errors."""


class Timing(ConfigValue, frozen=True, kw_only=True):
    """The timeouts of a protocol. Each is spread over [T, 2T) by a repeatable draw."""

    status: int = 100 * MICROSECOND
    """T_ACK: how long a status waits for data to carry it before it is sent by itself."""
    poll: int = 800 * MICROSECOND
    """T_POLL: time without progress after which the nodes waited for are polled."""
    cooldown: int = 100 * MICROSECOND
    """T_NACK: minimum time between two requests for newly missing packets."""
    repeat: int = 600 * MICROSECOND
    """T_RT: time after which everything missing is requested again."""
    guard: int = 200 * MICROSECOND
    """T_GUARD: time after a retransmission in which it is not repeated, whichever node requests it."""
    inferred_loss: int = msgspec.field(default=200 * MICROSECOND, name="hearsay")
    """T_GAP: delay of a request for a loss inferred from peers' acknowledgments (the papers' hearsay)."""
    reset: int = 200 * MICROSECOND
    """T_RST: time after which a stopped node repeats what it lacks."""
    run: int = 1600 * MICROSECOND
    """T of PriTO: time in which an acknowledged packet may be overtaken before its priority run is ended."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            require(
                getattr(self, name) > 0,
                f"timing.{name} must be a positive number of nanoseconds, not {getattr(self, name)}",
            )
        require(
            self.guard < self.repeat,
            "timing.guard must be shorter than timing.repeat: otherwise repeated requests are ignored",
        )
        require(
            self.status < self.poll, "timing.status must be shorter than timing.poll: otherwise answers come too late"
        )

    @classmethod
    def for_round_trip(cls, round_trip: int, least_status: int = 0) -> "Timing":
        """Timeouts for a network with this round-trip time; `least_status`: for slow receivers."""
        require(round_trip >= 0, f"the round trip must not be negative: {round_trip}")
        round_trip = max(round_trip, 2 * MICROSECOND)
        status = max(round_trip // 2, least_status)
        poll = 2 * (round_trip + 2 * status)
        return cls(
            status=status,
            poll=poll,
            cooldown=status,
            repeat=2 * round_trip + 2 * status,
            guard=round_trip,
            inferred_loss=round_trip,
            reset=max(round_trip, 2 * status),  # all answer at once, and receivers may be slow
            run=2 * poll,  # twice the time until a packet is acknowledged
        )


class RecoveryPolicy(Enum):
    """What ST does after a loss."""

    SELECTIVE = "selective"
    """All nodes stop and agree on one order; the missing packets are sent again."""
    GO_BACK_N = "go-back-n"
    """The same; the missing packets and all later ones are sent again: the paper's baseline."""
    PLACE = "place"
    """No node stops: a copy of a missing packet is put at its place, or the packet is given a new one."""


class LossInference(Enum):
    """Whose acknowledgments reveal a loss to the printed SPO: the h of acceptance condition (2), p.ACK_h <= TREQ_h."""

    ALL = "all"
    """h = 1..n, as printed; with h = source, a lost unit for others blocks its source forever."""
    OTHERS = "others"
    """h other than the source."""
    NONE = "none"
    """Not tested."""


class PriorityConfig(ConfigValue, frozen=True, kw_only=True):
    """The parameters of PriTO and PriO."""

    synchronises: bool = True
    """End a priority run when an acknowledged packet has been overtaken for long; otherwise packets may starve."""


class SequencerReadings(ConfigValue, frozen=True, kw_only=True):
    """Readings of the printed sequencer: the defaults are what is printed; each alternative corrects one thing."""

    first_id: int = 0
    """The first PacketId, where MessageNr[] starts at 0; 1: no first message counts as a duplicate."""
    acknowledges_last: bool = False
    """A node reports the last number that it received; False: the next that it expects, taken for the last."""
    advances_own_row: bool = False
    """The sequencer counts what it broadcast as received by itself; False: its row of the table never moves."""
    whole_answers: bool = False
    """A duplicate is answered with the message; False: with its header, and no data."""
    older_are_duplicates: bool = False
    """Older messages of a sender are duplicates too, and its acknowledgments never fall; False: only the last one."""
    asks_once: bool = False
    """What comes ahead is kept, what is old ignored, and a gap asked about once; False: each wrong number is a gap."""
    dummy_after: int = 0
    """Messages that a node receives without sending before it sends a dummy; 0: as many as the history holds."""
    elects: bool = False
    """When the sequencer is suspected, the node with the highest number takes over; False: the group aborts."""

    def __post_init__(self) -> None:
        require(self.first_id >= 0, f"first_id must not be negative: {self.first_id}")
        require(self.dummy_after >= 0, f"dummy_after must not be negative: {self.dummy_after}")
        require(
            self.advances_own_row or not self.elects,
            "elects needs advances_own_row: a node that ignores its own broadcasts has no number to be elected by",
        )


class PriorityReadings(ConfigValue, frozen=True, kw_only=True):
    """Readings of the printed PriTO, which leaves open when things are done: each leads to other orders."""

    accepts_own_at_once: bool = False
    """A node accepts its own units when it sends them; False: when the channel brings them back."""
    rises_in_silence: bool = False
    """PACK and ACK run when a node sends after a pause; False: after every acceptance."""
    sorts_preacknowledged: bool = False
    """Data take their places by priority when they are pre-acknowledged; False: when they are accepted."""
    acknowledges_each: bool = False
    """ACK runs after each unit that PACK moves; False: after all of them."""


class PaperRules(ConfigValue, frozen=True, kw_only=True):
    """Readings of the printed rules: the defaults are what is printed; the alternatives show the effect of each."""

    condition_2: LossInference = LossInference.ALL
    """Acceptance condition (2)."""
    duplicates_first: bool = True
    """Test for duplicates before acceptance (the papers print the test last)."""
    verbatim_copies: bool = True
    """A retransmission repeats the acknowledgments of the first transmission; False: it carries fresh ones."""
    buffer_divisor: int = 1
    """H of the flow condition."""
    initial_buffers: int = 1_000_000
    """IBF: buffers of each node."""
    keeps_behind_gap: bool = False
    """ST: a packet that reveals a gap stays in the log where it arrived; False: it is discarded, as ACC has it."""
    preacknowledged_time_out: bool = True
    """ST: packets count as acknowledged some time after they were pre-acknowledged (end of section 3.4)."""
    sends_again_in_time: bool = True
    """ST: packets not accepted in time are retransmitted (end of section 4.1); False: only RR reveals the loss."""
    priority: PriorityReadings = PriorityReadings()
    """Readings of PriTO."""
    sequencer: SequencerReadings = SequencerReadings()
    """Readings of the sequencer."""

    def __post_init__(self) -> None:
        require(self.buffer_divisor >= 1, f"paper.buffer_divisor must be at least 1, not {self.buffer_divisor}")
        require(self.initial_buffers >= 1, f"paper.initial_buffers must be at least 1, not {self.initial_buffers}")


class SequencerConfig(ConfigValue, frozen=True, kw_only=True):
    """The parameters of the sequencer's broadcast, besides the group's window."""

    node: int = 0
    """The first sequencer."""
    history: int = 1024
    """HISTORY_SIZE: broadcasts that the sequencer keeps for retransmission; when it is full, the sequencer waits."""
    history_bytes: int = 0
    """Bytes of broadcasts that it keeps: with so many, the history counts as full before it has `history` of them; 0:
    whatever they take."""
    acknowledge_after: int = msgspec.field(default=0, name="says_after")
    """Broadcasts after which a node that sends nothing acknowledges; 0: three quarters of the history. In files:
    `says_after`."""
    resilience: int = 0
    """r: the nodes besides the sequencer that must hold a broadcast before it is delivered; 0: as published."""
    direct_from: int = 1400
    """Bytes from which a sender broadcasts its data itself and the sequencer only its number; 0: never."""
    suspect_after: int = 8
    """Consecutive unanswered polls after which the others go on without a node."""
    heartbeat: int = 0
    """Interval of heartbeats in an idle group, in nanoseconds; 0: none."""

    def __post_init__(self) -> None:
        require(self.node >= 0, f"sequencer.node must not be negative: {self.node}")
        require(self.history >= 1, f"the history must hold at least 1 broadcast, not {self.history}")
        require(self.history_bytes >= 0, f"sequencer.history_bytes must not be negative: {self.history_bytes}")
        require(
            0 <= self.acknowledge_after <= self.history,
            f"sequencer.says_after must be 0 to {self.history}, the size of the history, not {self.acknowledge_after}",
        )
        require(self.resilience >= 0, f"the resilience must not be negative: {self.resilience}")
        require(self.direct_from >= 0, f"sequencer.direct_from must not be negative: {self.direct_from}")
        require(self.suspect_after >= 1, f"sequencer.suspect_after must be at least 1, not {self.suspect_after}")
        require(self.heartbeat >= 0, f"sequencer.heartbeat must not be negative: {self.heartbeat}")


class GroupConfig(ConfigValue, frozen=True, kw_only=True):
    """The parameters that all nodes of a group share."""

    nodes: int
    """n; 1 only with `views`."""
    rules: Rules = Rules.SOUND
    window: int = 32
    """W: packets that a source may have in flight, not yet accepted by all their destinations."""
    quota: int = 256
    """Buffer places of a node for each source, for packets accepted and not yet delivered."""
    timing: Timing = Timing()
    first_seq: tuple[int, ...] = ()
    """ISS_j: the first sequence number of each node; empty: all zero."""
    log_limit: int = 400
    """ST: packets of one epoch, before the group agrees on a new one."""
    recovery: RecoveryPolicy = RecoveryPolicy.SELECTIVE
    infer_losses: bool = msgspec.field(default=False, name="hearsay")
    """Request early what peers' acknowledgments show to be lost; otherwise the source's poll reveals it. In files:
    `hearsay`."""
    polls_to_abort: int = 64
    """Consecutive unanswered polls of one node after which the group aborts; without effect with `views`."""
    views: bool = False
    """The group is one view of a group whose members change: no machine aborts because a node is silent, SPO and PO
    say what is settled, and the sequencer is place 0 and stays it."""
    polls_late: bool = False
    """ST: a node polls when what it waits for has not come in time; otherwise each of its statuses polls while it
    waits, which costs one more round of statuses when it waits no longer."""
    delivers_stable: bool = False
    """ST, and SPO for packets to all nodes: a packet is delivered when it is pre-acknowledged, which is when it is
    known to be stable, not only when it is acknowledged. That is a round of statuses less, and the second round waits
    for something else to send."""
    priority: PriorityConfig = PriorityConfig()
    paper: PaperRules = PaperRules()
    sequencer: SequencerConfig = SequencerConfig()

    def __post_init__(self) -> None:
        fewest = 1 if self.views else 2
        require(fewest <= self.nodes <= 1024, f"a group has {fewest} to 1024 nodes, not {self.nodes}")
        require(self.window >= 1, f"the window must be at least 1, not {self.window}")
        require(self.quota >= 1, f"the quota must be at least 1, not {self.quota}")
        require(self.log_limit >= 1, f"the log limit must be at least 1, not {self.log_limit}")
        require(self.polls_to_abort >= 1, f"polls_to_abort must be at least 1, not {self.polls_to_abort}")
        require(
            len(self.first_seq) in {0, self.nodes},
            f"first_seq needs one number for each of the {self.nodes} nodes, or none, not {len(self.first_seq)}",
        )
        require(all(seq >= 0 for seq in self.first_seq), f"first_seq must not be negative: {self.first_seq}")
        require(
            self.sequencer.node < self.nodes,
            f"the sequencer must be one of the nodes 0 to {self.nodes - 1}, not {self.sequencer.node}",
        )
        require(
            not self.views or self.sequencer.node == 0,
            f"in a group with views the sequencer is node 0, not {self.sequencer.node}",
        )
        require(not self.views or self.rules is Rules.SOUND, "views need the sound rules")
        require(not self.delivers_stable or self.rules is Rules.SOUND, "delivers_stable needs the sound rules")
        require(  # with views it is reduced to what a small view allows
            self.views or self.sequencer.resilience < self.nodes,
            f"the resilience is at most {self.nodes - 1}, all nodes besides the sequencer, "
            f"not {self.sequencer.resilience}",
        )

    def polls_limit(self) -> int:
        """`polls_to_abort`; 0, with views: however many, the group does not abort."""
        return 0 if self.views else self.polls_to_abort

    def first_seqs(self) -> tuple[int, ...]:
        """The first sequence number of each node."""
        return self.first_seq or (0,) * self.nodes
