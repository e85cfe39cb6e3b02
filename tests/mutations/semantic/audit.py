"""Semantic mutants of the reference audit: a property that is not checked, or checked against something else."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from ordercast.audit import completeness, levels, membership, order, priorities, records, reference, run_rows, views
from ordercast.audit import virtual_synchrony as synchrony
from ordercast.audit.logs import Moment, RunLogs, Sent
from ordercast.audit.verdict import Verdict
from ordercast.audit.view_epochs import Epoch
from ordercast.audit.violations import Message
from ordercast.model.nodes import everybody
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("audit.reference")


def _nothing(*_: object) -> Iterator[Any]:
    return iter(())


@MUTANTS.add("complete: two messages of one name are no violation", "audit.completeness")
def _() -> None:
    replace(completeness, "_numbered_twice", _nothing)


@MUTANTS.add("complete: nothing is ever missing", "audit.completeness")
def _() -> None:
    replace(completeness, "_lacking", _nothing)


@MUTANTS.add("complete: nothing is ever surplus", "audit.completeness")
def _() -> None:
    replace(completeness, "_surplus", _nothing)


@MUTANTS.add("order: a message delivered twice counts at its last position", "audit.order")
def _() -> None:
    def last_places(logs: RunLogs) -> list[dict[Message, int]]:
        return [{message: place for place, message in enumerate(log)} for log in logs.delivered]

    replace(order, "_places_of", last_places)


@MUTANTS.add("order: cycles through more than two messages are not found", "audit.order")
def _() -> None:
    def around(cycles: Callable[..., Iterator[order.Cycle]]) -> Callable[..., Iterator[order.Cycle]]:
        return lambda logs: (cycle for cycle in cycles(logs) if len(cycle) == 2)

    wrap(order, "_cycles", around)


@MUTANTS.add("order: logs of different nodes are not compared", "audit.order")
def _() -> None:
    replace(order, "_disagreements", _nothing)


@MUTANTS.add("priorities: a run ends where the priority falls", "audit.priorities")
def _() -> None:
    def falling(log: Sequence[Sent]) -> list[tuple[Sent, ...]]:
        cuts = [place for place, (one, next_) in enumerate(pairwise(log), start=1) if one.priority > next_.priority]
        return [tuple(log[start:end]) for start, end in pairwise([0, *cuts, len(log)])] if log else []

    replace(priorities, "priority_runs", falling)


@MUTANTS.add("priorities: senders' order holds across priorities", "audit.priorities")
def _() -> None:
    def across(log: Sequence[Sent]) -> Iterator[tuple[Sent, Sent]]:
        latest: dict[int, Sent] = {}
        for sent in log:
            before = latest.get(sent.message[0])
            if before is not None and sent.place < before.place:
                yield before, sent
            latest[sent.message[0]] = sent

    replace(priorities, "_swapped", across)


@MUTANTS.add("levels: a cause may come after its effect", "audit.levels")
def _() -> None:
    replace(levels, "_time_of_the_last", lambda *_: -1)
    replace(levels, "_late", lambda *_: ())


@MUTANTS.add("levels: a node accepts what it has not received", "audit.levels")
def _() -> None:
    replace(levels, "_had", lambda *_: True)


@MUTANTS.add("levels: views do not change who must know", "audit.logs")
def _() -> None:
    def all_nodes(self: RunLogs, node: int, moment: Moment) -> int:
        del node, moment
        return everybody(self.nodes)

    replace(RunLogs, "members_at", all_nodes)


@MUTANTS.add("views: the log of a stopped node never departs from the others'", "audit.views")
def _() -> None:
    def never(log: tuple[Message, ...], common: tuple[Message, ...]) -> int:
        del common
        return len(log)

    replace(views, "_departs_at", never)


@MUTANTS.add("views: those that go on are always a majority", "audit.views")
def _() -> None:
    replace(views, "_is_majority", lambda _: True)


@MUTANTS.add("reference: a run's own counters are not compared", "audit.reference")
def _() -> None:
    replace(reference, "add_missing_by_counters", lambda *_: None)


@MUTANTS.add("run rows: no run promises uniform delivery", "audit.run_rows")
def _() -> None:
    replace(run_rows, "is_uniform", lambda _: False)


@MUTANTS.add("records: every record counts as complete", "audit.records")
def _() -> None:
    replace(records, "unrecorded_in", lambda _: 0)


@MUTANTS.add("verdict: one violated property makes no difference", "audit.verdict")
def _() -> None:
    replace(Verdict, "holds", property(lambda _: True))  # type: ignore[arg-type] # a property has no call


@MUTANTS.add("views: nobody closes the latest view", "audit.virtual_synchrony")
def _() -> None:
    replace(synchrony, "_closes", lambda _, epoch: epoch.closed)


@MUTANTS.add("views: everybody closes every view", "audit.virtual_synchrony")
def _() -> None:
    replace(synchrony, "_closes", lambda *_: True)


@MUTANTS.add("views: every message is for every member", "audit.virtual_synchrony")
def _() -> None:
    replace(synchrony, "_is_for", lambda *_: True)


@MUTANTS.add("views: a sequencer is uniform whatever its resilience", "audit.virtual_synchrony")
def _() -> None:
    replace(synchrony, "is_uniform_view", lambda *_: True)


@MUTANTS.add("views: any donor will do", "audit.virtual_synchrony")
def _() -> None:
    replace(synchrony, "_wrong_state", lambda *_: "")


@MUTANTS.add("views: states are not compared", "audit.virtual_synchrony")
def _() -> None:
    replace(synchrony, "_different_state", _nothing)


@MUTANTS.add("views: no quorum is needed", "audit.membership")
def _() -> None:
    replace(membership, "_not_primary", lambda *_: "")


@MUTANTS.add("views: whoever is excluded closes its view", "audit.epochs")
def _() -> None:
    replace(Epoch, "closed", property(lambda self: self.next_view is not None or self.end is not None))  # type: ignore[arg-type]


@MUTANTS.add("levels: none follows from a view", "audit.levels")
def _() -> None:
    replace(levels, "_late_for_view", lambda *_: None)


@MUTANTS.add("levels: all that go on have everything", "audit.levels")
def _() -> None:
    replace(levels, "_late_for_view", lambda *_: 0)


@MUTANTS.add("levels: nothing is supplied at the end of a view", "audit.levels")
def _() -> None:
    replace(levels, "_was_supplied", lambda *_: False)


@MUTANTS.add("levels: everything may have been supplied", "audit.levels")
def _() -> None:
    replace(levels, "_was_supplied", lambda *_: True)
