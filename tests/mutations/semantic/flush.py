"""Semantic mutants of ending a view: each rule taken out, and some of how a member goes on."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ordercast.model.machine import Deliver
from ordercast.protocols.membership.epoch import Flush
from ordercast.protocols.sequencer.flush import SequencerFlush
from ordercast.protocols.spo.flush import SpoFlush
from ordercast.protocols.spo.settlement import Settlement
from ordercast.protocols.st.flush import StFlush
from ordercast.protocols.to.flush import ToFlush
from tests.mutations.mutation import Mutants, replace, wrap
from tests.protocols.membership import missing_rules

MUTANTS = Mutants("protocols.membership.epoch")
Method = Callable[..., Any]


def _without(rule: Callable[[pytest.MonkeyPatch], None]) -> None:
    MUTANTS.add(rule.__name__.replace("_", " "))(lambda: rule(pytest.MonkeyPatch()))


_without(missing_rules.v7_nothing_is_settled)
_without(missing_rules.v8_what_is_settled_does_not_count)
_without(missing_rules.v9_stable_is_delivered)
_without(missing_rules.v19_the_round_is_not_begun)
_without(missing_rules.v20_packets_wait_over_a_view)
_without(missing_rules.v21_a_round_is_not_finished_first)
_without(missing_rules.v22_rounds_are_mixed)
_without(missing_rules.v23_the_most_that_any_has)
_without(missing_rules.v24_the_least_that_any_has)
_without(missing_rules.v24_any_majority_reports)


@MUTANTS.add("a source never owes a status for what is settled")
def _owes_nothing() -> None:
    replace(Settlement, "owes_status", lambda _: False)


@MUTANTS.add("nobody polls for what is settled")
def _polls_nobody() -> None:
    replace(Settlement, "blockers", lambda self: [0] * len(self.held))


@MUTANTS.add("what a source says is not kept")
def _hears_nothing() -> None:
    replace(Settlement, "hear", lambda *_: False)


@MUTANTS.add("settled packets are kept for ever")
def _forgets_nothing() -> None:
    def around(settle_own: Method) -> Method:
        def changed(self: Settlement, *given: Any) -> Any:
            kept = list(self.unsettled)
            risen = settle_own(self, *given)
            self.unsettled.clear()
            self.unsettled.extend(kept)
            return risen

        return changed

    wrap(Settlement, "settle_own", around)


@MUTANTS.add("what waits for the window is not left over")
def _leaves_the_queue() -> None:
    for kind in (SpoFlush, StFlush, ToFlush, SequencerFlush):
        replace(kind, "waiting", lambda _: ())


@MUTANTS.add("messages that are left out give up their numbers")
def _closes_gaps() -> None:
    def around(left_over: Method) -> Method:
        return lambda *given: [msgspec.structs.replace(event, skips=0) for event in left_over(*given)]

    wrap(Flush, "left_over", around)


@MUTANTS.add("what was fetched is not accepted first")
def _drops_levels() -> None:
    def around(finish: Method) -> Method:
        return lambda *given: finish(*given)[1:]

    wrap(SequencerFlush, "finish", around)


@MUTANTS.add("the end of a view delivers again what was delivered as stable")
def _delivers_stable_again() -> None:
    def around(finish: Method) -> Method:
        def changed(self: StFlush, *given: Any) -> Any:
            normal = self.machine.normal
            early = normal.log[normal.acknowledged_count : normal.preacknowledged_count]
            return [*finish(self, *given), *(Deliver(packet) for packet in early if normal.config.delivers_stable)]

        return changed

    wrap(StFlush, "finish", around)


@MUTANTS.add("the end of a view of SPO delivers again what was delivered as stable")
def _delivers_again_in_spo() -> None:
    def around(finish: Method) -> Method:
        def changed(self: SpoFlush, *given: Any) -> Any:
            self.machine.delivered_early = [0] * self.machine.nodes
            return finish(self, *given)

        return changed

    wrap(SpoFlush, "finish", around)
