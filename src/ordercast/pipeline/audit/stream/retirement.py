"""Which messages of a growing run need not be kept: nothing that may still come is judged by them.

A message is retired when every node has it, or has passed it: the node delivered something that comes behind it, so
that it can only be delivered too late. Such a *missing* delivery is remembered by itself, and everything else is
forgotten; so what is kept does not grow with what was lost.

- Without one order, a node has passed a message when it delivered a later one of the same sender.
- With one order for everybody, the logs are merged, and everything is retired up to where the slowest node is.
- With one order for what two nodes have in common, everything is retired up to a cut point that no log crosses.
- By priority without one order, a message is retired when all have it.
"""

from typing import NamedTuple

import numpy as np

from ordercast.audit.order import no_cycle, sender_order_kept
from ordercast.audit.services import PROMISES
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.columns import Flags, Numbers, RunColumns
from ordercast.pipeline.audit.stream.deliveries import delivered, due, known_deliveries

_SPACE = 1 << 20  # between two places of the longest log: room for what it lacks


class Retirement(NamedTuple):
    """What is retired, of the messages of a run by index."""

    retired: Flags
    missing: Flags
    """By node and message: retired although the node lacks it."""


def retirement(run: RunColumns, service: Service, waits_for: Flags) -> Retirement:
    """What is to be retired; `waits_for`: the nodes that have to have everything, or to pass it."""
    given = delivered(run)
    awaited = due(run, service) & ~given & waits_for[:, None]
    lacking = awaited
    promises = PROMISES[service]
    if sender_order_kept in promises:
        lacking = awaited & ~_passed_by_sender(run, given)
    if no_cycle not in promises:
        retired: Flags = np.logical_not(lacking.any(axis=0))
        if sender_order_kept in promises:
            retired &= _below(run, _first_of_each_source(run, ~retired))
    elif service in SELECTIVE:
        retired = _below(run, _closed(run, np.any(lacking, axis=0), waits_for))
    else:
        retired = _merged(run, waits_for)
        if sender_order_kept in promises:  # sent, delivered nowhere, and passed everywhere
            retired |= ~given.any(axis=0) & ~lacking.any(axis=0)
    return Retirement(retired, awaited & retired)


def retired_in_views(run: RunColumns, service: Service, excused: Flags) -> Flags:
    """The messages that all have, in a group whose members join; `excused`: by node and message, need not have it."""
    given = delivered(run) | excused
    given[list(run.stopped)] = True
    lacking = np.any(due(run, service) & ~given, axis=0)
    if no_cycle not in PROMISES[service]:
        return _below(run, _first_of_each_source(run, lacking))
    return _below(run, _closed(run, lacking, np.ones(run.nodes, np.bool_)))


def _passed_by_sender(run: RunColumns, given: Flags) -> Flags:
    """By node and message: whether the node has a later message of the same sender."""
    passed = np.zeros_like(given)
    for source in range(run.nodes):
        start, end = int(run.sends.starts[source]), int(run.sends.starts[source + 1])
        if end - start > 1:
            later = np.logical_or.accumulate(given[:, start + 1 : end][:, ::-1], axis=1)[:, ::-1]
            passed[:, start : end - 1] = later
    return passed


def _first_of_each_source(run: RunColumns, chosen: Flags) -> Numbers:
    """By source: the index of its first message that is chosen, or the end of its messages."""
    ends = run.sends.starts[1:].copy()
    places = np.flatnonzero(chosen)
    np.minimum.at(ends, run.sends.source[places], places)
    return ends


def _below(run: RunColumns, ends: Numbers) -> Flags:
    return np.arange(run.sends.seq.size) < ends[run.sends.source]


def _logs(run: RunColumns, nodes: Flags) -> list[Numbers]:
    """What each of these nodes has delivered, in its order."""
    rows = known_deliveries(run)
    return [rows.message[rows.node == node] for node in np.flatnonzero(nodes)]


def _closed(run: RunColumns, lacking: Flags, waits_for: Flags) -> Numbers:
    """By source: the index of its first message that is lacking, or that a log has behind such a message."""
    ends = _first_of_each_source(run, lacking)
    logs = _logs(run, waits_for)
    while True:
        before = ends.copy()
        for log in logs:
            above = np.flatnonzero(log >= ends[run.sends.source[log]])
            if above.size:
                rest = log[above[0] :]
                np.minimum.at(ends, run.sends.source[rest], rest)
        if np.array_equal(before, ends):
            return ends


def _merged(run: RunColumns, waits_for: Flags) -> Flags:
    """Everything that comes before the place of the slowest node in one order of all logs.

    The order is that of the longest log; what it lacks comes behind what was before it elsewhere. A log that is not in
    this order holds up everything from there on.
    """
    logs = _logs(run, waits_for)
    if not logs:
        return np.zeros(run.sends.seq.size, np.bool_)
    place = np.full(run.sends.seq.size, -1, np.int64)
    longest = max(logs, key=len)
    place[longest] = (1 + np.arange(longest.size)) * _SPACE
    for log in logs:
        (unknown,) = np.nonzero(place[log] < 0)
        if unknown.size:
            ranks = np.where(place[log] >= 0, np.arange(log.size), -1)
            last = np.maximum.accumulate(ranks)[unknown]
            base = np.where(last >= 0, place[log[last]], 0)
            place[log[unknown]] = base + np.minimum(unknown - last, _SPACE - 1)
    end = int(place.max(initial=-1)) + 1
    for log in logs:
        places = place[log]
        falls = np.flatnonzero(places[1:] <= places[:-1])
        if falls.size:
            first = int(falls[0])
            end = min(end, int(places[first]) + 1, int(places[first + 1]))
        else:
            end = min(end, int(places[-1]) + 1 if places.size else 0)
    return (place >= 0) & (place < end)
