"""The vectorised audit of one run: array operations that find that it passes, or cannot tell.

It repeats the reference audit for speed, and reports no violations: a run that does not pass is left to the reference
audit, which counts them. A check that is too strict here costs time; one that is too lenient would hide violations, and
`tests/pipeline/test_audit_kernel.py` compares both audits on thousands of runs.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ordercast.audit.completeness import complete
from ordercast.audit.logs import LEVELS
from ordercast.audit.order import no_cycle, same_order, sender_order_kept
from ordercast.audit.priorities import same_runs, sender_order_kept_by_priority
from ordercast.audit.services import LEVEL_SOUNDNESS, PROMISES, Property
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.views import delivered_uniformly
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.columns import UNKNOWN, EventArrays, Flags, Numbers, RunColumns
from ordercast.pipeline.audit.kernel.levels import levels_truthful
from ordercast.trace.schema import EventKind

_COVERED_BY: dict[Property, Property] = {same_order: no_cycle, delivered_uniformly: no_cycle}
"""Properties that are checked together with another: without a cycle in the union of all orders, no two disagree."""
_CHECKED: frozenset[Property] = frozenset(
    {
        *(complete, sender_order_kept, same_runs, sender_order_kept_by_priority, priority_order_kept, no_cycle),
        *LEVEL_SOUNDNESS,
    }
)


def passes(
    run: RunColumns, service: Service, *, uniform: bool = False, one_clock: bool = True, so_far: bool = False
) -> bool:
    """True if every property of the service holds; False if one is violated, or if it is unknown.

    `one_clock`: times of different nodes are comparable. `so_far`: the run goes on; priority runs are not compared.
    Raises `NotImplementedError` if the service promises a property that is not checked here.
    """
    promises = PROMISES[service]
    _require_checked(promises)
    named = run.sends.addressed
    if service not in SELECTIVE:
        run = replace(run, sends=replace(run.sends, addressed=np.ones_like(run.sends.addressed)))
    logs = run.events[EventKind.DELIVER]
    if not _complete(run, logs, named) or is_before_sent(run, logs, one_clock=one_clock) or _after_crash(run):
        return False
    return (
        _senders_orders_kept(run, logs, promises, so_far=so_far)
        and _logs_agree(run)
        and (no_cycle not in promises or _in_one_order(run, logs, service, uniform=uniform))
        and (not run.levels_recorded or _levels_kept(run, logs, promises))
    )


def _senders_orders_kept(run: RunColumns, logs: EventArrays, promises: Collection[Property], *, so_far: bool) -> bool:
    if sender_order_kept in promises and not in_sending_order(run, logs):
        return False
    throughout = sender_order_kept_by_priority in promises
    if so_far:
        return not throughout or in_sending_order_by_priority(run, logs)
    return same_runs not in promises or _same_runs(run, logs, throughout=throughout)


def _in_one_order(run: RunColumns, logs: EventArrays, service: Service, *, uniform: bool) -> bool:
    common = _without_tails(run, logs) if run.stopped and service is Service.SEQUENCED else logs
    return not (uniform and common.node.size < logs.node.size) and is_one_order(run, common)


def _levels_kept(run: RunColumns, logs: EventArrays, promises: Collection[Property]) -> bool:
    if priority_order_kept in promises and run.transmissions_recorded and overtakes(run, logs):
        return False
    return levels_truthful(run, promises)


def _logs_agree(run: RunColumns) -> bool:
    """True if the log of each node is the beginning of the longest, or if there are no logs."""
    written = run.events[EventKind.DURABLE]
    if not written.node.size:
        return True
    if not run.views_numbered or written.message.min() == UNKNOWN:
        return False
    logs = [written.message[written.node == node] for node in range(run.nodes)]
    longest = max(logs, key=len)
    return all(np.array_equal(log, longest[: log.size]) for log in logs)


def _require_checked(promises: Collection[Property]) -> None:
    for promise in promises:
        if promise not in _CHECKED and _COVERED_BY.get(promise) not in promises:
            raise NotImplementedError(
                f"the vectorised audit does not check {promise.__name__}; check it in kernel/checks.py"
            )
    if sender_order_kept_by_priority in promises and same_runs not in promises:
        raise NotImplementedError("the vectorised audit checks sender_order_kept_by_priority only with same_runs")


def _complete(run: RunColumns, logs: EventArrays, named: Flags) -> bool:
    """Each node delivered what is addressed to it, nothing else and nothing twice; a stopped node may lack some.

    `named`: by node and message: whether the `send` names the node, even if the service broadcasts.
    """
    if logs.message.size and logs.message.min() == UNKNOWN:
        return False
    addressed = run.sends.addressed
    given = np.zeros_like(addressed)
    given[logs.node, logs.message] = True
    if np.count_nonzero(given) < logs.message.size or np.any(given > named):
        return False
    if not run.stopped:
        return logs.message.size == np.count_nonzero(addressed)
    going_on = [node for node in range(run.nodes) if node not in run.stopped]
    lacking = np.any(addressed[going_on] & ~given[going_on], axis=0)
    lost_with_its_source = np.isin(run.sends.source, list(run.stopped)) & ~np.any(given[going_on], axis=0)
    return not np.any(lacking & ~lost_with_its_source)


def is_before_sent(run: RunColumns, logs: EventArrays, *, one_clock: bool) -> bool:
    """True if a node delivered something before it was sent. All delivered messages must have been sent."""
    early = run.sends.time[logs.message] > logs.time if one_clock else np.zeros(logs.message.size, np.bool_)
    (own,) = np.nonzero(run.sends.source[logs.message] == logs.node)
    early[own] = run.sends.step[logs.message[own]] > logs.step[own]
    return bool(early.any())


def _after_crash(run: RunColumns) -> bool:
    """True if a node sent or delivered something, or reached a level for the first time, after it had crashed."""
    for at, crash in run.crashed_at.items():
        if np.any(run.sends.step[run.sends.source == at] > crash):
            return True
        for kind in (EventKind.DELIVER, *LEVELS):
            rows = run.events[kind]
            step, message = rows.step[rows.node == at], rows.message[rows.node == at]
            if np.setdiff1d(message[step > crash], message[step < crash]).size:
                return True
    return False


def in_sending_order(run: RunColumns, logs: EventArrays) -> bool:
    """True if each node delivered the messages of each source in the order in which it sent them."""
    group = logs.node.astype(np.int32) * run.nodes + run.sends.source[logs.message]
    return _rises_within(group.astype(np.int16) if run.nodes <= 180 else group, logs.message)


def in_sending_order_by_priority(run: RunColumns, logs: EventArrays) -> bool:
    """The same of the messages of one source that have the same priority."""
    _, rank = np.unique(run.sends.priority, return_inverse=True)
    group = logs.node.astype(np.int64) * run.nodes + run.sends.source[logs.message]
    return _rises_within(group * (int(rank.max(initial=0)) + 1) + rank[logs.message], logs.message)


def _rises_within(group: npt.NDArray[np.signedinteger], values: Numbers) -> bool:
    """True if the values increase within each group."""
    order = np.argsort(group, kind="stable")
    values, group = values[order], group[order]
    return bool(np.all((values[1:] > values[:-1]) | (group[1:] != group[:-1])))


def is_one_order(run: RunColumns, logs: EventArrays) -> bool:
    """True if the union of all receipt orders is acyclic; then no two of them disagree."""
    messages = run.sends.seq.size
    if logs.message.size == run.nodes * messages:  # all messages went to all nodes: the logs must be equal
        by_node = logs.message.reshape(run.nodes, messages)
        return bool(np.all(by_node[1:] == by_node[0]))
    return acyclic(messages, logs.node, logs.message)


def acyclic(messages: int, node: npt.NDArray[np.signedinteger], message: Numbers) -> bool:
    """True if logs, concatenated by node, have a common order. A log contains a message at most once."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and broadcasts need none of it
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    neighbours = node[1:] == node[:-1]
    before, after = message[:-1][neighbours].astype(np.int32), message[1:][neighbours].astype(np.int32)
    graph = csr_array((np.ones(before.size, np.int8), (before, after)), shape=(messages, messages))
    found, _ = connected_components(graph, directed=True, connection="strong")
    return bool(found == messages)


def _without_tails(run: RunColumns, logs: EventArrays) -> EventArrays:
    """Cuts the log of each stopped node where it departs from the common log."""
    bounds = np.searchsorted(logs.node, np.arange(run.nodes + 1))
    log_of = [logs.message[start:end] for start, end in pairwise(bounds)]
    going_on = [node for node in range(run.nodes) if node not in run.stopped]
    views = [len(run.views.get(node, ())) for node in range(run.nodes)]
    last = [node for node in range(run.nodes) if views[node] == max(views)]
    common = max((log_of[node] for node in going_on or last), key=len)
    kept = np.ones(logs.node.size, np.bool_)
    for node in run.stopped:
        log = log_of[node]
        both = min(log.size, common.size)
        differs = log[:both] != common[:both]
        departs_at = int(np.argmax(differs)) if differs.any() else both
        kept[bounds[node] + departs_at : bounds[node + 1]] = False
    return EventArrays(logs.node[kept], logs.step[kept], logs.time[kept], logs.message[kept])


def _same_runs(run: RunColumns, logs: EventArrays, *, throughout: bool) -> bool:
    """True if all logs have the same priority runs, each in its senders' order; `throughout`: also across runs."""
    if run.stopped:
        return False  # the reference audit knows how much of a run it may lack
    _, rank = np.unique(run.sends.priority, return_inverse=True)
    ranks = int(rank.max(initial=0)) + 1
    priority = rank[logs.message]
    same_node = logs.node[1:] == logs.node[:-1]
    number = np.zeros(logs.node.size, np.int64)
    np.cumsum((priority[1:] > priority[:-1]) & same_node, out=number[1:])
    starts = np.searchsorted(logs.node, np.arange(run.nodes))
    if number.size:
        number -= number[np.minimum(starts, number.size - 1)][logs.node]
    by_message = np.zeros(run.sends.addressed.shape, np.int64)
    by_message[logs.node, logs.message] = number
    if np.any(by_message[1:] != by_message[0]):
        return False
    group = (logs.node.astype(np.int64) * run.nodes + run.sends.source[logs.message]) * ranks + priority
    if not throughout:
        group = group * (int(number.max(initial=0)) + 1) + number
    return _rises_within(group, logs.message)


def overtakes(run: RunColumns, logs: EventArrays) -> bool:
    """True if a node delivered something while it had pre-acknowledged something more urgent, which waited.

    At a marker that is right; the reference audit knows where markers are. A log has each message once, as sent.
    """
    stable = run.events[EventKind.PREACK]
    (known,) = np.nonzero(stable.message != UNKNOWN)
    node = np.concatenate((stable.node[known], logs.node))
    message = np.concatenate((stable.message[known], logs.message))
    delivers = np.arange(node.size) >= known.size
    order = np.lexsort((np.concatenate((stable.step[known], logs.step)), node))
    node, message, delivers = node[order], message[order], delivers[order]
    _, first, which = np.unique(
        node.astype(np.int64) * run.sends.seq.size + message, return_index=True, return_inverse=True
    )
    waits = ~delivers[first]  # by node and message: it was pre-acknowledged before it was delivered
    change = np.zeros(node.size, np.int8)
    change[first[waits]] = 1
    change[delivers & waits[which]] = -1
    _, rank = np.unique(run.sends.priority, return_inverse=True)
    urgency = rank[message]
    starts = np.searchsorted(node, np.arange(run.nodes))
    for least in range(1, int(urgency.max(initial=0)) + 1):
        waiting = np.concatenate(([0], np.cumsum(np.where(urgency >= least, change, 0))))
        if np.any((waiting[1:] > waiting[starts][node]) & delivers & (urgency < least)):
            return True
    return False
