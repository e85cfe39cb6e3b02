"""What the row groups of a long run contain, found before anything is audited, by tasks.

A summary has a range of numbers for each source, not for each node and source: of a thousand nodes these would be a
million. But a node that lags behind would make every range as long as its lag. So nodes are divided by how far behind
they are (*lateness*), mostly into one class, and there is a range for each source and class.
"""

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import LEVELS
from ordercast.pipeline.audit.kernel.columns import CODES, FIRST_MEMBERSHIP, OTHER, TRANSMITTED, Numbers, kinds_of
from ordercast.pipeline.audit.partitioned.row_groups import LEAST, MOST, Ranges, RowGroups, numbers_with_null, ranges_of
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, SEQ, SOURCE, STEP, TIME, EventKind

_SEND, _DELIVER = CODES[EventKind.SEND], CODES[EventKind.DELIVER]
_LEVELS = [CODES[level] for level in LEVELS]


class MembershipEvent(msgspec.Struct, frozen=True):
    """An event about a node instead of a message: a crash, an abort or a view."""

    node: int
    step: int
    time: int
    event: str
    destinations: tuple[int, ...] | None
    seq: int | None = None
    """The number of a view, where views have numbers."""

    def as_row(self) -> dict[str, object]:
        """As a row of `events`."""
        return msgspec.structs.asdict(self)


class IndexTask(msgspec.Struct, frozen=True):
    """Row groups to be summarised: for each element of `files` there is one summary, mostly of one row group."""

    nodes: int
    first: int
    """Number of the first of them among all of the run."""
    files: tuple[RowGroups, ...]


class Spans(msgspec.Struct, frozen=True):
    """Which numbers of which sources a row group has, for each class of nodes that are about equally late."""

    lateness: bytes
    """The class of each node; -1 if it has none but sends."""
    cells: bytes
    """Class · nodes + source, increasing; those that are not empty. Sends are of class 0."""
    lowest: bytes
    highest: bytes
    first_delivered: bytes
    last_delivered: bytes
    """`MOST` and `LEAST` where nothing was delivered."""

    @classmethod
    def of(cls, nodes: int, node: Numbers, source: Numbers, seq: Numbers, kind: npt.NDArray[np.int8]) -> "Spans":
        """Of some events about messages."""
        cell = node * nodes + source
        parts = []
        for code in (_SEND, _DELIVER, None):
            mine = kind == code if code is not None else (kind != _SEND) & (kind != _DELIVER)
            parts.append(ranges_of(nodes * nodes, cell[mine], seq[mine]))
        late = _lateness(nodes, parts)
        sent, delivered, other = (
            (
                filled % nodes if part == 0 else late[filled // nodes].astype(np.int64) * nodes + filled % nodes,
                lowest,
                highest,
            )
            for part, (filled, lowest, highest) in enumerate(parts)
        )
        cells, place = np.unique(np.concatenate([sent[0], delivered[0], other[0]]), return_inverse=True)
        found = [np.full(cells.size, value) for value in (MOST, LEAST, MOST, LEAST)]
        np.minimum.at(found[0], place, np.concatenate([sent[1], delivered[1], other[1]]))
        np.maximum.at(found[1], place, np.concatenate([sent[2], delivered[2], other[2]]))
        of_deliveries = place[sent[0].size : sent[0].size + delivered[0].size]
        np.minimum.at(found[2], of_deliveries, delivered[1])
        np.maximum.at(found[3], of_deliveries, delivered[2])
        return cls(late.tobytes(), cells.astype(np.int32).tobytes(), *(part.tobytes() for part in found))


_Ranges = tuple[npt.NDArray[np.int32], Numbers, Numbers]


def _lateness(nodes: int, parts: list[_Ranges]) -> npt.NDArray[np.int8]:
    """The class of each node; -1 if it has none but sends.

    How late a node is: how far its lowest number of a source is below the newest of that source, at most. The class is
    one more for each four times that it is later than the least late one.
    """
    newest = np.full(nodes, -np.inf)
    for filled, _, highest in parts:
        np.maximum.at(newest, filled % nodes, highest.astype(np.float64))
    late = np.full(nodes, -1.0)
    for filled, lowest, _ in parts[1:]:
        np.maximum.at(late, filled // nodes, newest[filled % nodes] - lowest)
    known = late >= 0
    if known.any():
        late = np.where(known, (late + 1) / (late[known].min() + 1), 1)
    return np.where(known, np.log2(np.maximum(late, 1)) // 2, -1).astype(np.int8)


class RowGroupSummary(msgspec.Struct, frozen=True):
    """What a row group contains."""

    number: int
    unknown_nodes: bool
    """True if it names nodes that are not in the group."""
    rows: int
    """Events about messages."""
    sends: int
    deliveries: bytes
    """How many, by node."""
    membership: tuple[MembershipEvent, ...]
    levels: bool
    receipts: bool
    transmissions: bool
    logs: bool
    """It has rows about durable logs."""
    begins: int
    """The earliest time."""
    steps: Ranges
    """Of sends and deliveries, by node."""
    in_order: bool
    """True if each node's sends and deliveries are in the order of its steps."""
    spans: Spans


def summarise(task: IndexTask) -> list[RowGroupSummary]:
    """Reads row groups one after the other."""
    return [_summary(task.nodes, number, file) for number, file in enumerate(task.files, start=task.first)]


def _summary(nodes: int, number: int, file: RowGroups) -> RowGroupSummary:
    batch = file.read((NODE, STEP, TIME, EVENT, SOURCE, SEQ))
    kind = kinds_of(batch.column(EVENT))
    membership = _membership(file) if np.any((kind >= FIRST_MEMBERSHIP) & (kind < OTHER)) else ()
    unknown = any(not 0 <= at < nodes for one in membership for at in (one.node, *(one.destinations or ())))
    transmissions = bool(np.any(kind == TRANSMITTED))
    about_messages = kind < FIRST_MEMBERSHIP
    if not about_messages.all():
        batch, kind = batch.filter(pa.array(about_messages)), kind[about_messages]
    node, step, source, seq = (numbers_with_null(batch.column(name)) for name in (NODE, STEP, SOURCE, SEQ))
    inside = (node >= 0) & (node < nodes) & (source >= 0) & (source < nodes)
    if not inside.all():
        unknown = True
        node, step, source, seq, kind = node[inside], step[inside], source[inside], seq[inside], kind[inside]
    is_delivery = kind == _DELIVER
    in_logs = is_delivery | (kind == _SEND)
    at, steps = node[in_logs].astype(np.int16), step[in_logs]
    order = np.argsort(at, kind="stable")
    steps, at = steps[order], at[order]
    return RowGroupSummary(
        number=number,
        unknown_nodes=unknown,
        rows=int(node.size),
        sends=int(np.count_nonzero(kind == _SEND)),
        deliveries=np.bincount(node[is_delivery], minlength=nodes).astype(np.int32).tobytes(),
        membership=membership,
        levels=bool(np.isin(kind, _LEVELS).any()),
        receipts=bool(np.any(kind == CODES[EventKind.RECEIVE])),
        transmissions=transmissions,
        logs=bool(np.any(kind == CODES[EventKind.DURABLE])),
        begins=pc.min(batch.column(TIME)).as_py() if batch.num_rows else 0,
        steps=Ranges.over(nodes, at, steps),
        in_order=bool(np.all((steps[1:] > steps[:-1]) | (at[1:] != at[:-1]))),
        spans=Spans.of(nodes, node, source, seq, kind),
    )


def _membership(file: RowGroups) -> tuple[MembershipEvent, ...]:
    batch = file.read((NODE, STEP, TIME, EVENT, SEQ, DESTINATIONS))
    kind = kinds_of(batch.column(EVENT))
    rows = batch.filter(pa.array((kind >= FIRST_MEMBERSHIP) & (kind < OTHER))).to_pylist()
    return tuple(msgspec.convert(row, MembershipEvent) for row in rows)
