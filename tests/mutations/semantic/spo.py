"""Semantic mutants of SPO: one for each rule and each departure from the papers."""

from collections.abc import Callable
from typing import Any

import msgspec

from ordercast.model.machine import Abort, Level, Reached
from ordercast.protocols.shared import jitter
from ordercast.protocols.shared.pending_acknowledgments import PendingAcknowledgments
from ordercast.protocols.shared.sending_log import SendingLog
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.retransmission import Retransmission, SelectiveRepeat
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.spo.machine")
Method = Callable[..., Any]
_RETRANSMISSION = "protocols.spo.retransmission"


@MUTANTS.add("a duplicate is accepted again (D1)")
def _accepts_duplicates() -> None:
    def around(receive_data: Method) -> Method:
        def changed(self: Spo, unit: Any, out: Any) -> None:
            packet = unit.packet
            if packet.seq < self.expected[packet.source] and packet.destinations & self.my_bit:
                self.accept(packet, out)
            receive_data(self, unit, out)

        return changed

    wrap(Spo, "receive_data", around)


@MUTANTS.add("a status says that everything accepted is pre-acknowledged (A1, R1)")
def _says_too_much() -> None:
    def around(status: Method) -> Method:
        def changed(self: Spo) -> Any:
            made = status(self)
            return msgspec.structs.replace(made, preacknowledged_below=made.expects)

        return changed

    wrap(Spo, "status", around)


@MUTANTS.add("a status acknowledges what is only known to exist")
def _acknowledges_what_was_seen() -> None:
    def around(status: Method) -> Method:
        return lambda self: msgspec.structs.replace(status(self), expects=tuple(self.seen))

    wrap(Spo, "status", around)


@MUTANTS.add("the window is never closed")
def _sends_always() -> None:
    replace(Spo, "can_send", lambda *_: True)


@MUTANTS.add("a full destination closes the window altogether, so that nobody learns when it has room again")
def _closes_the_window() -> None:
    def around(can_send: Method) -> Method:
        def changed(self: Spo, destinations: int) -> bool:
            free = [self.free[node] for node in range(self.nodes) if destinations >> node & 1 and node != self.me]
            return bool(can_send(self, destinations)) and all(free)

        return changed

    wrap(Spo, "can_send", around)


@MUTANTS.add("an older status replaces a newer one")
def _takes_regressions() -> None:
    replace(Spo, "is_regression", lambda *_: False)


@MUTANTS.add("a freed receive buffer is not announced")
def _keeps_free_buffers_secret() -> None:
    def around(acknowledge: Method) -> Method:
        def changed(self: Spo, log: int, out: Any) -> None:
            due = self.status_due
            acknowledge(self, log, out)
            self.status_due = due

        return changed

    wrap(Spo, "acknowledge", around)


@MUTANTS.add("a node that waits does not poll (C3)")
def _never_polls() -> None:
    replace(Spo, "blockers", lambda *_: 0)


@MUTANTS.add("a node that never answers is polled for ever")
def _never_gives_up() -> None:
    def around(poll: Method) -> Method:
        def changed(self: Spo, out: Any) -> None:
            self.backoff.unanswered = [0] * self.nodes
            poll(self, out)

        return changed

    wrap(Spo, "poll", around)


@MUTANTS.add("giving up delivers nothing")
def _aborts_without_delivery() -> None:
    def abort(self: Spo, why: str, out: Any) -> None:
        self.aborted = True
        out.append(Abort(why))

    replace(Spo, "abort", abort)


@MUTANTS.add("the pending status is sent even if something was transmitted since")
def _ignores_transmissions() -> None:
    def status_timer_fired(self: Spo, out: Any) -> None:
        self.status_timer = False
        if self.status_due:
            self.send_status(out)

    replace(Spo, "status_timer_fired", status_timer_fired)


@MUTANTS.add("a packet ahead of a gap is accepted", _RETRANSMISSION)
def _accepts_ahead() -> None:
    def receive_ahead(self: SelectiveRepeat, unit: Any, number: int, out: Any) -> None:
        node: Any = self.node
        if unit.packet.destinations & node.my_bit and number > node.expected_to_me[unit.source]:
            node.accept(unit.packet, out)

    replace(SelectiveRepeat, "receive_ahead", receive_ahead)


@MUTANTS.add("a request is not repeated (C4)", _RETRANSMISSION)
def _requests_once() -> None:
    def repeat_requests(self: Retransmission, out: Any) -> None:
        del out
        self.repeat_timer = False

    replace(Retransmission, "repeat_requests", repeat_requests)


@MUTANTS.add("everything from the first missing number on is requested", _RETRANSMISSION)
def _requests_too_much() -> None:
    def around(missing: Method) -> Method:
        def changed(self: SelectiveRepeat, since: Any) -> Any:
            return tuple(
                (source, ((ranges[0][0], self.node.seen_to_me[source]),)) for source, ranges in missing(self, since)
            )

        return changed

    wrap(SelectiveRepeat, "missing", around)


@MUTANTS.add("a copy is sent to everyone who asks, however short ago it was sent", _RETRANSMISSION)
def _forgets_copies() -> None:
    replace(Retransmission, "note_retransmission", lambda *_: None)


@MUTANTS.add("a packet leaves its log by one acknowledgment", "protocols.shared.pending_acknowledgments")
def _waits_for_one() -> None:
    def take_acknowledged(self: PendingAcknowledgments, log: int) -> list[Any]:
        taken = []
        while self.logs[log] and self.blockers(log) != (self.required or self.logs[log][0].destinations):
            taken.append(self.logs[log].popleft())
        return taken

    replace(PendingAcknowledgments, "take_acknowledged", take_acknowledged)


@MUTANTS.add("the sending log drops a packet at its first acknowledgment", "protocols.shared.sending_log")
def _drops_early() -> None:
    def around(append: Method) -> Method:
        def changed(self: SendingLog, packet: Any) -> None:
            append(self, packet)
            if packet.seq in self.lacking:
                self.lacking[packet.seq] = 1

        return changed

    wrap(SendingLog, "append", around)


@MUTANTS.add("all nodes' timers are equally long", "protocols.shared.jitter")
def _answers_in_step() -> None:
    replace(jitter, "spread", lambda duration, *_: duration)


# --- delivery of what is stable ---


def _delivers_early(self: Spo, source: int, packet: Any, out: Any) -> None:
    self.delivered_early[source] += 1
    self.deliver(source, packet, out)


@MUTANTS.add("with `delivers_stable` what is to some is delivered when it is pre-acknowledged (V9)")
def _delivers_what_some_have() -> None:
    def note_preacknowledged(self: Spo, source: int, packets: list[Any], out: Any) -> None:
        for packet in packets:
            out.append(Reached(Level.PREACKNOWLEDGED, packet))
            if self.config.delivers_stable:
                _delivers_early(self, source, packet, out)
            self.status_due = True
            self.await_acknowledgment(source, packet, out)

    replace(Spo, "note_preacknowledged", note_preacknowledged)


@MUTANTS.add("what is to all overtakes an earlier packet of its source that is to some")
def _overtakes() -> None:
    def note_preacknowledged(self: Spo, source: int, packets: list[Any], out: Any) -> None:
        for packet in packets:
            out.append(Reached(Level.PREACKNOWLEDGED, packet))
            if self.config.delivers_stable and packet.destinations == self.everybody:
                _delivers_early(self, source, packet, out)
            self.status_due = True
            self.await_acknowledgment(source, packet, out)

    replace(Spo, "note_preacknowledged", note_preacknowledged)


@MUTANTS.add("what was delivered early is delivered again when the group is given up")
def _delivers_again_at_the_end() -> None:
    def around(abort: Method) -> Method:
        def changed(self: Spo, why: str, out: Any) -> None:
            self.delivered_early = [0] * self.nodes
            abort(self, why, out)

        return changed

    wrap(Spo, "abort", around)


@MUTANTS.add("nobody asks for acknowledgments of what is delivered", "protocols.spo.state")
def _never_asks_for_the_rest() -> None:
    def around(unfinished: Method) -> Method:
        def changed(self: Spo) -> bool:
            return bool(unfinished(self)) and not self.has_delivered_all()

        return changed

    wrap(Spo, "unfinished", around)
