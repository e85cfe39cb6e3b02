"""Records of live members: what can be concluded when some of them are incomplete.

Each member of a live group keeps its own record. A member that was killed leaves a record that ends early, and one
whose machine is gone leaves none. Such a node is *unrecorded*: it may have done more than its record shows. It is
audited as a node that stopped; nothing is concluded from what it did not record; and what others delivered of it counts
as sent by it, in the order of its sequence numbers.
"""

import json
from collections.abc import Iterable
from dataclasses import replace

from ordercast.audit.logs import Moment, RunLogs, Sent
from ordercast.audit.names import NAMES, live_of, log_of
from ordercast.audit.violations import Message
from ordercast.model.nodes import everybody, members, name_of
from ordercast.trace.reader import RunRow
from ordercast.trace.schema import ABORTED, COMPLETE, CONFIG, NODE, RUN, EventKind

UNRECORDED = "unrecorded"
"""Of a run's row: the nodes without a complete record, one bit each."""
ABSENT = "absent"
"""Of a run's row: those of them without any record."""


def members_join(row: RunRow) -> bool:
    """True if a row is of one member of a group that others may join."""
    try:
        return row.get(NODE) is not None and bool(json.loads(row.get(CONFIG) or "{}")["group"]["views"])
    except (KeyError, TypeError, ValueError):
        return False


def unrecorded_in(row: RunRow) -> int:
    """The nodes of which this row's record is not complete, known ones and others; a record of all nodes always is."""
    node = row.get(NODE)
    if node is None:
        return 0
    ended = row.get(COMPLETE) or row.get(ABORTED)
    return ~((1 << node) if ended else 0)


def absent_in(row: RunRow) -> int:
    """The nodes that this row is not of, known ones and others."""
    node = row.get(NODE)
    return 0 if node is None else ~(1 << node)


def has_one_clock(row: RunRow) -> bool:
    """True if times of different nodes are comparable: not if members on several machines recorded them."""
    return bool(live_of(row).get("one_clock", log_of(row).get("one_clock", True)))


def incomplete_records(rows: Iterable[RunRow]) -> list[str]:
    """A sentence for each run some of whose members left no complete record."""
    return [_sentence(row, row[UNRECORDED]) for row in rows if row[UNRECORDED]]


def _sentence(row: RunRow, unrecorded: int) -> str:
    names = row[NAMES]

    def named(nodes: int) -> str:
        return ", ".join(names[node] if node < len(names) else name_of(node) for node in members(nodes))

    absent = unrecorded & row.get(ABSENT, 0)
    cut = unrecorded & ~absent
    found = [f"the record of {named(cut)} is incomplete"] if cut else []
    if absent:
        found.append(f"{named(absent)} {'has' if absent.bit_count() == 1 else 'have'} no record")
    recorded = "it and the others" if cut else "the others"
    return f"run {row[RUN]}: {', and '.join(found)}; audited as a member that stopped, by what {recorded} recorded"


def with_unrecorded(logs: RunLogs, unrecorded: int, *, selective: bool) -> RunLogs:
    """The logs of a run, given which nodes are unrecorded."""
    if not unrecorded:
        return logs
    stopped = logs.stopped | set(members(unrecorded))
    found = _sends_known_from_others(logs, unrecorded, selective=selective)
    sent = dict(sorted({**logs.sent, **found}.items(), key=lambda item: (item[0][0], item[1].place)))
    return replace(logs, sent=sent, stopped=frozenset(stopped), unrecorded=unrecorded, priorities_known=not found)


def _sends_known_from_others(logs: RunLogs, unrecorded: int, *, selective: bool) -> dict[Message, Sent]:
    """Where not everything goes to everybody, the destinations are taken to be the nodes that have the message."""
    holders: dict[Message, int] = {}
    for kind in (EventKind.ACCEPT, EventKind.DELIVER):
        for node, moments in enumerate(logs.first[kind]):
            for message in moments:
                if message not in logs.sent and message[0] >= 0 and unrecorded >> message[0] & 1:
                    holders[message] = holders.get(message, 0) | 1 << node
    known = [sum(message[0] == source for message in logs.sent) for source in range(logs.nodes)]
    found: dict[Message, Sent] = {}
    for message, nodes in sorted(holders.items()):
        destinations = nodes if selective else everybody(logs.nodes)
        found[message] = Sent(message, known[message[0]], destinations, 0, Moment(-1, 0))
        known[message[0]] += 1
    return found
