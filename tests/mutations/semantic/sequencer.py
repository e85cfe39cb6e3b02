"""Semantic mutants of the sequencer's parts: reception, orderer, sender, view agreement, and their wiring."""

from collections.abc import Callable
from typing import Any

from ordercast.model.units import Packet
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.orderer import FullHistory, Orderer
from ordercast.protocols.sequencer.reception import Reception
from ordercast.protocols.sequencer.sender import Sender
from ordercast.protocols.sequencer.timers import Timers
from ordercast.protocols.sequencer.units import Acknowledgment, NextView, Offer, Propose, Synchronise
from ordercast.protocols.sequencer.view import CurrentView
from ordercast.protocols.sequencer.view_agreement import ViewAgreement
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.sequencer.machine")
Method = Callable[..., Any]


# --- reception ---


@MUTANTS.add("what is ahead of a gap is thrown away (S5)", "protocols.sequencer.reception")
def _throws_away_what_is_ahead() -> None:
    def take(self: Reception, number: int, packet: Packet, out: list[Any]) -> bool:
        if number < self.received_below:
            return False
        self.detect_loss(number + 1, out, lacks=self.known_below < number)
        if number == self.received_below:
            self.store(packet, out)
        return True

    replace(Reception, "take", take)


@MUTANTS.add("a gap is requested again by each expiry of its timer (S5)", "protocols.sequencer.loss_detection")
def _requests_a_gap_again() -> None:
    def due_gaps(self: Reception) -> Any:
        self.timers.gap = False
        return self.missing()

    replace(Reception, "due_gaps", due_gaps)


@MUTANTS.add("the resilience degree is not waited for", "protocols.sequencer.reception")
def _delivers_before_commit() -> None:
    def around(deliver: Method) -> Method:
        def changed(self: Reception, out: list[Any]) -> None:
            commit_below, self.commit_below = self.commit_below, self.received_below
            deliver(self, out)
            self.commit_below = commit_below

        return changed

    wrap(Reception, "deliver", around)


@MUTANTS.add("what was fetched for a ballot that lost is kept beyond the cut (W2)", "protocols.sequencer.reception")
def _keeps_what_lies_beyond_the_cut() -> None:
    def around(end_view: Method) -> Method:
        def changed(self: Reception, value: NextView, supplied: dict[int, Packet], out: list[Any]) -> None:
            found = {**supplied, **self.ahead}
            end_view(self, value, supplied, out)
            self.ahead.update({number: packet for number, packet in found.items() if number >= value.cut_below})

        return changed

    wrap(Reception, "end_view", around)


@MUTANTS.add("announced numbers outlive their view", "protocols.sequencer.reception")
def _keeps_announced_numbers() -> None:
    def around(end_view: Method) -> Method:
        def changed(self: Reception, value: NextView, supplied: dict[int, Packet], out: list[Any]) -> None:
            announced = dict(self.announced)
            end_view(self, value, supplied, out)
            self.announced.update(announced)

        return changed

    wrap(Reception, "end_view", around)


# --- orderer ---


@MUTANTS.add("a duplicate offer is not answered (S3)", "protocols.sequencer.orderer")
def _ignores_duplicates() -> None:
    replace(Orderer, "_answer_duplicate", lambda *_: None)


@MUTANTS.add("the table of acknowledgments falls back (S4)", "protocols.sequencer.orderer")
def _table_falls_back() -> None:
    def around(note: Method) -> Method:
        def changed(self: Orderer, node: int, below: int, out: list[Any]) -> None:
            note(self, node, below, out)
            self.acknowledged[node] = below

        return changed

    wrap(Orderer, "note_acknowledged", around)


@MUTANTS.add("what one member has is called stable (S2)", "protocols.sequencer.orderer")
def _highest_is_stable() -> None:
    replace(Orderer, "_lowest_acknowledged", lambda self: max(self.acknowledged))


@MUTANTS.add("the history holds one more than its size", "protocols.sequencer.orderer")
def _history_of_one_more() -> None:
    def is_full(self: Orderer) -> bool:
        return self.reception.received_below - self.reception.stable_below > self.max_history

    replace(Orderer, "is_full", is_full)


@MUTANTS.add("stable broadcasts still take bytes of the history", "protocols.sequencer.orderer")
def _bytes_are_never_freed() -> None:
    def around(stabilise: Method) -> Method:
        def changed(self: Orderer, out: list[Any]) -> Any:
            size = self.history_bytes
            stable = stabilise(self, out)
            self.history_bytes = size
            return stable

        return changed

    wrap(Orderer, "_stabilise", around)


@MUTANTS.add("a history that is full of bytes asks nobody", "protocols.sequencer.orderer")
def _only_numbers_count() -> None:
    def around(far_behind: Method) -> Method:
        def changed(self: Orderer) -> Any:
            size, self.max_bytes = self.max_bytes, 0  # type: ignore[misc]
            found = far_behind(self)
            self.max_bytes = size  # type: ignore[misc]
            return found

        return changed

    wrap(Orderer, "_far_behind", around)


@MUTANTS.add("a full history is synchronised without asking first", "protocols.sequencer.orderer")
def _synchronises_at_once() -> None:
    def around(status_timer_fired: Method) -> Method:
        def changed(self: Orderer, out: list[Any]) -> Any:
            if self.full_history is FullHistory.WAITED:
                self.full_history = FullHistory.REQUESTED
            return status_timer_fired(self, out)

        return changed

    wrap(Orderer, "status_timer_fired", around)


@MUTANTS.add("a reply to an older round ends a synchronisation (S7)", "protocols.sequencer.orderer")
def _counts_old_replies() -> None:
    def around(receive: Method) -> Method:
        def changed(self: Orderer, unit: Any, out: list[Any]) -> None:
            receive(self, type(unit)(unit.view, unit.source, self.sync_round, unit.received_below), out)

        return changed

    wrap(Orderer, "receive_synchronised", around)


# --- sender ---


@MUTANTS.add("nobody asks for the status (S6)", "protocols.sequencer.sender")
def _never_asks_for_the_status() -> None:
    def around(acknowledge: Method) -> Method:
        return lambda self, missing, out, **_: acknowledge(self, missing, out)

    wrap(Sender, "acknowledge", around)


@MUTANTS.add("PHASE1 of an old round pauses a sender again (S7)", "protocols.sequencer.sender")
def _pauses_for_old_rounds() -> None:
    def around(receive: Method) -> Method:
        def changed(self: Sender, unit: Synchronise, out: list[Any]) -> None:
            if unit.phase == 1:
                self.sync_round = unit.round - 1
            receive(self, unit, out)

        return changed

    wrap(Sender, "receive_synchronise", around)


@MUTANTS.add("own packets are offered once", "protocols.sequencer.sender")
def _offers_once() -> None:
    replace(Sender, "_overdue", lambda _: [])


@MUTANTS.add("packets are offered again beside a request for what is missing (W9)", "protocols.sequencer.sender")
def _offers_beside_a_request() -> None:
    def around(need_timer_fired: Method) -> Method:
        def changed(self: Sender, out: list[Any]) -> Any:
            overdue, missing = self._overdue(), self.reception.missing(stop=self.overdue_below)
            suspects = need_timer_fired(self, out)
            if overdue and missing:
                self.offer_again(overdue, out)
            return suspects

        return changed

    wrap(Sender, "need_timer_fired", around)


@MUTANTS.add("a sequencer that is heard but does not number is suspected (W8)", "protocols.sequencer.sender")
def _suspects_who_is_heard() -> None:
    def around(need_timer_fired: Method) -> Method:
        def changed(self: Sender, out: list[Any]) -> Any:
            self.answered = False
            return need_timer_fired(self, out)

        return changed

    wrap(Sender, "need_timer_fired", around)


# --- view agreement ---


@MUTANTS.add("a majority of reports is enough whatever the resilience (W3)", "protocols.sequencer.view_agreement")
def _majority_is_enough() -> None:
    replace(ViewAgreement, "_quorum", lambda self: self.view.members.bit_count() // 2 + 1)


@MUTANTS.add("members that are excluded decide a view (W1)", "protocols.sequencer.view_agreement")
def _excluded_members_decide() -> None:
    def is_decided(self: ViewAgreement, value: NextView) -> bool:
        del value
        return self.accepts.bit_count() > self.view.members.bit_count() // 2

    replace(ViewAgreement, "_is_decided", is_decided)


@MUTANTS.add("the next view begins at the shortest log (S8)", "protocols.sequencer.view_agreement")
def _shortest_log() -> None:
    def shortest(self: ViewAgreement) -> Any:
        return min(self.reports.values(), key=lambda report: (report.received_below, -report.source))

    replace(ViewAgreement, "_longest_report", shortest)


@MUTANTS.add("a view is accepted by a node that lacks broadcasts of it", "protocols.sequencer.view_agreement")
def _accepts_without_having() -> None:
    def around(receive: Method) -> Method:
        def changed(self: ViewAgreement, unit: Propose, out: list[Any]) -> None:
            receive(self, unit, out)
            if self.promised == unit.ballot:
                self.accepted = (unit.ballot, unit.value)

        return changed

    wrap(ViewAgreement, "_receive_propose", around)


@MUTANTS.add("what was accepted in an earlier ballot is not reported (S8)", "protocols.sequencer.view_agreement")
def _forgets_what_it_accepted() -> None:
    def around(report: Method) -> Method:
        def changed(self: ViewAgreement, ballot: Any) -> Any:
            accepted, self.accepted = self.accepted, None
            found = report(self, ballot)
            self.accepted = accepted
            return found

        return changed

    wrap(ViewAgreement, "_report", around)


# --- view, timers, wiring ---


@MUTANTS.add("the resilience degree does not shrink with the view", "protocols.sequencer.view")
def _resilience_stays() -> None:
    def around(derive: Method) -> Method:
        def changed(self: CurrentView) -> None:
            derive(self)
            self.resilience = self.max_resilience

        return changed

    wrap(CurrentView, "derive", around)


@MUTANTS.add("timers of normal operation run on during an agreement", "protocols.sequencer.timers")
def _timers_run_on() -> None:
    replace(Timers, "stop", lambda *_: None)


@MUTANTS.add("units that claim more than was numbered are believed")
def _believes_the_impossible() -> None:
    def receive(self: Sequencer, unit: Any, out: list[Any]) -> None:
        if type(unit) is Offer:
            self.orderer.receive_offer(unit, out)
        elif type(unit) is Acknowledgment:
            self.orderer.receive_acknowledgment(unit, out)
        else:
            self.orderer.receive_synchronised(unit, out)

    replace(Sequencer, "_receive_as_sequencer", receive)


@MUTANTS.add("what a member awaits waits for its next heartbeat", "protocols.sequencer.sender")
def _member_rests() -> None:
    def around(set_timer: Method) -> Method:
        def changed(self: Sender, out: list[Any]) -> None:
            if not self.timers.need:
                set_timer(self, out)

        return changed

    wrap(Sender, "_set_need_timer", around)


@MUTANTS.add("what the sequencer awaits waits for its next heartbeat", "protocols.sequencer.orderer")
def _sequencer_rests() -> None:
    def around(start: Method) -> Method:
        def changed(self: Orderer, out: list[Any]) -> None:
            if not self.timers.status:
                start(self, out)

        return changed

    wrap(Orderer, "start_status_timer", around)
