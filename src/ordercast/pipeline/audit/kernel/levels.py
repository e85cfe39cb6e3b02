"""The vectorised check of `ordercast.audit.levels`: nodes reached each level of knowledge only when it was true.

Only the first time that a node reached a level counts.
"""

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from ordercast.audit.levels import (
    accepted_truthfully,
    acknowledged_truthfully,
    delivered_truthfully,
    preacknowledged_truthfully,
)
from ordercast.audit.services import Property
from ordercast.pipeline.audit.kernel.columns import UNKNOWN, Flags, Numbers, RunColumns
from ordercast.trace.schema import EventKind

NEVER = int(np.iinfo(np.int64).max)
"""The step, or the time, of an event that did not happen."""


def levels_truthful(run: RunColumns, promises: Collection[Property]) -> bool:
    """True if those of the four properties hold that are promised. All delivered messages must have been sent."""
    firsts = _Firsts(run)
    return (
        (accepted_truthfully not in promises or _accepted(run, firsts))
        and (preacknowledged_truthfully not in promises or _after(run, firsts, EventKind.PREACK, EventKind.ACCEPT))
        and (acknowledged_truthfully not in promises or _after(run, firsts, EventKind.ACK, EventKind.PREACK))
        and (delivered_truthfully not in promises or _delivered(run, firsts))
    )


class _Firsts:
    """Tables by node and message: the step and the time at which a kind of event first events there."""

    def __init__(self, run: RunColumns) -> None:
        self._run = run
        self._tables: dict[EventKind, tuple[Numbers, Numbers]] = {}

    def of(self, kind: EventKind) -> tuple[Numbers, Numbers]:
        """Steps and times; `NEVER` where it did not happen."""
        if kind not in self._tables:
            shape = self._run.sends.addressed.shape
            steps, times = np.full(shape, NEVER), np.full(shape, NEVER)
            rows = self._run.events[kind]
            known = np.flatnonzero(rows.message != UNKNOWN)[
                ::-1
            ]  # reversed: of several assignments to one cell the last wins, which is the first event
            steps[rows.node[known], rows.message[known]] = rows.step[known]
            times[rows.node[known], rows.message[known]] = rows.time[known]
            self._tables[kind] = steps, times
        return self._tables[kind]


def _all_known(run: RunColumns, kind: EventKind) -> bool:
    return not np.any(run.events[kind].message == UNKNOWN)


def _accepted(run: RunColumns, firsts: _Firsts) -> bool:
    """Accepted: the node has the message, and all that its source sent to the node before it."""
    if not _all_known(run, EventKind.ACCEPT):
        return False
    steps, _ = firsts.of(EventKind.ACCEPT)
    accepted = steps < NEVER
    if run.receipts_recorded:
        received, _ = firsts.of(EventKind.RECEIVE)
        had = received < steps
        messages = np.arange(run.sends.seq.size)
        had[run.sends.source, messages] |= run.sends.step < steps[run.sends.source, messages]
        if np.any(accepted & ~had):
            return False
    due = np.where(run.sends.addressed, steps, -1)
    for start, end in pairwise(run.sends.starts):
        latest_due = np.maximum.accumulate(due[:, start:end], axis=1)[:, :-1]
        if np.any(accepted[:, start + 1 : end] & (latest_due > steps[:, start + 1 : end])):
            return False
    return True


def _after(run: RunColumns, firsts: _Firsts, effect: EventKind, cause: EventKind) -> bool:
    """True if each effect came after its cause at every destination in the node's view of the group."""
    if not _all_known(run, effect):
        return False
    effect_steps, effect_times = firsts.of(effect)
    cause_steps, cause_times = firsts.of(cause)
    events = effect_steps < NEVER
    for to in range(run.nodes):
        late = cause_times[to] > effect_times
        late[to] = cause_steps[to] > effect_steps[to]
        late |= cause_steps[to] == NEVER
        late &= events & run.sends.addressed[to]
        if run.views:
            late &= _counted_in(run, effect_steps, to)
        if late.any():
            return False
    return True


def _counted_in(run: RunColumns, steps: Numbers, to: int) -> Flags:
    """By node and message: whether the node's view at a step of its own contained another node."""
    counted = np.ones(steps.shape, np.bool_)
    for node, views in run.views.items():
        remaining = np.array([True, *(bool(mask >> to & 1) for _, mask in views)])
        counted[node] = remaining[np.searchsorted([step for step, _ in views], steps[node], side="left")]
    return counted


def _delivered(run: RunColumns, firsts: _Firsts) -> bool:
    """Delivered was only what the node had acknowledged or, at the instant of its abort, pre-acknowledged.

    If the run delivers what is stable, it was pre-acknowledged.
    """
    steps, times = firsts.of(EventKind.DELIVER)
    known, _ = firsts.of(EventKind.PREACK if run.delivers_stable else EventKind.ACK)
    if run.aborted_at:
        preacknowledged, _ = firsts.of(EventKind.PREACK)
        known = known.copy()
        for node, end in run.aborted_at.items():
            at_the_end = (times[node] == end) & (known[node] == NEVER)
            known[node, at_the_end] = preacknowledged[node, at_the_end]
    return not np.any((steps < NEVER) & (known > steps))
