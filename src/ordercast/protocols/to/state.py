"""The variables of the broadcasts in channel order at one node, with the paper's symbols beside them.

What changes them are the rules in `to_normal` and `to`, and in `prito` for what is its own.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from operator import attrgetter
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.model.units import Packet
from ordercast.protocols.to.log import UnanimousLog
from ordercast.protocols.to.units import Sequenced, Vector


class Mode(Enum):
    """Whether the group goes back."""

    NORMAL = "normal"
    RESET = "reset"
    """I have stopped, and collect what all have."""
    WAIT = "wait"
    """I know what all keep, but not yet that all know."""


_SCALARS = (
    "next_seq", "next_packet", "next_message", "stamp", "epoch", "mode", "unsettled", "thrown_below", "allowance",
    "unpreacknowledged", "preacknowledged_count", "acknowledged_count", "delivered_count", "owes", "owes_in_sequence",
    "unsaid", "moved", "status_timer", "poll_timer", "patience", "installed", "aborted",
)  # fmt: skip
_VECTORS = (
    "expected", "accepted_packets", "delivered_by", "unanswered", "vectors",
)  # fmt: skip
_DEQUES = ("waiting", "sent", "again", "own_places")
_scalars, _vectors, _deques = attrgetter(*_SCALARS), attrgetter(*_VECTORS), attrgetter(*_DEQUES)


class ToState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._nodes, self._my_bit, self._everybody = nodes, 1 << me, everybody(nodes)
        self._prompt = max(1, config.window // 2)  # data units that may go unsaid

        # Sending.
        self.next_seq = first[me]  # SEQ, of what is in sequence
        self.next_packet = first[me]
        self.next_message = 0
        self.waiting: deque[Submit] = deque()  # submitted, but the window is closed
        self.sent: deque[tuple[int, Packet]] = deque()  # SL: seq and packet of my data that I have not pre-acknowledged
        self.again: deque[Packet] = deque()  # thrown away by all, and to be sent again
        self.thrown_below = first[me]  # my packets below this have been thrown away once
        self.allowance = config.window  # packets that I may have under way: W, or less after a loss
        self.unsettled = 0  # my packets that I do not know to be delivered everywhere
        self.own_places: deque[int] = deque()  # of those that I have delivered: their places in the common sequence

        # Receiving, by source. My own units count when the channel brings them back.
        self.expected = list(first)  # REQ_j
        self.accepted_packets = list(first)  # packets below this have been accepted at least once
        self.delivered_by = [0] * nodes  # how many packets each node has delivered, as it said last

        # The three levels. The order of `accepted` is that of the channel; PEQ_j is implied by it.
        accepted_below: list[Sequence[int]] = [first] * nodes  # AL: accepted_below[node][source]
        acknowledges_below: list[Sequence[int]] = [first] * nodes  # PAL: likewise
        self.accepted: UnanimousLog[Sequenced] = UnanimousLog(accepted_below)  # RRL
        self.preacknowledged: UnanimousLog[Packet] = UnanimousLog(acknowledges_below)  # PRL, in channel order
        self.unpreacknowledged = 0  # data and markers in `accepted`
        self.preacknowledged_count = 0  # packets of the common sequence that were pre-acknowledged here
        self.acknowledged_count = 0
        self.delivered_count = 0

        # Debts and patience.
        self.stamp = 0
        self.owes = False  # somebody may wait to hear what I have accepted
        self.owes_in_sequence = False  # and must hear it at a place in the sequence
        self.unsaid = 0  # data units accepted since I last said what I have accepted
        self.status_timer = self.poll_timer = False
        self.moved = False
        self.patience = 1
        self.unanswered = [0] * nodes

        # Going back.
        self.epoch = 0
        self.mode = Mode.NORMAL
        self.vectors: list[Vector | None] = [None] * nodes  # VEC; none are left when an epoch begins
        self.installed = 0  # INST: the nodes that know what all keep, one bit each
        self.aborted = False

    def unfinished(self) -> bool:
        """Whether I wait for anything that others can tell me."""
        return bool(self.waiting or self.again or self.sent or self.unpreacknowledged or self.preacknowledged.entries)

    def blockers(self) -> int:
        """Everybody that I wait for."""
        if self.mode is Mode.RESET:
            mask = sum(1 << node for node, vector in enumerate(self.vectors) if vector is None)
        elif self.mode is Mode.WAIT:
            mask = self._everybody & ~self.installed
        else:
            mask = self.accepted.blockers() | self.preacknowledged.blockers()
            if self.sent:
                seq, me = self.sent[0][0], self.me
                mask |= sum(1 << node for node, column in enumerate(self.accepted.columns) if column[me] <= seq)
            if self.waiting:
                count = self.delivered_count
                mask |= sum(1 << node for node, delivered in enumerate(self.delivered_by) if delivered < count)
        return mask & ~self._my_bit

    # --- looking at it from outside ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        return (
            _scalars(self),
            tuple(map(tuple, _vectors(self))),
            tuple(map(tuple, _deques(self))),
            tuple(self.accepted.entries),
            tuple(map(tuple, self.accepted.columns)),
            tuple(self.preacknowledged.entries),
            tuple(map(tuple, self.preacknowledged.columns)),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, vectors, deques, accepted, accepted_below, preacknowledged, acknowledges_below, *_ = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip(_VECTORS, vectors, strict=True):
            setattr(self, name, list(values))
        for name, values in zip(_DEQUES, deques, strict=True):
            setattr(self, name, deque(values))
        self.accepted.refill(accepted, accepted_below)
        self.preacknowledged.refill(preacknowledged, acknowledges_below)
        risen = [*self.accepted.rise(), *self.preacknowledged.rise()]
        assert not risen, "a snapshot is taken between transitions, when all that could rise has risen"

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent) + len(self.again),
            held=0,
            accepted=len(self.accepted.entries),
            preacknowledged=len(self.preacknowledged.entries),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words."""
        lines = []
        if self.waiting:
            lines.append(f"{len(self.waiting)} submissions wait for the window")
        if self.again:
            lines.append(f"{len(self.again)} packets wait to be sent again")
        if self.mode is Mode.RESET:
            lines.append(f"epoch {self.epoch + 1} is being agreed on; {names_of(self.blockers())} have not said what")
        elif self.mode is Mode.WAIT:
            lines.append(f"epoch {self.epoch} waits until {names_of(self.blockers())} know what is kept")
        else:
            if self.sent:
                lines.append(f"{len(self.sent)} packets sent are not known to be accepted by all")
            if self.unpreacknowledged:
                who = names_of(self.accepted.blockers())
                lines.append(f"{self.unpreacknowledged} units heard wait to be known as accepted by {who}")
            if self.preacknowledged.entries:
                who = names_of(self.preacknowledged.blockers())
                number = len(self.preacknowledged.entries)
                lines.append(f"{number} packets wait to be known as pre-acknowledged by {who}")
        return tuple(lines)
