"""Levels of a growing run: which rows are kept, and what they violate so far.

A node accepts what a source sent to it in order; whether it did shows as soon as it accepts a later message, since its
rows come in the order of its steps. What a node knew of others is judged when all destinations have delivered the
message: each of them has told its levels before, so that what is lacking then never was. Levels that are told later,
as by a source that is no destination, are left to the audit of the complete trace; so is whether what was accepted had
been received.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.levels import accepted_truthfully
from ordercast.audit.logs import LEVELS, logs_of
from ordercast.audit.services import LEVEL_SOUNDNESS, PROMISES, Property
from ordercast.audit.verdict import MOST_WITNESSES
from ordercast.audit.violations import Violation
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.columns import (
    UNKNOWN,
    Flags,
    MessageIndex,
    NotVectorisableError,
    Numbers,
    columns_of,
    numbers,
)
from ordercast.pipeline.audit.kernel.levels import levels_truthful
from ordercast.pipeline.audit.run import as_lists
from ordercast.pipeline.audit.stream.deliveries import delivered, due, with_known_deliveries
from ordercast.trace.schema import EVENT, SEQ, SOURCE, EventKind

_NAMES = pa.array([level.value for level in LEVELS])


def are_levels(rows: pa.RecordBatch) -> pa.Array:
    """By row: whether a node reached a level."""
    return pc.is_in(rows.column(EVENT), _NAMES)


def level_promises(service: Service) -> frozenset[Property]:
    """What a service promises of levels."""
    return frozenset(PROMISES[service]) & {*LEVEL_SOUNDNESS}


def wrong_levels(
    nodes: int, others: pa.Table, levels: pa.Table, gone: Flags, service: Service, *, delivers_stable: bool
) -> list[Violation]:
    """What is violated, given all rows that are kept or go now; `gone`: by row of `levels`, whether its message goes.

    `others`: sends, deliveries and rows about nodes.
    """
    try:
        run = columns_of(nodes, others.to_batches())
    except NotVectorisableError:
        return []  # it has been told what is wrong with them
    index = MessageIndex(run.sends)
    message = _indices(levels, index)
    known = message != UNKNOWN
    told = levels.filter(pa.array(known))
    promises = level_promises(service)
    found = _violations(nodes, others, told, service, promises & {accepted_truthfully}, delivers_stable=delivers_stable)
    delivered_everywhere = np.all(delivered(run) | ~due(run, service), axis=0)
    at_the_end = known & gone
    at_the_end[known] &= delivered_everywhere[message[known]]
    if at_the_end.any():
        judged = _only_about(others, index, np.unique(message[at_the_end]))
        rest = levels.filter(pa.array(at_the_end))
        found += _violations(
            nodes, judged, rest, service, promises - {accepted_truthfully}, delivers_stable=delivers_stable
        )
    return found


def _violations(
    nodes: int,
    others: pa.Table,
    levels: pa.Table,
    service: Service,
    promises: Collection[Property],
    *,
    delivers_stable: bool,
) -> list[Violation]:
    batches = [*others.to_batches(), *levels.to_batches()]
    run = replace(columns_of(nodes, batches), delivers_stable=delivers_stable)
    if service not in SELECTIVE:
        run = replace(run, sends=replace(run.sends, addressed=np.ones_like(run.sends.addressed)))
    if levels_truthful(with_known_deliveries(run), promises):
        return []
    logs = replace(logs_of("", nodes, map(as_lists, batches)), delivers_stable=delivers_stable)
    if service not in SELECTIVE:
        logs = logs.addressed_to_everybody()
    in_order = [promise for promise in LEVEL_SOUNDNESS if promise in promises]
    return [violation for promise in in_order for violation in islice(promise(logs), MOST_WITNESSES)]


def _only_about(others: pa.Table, index: MessageIndex, chosen: Numbers) -> pa.Table:
    """The rows about some messages, and those about nodes."""
    about = pc.is_in(others.column(EVENT), pa.array([EventKind.SEND.value, EventKind.DELIVER.value]))
    return others.filter(pa.array(~np.asarray(about) | np.isin(_indices(others, index), chosen)))


def _indices(rows: pa.Table, index: MessageIndex) -> Numbers:
    """Of the messages that rows are about."""
    source, seq = (numbers(rows.column(name).combine_chunks(), -1) for name in (SOURCE, SEQ))
    return index.of(source, seq)
