"""Recovery of ST after a loss: all nodes stop, agree on one order of the epoch, and retransmit what any of them lacks.

From: Tachikawa and Takizawa, section 4, with the departures that `machine` lists. A node that detects a loss
(`loss_detection`) stops and says what it holds of the running epoch and in which order (ResetReply); all that receive
it stop too. A node that has the replies of all nodes knows the one order that all agree on (`agreed_order`), requests
what it lacks (ResetNeed), and announces when it lacks nothing (ResetDone). When all nodes have announced that, the
epoch is finished.

Whatever is not answered is repeated, with exponential back-off, by naming what is lacking (S9).
"""

from collections import deque
from typing import Final

from ordercast.model.config import RecoveryPolicy
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Output, Reached, Resumed, Send, SetTimer, Stopped
from ordercast.model.nodes import mask_of, name_of, names_of
from ordercast.model.units import Packet, PacketId
from ordercast.protocols.shared.reasons import STOPPED_BY_PEER
from ordercast.protocols.spo.units import Data
from ordercast.protocols.st.agreed_order import agreed_order, go_back_point, known_packets
from ordercast.protocols.st.channel_logs import OWN
from ordercast.protocols.st.normal_operation import ACCEPTED, PREACKNOWLEDGED, NormalOperation
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply


class Recovery(DeclaredState):
    """The agreement on one epoch."""

    normal: Final[NormalOperation]
    active: bool  # from the detection of a loss until all nodes lack nothing
    replies: list[ResetReply | None]  # by node
    order: tuple[PacketId, ...] | None  # agreed, once all replies are here
    removed: set[PacketId]  # go-back-n: discarded by all nodes, and sent again in the next epoch
    missing: set[PacketId]  # packets to me of the agreed order that I lack
    requested: int  # how many were missing when the order was agreed on
    done: int  # the nodes that lack nothing, as a bit mask
    reply_sent: bool  # since the reset timer was set
    done_sent: bool  # since the reset timer was set
    resent: set[int]  # own seqs, since the reset timer was set
    answered_late_node: bool  # a short time ago
    delayed_needs: list[ResetNeed]  # unanswered before, at most one of each node; answered after a while

    def __init__(self, normal: NormalOperation) -> None:
        self.normal = normal
        self.requested, self.answered_late_node, self.delayed_needs = 0, False, []
        self.removed, self.resent = set(), set()
        self._reset()

    def _reset(self) -> None:
        self.active, self.order, self.done, self.missing = False, None, 0, set()
        self.replies = [None] * self.normal.nodes
        self.reply_sent = self.done_sent = False
        self.resent.clear()

    def is_complete(self) -> bool:
        """True if no node lacks anything: the epoch can be finished."""
        return self.done == self.normal.everybody

    # --- stopping and agreeing on an order ---

    def start(self, why: str, out: list[Output]) -> None:
        """Stops, and broadcasts what I hold of this epoch; that reply never changes."""
        normal = self.normal
        self.active = True
        out.append(Stopped(why))
        reply = ResetReply(
            normal.me,
            normal.epoch,
            *normal.next_numbers(),
            tuple([(packet.seq, packet.destinations) for packet in normal.accepted.logs[OWN]]),
            tuple([(packet.source, packet.seq, packet.destinations) for packet in normal.log]),
            normal.preacknowledged_count,
        )
        received = {(packet.source, packet.seq) for packet in normal.log}
        for packet in normal.accepted.logs[OWN]:  # a packet to myself is never lost to me
            if packet.destinations & normal.my_bit and (normal.me, packet.seq) not in received:
                normal.unplaced[normal.me, packet.seq] = packet
        normal.backoff.restart()
        self.reply_sent = True
        out.append(Send(reply))
        normal.set_timer("reset", normal.config.timing.reset, out)
        self.take_reply(reply, out)

    def receive(self, unit: ResetReply | ResetNeed | ResetDone, out: list[Output]) -> None:
        """A unit of a recovery, perhaps of the one before, which its sender has not finished."""
        epoch = self.normal.epoch
        if type(unit) is ResetReply and unit.preacknowledged > len(unit.log):
            out.append(Discard(unit, "impossible"))
        elif unit.epoch == epoch:
            if type(unit) is ResetDone:
                self.take_done(1 << unit.source)
                return
            if not self.active:
                self.start(STOPPED_BY_PEER, out)
            if type(unit) is ResetReply:
                self.take_reply(unit, out)
            elif type(unit) is ResetNeed:
                self.receive_need(unit, out)
        elif unit.epoch == epoch - 1:
            if type(unit) is ResetReply:
                self.answer_late_node(out)
            elif type(unit) is ResetNeed and not unit.done & self.normal.my_bit:
                self.receive_need(unit, out)

    def take_reply(self, reply: ResetReply, out: list[Output]) -> None:
        """Keeps the first reply of each node; with the last one the order is agreed on."""
        normal = self.normal
        if self.replies[reply.source] is not None:
            return
        self.replies[reply.source] = reply
        normal.backoff.progress = True
        replies = self._all_replies()
        if len(replies) < normal.nodes:
            return
        going_back = normal.config.recovery is RecoveryPolicy.GO_BACK_N
        order = agreed_order(replies, incomplete_last=going_back)
        if order is None:
            normal.abort("the channel did not keep one order", out)
            return
        if going_back:
            point = go_back_point(order, replies)
            order, self.removed = order[:point], set(order[point:])
        self.order = tuple(order)
        held = {(packet.source, packet.seq) for packet in normal.log} | set(normal.unplaced)
        destinations = known_packets(replies)
        self.missing = {key for key in order if destinations[key] & normal.my_bit and key not in held}
        self.requested = len(self.missing)
        if self.missing:
            self.request_missing(out)
            # Set anew: it would otherwise fire before an answer can come.
            normal.set_timer("reset", normal.config.timing.reset, out)
        else:
            self.announce_done(out)

    def _all_replies(self) -> list[ResetReply]:
        return [reply for reply in self.replies if reply is not None]

    # --- retransmission ---

    def keep_packet(self, packet: Packet, out: list[Output]) -> None:
        """Keeps a packet that comes during recovery: its place is the agreed one, not that at which it comes."""
        normal, key = self.normal, (packet.source, packet.seq)
        if not packet.destinations & normal.my_bit or key in normal.unplaced:
            return
        if self.order is None:
            if packet.seq >= normal.expected[packet.source]:
                normal.unplaced[key] = packet
        elif key in self.missing:
            normal.unplaced[key] = packet
            self.missing.remove(key)
            normal.backoff.progress = True
            if not self.missing:
                self.announce_done(out)

    def request_missing(self, out: list[Output]) -> None:
        """Sends what I still wait for: replies, packets, and the announcements of others that they lack nothing."""
        normal = self.normal
        has = mask_of(node for node, reply in enumerate(self.replies) if reply is not None)
        missing = tuple(sorted(self.missing))
        out.append(Send(ResetNeed(normal.me, normal.epoch, has, missing, self.done, normal.backoff.factor)))

    def receive_need(self, need: ResetNeed, out: list[Output]) -> None:
        """Answers at once, but after a random delay if the node asks again: simultaneous answers may overrun it."""
        if need.backoff == 1:
            self.answer_need(need, out)
            return
        reset = self.normal.config.timing.reset
        if not self.delayed_needs:
            out.append(SetTimer("help", self.normal.spread(reset) - reset))
        for at, earlier in enumerate(self.delayed_needs):
            if earlier.source == need.source:
                self.delayed_needs[at] = need
                return
        self.delayed_needs.append(need)

    def answer_delayed_needs(self, out: list[Output]) -> None:
        """The delay is over."""
        needs, self.delayed_needs = self.delayed_needs, []
        for need in needs:
            self.answer_need(need, out)

    def answer_need(self, need: ResetNeed, out: list[Output]) -> None:
        """Sends what another node lacks, each thing at most once between two of my own reset timers."""
        normal = self.normal
        if need.epoch != normal.epoch:
            self.answer_late_node(out)
            return
        own = self.replies[normal.me]
        if not need.has & normal.my_bit and not self.reply_sent:
            assert own is not None
            self.reply_sent = True
            out.append(Send(own))
        wanted = {seq for source, seq in need.missing if source == normal.me} - self.resent
        for packet in normal.accepted.logs[OWN]:
            if packet.seq in wanted:
                self.resent.add(packet.seq)
                out.append(Send(Data(packet, normal.status()), again=True))
        if self.done & normal.my_bit and not need.done & normal.my_bit and not self.done_sent:
            self.done_sent = True
            out.append(Send(ResetDone(normal.me, normal.epoch)))

    def answer_late_node(self, out: list[Output]) -> None:
        """A node that has not finished the last epoch can lack only ResetDones, which are themselves never answered."""
        if not self.answered_late_node:
            self.answered_late_node = True
            out.append(Send(ResetDone(self.normal.me, self.normal.epoch - 1)))
            self.normal.set_timer("answer", max(1, self.normal.config.timing.reset // 2), out)

    # --- finishing the epoch ---

    def announce_done(self, out: list[Output]) -> None:
        """I have everything of this epoch that is to me: it is accepted, and announced to everybody."""
        normal = self.normal
        assert self.order is not None
        accepted = len(normal.log) - normal.last_shows_gap
        known = {(packet.source, packet.seq) for packet in normal.log[:accepted]}
        known |= normal.accepted_before
        out += [
            Reached(ACCEPTED, packet) for packet in self.agreed_packets() if (packet.source, packet.seq) not in known
        ]
        normal.accepted_before -= set(self.order)
        self.done_sent = True
        out.append(Send(ResetDone(normal.me, normal.epoch)))
        self.take_done(normal.my_bit)

    def take_done(self, node: int) -> None:
        """A node, given as a bit, lacks nothing."""
        if self.active and not self.done & node:
            self.done |= node
            self.normal.backoff.progress = True

    def agreed_packets(self) -> list[Packet]:
        """The packets to me of the agreed order, in that order."""
        assert self.order is not None
        held: dict[PacketId, Packet] = {(packet.source, packet.seq): packet for packet in self.normal.log}
        held |= self.normal.unplaced
        return [held[key] for key in self.order if key in held]

    def finish(self, out: list[Output]) -> None:
        """Hands what the epoch left over to `FinishedEpochs`, and sets the numbers with which the next one begins."""
        normal, agreed = self.normal, self.agreed_packets()
        delivered, preacknowledged = normal.acknowledged_count, normal.preacknowledged_count
        # Whatever others replied: my own log is one of those that the order was made from.
        begun = preacknowledged if normal.config.delivers_stable else delivered
        assert agreed[:begun] == normal.log[:begun], "the agreed order must extend what was delivered"
        normal.finished.delivered |= {(packet.source, packet.seq) for packet in normal.log[delivered:begun]}
        known = {(packet.source, packet.seq) for packet in normal.log[:preacknowledged]}
        out += [Reached(PREACKNOWLEDGED, packet) for packet in agreed if (packet.source, packet.seq) not in known]
        out.append(self._resumed(agreed))
        left = agreed[delivered:]
        for packet in normal.accepted.logs[OWN]:
            if not packet.destinations & normal.my_bit and (normal.me, packet.seq) not in self.removed:
                out.append(Reached(PREACKNOWLEDGED, packet))
                left.append(packet)
        normal.finished.extend(normal.epoch, [*left, *normal.preacknowledged.logs[OWN]])
        replies = self._all_replies()
        normal.expected = [reply.next_seq for reply in replies]
        normal.expected_to_me = [reply.next_seq_to[normal.me] for reply in replies]
        self._go_back(known_packets(replies) if self.removed else {})
        self._reset()

    def _resumed(self, agreed: list[Packet]) -> Resumed:
        received = {(packet.source, packet.seq) for packet in self.normal.log}
        places = [place for place, packet in enumerate(agreed) if (packet.source, packet.seq) not in received]
        return Resumed(self.requested, len(places), len(agreed) - places[0] if len(places) > 1 else 0)

    def _go_back(self, destinations: dict[PacketId, int]) -> None:
        """Go-back-n: removed packets are expected again, and sent again by their source."""
        normal = self.normal
        accepted = {(packet.source, packet.seq) for packet in normal.log[: len(normal.log) - normal.last_shows_gap]}
        normal.accepted_before |= accepted & self.removed
        for source, seq in self.removed:
            normal.expected[source] = min(normal.expected[source], seq)
            normal.expected_to_me[source] -= destinations[source, seq] >> normal.me & 1
        own = [packet for packet in normal.accepted.logs[OWN] if (normal.me, packet.seq) in self.removed]
        normal.to_resend = deque([*own, *normal.to_resend])
        self.removed = set()

    # --- timers ---

    def reset_timer_fired(self, out: list[Output]) -> None:
        """Repeats what I wait for; what others lack may be sent to them again too."""
        normal = self.normal
        self.reply_sent = self.done_sent = False
        self.resent.clear()
        if normal.backoff.advance() and normal.abort_if_unanswered(self.blockers(), out):
            return
        self.request_missing(out)
        normal.set_timer("reset", normal.config.timing.reset * normal.backoff.factor, out)

    # --- inspection ---

    def blockers(self) -> int:
        """The nodes from which a reply, a packet or a ResetDone is missing, as a bit mask."""
        normal = self.normal
        replied = mask_of(node for node, reply in enumerate(self.replies) if reply is not None)
        sources = mask_of({source for source, _ in self.missing})
        return (normal.everybody & ~(replied & self.done) | sources) & ~normal.my_bit

    def waits_for(self) -> list[str]:
        """What this node still waits for, as text."""
        normal = self.normal
        silent = mask_of(node for node, reply in enumerate(self.replies) if reply is None)
        lines = [f"epoch {normal.epoch} is being agreed on"]
        if silent:
            lines.append(f"the replies of {names_of(silent)} are missing")
        lines += [f"the packet {seq} of {name_of(source)} is missing" for source, seq in sorted(self.missing)]
        lines.append(f"{names_of(normal.everybody & ~self.done)} may still lack something")
        return lines
