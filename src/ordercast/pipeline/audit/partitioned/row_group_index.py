"""The index of row groups: what each row group of a long run contains, found before anything is audited."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import LEVELS
from ordercast.pipeline.audit.kernel.columns import CODES, FIRST_MEMBERSHIP, OTHER, TRANSMITTED, Numbers, kinds_of
from ordercast.pipeline.audit.partitioned.row_groups import Ranges, RowGroups, numbers_with_null
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, SEQ, SOURCE, STEP, TIME, EventKind

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
    """Row groups to be summarised."""

    nodes: int
    first: int
    """Number of the first of them among all row groups of the run."""
    files: tuple[RowGroups, ...]


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
    numbers: Ranges
    """Sequence numbers of all messages, by node and source."""
    delivered: Ranges
    """Sequence numbers of delivered messages, by node and source."""


def summarise(task: IndexTask) -> list[RowGroupSummary]:
    """Reads row groups one by one."""
    found: list[RowGroupSummary] = []
    for file in task.files:
        for group in file.groups:
            one = msgspec.structs.replace(file, groups=(group,))
            found.append(_summary(task.nodes, task.first + len(found), one))
    return found


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
    cell = node * nodes + source
    is_delivery = kind == CODES[EventKind.DELIVER]
    in_logs = is_delivery | (kind == CODES[EventKind.SEND])
    order = np.argsort(node[in_logs].astype(np.int16), kind="stable")
    steps, at = step[in_logs][order], node[in_logs][order]
    time = batch.column(TIME)
    return RowGroupSummary(
        number=number,
        unknown_nodes=unknown,
        rows=int(node.size),
        sends=int(np.count_nonzero(kind == CODES[EventKind.SEND])),
        deliveries=np.bincount(node[is_delivery], minlength=nodes).tobytes(),
        membership=membership,
        levels=bool(np.isin(kind, _LEVELS).any()),
        receipts=bool(np.any(kind == CODES[EventKind.RECEIVE])),
        transmissions=transmissions,
        logs=bool(np.any(kind == CODES[EventKind.DURABLE])),
        begins=pc.min(time).as_py() if batch.num_rows else 0,
        steps=Ranges.over(nodes, node[in_logs], step[in_logs]),
        in_order=bool(np.all((steps[1:] > steps[:-1]) | (at[1:] != at[:-1]))),
        numbers=Ranges.over(nodes * nodes, cell, seq),
        delivered=Ranges.over(nodes * nodes, cell[is_delivery], seq[is_delivery]),
    )


def _membership(file: RowGroups) -> tuple[MembershipEvent, ...]:
    batch = file.read((NODE, STEP, TIME, EVENT, SEQ, DESTINATIONS))
    kind = kinds_of(batch.column(EVENT))
    rows = batch.filter(pa.array((kind >= FIRST_MEMBERSHIP) & (kind < OTHER))).to_pylist()
    return tuple(msgspec.convert(row, MembershipEvent) for row in rows)


class RowGroupIndex:
    """Sequence numbers by row group, node and source; row groups are in the order of time."""

    def __init__(
        self, nodes: int, numbers: Sequence[tuple[Numbers, Numbers]], delivered: Sequence[tuple[Numbers, Numbers]]
    ) -> None:
        """`numbers` and `delivered`: minima and maxima of each row group, by node and source."""
        shape = (len(numbers), nodes, nodes)
        self.nodes = nodes
        self.lowest, self.highest = (np.concatenate(part).reshape(shape) for part in zip(*numbers, strict=True))
        self.first_delivered, self.last_delivered = (
            np.concatenate(part).reshape(shape) for part in zip(*delivered, strict=True)
        )

    def groups_of(self, start: Numbers, below: Numbers) -> list[int]:
        """The row groups that may contain events of a partition."""
        touched = (self.lowest < below) & (self.highest >= start)
        found: list[int] = np.flatnonzero(touched.any(axis=(1, 2))).tolist()
        return found
