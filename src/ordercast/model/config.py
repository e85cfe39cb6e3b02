"""Configurations: frozen values, checked when they are made, that say in one sentence what is wrong.

A `GroupConfig` is what all nodes of a group must agree on. Times are whole nanoseconds.
"""

from enum import Enum

import msgspec

from ordercast.model.errors import ConfigError

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


def require(condition: object, sentence: str) -> None:
    """Refuses a configuration, with the sentence that says what would be right."""
    if not condition:
        raise ConfigError(sentence)


class Rules(Enum):
    """Which rules a protocol follows."""

    SOUND = "sound"
    """The mended rules: the default."""
    PAPER = "paper"
    """The printed rules with only their misprints mended: for examples, evaluation and counterexamples."""


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value that goes to JSON and back; unknown names are refused, not ignored."""


class Timing(ConfigValue, frozen=True, kw_only=True):
    """How long the timers of a protocol run. Each is spread over [T, 2T) by a draw that can be repeated."""

    status: int = 100 * MICROSECOND
    """T_ACK: how long a status may be owed before it is sent by itself."""
    poll: int = 800 * MICROSECOND
    """T_POLL: how long nothing may move before those waited for are asked."""
    cooldown: int = 100 * MICROSECOND
    """T_NACK: the shortest time between two requests for what was newly missed."""
    repeat: int = 600 * MICROSECOND
    """T_RT: how long until everything missing is requested again."""
    guard: int = 200 * MICROSECOND
    """T_GUARD: how long a copy that was sent is not sent again, whoever asks."""
    hearsay: int = 200 * MICROSECOND
    """T_GAP: how long a loss known by hearsay only may settle itself before it is asked about."""
    reset: int = 200 * MICROSECOND
    """T_RST: how long a node that has stopped waits before it says again what it lacks."""
    run: int = 1600 * MICROSECOND
    """T of PriTO: how long an acknowledged packet may be overtaken before its priority run is ended."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            require(getattr(self, name) > 0, f"timing.{name} must be a positive number of nanoseconds")
        require(self.guard < self.repeat, "timing.guard must be shorter than timing.repeat, or repeats are ignored")
        require(self.status < self.poll, "timing.status must be shorter than timing.poll, or answers come too late")

    @classmethod
    def for_round_trip(cls, round_trip: int, least_status: int = 0) -> "Timing":
        """Timers for a network whose round trip takes so long; `least_status` for receivers that are slow."""
        require(round_trip >= 0, "the round trip must not be negative")
        round_trip = max(round_trip, 2 * MICROSECOND)
        status = max(round_trip // 2, least_status)
        poll = 2 * (round_trip + 2 * status)
        return cls(
            status=status,
            poll=poll,
            cooldown=status,
            repeat=2 * round_trip + 2 * status,
            guard=round_trip,
            hearsay=round_trip,
            reset=max(round_trip, 2 * status),  # all answer at once, and slow receivers take their time
            run=2 * poll,  # twice what it takes until a packet is acknowledged
        )


class Recovery(Enum):
    """What ST sends again after a loss."""

    SELECTIVE = "selective"
    """What somebody lacks."""
    GO_BACK_N = "go-back-n"
    """That, and everything behind it: what the paper compares itself with."""


class HearsayRule(Enum):
    """Which nodes acceptance condition (2) of the printed SPO, p.ACK_h <= TREQ_h, is asked for."""

    ALL = "all"
    """h = 1..n, as printed; with h = source a lost foreign unit shuts its source out for good."""
    OTHERS = "others"
    """h other than the source."""
    NONE = "none"
    """Not asked at all."""


class PriorityConfig(ConfigValue, frozen=True, kw_only=True):
    """What PriTO and PriO do about priorities."""

    synchronises: bool = True
    """End a priority run when an acknowledged packet has been overtaken for long; without it packets may starve."""


class SequencerReadings(ConfigValue, frozen=True, kw_only=True):
    """Readings of the printed sequencer: the default is what is printed; each of the others mends one thing."""

    first_id: int = 0
    """The first MessageId, where MessageNr[] starts at 0; 1: no first message counts as a duplicate."""
    acknowledges_last: bool = False
    """What a node says is the last number that it received; False: the next that it expects, taken for the last."""
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
    """When the sequencer seems to have failed, the node with the highest number takes over; False: all is over."""

    def __post_init__(self) -> None:
        require(self.first_id >= 0, "first_id must not be negative")
        require(self.dummy_after >= 0, "dummy_after must not be negative")
        require(
            self.advances_own_row or not self.elects,
            "elects needs advances_own_row: who does not count its own broadcasts has no number to be elected by",
        )


class PriorityReadings(ConfigValue, frozen=True, kw_only=True):
    """Readings of the printed PriTO, which says little of when things are done: each leads to other orders."""

    accepts_own_at_once: bool = False
    """A node accepts its own units when it sends them; False: when the channel brings them back."""
    rises_in_silence: bool = False
    """PACK and ACK run when a node's own silence ends; False: after every acceptance."""
    sorts_preacknowledged: bool = False
    """Data take their places by priority when they are pre-acknowledged; False: when they are accepted."""
    acknowledges_each: bool = False
    """ACK runs after each unit that PACK moves; False: after all of them."""


class PaperRules(ConfigValue, frozen=True, kw_only=True):
    """Readings of the printed rules: the default is what is printed; the others show what each is worth."""

    condition_2: HearsayRule = HearsayRule.ALL
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
    """ST: what shows a gap stays in the log at the place where it came; False: it is thrown away, as ACC has it."""
    preacknowledged_time_out: bool = True
    """ST: what has been pre-acknowledged for long counts as acknowledged (the end of section 3.4)."""
    sends_again_in_time: bool = True
    """ST: what is not accepted in time is sent again (the end of section 4.1); False: RR alone shows the loss."""
    priority: PriorityReadings = PriorityReadings()
    """Those of PriTO."""
    sequencer: SequencerReadings = SequencerReadings()
    """Those of the sequencer."""

    def __post_init__(self) -> None:
        require(self.buffer_divisor >= 1, "paper.buffer_divisor must be at least 1")
        require(self.initial_buffers >= 1, "paper.initial_buffers must be at least 1")


class SequencerConfig(ConfigValue, frozen=True, kw_only=True):
    """What only the sequencer's broadcast asks. How many sends may be under way at once is the group's window."""

    node: int = 0
    """The node that is the sequencer at first."""
    history: int = 1024
    """HISTORY_SIZE: broadcasts that the sequencer keeps for those who may lack them; when it is full it waits."""
    says_after: int = 0
    """Broadcasts after which a node that sends nothing says that it has them; 0 is three quarters of the history."""
    resilience: int = 0
    """r: the nodes besides the sequencer that must hold a broadcast before anybody delivers it; 0 is as published."""
    direct_from: int = 1400
    """Bytes from which a sender broadcasts its data itself and the sequencer only their number; 0 is never."""
    suspect_after: int = 8
    """Questions in a row that a node may leave unanswered before the others go on without it."""
    heartbeat: int = 0
    """How long a group at rest may be silent before it shows that it lives, in nanoseconds; 0: as long as it likes."""

    def __post_init__(self) -> None:
        require(self.node >= 0, "sequencer.node must not be negative")
        require(self.history >= 1, f"the history must hold at least 1 broadcast, not {self.history}")
        require(
            0 <= self.says_after <= self.history,
            f"a node must say what it has before the history of {self.history} is full, not after {self.says_after}",
        )
        require(self.resilience >= 0, "the resilience must not be negative")
        require(self.direct_from >= 0, "sequencer.direct_from must not be negative")
        require(self.suspect_after >= 1, "sequencer.suspect_after must be at least 1")
        require(self.heartbeat >= 0, "sequencer.heartbeat must not be negative")


class GroupConfig(ConfigValue, frozen=True, kw_only=True):
    """What all nodes of a group agree on before the first message."""

    nodes: int
    """n."""
    rules: Rules = Rules.SOUND
    window: int = 32
    """W: packets that a source may have under way, not yet accepted by all their destinations."""
    quota: int = 256
    """Places that a node keeps for each source, for what it accepted and has not delivered."""
    timing: Timing = Timing()
    first_seq: tuple[int, ...] = ()
    """ISS_j: the first number of each node; empty is all zero."""
    log_limit: int = 400
    """Packets of one epoch that a node keeps the order of, before the group agrees on a new one; only ST has epochs."""
    recovery: Recovery = Recovery.SELECTIVE
    hearsay: bool = False
    """Ask early about losses that only others' acknowledgments show; without it the source's poll shows them."""
    polls_to_abort: int = 64
    """Polls in a row that one node may leave unanswered before the group is given up."""
    priority: PriorityConfig = PriorityConfig()
    paper: PaperRules = PaperRules()
    sequencer: SequencerConfig = SequencerConfig()

    def __post_init__(self) -> None:
        require(2 <= self.nodes <= 1024, f"a group has 2 to 1024 nodes, not {self.nodes}")
        require(self.window >= 1, f"the window must be at least 1, not {self.window}")
        require(self.quota >= 1, f"the quota must be at least 1, not {self.quota}")
        require(self.log_limit >= 1, f"the log limit must be at least 1, not {self.log_limit}")
        require(self.polls_to_abort >= 1, "polls_to_abort must be at least 1")
        require(
            len(self.first_seq) in {0, self.nodes},
            f"first_seq must name one number for each of the {self.nodes} nodes, or none at all",
        )
        require(all(seq >= 0 for seq in self.first_seq), "first_seq must not be negative")
        require(
            self.sequencer.node < self.nodes,
            f"the sequencer must be one of the nodes 0 to {self.nodes - 1}, not {self.sequencer.node}",
        )
        require(
            self.sequencer.resilience < self.nodes,
            f"the resilience is at most {self.nodes - 1}, all nodes besides the sequencer, "
            f"not {self.sequencer.resilience}",
        )

    def first_seqs(self) -> tuple[int, ...]:
        """The first number of each node."""
        return self.first_seq or (0,) * self.nodes
