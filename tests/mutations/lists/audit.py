"""Deliberate breakages of the reference audit: a promise that it does not look at, or looks at wrongly."""

from tests.mutations.mutation import changes

COMPLETE = changes(
    "audit.completeness",
    ("two messages of one name", "    yield from _numbered_twice(logs)\n", ""),
    ("nothing is lacking", "    yield from _lacking(logs)\n", ""),
    ("nothing is too much", "        yield from _surplus(logs, node, log)\n", "        pass\n"),
    ("who stopped owes all", " and to not in logs.stopped]", "]"),
    (
        "what a stopped node sent is owed by none",
        "(message[0] in logs.stopped and not any(message in seen[node] for node in going_on))",
        "message[0] in logs.stopped",
    ),
    (
        "what a stopped node sent is owed by all",
        "(message[0] in logs.stopped and not any(message in seen[node] for node in going_on))",
        "False",
    ),
    ("those that stopped have it too", "if node not in logs.stopped]\n    for", "]\n    for"),
    ("twice is once", "if message in first_place:", "if False:"),
    ("what nobody sent", "elif sent is None:", "elif False:"),
    ("what is for others", "elif not sent.destinations >> node & 1:", "elif False:"),
    ("the last place is the first", "first_place.setdefault(message, place)", "first_place[message] = place"),
)

ORDER = changes(
    "audit.order",
    ("sender order turned round", "logs.sent[message].place < logs.sent[before].place:", "False:"),
    (
        "only the first of a sender counts",
        "            latest[source] = message\n",
        "            latest.setdefault(source, message)\n",
    ),
    (
        "one sender for all",
        "            source = message[0]\n            before = latest",
        "            source = 0\n            before = latest",
    ),
    ("unsent messages count", "            if message not in logs.sent:\n                continue\n", ""),
    ("pairs are not looked at", "if next(_cycles(all_places), None) is None:", "if True:"),
    (
        "only the first pair is looked at",
        "for other in range(one + 1, logs.nodes):",
        "for other in range(one + 1, one + 2):",
    ),
    ("neighbours do not move on", "        before = message\n\n\n", "\n\n"),
    ("the last place counts", "first.setdefault(message, place)", "first[message] = place"),
    ("one log is enough to leave", "if len(heads) == self._held_by[message]:", "if heads:"),
    ("cycles are told once", "        merge.forget([message for message, _ in cycle])\n", "        return\n"),
    ("cycles are long", "    for length in range(2, size):\n", "    for length in range(size, size):\n"),
)

PRIORITIES = changes(
    "audit.priorities",
    (
        "runs are cut where priority falls",
        "enumerate(pairwise(log), start=1) if before.priority < after",
        "enumerate(pairwise(log), start=1) if before.priority > after",
    ),
    (
        "runs are cut between equals",
        "start=1) if before.priority < after.priority]",
        "start=1) if before.priority <= after.priority]",
    ),
    (
        "runs may rise",
        "return not any(before.priority < after.priority for before, after in pairwise(log)) and",
        "return",
    ),
    ("senders may be swapped in runs", " and not any(_swapped(log))", ""),
    ("runs are never counted", "return len(some_runs) == len(other_runs) and", "return"),
    ("runs are only counted", " and all(map(priority_equivalent, some_runs, other_runs))", ""),
    ("swaps in runs are passed over", "for before, after in _swapped(run):", "for before, after in ():"),
    (
        "swaps between runs are passed over",
        "for before, after in _swapped(_as_sent(logs, node)):",
        "for before, after in ():",
    ),
    ("priorities do not matter for swaps", "key = (sent.message[0], sent.priority)", "key = (sent.message[0], 0)"),
    ("senders do not matter for swaps", "key = (sent.message[0], sent.priority)", "key = (0, sent.priority)"),
    ("a stopped node is the measure", "key=lambda node: (node not in logs.stopped, len", "key=lambda node: (0, len"),
    ("the shortest log is the measure", "len(logs.delivered[node]), -node))", "-len(logs.delivered[node]), -node))"),
    (
        "who stopped owes its last run",
        "node_ends = node in logs.stopped and number >= len(runs) - 1",
        "node_ends = False",
    ),
    (
        "who stopped owes nothing",
        "node_ends = node in logs.stopped and number >= len(runs) - 1",
        "node_ends = node in logs.stopped",
    ),
    ("surplus is passed over", "surplus = sorted(mine - right) if", "surplus = [] if"),
    ("what lacks is passed over", "lacking = sorted(right - mine) if", "lacking = [] if"),
    ("runs need not be the whole log", "return list(chain.from_iterable(parts)) == list(log) and", "return"),
    (
        "runs may be joined",
        "return is_run_partition(parts, log) and all(",
        "return is_run_partition(parts, log) or all(",
    ),
)

LEVELS = changes(
    "audit.levels",
    (
        "what nobody sent is accepted",
        "            if this is None:\n                sentence = _claim",
        "            if this is None:\n                continue\n                sentence = _claim",
    ),
    ("accepted without receipt", "if checks_receipt and not _had(logs, node, this, moment):", "if False:"),
    ("accepted before what came first", "due[next_due[source]].place < this.place:", "False:"),
    ("accepting does not count", "            accepted.add(message)\n", ""),
    ("preack after receive", "EventKind.PREACK, EventKind.ACCEPT, pre", "EventKind.PREACK, EventKind.SEND, pre"),
    ("ack after accept", "EventKind.ACK, EventKind.PREACK, ack", "EventKind.ACK, EventKind.ACCEPT, ack"),
    ("who gives up delivers nothing", "(preacknowledged.get(message) if at_the_end else None)", "None"),
    (
        "anybody delivers what is preacknowledged",
        "at_the_end = end is not None and moment.time == end.time",
        "at_the_end = True",
    ),
    ("delivered first, acknowledged later", " or known.step > moment.step:", ":"),
    ("an effect before its own cause", "(own is None or own.step < moment.step)", "True"),
    ("the last cause may be later", "if latest is not None and latest <= moment.time and", "if latest is not None and"),
    ("instants are too late", "else cause.time > effect.time)", "else cause.time >= effect.time)"),
    ("who never had it is in time", "if cause is None or (", "if cause is not None and ("),
    ("other steps are compared", "if to == node else cause.time > effect.time)", "if True else False)"),
    ("views do not matter", "logs.members_at(node, moment) & ~logs.unseen", "-1"),
    ("the unseen are counted in", " & ~logs.unseen)", ")"),
    ("own messages must be received", "if sent.message[0] == node and sent.moment.step < moment.step:", "if False:"),
    (
        "received later is in time",
        "return received is not None and received.step < moment.step",
        "return received is not None",
    ),
)

VIEWS = changes(
    "audit.views",
    ("tails are always judged", "    if not logs.uniform:\n        return\n", ""),
    ("tails are never judged", "    if not logs.uniform:\n", "    if True:\n"),
    ("a minority goes on", "blocked = not _is_majority(logs)", "blocked = False"),
    ("nobody goes on", "blocked = not _is_majority(logs)", "blocked = True"),
    ("half is most", "return 2 * going_on.bit_count() > members", "return 2 * going_on.bit_count() >= members"),
    ("the first view is the latest", "members = latest[-1][1] if latest", "members = latest[0][1] if latest"),
    ("those that stopped go on", "going_on = members & ~mask_of(logs.stopped)", "going_on = members"),
    ("tails stay", "log[: _departs_at(log, common)] if node in logs.stopped else log", "log"),
    ("all logs are cut", " if node in logs.stopped else log for", " for"),
    (
        "the longest of all is common",
        "for node in going_on or last), key=len)",
        "for node in range(logs.nodes)), key=len)",
    ),
    ("a log departs one later", "            return place\n", "            return place + 1\n"),
    ("a shorter log is no beginning", "return min(len(log), len(common))", "return 0"),
    ("what is behind the end is common", "return min(len(log), len(common))", "return len(log)"),
)

MUTATIONS = [*COMPLETE, *ORDER, *PRIORITIES, *LEVELS, *VIEWS]
