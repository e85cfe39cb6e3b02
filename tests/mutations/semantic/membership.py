"""Semantic mutants of the membership protocol: each rule of docs/protocols that V1 to V25 name, taken out."""

from collections.abc import Callable
from typing import Any

import msgspec

from ordercast.model.machine import Reached, Receive, Send
from ordercast.protocols.membership import choice, units, view
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.applicants import Applicants
from ordercast.protocols.membership.blocking import Blocking
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.installer import Installer
from ordercast.protocols.membership.joiner import Joiner
from ordercast.protocols.membership.leaving import Leaving
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.node_outputs import NodeOutputs
from ordercast.protocols.membership.node_packets import NodePackets
from ordercast.protocols.membership.retirement import Retirement
from ordercast.protocols.membership.submissions import Submissions
from ordercast.protocols.membership.units import Apply, Supply
from ordercast.protocols.membership.view import GroupView, Incarnation, NextView
from ordercast.protocols.membership.view_change import ViewChange
from ordercast.protocols.sequencer.units import Acknowledgment, Broadcast
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.membership.machine")
Method = Callable[..., Any]


@MUTANTS.add("who has promised goes on in its epoch (V1)")
def _goes_on_after_promising() -> None:
    def passes(self: MembershipMachine, event: Any, out: list[Any]) -> None:
        out += self.epoch.machine.handle(event)

    replace(MembershipMachine, "_pass_to_epoch", passes)


@MUTANTS.add("any number of members is a quorum (V2)", "protocols.membership.view")
def _anybody_is_a_quorum() -> None:
    replace(view, "is_quorum", lambda places, _: places > 0)


@MUTANTS.add("half of the members are a quorum (V3)", "protocols.membership.view")
def _half_is_a_quorum() -> None:
    replace(view, "is_quorum", lambda places, size: 2 * places.bit_count() >= size)


@MUTANTS.add("what was accepted before is not proposed again (V4)", "protocols.membership.choice")
def _forgets_what_was_accepted() -> None:
    replace(choice, "accepted_before", lambda *_: None)


@MUTANTS.add("of what was accepted the lowest ballot counts (V4)", "protocols.membership.choice")
def _takes_the_lowest_ballot() -> None:
    def accepted_before(reports: Any) -> Any:
        found = [(report.accepted, place) for place, report in sorted(reports.items()) if report.accepted is not None]
        return min(found, key=lambda each: each[0][0]) if found else None

    replace(choice, "accepted_before", accepted_before)


@MUTANTS.add("a new incarnation counts as the old one (V5)", "protocols.membership.view")
def _names_are_members() -> None:
    replace(Incarnation, "is_same", lambda self, other: self.name == other.name)


@MUTANTS.add("a coordinator proposes before it has accepted (V6)", "protocols.membership.coordinator")
def _proposes_first() -> None:
    def propose(self: Coordinator, out: list[Any]) -> NextView | None:
        proposal = self.acceptor.proposal
        assert proposal is not None
        self.acceptor.obtain(proposal[1], out)
        self.proposed, self.accepts, self.rounds = proposal[1], 0, 0
        self._repeat_proposal(out)
        return self._value_if_decided()

    replace(Coordinator, "propose", propose)


@MUTANTS.add("what is not in the cut is not sent again (V10)", "protocols.membership.submissions")
def _sends_nothing_again() -> None:
    def around(resubmit: Method) -> Method:
        return lambda self, again, number, value, out: resubmit(self, again[:0], number, value, out)

    wrap(Submissions, "resubmit", around)


@MUTANTS.add("what waits goes before what is sent again (V10)", "protocols.membership.submissions")
def _sends_again_behind() -> None:
    def around(resubmit: Method) -> Method:
        def changed(self: Submissions, again: list[Any], number: int, value: NextView, out: list[Any]) -> None:
            waited = list(self.waiting)
            self.waiting.clear()
            self.waiting.extend(again)
            resubmit(self, waited, number, value, out)

        return changed

    wrap(Submissions, "resubmit", around)


@MUTANTS.add("the message numbers begin anew in each view (V10)", "protocols.membership.view_change")
def _numbers_begin_anew() -> None:
    def around(enter: Method) -> Method:
        def changed(self: ViewChange, value: NextView, told_by: int | None, out: list[Any]) -> None:
            self.epoch.flush.next_message = lambda *_: 0  # type: ignore[method-assign]
            enter(self, value, told_by, out)

        return changed

    wrap(ViewChange, "_enter", around)


def _move_view(first: bool) -> None:
    def around(enter: Method) -> Method:
        def changed(self: ViewChange, value: NextView, told_by: int | None, out: list[Any]) -> None:
            begin = len(out)
            enter(self, value, told_by, out)
            views = [output for output in out[begin:] if isinstance(output, InstallView)]
            rest = [output for output in out[begin:] if not isinstance(output, InstallView)]
            out[begin:] = [*views, *rest] if first else [*rest, *views]

        return changed

    wrap(ViewChange, "_enter", around)


@MUTANTS.add("the view is told when it is decided (V11)", "protocols.membership.view_change")
def _tells_the_view_first() -> None:
    _move_view(first=True)


@MUTANTS.add("the view is told after the epoch has begun (V12)", "protocols.membership.view_change")
def _tells_the_view_last() -> None:
    _move_view(first=False)


@MUTANTS.add("who is excluded answers nobody (V13)", "protocols.membership.retirement")
def _does_not_linger() -> None:
    replace(Retirement, "answer", lambda *_: None)


@MUTANTS.add("half of the new members must have accepted, too (V14)", "protocols.membership.coordinator")
def _asks_the_new_view() -> None:
    def around(is_decided: Method) -> Method:
        def changed(self: Coordinator, value: NextView, accepts: int, ballot: Any) -> bool:
            new = (accepts & value.stay).bit_count()
            return is_decided(self, value, accepts, ballot) and 2 * new >= value.stay.bit_count() + len(value.joined)

        return changed

    wrap(Coordinator, "is_decided", around)


@MUTANTS.add("everybody joins at once (V15)", "protocols.membership.choice")
def _admits_everybody() -> None:
    replace(choice, "admitted", lambda *known: tuple(known[3]))
    replace(view, "_has_state", lambda *_: True)


@MUTANTS.add("who leaves goes, whoever has the state (V16)", "protocols.membership.choice")
def _leaves_without_state() -> None:
    def who_stays(view: GroupView, reports: Any, stateful: int) -> int:
        return sum(1 << place for place, report in reports.items() if not report.leaving)

    replace(choice, "who_stays", who_stays)
    replace(choice, "with_enough_state", lambda stay, _: stay)
    replace(view, "_has_state", lambda *_: True)


@MUTANTS.add("those with state need not be a quorum (V16)", "protocols.membership.choice")
def _needs_no_quorum_with_state() -> None:
    replace(choice, "with_enough_state", lambda stay, _: stay)
    replace(view, "_has_state", lambda *_: True)


@MUTANTS.add("who leaves does not wait for its messages (V17)", "protocols.membership.leaving")
def _leaves_at_once() -> None:
    replace(Leaving, "is_drained", lambda *_: True)


@MUTANTS.add("what is fetched is received in the epoch (V18)", "protocols.membership.acceptor")
def _receives_what_is_fetched() -> None:
    def around(receive: Method) -> Method:
        def changed(self: Acceptor, unit: Supply, out: list[Any]) -> bool:
            found: bool = receive(self, unit, out)
            out += self.epoch.machine.handle(Receive(Broadcast(unit.packet, 0, 0, unit.number, 0, 0)))
            machine: Any = self.epoch.machine
            out.append(Send(Acknowledgment(0, self.current.place, machine.reception.received_below), to=0))
            return found

        return changed

    wrap(Acceptor, "receive_supply", around)


@MUTANTS.add("a later report names what was fetched (V18)", "protocols.membership.acceptor")
def _reports_what_is_fetched() -> None:
    def around(report_for: Method) -> Method:
        def changed(self: Acceptor, ballot: Any) -> Any:
            made = report_for(self, ballot)
            below = made.report.numbered_below
            while below in self.supplied:
                below += 1
            return msgspec.structs.replace(made, report=msgspec.structs.replace(made.report, numbered_below=below))

        return changed

    wrap(Acceptor, "report_for", around)


@MUTANTS.add("what was fetched is kept for the next view (V18)", "protocols.membership.acceptor")
def _keeps_what_is_fetched() -> None:
    def around(start_view: Method) -> Method:
        def changed(self: Acceptor) -> None:
            kept = getattr(self, "supplied", {})
            start_view(self)
            self.supplied = kept

        return changed

    wrap(Acceptor, "start_view", around)


@MUTANTS.add("an applicant that is a member already is noted again (V25)", "protocols.membership.applicants")
def _notes_members() -> None:
    def welcome_again(self: Applicants, unit: Apply, address: str, out: list[Any]) -> None:
        self._note(unit, out)

    replace(Applicants, "_welcome_again", welcome_again)
    replace(choice, "enters_once", lambda *_: True)
    replace(view, "_can_join", lambda *_: True)


@MUTANTS.add("an incarnation that departed may join again (V25)", "protocols.membership.current")
def _forgets_the_departed() -> None:
    replace(Current, "departed_as", lambda *_: None)


@MUTANTS.add("a report is made anew in each ballot", "protocols.membership.acceptor")
def _reports_anew() -> None:
    def around(report_for: Method) -> Method:
        def changed(self: Acceptor, ballot: Any) -> Any:
            self.accepted = None
            return report_for(self, ballot)

        return changed

    wrap(Acceptor, "report_for", around)


@MUTANTS.add("a lower ballot is followed, too", "protocols.membership.acceptor")
def _follows_any_ballot() -> None:
    def follows(self: Acceptor, unit: Any, out: list[Any]) -> bool:
        self.promise(unit.ballot, out)
        return True

    replace(Acceptor, "follows", follows)


@MUTANTS.add("reports of other ballots do not show what is decided", "protocols.membership.coordinator")
def _learns_nothing() -> None:
    replace(Coordinator, "_learns", lambda *_: False)


@MUTANTS.add("a member of the view before is not answered", "protocols.membership.installer")
def _answers_nobody() -> None:
    replace(Installer, "answer", lambda *_: None)


@MUTANTS.add("an install is said once", "protocols.membership.installer")
def _installs_once() -> None:
    replace(Installer, "install_again", lambda *_: 0)


@MUTANTS.add("a coordinator does not repeat", "protocols.membership.coordinator")
def _never_repeats() -> None:
    replace(Coordinator, "_next_round", lambda *_: None)


@MUTANTS.add("nobody takes over", "protocols.membership.coordinator")
def _nobody_takes_over() -> None:
    def around(round_due: Method) -> Method:
        return lambda self, out: round_due(self, out) if self.is_active or self.waits_for_turn else None

    wrap(Coordinator, "round_due", around)


@MUTANTS.add("who reaches only some members is ready (J4)", "protocols.membership.applicants")
def _reaching_is_not_asked() -> None:
    replace(Applicants, "unreached", lambda *_: 0)


@MUTANTS.add("the terms are not compared (J3)", "protocols.membership.applicants")
def _compares_no_terms() -> None:
    def around(refusal: Method) -> Method:
        return lambda self, unit: None if unit.terms != self.terms else refusal(self, unit)

    wrap(Applicants, "refusal", around)


@MUTANTS.add("a name in use is given away (J3)", "protocols.membership.applicants")
def _gives_names_away() -> None:
    replace(Applicants, "_name_is_in_use", lambda *_: False)


@MUTANTS.add("an answer to somebody else's question is taken (J1)", "protocols.membership.joiner")
def _takes_any_nonce() -> None:
    replace(Joiner, "_is_own_nonce", lambda *_: True)


@MUTANTS.add("a blocked member does not ask whether others went on (P2)", "protocols.membership.blocking")
def _does_not_ask() -> None:
    replace(Blocking, "due", lambda *_: None)


@MUTANTS.add("what happens to a packet again is told again", "protocols.membership.node_packets")
def _tells_levels_again() -> None:
    def tell_level(self: NodePackets, level: Any, packet: Any, out: list[Any], *, by_view: bool) -> None:
        del by_view
        out.append(Reached(level, packet))

    replace(NodePackets, "_tell_level", tell_level)


@MUTANTS.add("timers of an epoch outlive it", "protocols.membership.node_outputs")
def _keeps_timers() -> None:
    def around(install: Method) -> Method:
        def changed(self: NodeOutputs, output: InstallView, current: Any, out: list[Any]) -> None:
            timers, self.timers = self.timers, set()
            install(self, output, current, out)
            self.timers = timers

        return changed

    wrap(NodeOutputs, "_install", around)


@MUTANTS.add("impossible units are taken", "protocols.membership.units")
def _takes_anything() -> None:
    replace(units, "problem_of", lambda *_: None)


@MUTANTS.add("whatever one says whose name is applied with is its answer (J3)", "protocols.membership.applicants")
def _takes_any_word() -> None:
    def around(heard_of: Method) -> Method:
        def changed(self: Applicants, place: int, *, has_state: bool) -> None:
            heard_of(self, place, has_state=has_state)
            if place in self.probing:
                self.name_is_in_use(place, self.probed_for[place])

        return changed

    wrap(Applicants, "heard_of", around)
