"""Semantic mutants of ST: one for each departure from the paper, and for the rules of each part."""

from collections.abc import Callable
from typing import Any

import msgspec

from ordercast.model.machine import Deliver, Reached
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.pending_acknowledgments import PendingAcknowledgments
from ordercast.protocols.st import agreed_order
from ordercast.protocols.st.channel_logs import RECEIVED
from ordercast.protocols.st.finished_epochs import FinishedEpochs
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.normal_operation import ACCEPTED, NormalOperation
from ordercast.protocols.st.recovery import Recovery
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.st.machine")
Method = Callable[..., Any]
_NORMAL, _RECOVERY, _ORDER = "protocols.st.normal_operation", "protocols.st.recovery", "protocols.st.agreed_order"


# --- normal operation ---


@MUTANTS.add("a packet is pre-acknowledged by its destinations only (S3)", "protocols.st.channel_logs")
def _waits_for_destinations() -> None:
    def around(initialise: Method) -> Method:
        def changed(self: NormalOperation, *args: Any) -> None:
            initialise(self, *args)
            self.accepted = PendingAcknowledgments(2, self.accepted.acknowledged_below)

        return changed

    wrap(NormalOperation, "__init__", around)


@MUTANTS.add("the status of a unit that is not accepted counts (Lemma A)")
def _takes_every_status() -> None:
    def around(receive_in_epoch: Method) -> Method:
        def changed(self: St, unit: Any, epoch: int, out: Any) -> None:
            if epoch == self.normal.epoch and not self.recovery.active:
                self.normal.take_status(unit.source, unit.status, out)
            receive_in_epoch(self, unit, epoch, out)

        return changed

    wrap(St, "receive_in_epoch", around)


@MUTANTS.add("with `polls_late` nobody polls, however late it is", _NORMAL)
def _never_polls() -> None:
    def around(send_status: Method) -> Method:
        def changed(self: NormalOperation, out: Any, *, polls: bool = False) -> None:
            send_status(self, out, polls=polls and not self.config.polls_late)

        return changed

    wrap(NormalOperation, "send_status", around)


@MUTANTS.add("a loss that data show is not detected (4.1)", _NORMAL)
def _passes_over_gaps() -> None:
    def around(receive_data: Method) -> Method:
        def changed(self: NormalOperation, unit: Any, out: Any) -> bool:
            receive_data(self, unit, out)
            return False

        return changed

    wrap(NormalOperation, "receive_data", around)


@MUTANTS.add("a loss that a status shows is not detected (4.1)", _NORMAL)
def _passes_over_gaps_before_statuses() -> None:
    def around(receive_ready: Method) -> Method:
        def changed(self: NormalOperation, unit: Any, out: Any) -> bool:
            receive_ready(self, unit, out)
            return False

        return changed

    wrap(NormalOperation, "receive_ready", around)


@MUTANTS.add("no loss is inferred from peers' acknowledgments (4.1)", "protocols.st.loss_detection")
def _infers_nothing() -> None:
    replace(NormalOperation, "loss_inferred_from_peers", lambda _: False)


@MUTANTS.add("the window is never closed", _NORMAL)
def _sends_always() -> None:
    replace(NormalOperation, "can_send", lambda _: True)


@MUTANTS.add("packets received during recovery take no buffer", "protocols.st.state")
def _forgets_unplaced_packets() -> None:
    replace(NormalOperation, "buffers_in_use", lambda self: self.buffered)


@MUTANTS.add("giving up delivers what is only accepted", _NORMAL)
def _delivers_too_much() -> None:
    def around(abort: Method) -> Method:
        def changed(self: NormalOperation, why: str, out: Any) -> None:
            self.preacknowledged.logs[0].extend(self.accepted.logs[0])
            abort(self, why, out)

        return changed

    wrap(NormalOperation, "abort", around)


# --- recovery ---


@MUTANTS.add("a long log starts no new epoch")
def _lets_logs_grow() -> None:
    def around(start: Method) -> Method:
        return lambda self, why, out: None if why == "long log" else start(self, why, out)

    wrap(Recovery, "start", around)


@MUTANTS.add("a reply grows with what comes after it (S5)", _RECOVERY)
def _extends_its_reply() -> None:
    def around(keep_packet: Method) -> Method:
        def changed(self: Recovery, packet: Any, out: Any) -> None:
            normal, own = self.normal, self.replies[self.normal.me]
            entry = (packet.source, packet.seq, packet.destinations)
            if own is None or self.order is not None or not packet.destinations & normal.my_bit or entry in own.log:
                keep_packet(self, packet, out)
                return
            self.replies[normal.me] = msgspec.structs.replace(own, log=(*own.log, entry))
            normal.log.append(packet)
            out.append(Reached(ACCEPTED, packet))

        return changed

    wrap(Recovery, "keep_packet", around)


@MUTANTS.add("the order ignores what is pre-acknowledged: rule (c) (S4)", _ORDER)
def _ignores_prefixes() -> None:
    def around(merge: Method) -> Method:
        def changed(replies: Any, **how: Any) -> Any:
            return merge([msgspec.structs.replace(reply, preacknowledged=0) for reply in replies], **how)

        return changed

    wrap(agreed_order, "agreed_order", around)


@MUTANTS.add("the order is by source and number, whatever the logs say: rule (a)", _ORDER)
def _ignores_logs() -> None:
    replace(agreed_order, "agreed_order", lambda replies, **_: sorted(agreed_order.known_packets(replies)))


@MUTANTS.add("what is not answered is not said again (S9)", _RECOVERY)
def _requests_once() -> None:
    def around(request_missing: Method) -> Method:
        return lambda self, out: request_missing(self, out) if self.normal.backoff.factor == 1 else None

    wrap(Recovery, "request_missing", around)


@MUTANTS.add("a node that asks again is answered at once, by all others at the same time", _RECOVERY)
def _answers_at_once() -> None:
    replace(Recovery, "receive_need", Recovery.answer_need)


@MUTANTS.add("a node that has not finished the last epoch is not answered", _RECOVERY)
def _leaves_late_nodes_behind() -> None:
    replace(Recovery, "answer_late_node", lambda *_: None)


@MUTANTS.add("what go-back-n discarded is not expected again", _RECOVERY)
def _never_goes_back() -> None:
    def around(go_back: Method) -> Method:
        def changed(self: Recovery, destinations: Any) -> None:
            expected = list(self.normal.expected)
            go_back(self, destinations)
            self.normal.expected = expected

        return changed

    wrap(Recovery, "_go_back", around)


# --- finished epochs, back-off ---


@MUTANTS.add("packets of an epoch are delivered when one node has finished it", "protocols.st.finished_epochs")
def _delivers_when_one_has_finished() -> None:
    def take_acknowledged(self: FinishedEpochs) -> list[Any]:
        finished_below, taken = max(self.epoch_seen), []
        while self.packets and self.packets[0][0] < finished_below:
            taken.append(self.packets.popleft()[1])
        return taken

    replace(FinishedEpochs, "take_acknowledged", take_acknowledged)


@MUTANTS.add("waits do not get longer while there is no progress", "protocols.shared.backoff")
def _never_backs_off() -> None:
    def advance(self: Backoff) -> bool:
        progress, self.progress = self.progress, False
        return not progress

    replace(Backoff, "advance", advance)


@MUTANTS.add("a silent node is never given up", "protocols.shared.backoff")
def _waits_for_ever() -> None:
    replace(Backoff, "count_unanswered", lambda *_: None)


# --- delivery of what is stable ---


@MUTANTS.add("with `delivers_stable` what is acknowledged is delivered again", _NORMAL)
def _delivers_again() -> None:
    def around(acknowledge: Method) -> Method:
        def changed(self: NormalOperation, log: int, out: Any) -> None:
            begin = len(out)
            acknowledge(self, log, out)
            if self.config.delivers_stable and log == RECEIVED:
                out += [Deliver(each.packet) for each in out[begin:] if isinstance(each, Reached)]

        return changed

    wrap(NormalOperation, "acknowledge", around)


@MUTANTS.add("the log keeps the messages of what is acknowledged", _NORMAL)
def _keeps_messages() -> None:
    replace(Packet, "without_messages", lambda self: self)


@MUTANTS.add("what was delivered is delivered again when its epoch is finished", _RECOVERY)
def _forgets_what_it_delivered() -> None:
    def around(finish: Method) -> Method:
        def changed(self: Recovery, out: Any) -> None:
            finish(self, out)
            self.normal.finished.delivered.clear()

        return changed

    wrap(Recovery, "finish", around)


@MUTANTS.add("what was delivered early keeps its place in the buffer over an epoch", "protocols.st.state")
def _keeps_places() -> None:
    def around(begin_epoch: Method) -> Method:
        def changed(self: NormalOperation) -> None:
            begin_epoch(self)
            self.buffered = sum(packet.destinations >> self.me & 1 for _, packet in self.finished.packets)

        return changed

    wrap(NormalOperation, "begin_epoch", around)


@MUTANTS.add("an agreed order is delivered before all are known to have it", _RECOVERY)
def _delivers_when_it_has_finished() -> None:
    def around(finish: Method) -> Method:
        def changed(self: Recovery, out: Any) -> None:
            finish(self, out)
            if self.normal.config.delivers_stable:
                finished, me = self.normal.finished, self.normal.me
                early = finished.all_due(me)
                out += map(Deliver, early)
                finished.delivered |= {(packet.source, packet.seq) for packet in early}

        return changed

    wrap(Recovery, "finish", around)


@MUTANTS.add("nobody is asked for what is delivered to be acknowledged", "protocols.st.state")
def _is_never_in_a_hurry() -> None:
    replace(NormalOperation, "is_in_no_hurry", lambda self: self.config.delivers_stable)


@MUTANTS.add("all hurry with acknowledgments of what is delivered", "protocols.st.state")
def _is_always_in_a_hurry() -> None:
    replace(NormalOperation, "is_in_no_hurry", lambda _: False)


@MUTANTS.add("who is asked for what is delivered asks in turn")
def _asks_in_turn() -> None:
    replace(NormalOperation, "has_delivered_all", lambda self: self.config.delivers_stable and not self.status_due)
