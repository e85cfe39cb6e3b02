"""The rules of ending a view, each taken out: functions that break the code until a `MonkeyPatch` is undone."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, highest, lowest
from ordercast.protocols.sequencer.flush import SequencerFlush
from ordercast.protocols.shared.pending_acknowledgments import PendingAcknowledgments
from ordercast.protocols.spo.flush import SpoFlush
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.settlement import Settlement
from ordercast.protocols.st.flush import StFlush
from ordercast.protocols.to.flush import ToFlush
from ordercast.protocols.to.recovery import Mode

Reports = Mapping[int, EpochReport]


def v7_nothing_is_settled(patch: pytest.MonkeyPatch) -> None:
    """A packet is pre-acknowledged whatever is before it."""

    def release(self: Settlement, source: int, packets: Any = ()) -> list[Packet]:
        if packets:
            self.settled_below[source] = max(self.settled_below[source], packets[-1].seq + 1)
        return list(packets)

    patch.setattr(Settlement, "release", release)


def v8_what_is_settled_does_not_count(patch: pytest.MonkeyPatch) -> None:
    """SPO's cut is what all have."""
    patch.setattr(SpoFlush, "cut", staticmethod(lambda reports, _: Cut(expected_by_all(reports))))


def v9_stable_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """SPO delivers what is pre-acknowledged."""
    take = PendingAcknowledgments.take_acknowledged

    def all_of_it(self: PendingAcknowledgments, log: int) -> list[Packet]:
        taken, self.logs[log] = list(self.logs[log]), type(self.logs[log])()
        return taken

    def acknowledge(self: Spo, log: int, out: list[Output]) -> None:
        patch.setattr(PendingAcknowledgments, "take_acknowledged", all_of_it)
        unchanged(self, log, out)
        patch.setattr(PendingAcknowledgments, "take_acknowledged", take)

    unchanged = Spo.acknowledge
    patch.setattr(Spo, "acknowledge", acknowledge)


def finish_of_to(*, begins: bool, acknowledges: bool) -> Callable[..., list[Output]]:
    """TO's steps, without some."""

    def finish(self: ToFlush, cut: Cut, supplied: Any) -> list[Output]:
        del supplied
        reception, agreement = self.machine.reception, self.machine.recovery
        out: list[Output] = []
        behind = agreement.epoch < cut.round
        if behind:
            reception.roll_back(list(cut.base), out)
        if begins and (behind or agreement.mode is Mode.INSTALLED):
            reception.begin_epoch(out)
        reception.roll_back(list(cut.units), out)
        if acknowledges:
            reception.begin_epoch(out)
        return out

    return finish


def v19_the_round_is_not_begun(patch: pytest.MonkeyPatch) -> None:
    """PriTO: what was kept waits for what the round adds."""
    patch.setattr(ToFlush, "finish", finish_of_to(begins=False, acknowledges=True))


def v20_packets_wait_over_a_view(patch: pytest.MonkeyPatch) -> None:
    """PriTO: what is not acknowledged is not delivered."""
    patch.setattr(ToFlush, "finish", finish_of_to(begins=True, acknowledges=False))


def v21_a_round_is_not_finished_first(patch: pytest.MonkeyPatch) -> None:
    """ST: who is a round behind counts with what it expected there, and does not finish that round."""

    def cut(reports: Reports, nodes: int) -> Cut:
        del nodes
        return Cut(expected_by_all(reports), round=max(report.round for report in reports.values()))

    patch.setattr(StFlush, "cut", staticmethod(cut))
    patch.setattr(StFlush, "_finish_round", lambda *_: [])
    patch.setattr(StFlush, "problem", lambda *_: None)


def v22_rounds_are_mixed(patch: pytest.MonkeyPatch) -> None:
    """TO: who is a round behind counts with the numbers of that round."""
    unchanged = ToFlush.cut

    def cut(reports: Reports, nodes: int) -> Cut:
        made = unchanged(reports, nodes)
        units = lowest([report.units for report in reports.values()])
        return Cut(expected_by_all(reports), round=made.round, base=units, units=units)

    patch.setattr(ToFlush, "cut", staticmethod(cut))
    patch.setattr(ToFlush, "problem", lambda *_: None)


def v23_the_most_that_any_has(patch: pytest.MonkeyPatch) -> None:
    """The cut is what anybody has."""
    for kind in (SpoFlush, StFlush, ToFlush):

        def cut(reports: Reports, nodes: int, unchanged: Any = kind.cut) -> Cut:
            made: Cut = unchanged(reports, nodes)
            of_round = [report for report in reports.values() if report.round == made.round]
            ends = highest([report.expected for report in of_round])
            units = highest([report.units for report in of_round])
            return msgspec.structs.replace(made, ends=ends, units=units)

        patch.setattr(kind, "cut", staticmethod(cut))
        patch.setattr(kind, "problem", lambda *_: None)


def v24_the_least_that_any_has(patch: pytest.MonkeyPatch) -> None:
    """The sequencer's cut is what all have."""

    def cut(reports: Reports, nodes: int) -> Cut:
        del nodes
        shortest = min(reports.values(), key=lambda report: report.numbered_below)
        return Cut(shortest.expected, numbered_below=shortest.numbered_below)

    patch.setattr(SequencerFlush, "cut", staticmethod(cut))
    patch.setattr(SequencerFlush, "problem", lambda *_: None)


def v24_any_majority_reports(patch: pytest.MonkeyPatch) -> None:
    """With resilience, too, a majority suffices."""

    def needed(config: GroupConfig) -> int:
        del config
        return 1

    patch.setattr(SequencerFlush, "reports_needed", staticmethod(needed))


def expected_by_all(reports: Reports) -> tuple[int, ...]:
    """What all have, whatever their rounds."""
    return lowest([report.expected for report in reports.values()])
