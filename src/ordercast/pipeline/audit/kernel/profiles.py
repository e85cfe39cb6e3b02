"""The vectorised check of a profile: some of the properties of `checks`, where a message may come more than once.

As there, True means that the run passes; False that it does not, or that the reference audit has to look.
"""

from dataclasses import replace

import numpy as np

from ordercast.audit.completeness import PARTS, all_delivered, delivered_once, nothing_extra, sent_first
from ordercast.audit.numbering import key_order_kept, numbers_dense
from ordercast.audit.order import no_cycle, same_order, sender_order_kept
from ordercast.audit.profiles import Profile, promised_by
from ordercast.audit.services import LEVEL_SOUNDNESS
from ordercast.pipeline.audit.kernel.checks import (
    in_sending_order,
    in_sending_order_by_priority,
    is_before_sent,
    is_one_order,
)
from ordercast.pipeline.audit.kernel.columns import UNKNOWN, EventArrays, RunColumns
from ordercast.pipeline.audit.kernel.levels import levels_truthful
from ordercast.trace.schema import EventKind

_CHECKED = frozenset({*PARTS, *LEVEL_SOUNDNESS, sender_order_kept, key_order_kept, same_order, no_cycle, numbers_dense})


def profile_passes(run: RunColumns, profile: Profile, *, one_clock: bool) -> bool:
    """True if every property of the profile holds; False if one is violated, or if it is unknown."""
    asked = set(promised_by(profile, uniform=False))
    changes = run.stopped or run.views or run.views_numbered or run.events[EventKind.DURABLE].node.size
    deliveries = run.events[EventKind.DELIVER]
    if changes or asked - _CHECKED or np.any(deliveries.message == UNKNOWN):
        return False
    named = run.sends.addressed
    if not profile.selective:
        run = replace(run, sends=replace(run.sends, addressed=np.ones_like(named)))
    logs = _first_deliveries(run, deliveries)
    given = np.zeros_like(named)
    given[logs.node, logs.message] = True
    violated = (
        (delivered_once in asked and logs.node.size < deliveries.node.size)
        or (nothing_extra in asked and np.any(given > named))
        or (all_delivered in asked and np.any(run.sends.addressed & ~given))
        or (sent_first in asked and is_before_sent(run, logs, one_clock=one_clock))
        or (numbers_dense in asked and not _dense(run))
    )
    return not violated and _in_order(run, logs, profile)


def _in_order(run: RunColumns, logs: EventArrays, profile: Profile) -> bool:
    asked = set(promised_by(profile, uniform=False))
    levels = asked & set(LEVEL_SOUNDNESS)
    return (
        (sender_order_kept not in asked or in_sending_order(run, logs))
        and (key_order_kept not in asked or in_sending_order_by_priority(run, logs))
        and (not {same_order, no_cycle} & asked or is_one_order(run, logs))
        and (not run.levels_recorded or not levels or levels_truthful(run, levels))
    )


def only_first_deliveries(run: RunColumns) -> RunColumns:
    """The run without what nodes were handed again. All delivered messages that were not sent are left out, too."""
    logs = run.events[EventKind.DELIVER]
    sent = logs.message != UNKNOWN
    known = EventArrays(logs.node[sent], logs.step[sent], logs.time[sent], logs.message[sent])
    return replace(run, events={**run.events, EventKind.DELIVER: _first_deliveries(run, known)})


def _first_deliveries(run: RunColumns, logs: EventArrays) -> EventArrays:
    """The deliveries without those of a message that the node had delivered before."""
    cell = logs.node.astype(np.int64) * run.sends.seq.size + logs.message
    _, first = np.unique(cell, return_index=True)
    if first.size == cell.size:
        return logs
    first.sort()
    return EventArrays(logs.node[first], logs.step[first], logs.time[first], logs.message[first])


def _dense(run: RunColumns) -> bool:
    seq, source = run.sends.seq, run.sends.source
    return bool(np.all((seq[1:] == seq[:-1] + 1) | (source[1:] != source[:-1])))
