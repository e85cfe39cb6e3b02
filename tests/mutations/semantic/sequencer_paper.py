"""Semantic mutants of the printed sequencer: rules read otherwise than they are printed."""

from collections.abc import Callable
from typing import Any

from ordercast.protocols.sequencer.paper import election
from ordercast.protocols.sequencer.paper.machine import SequencerPaper
from ordercast.protocols.sequencer.paper.units import PaperBroadcast, PaperCommitted, PaperData, PaperPhase
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.sequencer.paper.machine")
Method = Callable[..., Any]


@MUTANTS.add("older messages count as duplicates, though it is printed otherwise (S4)")
def _older_are_duplicates() -> None:
    def is_duplicate(self: SequencerPaper, unit: PaperData) -> bool:
        return unit.message <= self.last_message[unit.source]

    replace(SequencerPaper, "_is_duplicate", is_duplicate)


@MUTANTS.add("a duplicate is answered with the whole broadcast, though NULLDATA is printed (S3)")
def _whole_answers() -> None:
    replace(PaperBroadcast, "without_data", lambda self: self)


@MUTANTS.add("the history is purged by the highest acknowledgment")
def _purges_by_the_highest() -> None:
    def purge_if_full(self: SequencerPaper) -> bool:
        if len(self.history) >= self.max_history:
            received_through = max(self.acknowledged)
            self.history = [stored for stored in self.history if stored.number > received_through]
        return len(self.history) >= self.max_history

    replace(SequencerPaper, "purge_if_full", purge_if_full)


@MUTANTS.add("PHASE1 is answered before everything is received")
def _answers_at_once() -> None:
    def enter_phase(self: SequencerPaper, unit: PaperPhase, out: list[Any]) -> None:
        self.sync_through = unit.number if unit.phase == 1 else None
        self._commit(out)

    replace(SequencerPaper, "_enter_phase", enter_phase)


@MUTANTS.add("one reply completes a phase")
def _one_reply_is_enough() -> None:
    def around(count: Method) -> Method:
        def changed(self: SequencerPaper, unit: PaperCommitted, out: list[Any]) -> None:
            self.replied = self.everybody
            count(self, unit, out)

        return changed

    wrap(SequencerPaper, "_count_reply", around)


@MUTANTS.add("dummy messages are never sent")
def _no_dummies() -> None:
    def around(acknowledge: Method) -> Method:
        def changed(self: SequencerPaper, out: list[Any]) -> None:
            self.unacknowledged = 0
            acknowledge(self, out)

        return changed

    wrap(SequencerPaper, "_acknowledge", around)


@MUTANTS.add("the last of the nodes with the highest number is elected", "protocols.sequencer.paper.election")
def _last_is_elected() -> None:
    def around(decide: Method) -> Method:
        def changed(node: SequencerPaper, out: list[Any]) -> None:
            highest = max(node.claims.values())
            last = max(claimant for claimant, number in node.claims.items() if number == highest)
            node.claims = {last: highest}
            decide(node, out)

        return changed

    wrap(election, "decide", around)


@MUTANTS.add("a node that gives way requests nothing", "protocols.sequencer.paper.election")
def _gives_way_silently() -> None:
    def around(give_way: Method) -> Method:
        def changed(node: SequencerPaper, unit: Any, out: list[Any]) -> None:
            did: list[Any] = []
            give_way(node, unit, did)
            out += did[:2]

        return changed

    wrap(election, "give_way", around)
