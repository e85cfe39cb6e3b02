"""ST: selective multicast in total order, on one channel that loses units.

Each message goes to any subset of the group, and all common destinations of two messages deliver them in the same
order.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel". These are the
`sound` rules; the printed ones are in `paper`, and why they fail is in docs/protocols/st.md. The machine is made of
parts:

    normal_operation   transmission, acceptance and acknowledgment within an epoch (section 3)
    loss_detection     gaps in the numbers, and losses inferred from peers (section 4.1)
    recovery           after a loss: agreement on one order (`agreed_order`), retransmission (section 4)
    finished_epochs    packets of finished epochs, until all nodes have finished them

An epoch is the time between two recoveries. A channel that does not keep one order is detected by a cycle in the
merge of the logs, and the group is aborted.

Departures from the paper:
 1. A packet is pre-acknowledged when *all* nodes have received it (Lemma A; S3).
 2. A reply carries the whole log of the epoch, never changes, and serves as RST too: however many nodes detect a
    loss, there is one agreement (S4, S5, S6, S7, S12). A new epoch begins when a log gets long, so logs stay bounded.
 3. One merge keeps what is determined and sorts the rest; there are no separate cases for one loss and several
    (S1, S2, S8).
 4. Whatever is not answered is repeated, by naming what is lacking (S9).
 5. Acknowledgment uses what nodes say they have pre-acknowledged, never a time-out (S10, S13).
 6. With `delivers_stable` a packet is delivered when it is pre-acknowledged. That is safe: what a node has
    pre-acknowledged all have accepted, and it is a prefix of every agreed order (Lemma A).
 7. A status without data has no sequence number and is sent while any node waits; a group in which no node waits
    is silent.

Not here: membership, group establishment, batching, the network.
"""

from typing import ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    CancelTimer,
    Discard,
    Echo,
    GiveUp,
    Input,
    LogSizes,
    Output,
    Receive,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import names_of
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.reasons import GAP, INFERRED_LOSS
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.finished_epochs import FinishedEpochs
from ordercast.protocols.st.normal_operation import NormalOperation
from ordercast.protocols.st.recovery import Recovery
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply


class St(DeclaredState):
    """The protocol at one node."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    finished: FinishedEpochs
    backoff: Backoff
    normal: NormalOperation
    recovery: Recovery

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.finished = FinishedEpochs(config.nodes)
        self.backoff = Backoff(config.nodes, config.polls_limit(), config.timing.reset)
        self.normal = NormalOperation(me, config, self.finished, self.backoff)
        self.recovery = Recovery(self.normal)

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        out: list[Output] = []
        normal = self.normal
        if normal.aborted:
            return out
        if type(event) is GiveUp:
            normal.abort(event.why, out)
            return out
        if type(event) is Receive:
            self.receive(event.unit, out)
        elif type(event) is Submit:
            normal.submit(event)
        elif type(event) is TimerFired:
            self.fire(event.name, out)
        elif (
            normal.acknowledgment_pending and not self.recovery.active
        ):  # Drained; polls answered at once would only cause more of them
            normal.send_status(out)
        if not (self.recovery.active or normal.aborted):
            if normal.waiting or normal.to_resend:
                normal.send_waiting(out)
            if normal.status_timer:
                if normal.patient and not normal.is_in_no_hurry():
                    normal.start_status_timer(out)
            elif normal.status_due or normal.unfinished():
                normal.start_status_timer(out)
        return out

    def receive(self, unit: Unit, out: list[Output]) -> None:
        """Units of other protocols, and own ones of a recovery, are discarded or ignored."""
        if type(unit) is Data or type(unit) is Ready:
            self.note_epoch(unit.source, unit.status.epoch, out)
            self.receive_in_epoch(unit, unit.status.epoch, out)
        elif type(unit) is ResetReply or type(unit) is ResetNeed or type(unit) is ResetDone:
            if unit.source != self.normal.me:
                if type(unit) is not ResetDone:  # which is also sent for epochs that its sender has finished
                    self.note_epoch(unit.source, unit.epoch, out)
                self.recovery.receive(unit, out)
                if self.recovery.is_complete():
                    self.begin_epoch(out)
        else:
            out.append(Discard(unit, "stray"))

    def note_epoch(self, source: int, epoch: int, out: list[Output]) -> None:
        """A node is alive, and has finished all epochs before this one."""
        self.backoff.unanswered[source] = 0
        if epoch > self.finished.epoch_seen[source]:
            self.finished.epoch_seen[source] = epoch
            self.normal.deliver_finished(out)

    def receive_in_epoch(self, unit: Data | Ready, epoch: int, out: list[Output]) -> None:
        """Normal operation in the running epoch; a detected loss, or a long log, starts recovery."""
        normal = self.normal
        if epoch == normal.epoch + 1:
            self.keep_for_next_epoch(unit)
        elif epoch != normal.epoch:
            out.append(Discard(unit, "old"))
        elif self.recovery.active:
            if type(unit) is Data:
                self.recovery.keep_packet(unit.packet, out)
                if self.recovery.is_complete():
                    self.begin_epoch(out)
        else:
            loss_detected = (
                normal.receive_data(unit, out) if isinstance(unit, Data) else normal.receive_ready(unit, out)
            )
            if loss_detected:
                self.start_recovery(GAP, out)
            elif len(normal.log) > normal.config.log_limit:
                self.start_recovery("long log", out)
            elif normal.unreported[unit.source] >= normal.status_after:
                normal.send_status(out)

    def keep_for_next_epoch(self, unit: Data | Ready) -> None:
        """A newer status implies all older ones of the same node."""
        normal = self.normal
        if type(unit) is Ready:
            normal.of_next_epoch = [
                kept for kept in normal.of_next_epoch if type(kept) is not Ready or kept.source != unit.source
            ]
        normal.of_next_epoch.append(unit)

    def start_recovery(self, why: str, out: list[Output]) -> None:
        """Stops the epoch; a node that is alone in its view agrees with itself at once."""
        self.recovery.start(why, out)
        if self.recovery.is_complete():
            self.begin_epoch(out)

    def begin_epoch(self, out: list[Output]) -> None:
        """Goes on: with what waits to be sent, and with what others have already sent in the next epoch."""
        normal = self.normal
        self.recovery.finish(out)
        normal.begin_epoch()
        out.append(CancelTimer("reset"))
        normal.deliver_finished(out)
        stamp, kept, normal.of_next_epoch = normal.stamp, normal.of_next_epoch, []
        normal.send_waiting(out)
        if normal.stamp == stamp:
            normal.send_status(out)
        for unit in kept:
            self.receive(unit, out)

    # --- timers ---

    def fire(self, name: str, out: list[Output]) -> None:
        """A timer fired."""
        if name == "status":
            self.status_timer_fired(out)
        elif name == "reset" and self.recovery.active:
            self.recovery.reset_timer_fired(out)
        elif name == INFERRED_LOSS:
            self.normal.inferred_loss_timer = False
            if not self.recovery.active:
                self.normal.ask_about_inferred_loss(out)
        elif name == "help":
            self.recovery.answer_delayed_needs(out)
        elif name == "answer":
            self.recovery.answered_late_node = False

    def status_timer_fired(self, out: list[Output]) -> None:
        """Sends a status unless something was transmitted since, or nobody needs it soon; goes on while I wait."""
        normal = self.normal
        normal.status_timer = False
        if self.recovery.active or not (normal.status_due or normal.unfinished()):
            return
        if normal.transmitted or (normal.is_in_no_hurry() and not normal.patient):
            self.backoff.factor = 1
        elif self.backoff.advance() and normal.abort_if_unanswered(normal.blockers(), out):
            return
        else:
            only_answers = normal.status_due and normal.has_delivered_all()
            normal.send_status(out, polls=normal.unfinished() and not only_answers)
        if normal.unfinished():
            normal.status_timer, normal.transmitted, normal.patient = True, False, normal.is_in_no_hurry()
            normal.set_timer("status", normal.status_time(), out)

    # --- inspection ---

    def log_sizes(self) -> LogSizes:
        """The number of packets in each log."""
        normal = self.normal
        return LogSizes(
            waiting=len(normal.waiting),
            sent=len(normal.accepted.logs[OWN]) + len(normal.to_resend),
            held=len(normal.unplaced) + len(normal.of_next_epoch) + normal.last_shows_gap,
            accepted=len(normal.accepted.logs[RECEIVED]),
            preacknowledged=len(normal.preacknowledged.logs[RECEIVED]) + len(self.finished.packets),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        normal, lines = self.normal, []
        if normal.waiting:
            lines.append(f"{len(normal.waiting)} submissions wait for the window")
        if normal.to_resend:
            lines.append(f"{len(normal.to_resend)} packets wait to be sent again")
        lines += self.recovery.waits_for() if self.recovery.active else normal.waits_for_acknowledgments()
        if left := self.finished.packets:
            late = names_of(self.finished.blockers())
            lines.append(f"{len(left)} packets of finished epochs wait until {late} is known to have finished")
        return tuple(lines)

    # --- vectors that never decrease, which the explorer checks ---

    @property
    def expected(self) -> list[int]:
        """TREQ_j."""
        return self.normal.expected

    @property
    def expected_to_me(self) -> list[int]:
        """PREQ_j."""
        return self.normal.expected_to_me

    @property
    def stamps(self) -> list[int]:
        """The stamp of each node's newest status."""
        return self.normal.stamps

    @property
    def epoch_seen(self) -> list[int]:
        """By node: the highest epoch of the units received from it."""
        return self.finished.epoch_seen
