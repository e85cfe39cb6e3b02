"""Deliberate breakages of the audit by arrays, and of where long runs are cut: too lenient, or needlessly strict."""

from tests.mutations.mutation import changes

KERNEL = changes(
    "pipeline.kernel",
    ("addresses count where all goes to all", "if service not in SELECTIVE:", "if False:"),
    ("addresses never count", "if service not in SELECTIVE:", "if True:"),
    ("nothing need be complete", "if not _complete(run, logs):", "if False:"),
    ("sender order is not looked at", "if sender_order_kept in promises and not", "if False and not"),
    ("runs are not looked at", "if same_runs in promises and not", "if False and not"),
    ("priorities only within runs", "throughout=sender_order_kept_by_priority in promises", "throughout=False"),
    ("order is not looked at", "if no_cycle in promises:", "if False:"),
    ("tails count", "if run.stopped and service is Service.SEQUENCED else logs", "if False else logs"),
    ("tails never count", "if run.stopped and service is Service.SEQUENCED else logs", "if run.stopped else logs"),
    ("uniform or not", "if uniform and judged.node.size < logs.node.size:", "if False:"),
    ("levels are not looked at", "return not run.levels_recorded or levels_truthful(run, promises)", "return True"),
    ("what nobody sent", "if logs.message.size and logs.message.min() == UNKNOWN:", "if False:"),
    ("twice is once", "if np.count_nonzero(given) < logs.message.size or np", "if np"),
    ("what is for others", " or np.any(given > addressed):", ":"),
    ("nobody lacks", "return logs.message.size == np.count_nonzero(addressed)", "return True"),
    (
        "who stopped owes all",
        "going_on = [node for node in range(run.nodes) if node not in run.stopped]\n    lacking",
        "going_on = list(range(run.nodes))\n    lacking",
    ),
    ("what a stopped node sent is owed by none", " & ~np.any(given[going_on], axis=0)", ""),
    ("lost messages are lacking", "return not np.any(lacking & ~lost_with_its_source)", "return not np.any(lacking)"),
    ("all senders are one", "* run.nodes + run.sends.source[logs.message]\n    return", "* run.nodes\n    return"),
    ("equal is rising", "(values[1:] > values[:-1]) |", "(values[1:] >= values[:-1] - 1) |"),
    ("groups flow together", " | (group[1:] != group[:-1])", ""),
    ("the first two logs are enough", "by_node[1:] == by_node[0]", "by_node[1:2] == by_node[0]"),
    ("cycles need not be looked for", "return bool(found == messages)", "return True"),
    ("logs are one log", "neighbours = node[1:] == node[:-1]", "neighbours = node[1:] >= 0"),
    ("weak components", 'connection="strong"', 'connection="weak"'),
    ("logs of stopped nodes are whole", "kept[bounds[node] + departs_at : bounds[node + 1]] = False", "pass"),
    ("a log departs two later", "kept[bounds[node] + departs_at :", "kept[bounds[node] + departs_at + 2 :"),
    ("logs depart at their ends", "int(np.argmax(differs)) if differs.any() else both", "both"),
    (
        "the longest of all is common",
        "for node in going_on or last), key=len)",
        "for node in range(run.nodes)), key=len)",
    ),
    (
        "runs of stopped nodes are judged",
        "        return False  # how much of a run",
        "        return True  # how much of a run",
    ),
    ("runs need not be the same", "if np.any(by_message[1:] != by_message[0]):", "if False:"),
    ("priorities do not matter", ") * ranks + priority\n", ") * ranks\n"),
    ("runs do not matter", "    if not throughout:\n", "    if False:\n"),
)

LEVELS = changes(
    "pipeline.kernel_levels",
    ("acceptance is believed", "or _accepted(run, firsts))", "or True)"),
    ("pre-acknowledgment is believed", "or _after(run, firsts, EventKind.PREACK, EventKind.ACCEPT))", "or True)"),
    ("acknowledgment is believed", "or _after(run, firsts, EventKind.ACK, EventKind.PREACK))", "or True)"),
    ("delivery is believed", "or _delivered(run, firsts))", "or True)"),
    ("the last time counts", "(rows.message != UNKNOWN)[::-1]", "(rows.message != UNKNOWN)"),
    ("what nobody sent is known", "return not np.any(run.happened[kind].message == UNKNOWN)", "return True"),
    ("receipts are not looked at", "    if run.receipts_recorded:\n", "    if False:\n"),
    ("received at the same step", "had = received < steps", "had = received <= steps + 1"),
    (
        "own messages must be received",
        "        had[run.sends.source, messages] |= run.sends.step < steps[run.sends.source, messages]\n",
        "",
    ),
    ("what is for others is due", "np.where(run.sends.addressed, steps, -1)", "np.where(True, steps, -1)"),
    ("nothing is due", "np.where(run.sends.addressed, steps, -1)", "np.where(False, steps, -1)"),
    (
        "only the neighbour is due",
        "np.maximum.accumulate(due[:, start:end], axis=1)[:, :-1]",
        "due[:, start:end][:, :-1]",
    ),
    ("times do not matter", "late = cause_times[to] > effect_times", "late = cause_times[to] > effect_times + 10**9"),
    ("at one instant is too late", "late = cause_times[to] > effect_times", "late = cause_times[to] >= effect_times"),
    ("own steps do not matter", "        late[to] = cause_steps[to] > effect_steps[to]\n", ""),
    (
        "who never had it is in time",
        "        late |= cause_steps[to] == NEVER\n",
        "        late &= cause_steps[to] != NEVER\n",
    ),
    ("addresses do not matter", "late &= happened & run.sends.addressed[to]", "late &= happened"),
    ("views do not matter", "        if run.views:\n", "        if False:\n"),
    ("nobody delivers as it gives up", "    if run.gave_up:\n", "    if False:\n"),
    (
        "acknowledged later is in time",
        "return not np.any((steps < NEVER) & (known > steps))",
        "return not np.any((steps < NEVER) & (known == NEVER))",
    ),
)

JUDGING = changes(
    "pipeline.judging",
    ("all are acquitted", "if not row.get(UNSEEN) and acquitted(row, run, asked):", "if True:"),
    ("nobody counts", " and not uncounted(row, sends, deliveries)", ""),
    ("who gave up is not known", "if row[ABORTED] and not run.stopped:", "if False:"),
    ("deliveries are not counted", "    verdict.deliveries += int(run.happened[EventKind.DELIVER].node.size)\n", ""),
    ("what is not recorded is good", "if promise in TRUTHS and not run.levels_recorded:", "if False:"),
)

CUTS = changes(
    "pipeline.cuts",
    (
        "boxes lose their first row groups",
        "(self.lowest < end) & (self.highest >= start)",
        "(self.lowest < end) & (self.highest > start)",
    ),
    (
        "boxes read one row group more",
        "(self.lowest < end) & (self.highest >= start)",
        "(self.lowest <= end) & (self.highest >= start)",
    ),
    ("cuts are never closed", "        if closed:\n", "        if False:\n"),
    ("the last box ends early", "return [*found, everything]", "return found"),
    ("cuts may fall", "if np.all(cut >= below) and np.any(cut > below):", "if True:"),
    ("a cut is below the last message", "seen, seen + 1)", "seen, seen)"),
    (
        "one round is enough",
        "for _ in range(_MOST_ROUNDS):\n        wider = cut",
        "for _ in range(1):\n        wider = cut",
    ),
    (
        "one node is enough",
        "for node in range(survey.nodes):\n            grown",
        "for node in range(1):\n            grown",
    ),
    ("nothing is taken in", "np.maximum.at(cut, source[:last], seq[:last] + 1)", "pass"),
    (
        "too much is taken in",
        "np.maximum.at(cut, source[:last], seq[:last] + 1)",
        "np.maximum.at(cut, source[:last], seq[:last] + 2)",
    ),
    ("deliveries of all nodes", " & (values(batch.column(NODE)) == node)", ""),
    ("other events are deliveries", "(kinds_of(batch.column(EVENT)) == CODES[EventKind.DELIVER]) & ", ""),
)

MUTATIONS = [*KERNEL, *LEVELS, *JUDGING, *CUTS]
