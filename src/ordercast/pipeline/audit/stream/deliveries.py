"""Who has delivered what of the messages of a growing run, and who is to deliver it."""

from dataclasses import replace

import numpy as np

from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.columns import UNKNOWN, EventArrays, Flags, RunColumns
from ordercast.trace.schema import EventKind


def known_deliveries(run: RunColumns) -> EventArrays:
    """Deliveries of messages whose sends have been seen; others count as not made yet."""
    rows = run.events[EventKind.DELIVER]
    known = rows.message != UNKNOWN
    if known.all():
        return rows
    return EventArrays(rows.node[known], rows.step[known], rows.time[known], rows.message[known])


def with_known_deliveries(run: RunColumns) -> RunColumns:
    """A run without the deliveries of all other messages."""
    return replace(run, events={**run.events, EventKind.DELIVER: known_deliveries(run)})


def delivered(run: RunColumns) -> Flags:
    """By node and message: whether the node has delivered it."""
    rows = known_deliveries(run)
    flags = np.zeros_like(run.sends.addressed)
    flags[rows.node, rows.message] = True
    return flags


def due(run: RunColumns, service: Service) -> Flags:
    """By node and message: whether the node is to deliver it."""
    return run.sends.addressed if service in SELECTIVE else np.ones_like(run.sends.addressed)
