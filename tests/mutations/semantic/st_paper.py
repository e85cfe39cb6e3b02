"""Semantic mutants of the printed ST: each breaks one step of the paper."""

from collections.abc import Callable
from typing import Any

from ordercast.protocols.st.paper import recovery
from ordercast.protocols.st.paper.machine import StPaper
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.st.paper.machine")
Method = Callable[..., Any]
_RECOVERY = "protocols.st.paper.recovery"


@MUTANTS.add("agreement (2): the sort point is always the start of the log", _RECOVERY)
def _sorts_everything() -> None:
    replace(recovery, "sort_point", lambda *_: 0)


@MUTANTS.add("agreement (2): numbers are not lowered", _RECOVERY)
def _lowers_nothing() -> None:
    replace(recovery, "lowered", lambda expected, *_: tuple(expected))


@MUTANTS.add("FAIL counts packets instead of pairs", _RECOVERY)
def _counts_packets() -> None:
    def lacking_pairs(orders: Any) -> int:
        return sum(
            max(0, sender.next_seq_to[receiver.source] - receiver.expected_to_me[sender.source])
            for receiver in orders
            for sender in orders
        )

    replace(recovery, "lacking_pairs", lacking_pairs)


@MUTANTS.add("sorting rule: a log stays as it is", _RECOVERY)
def _never_sorts() -> None:
    replace(recovery, "sorted_log", lambda log, *_: list(log))


@MUTANTS.add("RET (1): everything that is kept is sent again", _RECOVERY)
def _retransmits_everything() -> None:
    replace(recovery, "is_lacking", lambda *_: True)


@MUTANTS.add("agreement (6): PRL is not acknowledged")
def _keeps_what_is_preacknowledged() -> None:
    def around(acknowledge: Method) -> Method:
        def changed(self: StPaper, out: Any) -> None:
            kept, self.preacknowledged = self.preacknowledged, []
            acknowledge(self, out)
            self.preacknowledged = kept

        return changed

    wrap(StPaper, "_acknowledge_before_sort_point", around)


@MUTANTS.add("agreement (5): different sort lines and orders are not noticed")
def _never_aborts() -> None:
    def around(compare: Method) -> Method:
        def changed(self: StPaper, out: Any) -> None:
            self.orders = [
                unit and type(unit)(unit.source, tuple(self.sort_from), *tail(unit), tuple(self.order))
                for unit in self.orders
            ]
            compare(self, out)

        def tail(unit: Any) -> tuple[Any, Any]:
            return unit.expected_to_me, unit.next_seq_to

        return changed

    wrap(StPaper, "_compare", around)


@MUTANTS.add("a packet that shows a gap is kept, whatever the reading")
def _keeps_behind_gaps() -> None:
    def keep(self: StPaper, unit: Any) -> bool:
        self.accepted.append(unit)
        return True

    replace(StPaper, "_keep", keep)


@MUTANTS.add("4.1: what is not accepted in time is not sent again")
def _never_resends() -> None:
    replace(StPaper, "_resend_unaccepted", lambda *_: None)
