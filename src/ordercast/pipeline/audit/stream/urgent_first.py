"""Whether urgent messages went first in a growing run, as far as it has come.

What overtook something more urgent is right if some node had sent a marker by then. That is known when all nodes have
told what happened until a later time; so deliveries before this time are judged, and what later ones may ask about is
kept: rows about messages that are not retired, or that a node delivered later, and the last markers. Runs in which
nodes stop or views change, whose clocks differ or run backwards, and of which too much would be kept, are left to the
audit of the complete trace.
"""

from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import MARKER, logs_of
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.violations import Violation
from ordercast.pipeline.audit.kernel.checks import overtakes
from ordercast.pipeline.audit.kernel.columns import Flags, NotVectorisableError, Numbers, columns_of, numbers
from ordercast.pipeline.audit.run import as_lists
from ordercast.pipeline.audit.stream.deliveries import known_deliveries
from ordercast.trace.schema import DETAIL, EVENT, NODE, SEQ, SOURCE, STEP, TIME, EventKind

MOST_KEPT = 500_000
"""Rows: with more it is left to the audit of the complete trace."""
_LEVELS = pa.array([EventKind.PREACK.value, EventKind.ACK.value])
_KINDS = pa.array([EventKind.SEND.value, EventKind.DELIVER.value, EventKind.PREACK.value, EventKind.ACK.value])
_ENDS = pa.array([EventKind.CRASH.value, EventKind.ABORT.value, EventKind.VIEW.value])

IsRetired = Callable[[pa.Table], Flags]
"""By row: whether it is about a message that is retired."""


class UrgentFirst(msgspec.Struct):
    """What is kept of a run."""

    times: dict[int, int] = {}
    """By node: when its last event was."""
    judged_below: int = int(np.iinfo(np.int64).min)
    """Deliveries before this time were judged."""
    levels: bool = False
    """True if levels are recorded."""
    transmissions: bool = False
    """True if transmissions are recorded, of which markers are some."""
    left: bool = False
    """True if it is left to the audit of the complete trace."""

    def judge(self, nodes: int, kept: pa.Table, batch: pa.Table) -> tuple[list[Violation], pa.Table]:
        """Adds more events to those that are kept; returns the violations that can be told now, and what there is."""
        self.left = self.left or bool(pc.any(pc.is_in(batch.column(EVENT), _ENDS)).as_py()) or self._runs_back(batch)
        transmitted = pc.equal(batch.column(EVENT), EventKind.TRANSMIT.value)
        self.transmissions = self.transmissions or bool(pc.any(transmitted).as_py())
        self.levels = self.levels or bool(pc.any(pc.is_in(batch.column(EVENT), _LEVELS)).as_py())
        if self.left:
            return [], kept.slice(0, 0)
        markers = pc.fill_null(pc.and_(transmitted, pc.equal(batch.column(DETAIL), MARKER)), fill_value=False)
        new = batch.filter(pc.or_(pc.is_in(batch.column(EVENT), _KINDS), markers))
        rows = pa.concat_tables([kept, new]).combine_chunks()
        if not (self.levels and self.transmissions):  # the files read first may have none; all rows may be asked about
            return [], rows
        below = min((self.times.get(node, self.judged_below) for node in range(nodes)), default=self.judged_below)
        found = self._overtaking(nodes, rows, below)
        self.judged_below = max(self.judged_below, below)
        return found, rows

    def still_needed(self, rows: pa.Table, is_retired: IsRetired) -> pa.Table:
        """The rows that later deliveries may ask about."""
        event, node = rows.column(EVENT), _column(rows, NODE)
        later = np.asarray(pc.equal(event, EventKind.DELIVER.value)) & (_column(rows, TIME) >= self.judged_below)
        retired = is_retired(rows)
        needed = ~retired | _among(rows, retired, rows.filter(pa.array(later)))
        markers = np.flatnonzero(np.asarray(pc.equal(event, EventKind.TRANSMIT.value)))
        early = markers[_column(rows, TIME)[markers] < self.judged_below]
        for one in np.unique(node[early]).tolist():
            mine = early[node[early] == one]
            needed[mine[np.argsort(_column(rows, STEP)[mine])][:-1]] = False
        rows = rows.filter(pa.array(needed))
        self.left = self.left or rows.num_rows > MOST_KEPT
        return rows if not self.left else rows.slice(0, 0)

    def _overtaking(self, nodes: int, rows: pa.Table, below: int) -> list[Violation]:
        batches = rows.to_batches()
        try:
            run = columns_of(nodes, batches)
        except NotVectorisableError:
            return []
        if not overtakes(run, known_deliveries(run)):
            return []
        logs = logs_of("", nodes, map(as_lists, batches))
        delivered = logs.first[EventKind.DELIVER]
        return [
            violation
            for violation in priority_order_kept(logs)
            if self.judged_below <= delivered[violation.nodes[0]][violation.messages[0]].time < below
        ]

    def _runs_back(self, batch: pa.Table) -> bool:
        """Notes the time of each node; True if that of one does not rise with its steps."""
        node, step, time = (_column(batch, name) for name in (NODE, STEP, TIME))
        order = np.lexsort((step, node))
        node, time = node[order], time[order]
        for one in np.unique(node).tolist():
            mine = time[node == one]
            if np.any(mine[1:] < mine[:-1]) or mine[0] < self.times.get(one, mine[0]):
                return True
            self.times[one] = int(mine[-1])
        return False


def _column(rows: pa.Table, name: str) -> Numbers:
    return numbers(rows.column(name).combine_chunks(), -1)


def _among(rows: pa.Table, chosen: Flags, others: pa.Table) -> Flags:
    """By row: whether it is chosen, and others are about the same message."""
    names = set(_names(others))
    found = np.zeros(rows.num_rows, np.bool_)
    places = np.flatnonzero(chosen)
    found[places] = [name in names for name in _names(rows.take(pa.array(places)))]
    return found


def _names(rows: pa.Table) -> list[tuple[int, int]]:
    """By row: the message that it is about."""
    return list(zip(rows.column(SOURCE).to_pylist(), rows.column(SEQ).to_pylist(), strict=True))
