"""Semantic mutants of `live.session`: handshake, closing, discovery, and their wiring."""

from collections.abc import Callable
from typing import Any

import msgspec

from ordercast.live.session import handshake, parameter_comparison
from ordercast.live.session.closing import Closing
from ordercast.live.session.discovery import Discovery
from ordercast.live.session.events import SendControl
from ordercast.live.session.handshake import Handshake
from ordercast.live.session.machine import Phase, Session
from ordercast.wire.control import AbortNotice, Hello, Join, Known, Stage
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("live.session.machine")
Method = Callable[..., Any]


# --- handshake ---


@MUTANTS.add("a join need not name our incarnation: a replay is accepted", "live.session.handshake")
def _accepts_replayed_joins() -> None:
    replace(Handshake, "_names_us", lambda *_: True)


@MUTANTS.add("a new incarnation need not prove that it is alive after the one before", "live.session.handshake")
def _goes_back_to_earlier_incarnations() -> None:
    replace(Handshake, "_proves_alive", lambda self, mine, _: mine.incarnation == self.mine.incarnation)


@MUTANTS.add("a member opens when one other agrees, not all", "live.session.handshake")
def _opens_when_one_agrees() -> None:
    def all_agree(self: Handshake) -> bool:
        return self.session != 0 and any(join.session == self.session for join in self.joins if join is not None)

    replace(Handshake, "all_agree", all_agree)


@MUTANTS.add("the session is the same whatever the incarnations are", "live.session.handshake")
def _one_session_for_all_incarnations() -> None:
    def around(session_of: Method) -> Method:
        def changed(text: str, names: tuple[str, ...], joins: list[Join]) -> Any:
            return session_of(text, names, [Join(1, 0, join.first_seq, 0, (), "") for join in joins])

        return changed

    wrap(handshake, "session_of", around)


@MUTANTS.add("parameters are not compared", "live.session.handshake")
def _does_not_compare_parameters() -> None:
    def around(receive: Method) -> Method:
        def changed(self: Handshake, member: int, join: Join, out: list[Any]) -> Any:
            alike = Join(join.incarnation, join.round, join.first_seq, join.session, join.heard, self.parameters)
            return receive(self, member, alike, out)

        return changed

    wrap(Handshake, "receive", around)


@MUTANTS.add("of parameters that differ only the first is reported", "live.session.parameter_comparison")
def _reports_one_difference() -> None:
    wrap(parameter_comparison, "_without_derived", lambda found: lambda names: found(names)[:1])


# --- abort and close ---


@MUTANTS.add("who learns of an abort does not tell others")
def _keeps_an_abort_to_itself() -> None:
    def around(receive: Method) -> Method:
        def changed(self: Session, member: int, abort: AbortNotice, out: list[Any]) -> None:
            was_open = self.phase is Phase.OPEN
            receive(self, member, abort, out)
            if was_open and self.phase is Phase.ABORTED:
                out[:] = [output for output in out if not isinstance(output, SendControl)]

        return changed

    wrap(Session, "_receive_abort", around)


@MUTANTS.add("an abort by one that was left behind ends the group")
def _obeys_those_that_were_left_behind() -> None:
    def around(receive: Method) -> Method:
        def changed(self: Session, member: int, abort: AbortNotice, out: list[Any]) -> None:
            others, self.closing.others = self.closing.others, self.closing.others | 1 << member
            receive(self, member, abort, out)
            self.closing.others = others

        return changed

    wrap(Session, "_receive_abort", around)


@MUTANTS.add("a member is done before all others are closing", "live.session.closing")
def _is_done_too_early() -> None:
    def around(below: Method) -> Method:
        return lambda self, stage: 0 if stage is Stage.CLOSING else below(self, stage)

    wrap(Closing, "below", around)


@MUTANTS.add("a member leaves while others do not know that all are done")
def _leaves_too_early() -> None:
    def around(below: Method) -> Method:
        return lambda self, stage: 0 if stage is Stage.ALL_DONE else below(self, stage)

    wrap(Closing, "below", around)


@MUTANTS.add("closing does not wait for rest: what is in flight is left behind", "live.session.closing")
def _closes_in_the_middle() -> None:
    def around(advance: Method) -> Method:
        def changed(self: Closing) -> Any:
            at_rest, self.at_rest = self.at_rest, True
            stepped = advance(self)
            self.at_rest = at_rest
            return stepped

        return changed

    wrap(Closing, "advance", around)


# --- discovery ---


@MUTANTS.add("a hello need not name our incarnation: a replay is counted", "live.session.discovery")
def _counts_replayed_hellos() -> None:
    def around(consider: Method) -> Method:
        def changed(self: Discovery, hello: Hello, out: list[Any]) -> None:
            consider(self, msgspec.structs.replace(hello, hears=(self.incarnation,)), out)

        return changed

    wrap(Discovery, "_consider", around)


@MUTANTS.add("a group is found before all know the same members", "live.session.discovery")
def _finds_before_all_agree() -> None:
    def around(check: Method) -> Method:
        def changed(self: Discovery, out: list[Any]) -> None:
            others = self.others
            known = tuple(Known(hello.name, hello.incarnation) for hello in self._everybody())
            self.others = [msgspec.structs.replace(hello, knows=known) for hello in others]
            check(self, out)
            self.others = others

        return changed

    wrap(Discovery, "_check_found", around)


@MUTANTS.add("a silent process keeps its place for good", "live.session.discovery")
def _never_forgets() -> None:
    replace(Discovery, "_forget", lambda _: None)
