"""ST: any subset, in one order for all common destinations, on one channel that loses units.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel" (section 4;
section 3 is in `st_normal`). These are the `sound` rules; the printed ones, and why they do not do, are in `st_paper`
and in docs/protocols/st.md.

Recovery. A node that sees a gap stops, and says what it holds of the running epoch and in which order (ResetReply);
whoever hears that stops too. When a node has the replies of all, it knows the one order that they agree on
(`st_order`), asks for what it lacks (ResetNeed), and says so when it lacks nothing (ResetDone). When all have said so,
the epoch is finished and the next one begins.

Departures from the paper:
 1. A packet is pre-acknowledged when *all* nodes have heard it (Lemma A; S3).
 2. A reply carries the whole log of the epoch, never changes, and does the work of RST: however many nodes see a gap,
    there is one agreement (S4, S5, S6, S7, S12). A new epoch begins when a log gets long, so that logs stay bounded.
 3. One merge keeps what is determined and sorts what is free; one loss and several are no cases apart (S1, S2, S8).
 4. Whatever is not answered is said again, by naming what is lacking (S9).
 5. Acknowledgment rests on what nodes say they have pre-acknowledged, never on a time-out (S10, S13).
 6. A status without data consumes no number and is sent while anybody waits; when nobody waits, nobody speaks.

A channel that does not keep one order is told by a cycle in the merge, and the group is given up.
"""

from collections import deque

from ordercast.model.config import Recovery
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    GiveUp,
    Input,
    Output,
    Reached,
    Receive,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import members, name_of
from ordercast.model.units import MessageId, Packet, Unit
from ordercast.protocols.shared.watched_logs import UNBOUNDED
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.normal import ACCEPTED, PREACKNOWLEDGED, StNormal
from ordercast.protocols.st.order import agreed_order, go_back_point, known_packets
from ordercast.protocols.st.state import LOG, OWN
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply

MOST_PATIENT = 4
"""Statuses and needs back off by doubling while nothing moves, up to this many times their duration."""


class St(StNormal):
    """The protocol at one node."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        if type(event) is GiveUp:
            self._abort(event.why, out)
            return out
        if type(event) is Receive:
            self._receive(event.unit, out)
        elif type(event) is Submit:
            self._submit(event)
        elif type(event) is TimerFired:
            self._fire(event.name, out)
        elif self.news and not self.frozen:  # Drained; to answer questions at once would only raise more
            self._send_ready(out)
        if not (self.frozen or self.aborted):
            if self.waiting or self.again:
                self._send_waiting(out)
            if (self.owes or self.unfinished()) and not self.status_timer:
                self.status_timer, self.status_paid, self.moved, self.patience = True, False, False, 1
                self._set_timer("status", self.config.timing.status, out)
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        if type(unit) is Data or type(unit) is Ready:
            self._hear_of(unit.source, unit.status.epoch, out)
            self._receive_in_epoch(unit, unit.status.epoch, out)
        elif type(unit) is ResetReply or type(unit) is ResetNeed or type(unit) is ResetDone:
            if unit.source != self.me:
                if type(unit) is not ResetDone:  # which is said of finished epochs too, and proves nothing
                    self._hear_of(unit.source, unit.epoch, out)
                self._receive_reset(unit, unit.epoch, out)
        else:
            out.append(Discard(unit, "stray"))

    def _hear_of(self, source: int, epoch: int, out: list[Output]) -> None:
        self.unanswered[source] = 0
        if epoch > self.epoch_seen[source]:
            self.epoch_seen[source] = epoch
            self._deliver_old(out)

    def _receive_in_epoch(self, unit: Data | Ready, epoch: int, out: list[Output]) -> None:
        if epoch == self.epoch + 1:
            self._keep_for_later(unit)
        elif epoch != self.epoch:
            out.append(Discard(unit, "old"))
        elif self.frozen:
            if type(unit) is Data:
                self._keep_content(unit.packet, out)
        else:
            whole = self._receive_data(unit, out) if isinstance(unit, Data) else self._receive_ready(unit, out)
            if not whole:
                self._freeze("gap", out)
            elif len(self.log) > self.config.log_limit:
                self._freeze("long log", out)
            elif self.unsaid[unit.source] >= self._prompt:
                self._send_ready(out)

    def _keep_for_later(self, unit: Data | Ready) -> None:
        """A newer status says all that an older one of the same node said."""
        if type(unit) is Ready:
            self.future = [kept for kept in self.future if type(kept) is not Ready or kept.source != unit.source]
        self.future.append(unit)

    # --- recovery (4) ---

    def _freeze(self, why: str, out: list[Output]) -> None:
        """Stops, and says what I hold of this epoch; that never changes any more."""
        self.frozen = True
        out.append(Stopped(why))
        reply = ResetReply(
            self.me,
            self.epoch,
            *self.next_numbers(),
            tuple([(packet.seq, packet.destinations) for packet in self.accepted.rows[OWN]]),
            tuple([(packet.source, packet.seq, packet.destinations) for packet in self.log]),
            self.preacknowledged_count,
        )
        heard = {(packet.source, packet.seq) for packet in self.log}
        for packet in self.accepted.rows[OWN]:  # what I sent to myself I need not lose
            if packet.destinations & self._my_bit and (self.me, packet.seq) not in heard:
                self.contents[self.me, packet.seq] = packet
        self.patience, self.moved = 1, False
        self.reply_said = True
        out.append(Send(reply))
        self._set_timer("reset", self.config.timing.reset, out)
        self._take_reply(reply, out)

    def _receive_reset(self, unit: ResetReply | ResetNeed | ResetDone, epoch: int, out: list[Output]) -> None:
        if type(unit) is ResetReply and unit.preacknowledged > len(unit.log):
            out.append(Discard(unit, "impossible"))
        elif epoch == self.epoch:
            if type(unit) is ResetDone:
                self._take_done(1 << unit.source, out)
                return
            if not self.frozen:
                self._freeze("told", out)
            if type(unit) is ResetReply:
                self._take_reply(unit, out)
            elif type(unit) is ResetNeed:
                self._hear_need(unit, out)
        elif epoch == self.epoch - 1:
            if type(unit) is ResetReply:
                self._help_late(out)
            elif type(unit) is ResetNeed and not unit.done & self._my_bit:
                self._hear_need(unit, out)

    def _take_reply(self, reply: ResetReply, out: list[Output]) -> None:
        if self.replies[reply.source] is not None:
            return
        self.replies[reply.source] = reply
        self.moved = True
        replies = [known for known in self.replies if known is not None]
        if len(replies) < self._nodes:
            return
        going_back = self.config.recovery is Recovery.GO_BACK_N
        self.order = agreed_order(replies, unheard_last=going_back)
        if self.order is None:
            self._abort("the channel did not keep one order", out)
            return
        if going_back:
            point = go_back_point(self.order, replies)
            self.order, self.removed = self.order[:point], set(self.order[point:])
        have = {(packet.source, packet.seq) for packet in self.log} | set(self.contents)
        destined = known_packets(replies)
        self.missing = {key for key in self.order if destined[key] & self._my_bit and key not in have}
        self.asked = len(self.missing)
        if self.missing:
            self._say_need(out)
            self._set_timer("reset", self.config.timing.reset, out)  # anew, or it would be quicker than the answer
        else:
            self._be_done(out)

    def _keep_content(self, packet: Packet, out: list[Output]) -> None:
        """What comes now has a body, but no place: its place is agreed upon."""
        key = (packet.source, packet.seq)
        if not packet.destinations & self._my_bit or key in self.contents:
            return
        if self.order is None:
            if packet.seq >= self.expected[packet.source]:
                self.contents[key] = packet
        elif key in self.missing:
            self.contents[key] = packet
            self.missing.remove(key)
            self.moved = True
            if not self.missing:
                self._be_done(out)

    def _say_need(self, out: list[Output]) -> None:
        has = sum(1 << node for node, reply in enumerate(self.replies) if reply is not None)
        out.append(Send(ResetNeed(self.me, self.epoch, has, tuple(sorted(self.missing)), self.done, self.patience)))

    def _hear_need(self, need: ResetNeed, out: list[Output]) -> None:
        """Answers at once; but if that was in vain before, all of us may have answered at once, and overrun it."""
        if need.patience == 1:
            self._help(need, out)
            return
        if not self.unhelped:
            out.append(SetTimer("help", self._spread(self.config.timing.reset) - self.config.timing.reset))
        self.unhelped[need.source] = need

    def _help(self, need: ResetNeed, out: list[Output]) -> None:
        """Says what another one lacks, each thing at most once between two of my own reset timers."""
        if need.epoch != self.epoch:
            self._help_late(out)
            return
        own = self.replies[self.me]
        if not need.has & self._my_bit and not self.reply_said:
            assert own is not None
            self.reply_said = True
            out.append(Send(own))
        wanted = {seq for source, seq in need.missing if source == self.me} - self.resent
        for packet in self.accepted.rows[OWN]:
            if packet.seq in wanted:
                self.resent.add(packet.seq)
                out.append(Send(Data(packet, self._status()), again=True))
        if self.done & self._my_bit and not need.done & self._my_bit and not self.done_said:
            self.done_said = True
            out.append(Send(ResetDone(self.me, self.epoch)))

    def _help_late(self, out: list[Output]) -> None:
        """A node that is late can lack only the word that others are done. That word itself is never answered."""
        if not self.answered:
            self.answered = True
            out.append(Send(ResetDone(self.me, self.epoch - 1)))
            self._set_timer("answer", max(1, self.config.timing.reset // 2), out)

    def _be_done(self, out: list[Output]) -> None:
        """I have everything of this epoch that is for me: it is accepted, and everybody may know."""
        assert self.order is not None
        accepted = len(self.log) - self.holds_last
        known = {(packet.source, packet.seq) for packet in self.log[:accepted]}
        known |= self.once_accepted
        out += [Reached(ACCEPTED, packet) for packet in self._mine() if (packet.source, packet.seq) not in known]
        self.once_accepted -= set(self.order)
        self.done_said = True
        out.append(Send(ResetDone(self.me, self.epoch)))
        self._take_done(self._my_bit, out)

    def _mine(self) -> list[Packet]:
        """What is for me of the agreed order, in that order."""
        assert self.order is not None
        bodies: dict[MessageId, Packet] = {(packet.source, packet.seq): packet for packet in self.log}
        bodies |= self.contents
        return [bodies[key] for key in self.order if key in bodies]

    def _take_done(self, node: int, out: list[Output]) -> None:
        if self.frozen and not self.done & node:
            self.done |= node
            self.moved = True
            if self.done == self._everybody:
                self._finish(out)

    def _finish(self, out: list[Output]) -> None:
        """The epoch is over: what it left is delivered when everybody is known to have finished it too."""
        mine, epoch = self._mine(), self.epoch
        delivered, risen = self.acknowledged_count, self.preacknowledged_count
        # Whatever others replied: my own log is one of those that the order was made from.
        assert mine[:delivered] == self.log[:delivered], "the agreed order must extend what was delivered"
        known = {(packet.source, packet.seq) for packet in self.log[:risen]}
        out += [Reached(PREACKNOWLEDGED, packet) for packet in mine if (packet.source, packet.seq) not in known]
        out.append(self._account(mine))
        self.old.extend((epoch, packet) for packet in mine[delivered:])
        for packet in self.accepted.rows[OWN]:
            if not packet.destinations & self._my_bit and (self.me, packet.seq) not in self.removed:
                out.append(Reached(PREACKNOWLEDGED, packet))
                self.old.append((epoch, packet))
        self.old.extend((epoch, packet) for packet in self.preacknowledged.rows[OWN])
        self._begin_epoch(out)

    def _account(self, mine: list[Packet]) -> Resumed:
        heard = {(packet.source, packet.seq) for packet in self.log}
        places = [place for place, packet in enumerate(mine) if (packet.source, packet.seq) not in heard]
        return Resumed(self.asked, len(places), len(mine) - places[0] if len(places) > 1 else 0)

    def _begin_epoch(self, out: list[Output]) -> None:
        replies = [reply for reply in self.replies if reply is not None]
        self.expected = [reply.next_seq for reply in replies]
        self.expected_to_me = [reply.next_seq_to[self.me] for reply in replies]
        self._go_back(known_packets(replies) if self.removed else {})
        below = tuple(self.expected)
        columns = [below] * self._nodes
        self.accepted.refill([(), ()], columns)
        self.preacknowledged.refill(
            [(), ()], [*columns[: self.me], (UNBOUNDED,) * self._nodes, *columns[self.me + 1 :]]
        )
        for seqs in self.unpreacknowledged:
            seqs.clear()
        self.epoch += 1
        self.epoch_seen[self.me] = self.epoch
        self.log, self.preacknowledged_count, self.acknowledged_count, self.holds_last = [], 0, 0, False
        self.places = sum(packet.destinations >> self.me & 1 for _, packet in self.old)
        self.frozen, self.done, self.order = False, 0, None
        self.replies = [None] * self._nodes
        self.contents, self.missing = {}, set()
        self.reply_said = self.done_said = False
        self.resent.clear()
        out.append(CancelTimer("reset"))
        self._deliver_old(out)
        stamp, future, self.future = self.stamp, self.future, []
        self._send_waiting(out)
        if self.stamp == stamp:
            self._send_ready(out)
        for unit in future:
            self._receive(unit, out)

    def _go_back(self, destinations: dict[MessageId, int]) -> None:
        """Go-back-n: what was thrown away is expected again, and sent again by its source."""
        accepted = {(packet.source, packet.seq) for packet in self.log[: len(self.log) - self.holds_last]}
        self.once_accepted |= accepted & self.removed
        for source, seq in self.removed:
            self.expected[source] = min(self.expected[source], seq)
            self.expected_to_me[source] -= destinations[source, seq] >> self.me & 1
        unsent = self.again
        self.again = deque(packet for packet in self.accepted.rows[OWN] if (self.me, packet.seq) in self.removed)
        self.again += unsent
        self.removed = set()

    # --- timers ---

    def _fire(self, name: str, out: list[Output]) -> None:
        if name == "status":
            self._status_due(out)
        elif name == "reset" and self.frozen:
            self.reply_said = self.done_said = False
            self.resent.clear()
            if self._be_patient(out):
                self._say_need(out)
                self._set_timer("reset", self.config.timing.reset * self.patience, out)
        elif name == "hearsay":
            self.hearsay_timer = False
            if not self.frozen and self.heard_of_more():
                self._send_ready(out, asks=True)
        elif name == "help":
            needs, self.unhelped = self.unhelped, {}
            for need in needs.values():
                self._help(need, out)
        elif name == "answer":
            self.answered = False

    def _status_due(self, out: list[Output]) -> None:
        self.status_timer = False
        if self.frozen or not (self.owes or self.unfinished()):
            return
        if self.status_paid:
            self.patience = 1
        elif self._be_patient(out):
            self._send_ready(out)
        if not self.aborted and self.unfinished():
            self.status_timer, self.status_paid = True, False
            self._set_timer("status", self.config.timing.status * self.patience, out)

    def _be_patient(self, out: list[Output]) -> bool:
        """Counts what is left unanswered while nothing moves; False: the group was given up."""
        if self.moved:
            self.patience, self.moved = 1, False
            return True
        self.patience = min(MOST_PATIENT, 2 * self.patience)
        for node in members(self.blockers()):
            self.unanswered[node] += 1
            if self.unanswered[node] > self.config.polls_to_abort:
                self._abort(f"{name_of(node)} left {self.config.polls_to_abort} questions in a row unanswered", out)
                return False
        return True

    def _abort(self, why: str, out: list[Output]) -> None:
        """Delivers what is pre-acknowledged, in the order of the channel: an exact prefix of it (Lemma A)."""
        out += [Deliver(packet) for _, packet in self.old if packet.destinations & self._my_bit]
        out += [Deliver(packet) for packet in self.preacknowledged.rows[LOG]]
        self.aborted = True
        out.append(Abort(why))
